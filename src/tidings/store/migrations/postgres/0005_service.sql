-- Publications as they were accepted, in the order in which a pipeline takes them. The form of a
-- pruned one is null; its id stays, so that it is not accepted again.
CREATE TABLE publications (
    number bigint PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    accepted_us bigint NOT NULL,
    form text
);
CREATE INDEX publications_kept ON publications (accepted_us) WHERE form IS NOT NULL;

-- One row: the last number, and the newest time of publication.
CREATE TABLE intake (
    one bigint PRIMARY KEY CHECK (one = 1),
    last bigint NOT NULL,
    newest_us bigint NOT NULL
);
INSERT INTO intake VALUES (1, 0, -9223372036854775807);

-- The steps of the durable engine since its checkpoint: each reaches a time, then a version of the
-- catalogue, then a publication.
CREATE TABLE steps (
    number bigint PRIMARY KEY,
    clock_us bigint,
    version bigint NOT NULL,
    upto bigint NOT NULL
);

-- One row: the state of the durable engine after a step.
CREATE TABLE checkpoints (
    one bigint PRIMARY KEY CHECK (one = 1),
    step bigint NOT NULL,
    state text NOT NULL
);

-- Who may call the service; only a hash of each secret is here.
CREATE TABLE tokens (
    id text COLLATE "C" PRIMARY KEY,
    hash text NOT NULL,
    role text COLLATE "C" NOT NULL CHECK (role IN ('admin', 'publisher', 'subscriber')),
    tenant text COLLATE "C" NOT NULL,
    subscriber text COLLATE "C",
    label text NOT NULL,
    created_us bigint NOT NULL,
    expires_us bigint,
    revoked_us bigint,
    CHECK ((role = 'subscriber') = (subscriber IS NOT NULL))
);
