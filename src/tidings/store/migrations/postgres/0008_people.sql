-- Messages of channels that put several deliveries in one: fixed before they are sent, so that one
-- that is sent again is the same. Each holds `sequences` of a subscriber from `first` to `last`;
-- those up to `upto` were due with it. Without a `result` it is still to be sent; an empty one
-- means that it was, and any other is the reason why it was given up.
CREATE TABLE digests (
    key text COLLATE "C" NOT NULL REFERENCES channels (key) ON DELETE CASCADE,
    first bigint NOT NULL,
    last bigint NOT NULL,
    upto bigint NOT NULL,
    sequences text NOT NULL,
    id text COLLATE "C" NOT NULL,
    fixed_us bigint NOT NULL,
    result text,
    PRIMARY KEY (key, first)
);
CREATE INDEX digests_by_id ON digests (id);

-- What readers did with notifications, by the channel where they did it.
CREATE TABLE marks (
    subscriber text COLLATE "C" NOT NULL,
    sequence bigint NOT NULL,
    mark text COLLATE "C" NOT NULL CHECK (mark IN ('opened', 'read', 'not-for-me')),
    channel text COLLATE "C",
    marked_us bigint NOT NULL,
    PRIMARY KEY (subscriber, sequence, mark)
);

-- Codes that were sent to addresses to verify them; only hashes. They outlive their channels for a
-- day, so that removing a channel does not allow to ask for more.
CREATE TABLE address_codes (
    key text COLLATE "C" NOT NULL,
    address text COLLATE "C" NOT NULL,
    hash text COLLATE "C" NOT NULL,
    made_us bigint NOT NULL,
    expires_us bigint NOT NULL,
    attempts bigint NOT NULL DEFAULT 0
);
CREATE INDEX address_codes_of ON address_codes (key, made_us);
CREATE INDEX address_codes_to ON address_codes (address, made_us);
