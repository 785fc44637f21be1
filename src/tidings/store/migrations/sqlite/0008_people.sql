-- Messages of channels that put several deliveries in one: fixed before they are sent, so that one
-- that is sent again is the same. Each holds `sequences` of a subscriber from `first` to `last`;
-- those up to `upto` were due with it. Without a `result` it is still to be sent; an empty one
-- means that it was, and any other is the reason why it was given up.
CREATE TABLE digests (
    key TEXT NOT NULL REFERENCES channels (key) ON DELETE CASCADE,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    upto INTEGER NOT NULL,
    sequences TEXT NOT NULL,
    id TEXT NOT NULL,
    fixed_us INTEGER NOT NULL,
    result TEXT,
    PRIMARY KEY (key, first)
) STRICT;
CREATE INDEX digests_by_id ON digests (id);

-- What readers did with notifications, by the channel where they did it.
CREATE TABLE marks (
    subscriber TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    mark TEXT NOT NULL CHECK (mark IN ('opened', 'read', 'not-for-me')),
    channel TEXT,
    marked_us INTEGER NOT NULL,
    PRIMARY KEY (subscriber, sequence, mark)
) STRICT;

-- Codes that were sent to addresses to verify them; only hashes. They outlive their channels for a
-- day, so that removing a channel does not allow to ask for more.
CREATE TABLE address_codes (
    key TEXT NOT NULL,
    address TEXT NOT NULL,
    hash TEXT NOT NULL,
    made_us INTEGER NOT NULL,
    expires_us INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX address_codes_of ON address_codes (key, made_us);
CREATE INDEX address_codes_to ON address_codes (address, made_us);
