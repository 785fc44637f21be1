"""Inputs of users: columns of any name, subscriptions and policies in any form."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

import tidings.spark as ts
from tidings import Policy, Sliding, Subscriber, Subscription, TidingsError
from tidings.errors import ImpossibleCondition, InvalidForm
from tidings.formats import arrow as columns
from tidings.formats.arrow import subscriptions_to_table
from tidings.index_files.publisher import Publisher
from tidings.index_files.versions import KEPT_VERSIONS
from tidings.model.dead_letter import BadRecord
from tidings.model.limits import TRUSTED, Limits
from tidings.policy import DEFAULT_POLICY
from tidings.score.relaxed import Relaxed
from tidings.spark import inputs
from tidings.spark.inputs import compare_with_schema
from tidings.spark.session import STATE_STORE
from tidings.store import open_store

pytestmark = pytest.mark.spark
ROCKS = next(iter(STATE_STORE))
ODD = """
    select concat('e', id) id, timestamp_seconds(id) published_at, id as `order`, 'v' as `a.b`,
        'w' as `has space`, cast(id * 1.5 as decimal(20, 4)) price,
        date'2020-01-01' + cast(id as int) day, timestamp_ntz'2026-01-01 00:00:00' seen,
        if(id % 3 = 0, null, 'x') maybe, array('p', 'q') tags, map('m.x', id) more, id % 2 = 0 flag
    from range(10)
