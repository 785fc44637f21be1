-- The deliveries of all subscribers are the outbox of the store. Each has a number in the order of
-- commits: a writer takes its numbers under a lock that it keeps until it has committed, so what
-- is visible up to a number is complete.
ALTER TABLE deliveries ADD COLUMN number INTEGER;
UPDATE deliveries SET number = rowid;
CREATE UNIQUE INDEX deliveries_by_number ON deliveries (number);
CREATE TABLE outbox (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    last INTEGER NOT NULL
) STRICT;
INSERT INTO outbox SELECT 1, coalesce(max(number), 0) FROM deliveries;

-- Where deliveries are sent: those of one subscriber, or of all without one. What was delivered up
-- to `reached` is sent or listed in `channel_failures`; `reached` is a sequence of the subscriber,
-- or a number of the outbox. Nothing is sent before `next_us`, nor by another dispatcher than
-- `leased_by` before `leased_us`.
CREATE TABLE channels (
    key TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    subscriber TEXT,
    settings TEXT NOT NULL,
    created_us INTEGER NOT NULL,
    reached INTEGER NOT NULL,
    sent INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    reason TEXT,
    next_us INTEGER NOT NULL DEFAULT 0,
    leased_us INTEGER NOT NULL DEFAULT 0,
    leased_by TEXT,
    paused_us INTEGER,
    disabled TEXT
) STRICT;
CREATE UNIQUE INDEX channels_named ON channels (kind, id, coalesce(subscriber, ''));
CREATE INDEX channels_owned ON channels (subscriber, kind);
CREATE INDEX channels_leased ON channels (leased_by) WHERE leased_by IS NOT NULL;
CREATE INDEX channels_due ON channels (next_us) WHERE disabled IS NULL AND paused_us IS NULL;

-- Deliveries that a channel has not taken: to be tried again, or, without a time, given up.
CREATE TABLE channel_failures (
    key TEXT NOT NULL REFERENCES channels (key) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    next_us INTEGER,
    reason TEXT NOT NULL,
    PRIMARY KEY (key, number)
) STRICT;
CREATE INDEX channel_failures_due ON channel_failures (next_us) WHERE next_us IS NOT NULL;

-- Webhooks are channels of one subscriber, with settings of their own.
INSERT INTO channels
    (key, kind, id, subscriber, settings, created_us, reached, failures, next_us, disabled)
    SELECT key, 'webhook', id, subscriber,
        json_object('url', url, 'secret', secret, 'old_secret', old_secret,
            'old_until_us', old_until_us),
        created_us, sequence, failures, next_us, disabled
    FROM webhooks;
INSERT INTO channel_failures SELECT key, sequence, attempts, next_us, reason FROM webhook_retries;
DROP TABLE webhook_retries;
DROP TABLE webhooks;
