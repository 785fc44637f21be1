-- The times that a pipeline on Spark has told its query: a source beside the publications, so that
-- periods and quiet hours end where nothing is published.
CREATE TABLE ticks (
    number bigint PRIMARY KEY,
    clock_us bigint NOT NULL
);

-- The versions of the index that such a pipeline has built, for operators: the version of the
-- catalogue that each holds, and its parts with the changes since they were built.
CREATE TABLE index_versions (
    version bigint PRIMARY KEY,
    source bigint NOT NULL,
    parts bigint NOT NULL,
    changes bigint NOT NULL,
    built_us bigint NOT NULL
);