"""


@pytest.fixture(scope="module")
def odd(spark: SparkSession) -> DataFrame:
    return spark.sql(ODD)


def found(publications: DataFrame, where: str) -> int:
    return ts.match(publications, [Subscription("s", "u", where=where)]).count()


CONDITIONS = {
    "`order` >= 5": 5,
    "\"a.b\" = 'v' and `has space` = 'w'": 10,
    "a.b = 'v'": 10,
    "price > 7.5": 4,
    "day > date '2020-01-05'": 5,
    "seen = timestamp '2026-01-01 00:00:00'": 10,
    "maybe = 'x'": 6,
    "tags = 'q' and flag": 5,
    "m.x < 3": 3,
    "`m.x` < 3": 3,
}


@pytest.mark.parametrize("where", CONDITIONS)
def test_columns_of_any_name_and_kind_are_attributes(odd: DataFrame, where: str) -> None:
    assert found(odd, where) == CONDITIONS[where]


def test_names_with_dots_work_in_every_function(odd: DataFrame) -> None:
    wanted = [Subscription("s", "u", where="a.b = 'v' and m.x < 3", prefrank=0.5)]
    assert ts.target(odd, wanted).count() == 3
    deliveries = ts.feed(odd, wanted)
    assert deliveries.count() == 3
    figures = ts.evaluate(deliveries, ts.match(odd, wanted), odd).collect()
    assert [(row.delivered, row.diversity is None) for row in figures] == [(3, False)]
    weights = {"name": "overlap", "weights": {"a.b": 1, "order": 0}}
    part = {"name": "divrank", "sigma": 0.0, "distance": weights}
    chosen = ts.diversify(odd.withColumn("rank", f.lit(1.0)), 2, part).collect()
    assert len(chosen) == 2


REFUSED = {
    "true id, now() published_at": "column id holds bool; cast it to string",
    "'e' id, true published_at": "column published_at holds bool, not times",
    "'e' id, now() published_at, 'one' sequence": "column sequence holds string; cast it",
    "'e' id, now() published_at, named_struct('a', 1) nest": "column nest holds struct",
    "'e' id, now() published_at, 1 x, 2 x": "several columns x",
    "'e' id, now() published_at, 1 x, 2 X": "columns x and X differ only in case; rename one",
    "'e' id, now() published_at, cast('a' as binary) raw": "column raw holds binary; an attribute",
    "'e' id, now() published_at, interval '1' day wait": r"column wait holds duration\[us\]; an",
    "'e' id, now() published_at, interval '1' month wait": "column wait holds interval month, wh",
    "'e' id, now() published_at, make_interval(1) wait": "column wait holds interval, which can",
    "'e' id, now() published_at, array() none": "column none holds array<void>, which cannot",
    "'e' id, now() published_at, array(array(1)) nest": "column nest holds list<",
    "'e' id, now() published_at, map(1, 2) more": "column more is a map with keys of int32",
    "now() published_at": "there is no column id",
    "id value": "column value holds bigint; it is text, one event a row",
}


NEVER_FAIL = {
    "cast(null as string) id, now() published_at, 1 x": 0,
    "'e' id, now() published_at, null none, array(null) nulls, 1 x": 1,
    "'e' id, now() published_at, repeat('x', 1000000) long, 1 x": 1,
    "'e' id, now() published_at, 1 tidings_name_0, 2 `a.b`, 1 x": 1,
    "'e' id, now() published_at, cast(1 as decimal(38, 18)) x": 1,
}


@pytest.mark.parametrize("columns", NEVER_FAIL)
def test_rows_of_odd_columns_match_or_are_left_out(spark: SparkSession, columns: str) -> None:
    frame = spark.sql(f"select {columns} from range(1)")
    assert found(frame, "x = 1") == NEVER_FAIL[columns]
    assert ts.dead_letters(frame).count() == 1 - NEVER_FAIL[columns]


@pytest.mark.parametrize("columns", REFUSED)
def test_every_function_names_the_column(spark: SparkSession, columns: str) -> None:
    frame, wanted = (
        spark.sql(f"select {columns} from range(1)"),
        [Subscription("s", "u", where="x = 1")],
    )
    ranked = frame if columns == "id value" else frame.withColumn("rank", f.lit(1.0))
    for call in (
        lambda: ts.feed(frame, wanted),
        lambda: ts.target(frame, wanted),
        lambda: ts.diversify(ranked, 2),
    ):
        with pytest.raises(TidingsError, match=rf"{REFUSED[columns]}|lack the columns \['rank'\]"):
            call()
    with pytest.raises(TidingsError, match="column rank holds string; a rank is a number"):
        ts.diversify(spark.sql("select 'e' id, now() published_at, 'a' rank"), 2)


@pytest.mark.parametrize("columns", REFUSED)
def test_columns_that_cannot_be_read_are_named_at_once(spark: SparkSession, columns: str) -> None:
    with pytest.raises(TidingsError, match=REFUSED[columns]):
        found(spark.sql(f"select {columns} from range(1)"), "x = 1")


@pytest.mark.parametrize(
    ("publications", "subscriptions", "subscribers", "reason"),
    [
        ([1], [], None, "publications must be a Spark DataFrame, not list"),
        (
            None,
            None,
            None,
            "subscriptions must be a DataFrame, a file, objects or JSON forms",
        ),
        (None, ["s"], None, "'s' is not a Subscription or the JSON form of one"),
        (None, [], 3, "subscribers must be a DataFrame, a file, objects or JSON forms, not 3"),
        (None, [{"id": "s"}], None, "subscription s: field 'subscriber' is missing"),
        (None, [], {"u": {"k": 0}}, "subscriber u: k is a whole number of at least 1"),
    ],
)
def test_wrong_arguments_are_named(
    odd: DataFrame, publications: Any, subscriptions: Any, subscribers: Any, reason: str
) -> None:
    with pytest.raises(TidingsError, match=reason):
        ts.match(publications or odd, subscriptions, subscribers)


FORM: dict[str, Any] = {"id": "s", "subscriber": "u", "where": "flag", "prefrank": 0.5}
TWO = Policy(k=2, window=Sliding(2))


def delivered(odd: DataFrame, wanted: Any, people: Any) -> int:
    return ts.feed(odd, wanted, people).count()


def test_policies_may_be_one_a_dict_objects_forms_a_file_or_a_frame(
    spark: SparkSession, odd: DataFrame, tmp_path: Path
) -> None:
    form, path = TWO.to_dict(), tmp_path / "people.jsonl"
    path.write_text(json.dumps({"id": "u", "policy": form}))
    struct = "named_struct('k', 2, 'window', named_struct('name', 'sliding', 'length', 2))"
    given = [
        TWO,
        {"u": TWO},
        {"u": form},
        [Subscriber("u", TWO)],
        [{"id": "u", "policy": form}],
        path,
        spark.createDataFrame([("u", json.dumps(form))], "id string, policy string"),
        spark.sql(f"select 'u' id, {struct} policy"),
    ]
    counts = {delivered(odd, [FORM], each) for each in given}
    assert counts == {5}
    maps = spark.sql("select 'u' id, map('k', '2') policy")
    with pytest.raises(TidingsError, match=r"column policy holds map.*JSON text or a struct"):
        delivered(odd, [FORM], maps)


def test_subscriptions_may_be_objects_forms_a_file_a_frame_or_a_store(
    spark: SparkSession, odd: DataFrame, tmp_path: Path
) -> None:
    own = Subscription(**FORM)
    path = tmp_path / "wanted.jsonl"
    path.write_text(json.dumps(FORM))
    with open_store(tmp_path / "store.db") as store:
        store.catalogue.put(Subscriber("u"), own)
        frame = spark.createDataFrame(subscriptions_to_table([own]))
        for wanted in ([own], [FORM], path, str(path), frame, store):
            assert ts.match(odd, wanted).count() == 5


@pytest.mark.parametrize(
    "weighted",
    [
        "array(named_struct('condition', 'flag', 'weight', 0.5D))",
        """'[["flag", 0.5], ["price > 100", 2]]'""",
    ],
)
def test_weighted_predicates_are_structs_or_json(
    spark: SparkSession, odd: DataFrame, weighted: str
) -> None:
    frame = spark.sql(f"select 's' id, 'u' subscriber, {weighted} as `any`")
    rows = ts.target(odd, frame, scorer="relaxed").collect()
    assert {row.score for row in rows} == {0.5}
    assert len(rows) == 5


def test_weighted_predicates_of_other_fields_are_refused(
    spark: SparkSession, odd: DataFrame
) -> None:
    frame = spark.sql("select 's' id, 'u' subscriber, array(struct('flag', 0.5D)) as `any`")
    with pytest.raises(TidingsError, match="condition, weight and maybe state, not col1, col2"):
        ts.target(odd, frame, scorer="relaxed")


def test_a_batch_does_not_wait_for_late_events(odd: DataFrame) -> None:
    periods = Policy(k=1, window={"name": "periodic", "length": "4s"})
    for people, many in ((Policy(), 5), (periods, 2)):
        assert ts.feed(odd, [FORM], people, lateness="1h").count() == many
    assert ts.feed(odd, [FORM], periods, lateness="1h", until=12).count() == 3


def test_a_session_without_rocksdb_is_refused_before_a_stream_starts(
    spark: SparkSession, odd: DataFrame
) -> None:
    before = str(spark.conf.get(ROCKS))
    spark.conf.unset(ROCKS)
    rows = spark.readStream.format("rate").load()
    stream = rows.selectExpr("string(value) id", "timestamp published_at", "true flag")
    try:
        with pytest.raises(TidingsError, match=rf"HDFSBacked.*\n  spark.conf.set\('{ROCKS}', 'org"):
            ts.feed(stream, [FORM])
        assert ts.feed(odd, [FORM]).count() == 5
        assert ts.match(stream, [FORM]).isStreaming
    finally:
        spark.conf.set(ROCKS, before)
    assert ts.feed(stream, [FORM]).isStreaming


def test_idle_tasks_of_a_stream_cause_a_warning(spark: SparkSession, odd: DataFrame) -> None:
    before = str(spark.conf.get("spark.sql.shuffle.partitions"))
    spark.conf.set("spark.sql.shuffle.partitions", "200")
    rows = spark.readStream.format("rate").load()
    stream = rows.selectExpr("string(value) id", "timestamp published_at", "true flag")
    try:
        with pytest.warns(UserWarning, match="is 200, but at most 8 tasks.*8 or fewer") as told:
            ts.feed(stream, [FORM])
        assert told[0].filename == __file__
        assert ts.feed(odd, [FORM]).rdd.getNumPartitions() == 8
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)


@pytest.mark.parametrize("function", [ts.match, ts.feed, ts.target, ts.outcomes])
def test_conditions_that_no_row_can_satisfy_cause_a_warning(
    odd: DataFrame, function: Callable[..., DataFrame]
) -> None:
    wanted = [Subscription("s", "u", where="Price > 5 and day > '2020-01-05'")]
    with pytest.warns(ImpossibleCondition, match="no publication can satisfy") as told:
        function(odd.drop("more"), wanted)
    (warning,) = told
    assert warning.filename == __file__
    first, second = str(warning.message).splitlines()[1:]
    assert first.startswith("  Price > 5: no event has the attribute Price; did you mean price?")
    assert "write day > timestamp '2020-01-05T00:00:00Z' (1 subscription: s)" in second


@pytest.mark.usefixtures("unfollowed")
def test_the_warning_about_temporary_pins_names_the_caller(
    spark: SparkSession, tmp_path: Path
) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("value", "timestamp published_at")
    with open_store(tmp_path / "store.db") as store:
        with pytest.warns(UserWarning, match=r"spark\.tidings\.index") as told:
            ts.feed(stream.withColumn("id", f.col("value").cast("string")), store)
        assert told[0].filename == __file__


def test_functions_of_many_subscribers_reach_the_workers(odd: DataFrame) -> None:
    doubled = Policy(k=1, scorer=Relaxed(aggregate=lambda weights: 2 * sum(weights)))
    people = {f"a subscriber with a long name, number {n}": doubled for n in range(30_000)}
    wanted = [Subscription("s", next(iter(people)), where="flag")]
    rows = ts.feed(odd, wanted, people).collect()
    assert [row["rank"] for row in rows] == [2.0] * 5


def test_a_batch_over_a_folder_keeps_its_version(odd: DataFrame, tmp_path: Path) -> None:
    with (
        open_store(tmp_path / "store.db") as store,
        Publisher(tmp_path / "index", store.history, min_changed=1) as publisher,
    ):
        store.catalogue.put(Subscriber("u"), Subscription(**FORM))
        publisher.publish()
        matches = ts.match(odd, publisher.folder)
        for number in range(2 * KEPT_VERSIONS):
            name = f"v{number}"
            store.catalogue.put(Subscriber(name), Subscription(f"s{number}", name, "flag"))
            publisher.publish()
            publisher.settle()
        assert {row.subscriber for row in matches.collect()} == {"u"}


TYPED = (
    "id string, published_at timestamp, size double, tags array<string>, more map<string,double>"
)


@pytest.mark.parametrize("kind", ["json", "parquet", "csv"])
def test_streams_of_files_with_a_schema_deliver_as_a_batch_does(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    rows = spark.sql(
        "select concat('e', id) id, timestamp_seconds(100 + id) published_at, double(id % 4) size, "
        "array('p', string(id % 2)) tags, map('w.x', double(id)) more from range(40)"
    )
    schema = TYPED if kind != "csv" else "id string, published_at timestamp, size double"
    rows = rows if kind != "csv" else rows.select("id", "published_at", "size")
    for part in range(3):
        path = tmp_path / "in" / str(part)
        rows.where(f"cast(substr(id, 2) as int) % 3 = {part}").coalesce(1).write.format(kind).save(
            str(path)
        )
        for file in path.glob("part-*"):
            os.utime(file, (part + 1, part + 1))
    source = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).format(kind)
    where = "size >= 2" if kind == "csv" else "size >= 2 and tags = '1' or w.x < 4"
    wanted = [Subscription("s", "u", where=where, prefrank=0.5)]
    terms: dict[str, Any] = {"subscribers": TWO, "lateness": "1m"}
    stream = ts.feed(source.load(str(tmp_path / "in" / "*")), wanted, **terms)
    query = (
        stream.writeStream.format("memory").queryName(f"typed_{kind}").trigger(availableNow=True)
    )
    query.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    assert spark.table(f"typed_{kind}").count() == 0  # all of them wait for the watermark
    later = rows.limit(1).selectExpr(
        "'last' id", "timestamp_seconds(9999) published_at", *rows.columns[2:]
    )
    later.write.format(kind).save(str(tmp_path / "in" / "later"))
    query = stream.writeStream.format("parquet").trigger(availableNow=True)
    query = query.option("path", str(tmp_path / "out"))
    query.option("checkpointLocation", str(tmp_path / "second")).start().awaitTermination()
    columns = ["event", "rank", "position", "window", "sequence", "delivered_at"]
    got = spark.read.parquet(str(tmp_path / "out")).select(columns).orderBy("sequence").collect()
    batch = ts.feed(rows, wanted, **terms).select(columns).orderBy("sequence").collect()
    assert got == batch
    assert len(got) > 5


@pytest.mark.parametrize("as_file", [False, True])
def test_limits_hold_for_subscriptions_and_subscribers(tmp_path: Path, as_file: bool) -> None:
    wanted: Any = [{"id": "s", "subscriber": "ann", "where": "a = 1 and b = 2 and c = 3"}]
    people: Any = [{"id": "ann", "policy": {"k": 7}}]
    if as_file:
        for name, forms in {"wanted": wanted, "people": people}.items():
            (tmp_path / f"{name}.jsonl").write_text("".join(map(json.dumps, forms)) + "\n")
        wanted, people = tmp_path / "wanted.jsonl", tmp_path / "people.jsonl"
    assert len(inputs._members(wanted, people, TRUSTED, DEFAULT_POLICY)) == 1
    with pytest.raises(InvalidForm, match="conjunction_predicates = 2"):
        inputs._members(wanted, people, Limits(conjunction_predicates=2), DEFAULT_POLICY)
    with pytest.raises(InvalidForm, match="k = 5"):
        inputs._members(wanted, people, Limits(k=5), DEFAULT_POLICY)


def test_limits_hold_for_columns_of_subscriptions() -> None:
    row = {"id": "s", "subscriber": "ann", "where": "a = 1 and b = 2 and c = 3"}
    table = pa.Table.from_pylist([row])
    [bad] = columns.read_subscriptions(table, limits=Limits(conjunction_predicates=2))
    assert isinstance(bad, BadRecord)
    assert "conjunction_predicates = 2" in bad.reason


def test_owners_that_are_not_listed_have_the_default_policy() -> None:
    wanted = [Subscription("s", "ann", where="true"), Subscription("t", "bob", where="true")]
    people = [Subscriber("ann", Policy(k=3), paused=True)]
    default = Policy(k=5)
    found = inputs._members(wanted, people, TRUSTED, default)
    assert [each.subscriber for each in found] == [people[0], Subscriber("bob", default)]
    found = inputs._members(wanted, Policy(k=7), TRUSTED, default)
    assert [each.subscriber.policy.k for each in found if each.subscriber] == [7, 7]
    found = inputs._members(wanted, people, TRUSTED, None)
    assert [each.subscriber for each in found] == [people[0], None]


COLUMNS = {
    "id": t.StringType(),
    "published_at": t.TimestampType(),
    "dest": t.StringType(),
    "distance": t.DecimalType(10, 2),
    "departs": t.TimestampNTZType(),
    "day": t.DateType(),
    "carrier": t.ArrayType(t.StringType()),
    "late": t.BooleanType(),
    "raw": t.BinaryType(),
}


def schema(**more: t.DataType) -> t.StructType:
    return t.StructType([t.StructField(name, kind) for name, kind in (COLUMNS | more).items()])


def lines(condition: str, columns: t.StructType) -> list[str]:
    wanted = [Subscription("s1", "ann", where=condition)]
    return [finding.advice for finding in compare_with_schema(columns, wanted).findings]


@pytest.mark.parametrize(
    "condition",
    [
        *("dest = 'anything'", "distance > 5", "departs > date '2013-01-01'"),
        *("day = date '2013-01-01'", "carrier = 'AA'", "late", "raw = 5", "raw = 'x'"),
    ],
)
def test_conditions_on_columns_of_their_type_are_fine(condition: str) -> None:
    assert lines(condition, schema()) == []


@pytest.mark.parametrize(
    ("condition", "advice"),
    [
        ("dst = 'MIA'", "no event has the attribute dst; did you mean dest?"),
        ("Dest = 'MIA'", "no event has the attribute Dest; did you mean dest?"),
        ("dest = 5", "dest holds strings, not numbers; write dest = '5'"),
        ("distance > '500'", "distance holds numbers, not strings; write distance > 500"),
        ("carrier = 5", "carrier holds strings, not numbers; write carrier = '5'"),
        ("late = 'true'", "late holds booleans, not strings; write late = true"),
    ],
)
def test_wrong_names_and_types_are_told(condition: str, advice: str) -> None:
    assert lines(condition, schema()) == [advice]


def test_the_keys_of_a_map_may_be_any_attribute() -> None:
    columns = schema(more=t.MapType(t.StringType(), t.DoubleType()))
    assert lines("dst = 'MIA'", columns) == []
    assert lines("dest = 5", columns) == ["dest holds strings, not numbers; write dest = '5'"]


def test_lines_of_json_have_no_columns() -> None:
    assert lines("value = 5", t.StructType([t.StructField("value", t.StringType())])) == []
