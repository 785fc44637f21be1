-- The times that a pipeline on Spark has told its query: a source beside the publications, so that
-- periods and quiet hours end where nothing is published.
CREATE TABLE ticks (
    number INTEGER PRIMARY KEY,
    clock_us INTEGER NOT NULL
) STRICT;

-- The versions of the index that such a pipeline has built, for operators: the version of the
-- catalogue that each holds, and its parts with the changes since they were built.
CREATE TABLE index_versions (
    version INTEGER PRIMARY KEY,
    source INTEGER NOT NULL,
    parts INTEGER NOT NULL,
    changes INTEGER NOT NULL,
    built_us INTEGER NOT NULL
) STRICT;
