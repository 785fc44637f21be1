-- What a batch delivered, for a publisher that waits for it.
CREATE INDEX deliveries_by_batch ON deliveries (query, batch);

-- Where the notifications of a subscriber are sent. They are the outbox themselves: those up to
-- `sequence` were tried, and those that failed are listed in `webhook_retries`. Nothing is sent
-- before `next_us`, nor by two dispatchers at once before `leased_us`.
CREATE TABLE webhooks (
    key text COLLATE "C" PRIMARY KEY,
    id text COLLATE "C" NOT NULL,
    subscriber text COLLATE "C" NOT NULL,
    url text NOT NULL,
    secret text NOT NULL,
    old_secret text,
    old_until_us bigint NOT NULL DEFAULT 0,
    created_us bigint NOT NULL,
    sequence bigint NOT NULL,
    failures bigint NOT NULL DEFAULT 0,
    next_us bigint NOT NULL DEFAULT 0,
    leased_us bigint NOT NULL DEFAULT 0,
    disabled text,
    UNIQUE (subscriber, id)
);
CREATE INDEX webhooks_by_id ON webhooks (id);

-- Notifications that a webhook has not taken: to be tried again, or, without a time, given up.
CREATE TABLE webhook_retries (
    key text COLLATE "C" NOT NULL REFERENCES webhooks (key) ON DELETE CASCADE,
    sequence bigint NOT NULL,
    attempts bigint NOT NULL,
    next_us bigint,
    reason text NOT NULL,
    PRIMARY KEY (key, sequence)
);
CREATE INDEX webhook_retries_due ON webhook_retries (next_us) WHERE next_us IS NOT NULL;

-- Secret addresses of feeds for readers, in the store of the default tenant: only hashes.
CREATE TABLE feed_addresses (
    hash text COLLATE "C" PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    subscriber text COLLATE "C" NOT NULL,
    created_us bigint NOT NULL,
    UNIQUE (tenant, subscriber)
);
