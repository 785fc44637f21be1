-- Up to where each subscriber has read.
ALTER TABLE inboxes ADD COLUMN read INTEGER NOT NULL DEFAULT 0;

-- The version of the catalogue that the last batch of each query sees.
CREATE TABLE pins (
    query TEXT PRIMARY KEY,
    batch INTEGER NOT NULL,
    version INTEGER NOT NULL
) STRICT;
