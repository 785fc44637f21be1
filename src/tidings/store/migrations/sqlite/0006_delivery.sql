-- What a batch delivered, for a publisher that waits for it.
CREATE INDEX deliveries_by_batch ON deliveries (query, batch);

-- Where the notifications of a subscriber are sent. They are the outbox themselves: those up to
-- `sequence` were tried, and those that failed are listed in `webhook_retries`. Nothing is sent
-- before `next_us`, nor by two dispatchers at once before `leased_us`.
CREATE TABLE webhooks (
    key TEXT PRIMARY KEY,
    id TEXT NOT NULL,
    subscriber TEXT NOT NULL,
    url TEXT NOT NULL,
    secret TEXT NOT NULL,
    old_secret TEXT,
    old_until_us INTEGER NOT NULL DEFAULT 0,
    created_us INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    failures INTEGER NOT NULL DEFAULT 0,
    next_us INTEGER NOT NULL DEFAULT 0,
    leased_us INTEGER NOT NULL DEFAULT 0,
    disabled TEXT,
    UNIQUE (subscriber, id)
) STRICT;
CREATE INDEX webhooks_by_id ON webhooks (id);

-- Notifications that a webhook has not taken: to be tried again, or, without a time, given up.
CREATE TABLE webhook_retries (
    key TEXT NOT NULL REFERENCES webhooks (key) ON DELETE CASCADE,
    sequence INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    next_us INTEGER,
    reason TEXT NOT NULL,
    PRIMARY KEY (key, sequence)
) STRICT;
CREATE INDEX webhook_retries_due ON webhook_retries (next_us) WHERE next_us IS NOT NULL;

-- Secret addresses of feeds for readers, in the store of the default tenant: only hashes.
CREATE TABLE feed_addresses (
    hash TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    subscriber TEXT NOT NULL,
    created_us INTEGER NOT NULL,
    UNIQUE (tenant, subscriber)
) STRICT;
