-- One row: what tells this store from every other one, drawn once.
CREATE TABLE store (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL
) STRICT;
INSERT INTO store VALUES (1, lower(hex(randomblob(16))));
