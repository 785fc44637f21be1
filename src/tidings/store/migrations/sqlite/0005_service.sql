-- Publications as they were accepted, in the order in which a pipeline takes them. The form of a
-- pruned one is null; its id stays, so that it is not accepted again.
CREATE TABLE publications (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    accepted_us INTEGER NOT NULL,
    form TEXT
) STRICT;
CREATE INDEX publications_kept ON publications (accepted_us) WHERE form IS NOT NULL;

-- One row: the last number, and the newest time of publication.
CREATE TABLE intake (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    last INTEGER NOT NULL,
    newest_us INTEGER NOT NULL
) STRICT;
INSERT INTO intake VALUES (1, 0, -9223372036854775807);

-- The steps of the durable engine since its checkpoint: each reaches a time, then a version of the
-- catalogue, then a publication.
CREATE TABLE steps (
    number INTEGER PRIMARY KEY,
    clock_us INTEGER,
    version INTEGER NOT NULL,
    upto INTEGER NOT NULL
) STRICT;

-- One row: the state of the durable engine after a step.
CREATE TABLE checkpoints (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    step INTEGER NOT NULL,
    state TEXT NOT NULL
) STRICT;

-- Who may call the service; only a hash of each secret is here.
CREATE TABLE tokens (
    id TEXT PRIMARY KEY,
    hash TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('admin', 'publisher', 'subscriber')),
    tenant TEXT NOT NULL,
    subscriber TEXT,
    label TEXT NOT NULL,
    created_us INTEGER NOT NULL,
    expires_us INTEGER,
    revoked_us INTEGER,
    CHECK ((role = 'subscriber') = (subscriber IS NOT NULL))
) STRICT;
