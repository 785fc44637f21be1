-- One row: what tells this store from every other one, drawn once.
CREATE TABLE store (
    one bigint PRIMARY KEY CHECK (one = 1),
    id text COLLATE "C" NOT NULL
);
INSERT INTO store VALUES (1, replace(gen_random_uuid()::text, '-', ''));
