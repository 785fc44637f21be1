-- Which of these files were applied.
CREATE TABLE migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL
) STRICT;

-- The catalogue: each record as it was from one version on, up to another, or to the end of time.
CREATE TABLE records (
    since INTEGER PRIMARY KEY,
    until INTEGER NOT NULL DEFAULT 9223372036854775807,
    kind TEXT NOT NULL CHECK (kind IN ('subscriber', 'subscription')),
    id TEXT NOT NULL,
    subscriber TEXT NOT NULL,
    form TEXT NOT NULL,
    UNIQUE (kind, id, until),
    CHECK (since < until)
) STRICT;
CREATE INDEX records_owned ON records (subscriber, kind, id) WHERE until = 9223372036854775807;
CREATE INDEX records_ended ON records (until) WHERE until < 9223372036854775807;

-- One row: the last version, and the one before which history is gone.
CREATE TABLE catalogue (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL,
    compacted INTEGER NOT NULL
) STRICT;
INSERT INTO catalogue VALUES (1, 0, 0);

-- Who writes here; batches up to `pruned` are written, and no longer listed.
CREATE TABLE queries (
    name TEXT PRIMARY KEY,
    pruned INTEGER NOT NULL DEFAULT -1
) STRICT;

-- The batches that are written, with what came of each.
CREATE TABLE batches (
    query TEXT NOT NULL REFERENCES queries (name),
    batch INTEGER NOT NULL,
    delivered INTEGER NOT NULL DEFAULT 0,
    repeated INTEGER NOT NULL DEFAULT 0,
    late INTEGER NOT NULL DEFAULT 0,
    dead INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (query, batch)
) STRICT, WITHOUT ROWID;

-- The last sequence number that each subscriber was given.
CREATE TABLE inboxes (
    subscriber TEXT PRIMARY KEY,
    last INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE deliveries (
    subscriber TEXT NOT NULL REFERENCES inboxes (subscriber),
    sequence INTEGER NOT NULL,
    event TEXT NOT NULL,
    rank REAL NOT NULL,
    position INTEGER NOT NULL,
    won_in TEXT NOT NULL,
    matched TEXT NOT NULL,
    delivered_us INTEGER NOT NULL,
    query TEXT NOT NULL,
    batch INTEGER NOT NULL,
    PRIMARY KEY (subscriber, sequence),
    UNIQUE (subscriber, event)
) STRICT;
CREATE INDEX deliveries_by_time ON deliveries (delivered_us);

-- What was delivered and is pruned: only the keys, so that it is not delivered again.
CREATE TABLE pruned (
    subscriber TEXT NOT NULL,
    event TEXT NOT NULL,
    delivered_us INTEGER NOT NULL,
    PRIMARY KEY (subscriber, event)
) STRICT, WITHOUT ROWID;
CREATE INDEX pruned_by_time ON pruned (delivered_us);

-- Late events and dead letters.
CREATE TABLE letters (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind IN ('late', 'dead')),
    record TEXT NOT NULL,
    reason TEXT NOT NULL,
    query TEXT NOT NULL REFERENCES queries (name),
    batch INTEGER NOT NULL,
    taken_us INTEGER,
    ticket TEXT
) STRICT;
CREATE INDEX letters_taken ON letters (ticket) WHERE ticket IS NOT NULL;
CREATE INDEX letters_waiting ON letters (kind, id) WHERE taken_us IS NULL;
