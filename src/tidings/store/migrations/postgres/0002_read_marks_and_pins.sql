-- Up to where each subscriber has read.
ALTER TABLE inboxes ADD COLUMN read bigint NOT NULL DEFAULT 0;

-- The version of the catalogue that the last batch of each query sees.
CREATE TABLE pins (
    query text COLLATE "C" PRIMARY KEY,
    batch bigint NOT NULL,
    version bigint NOT NULL
);
