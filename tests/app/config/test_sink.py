"""The table [sink]: a folder, a store, or any format of Spark with its options."""

import pytest

from tidings.app.config import SinkConfig
from tidings.app.config.sink import KAFKA
from tidings.errors import InvalidForm

OUT = '[sink]\npath = "out"\n'


def test_the_default_is_a_folder_of_parquet(load, folder):
    assert load().sink == SinkConfig(folder / "out", "parquet")


def test_a_store_is_a_sink(load, folder):
    sink = load(sink=f'{OUT}store = "sqlite:///news.db"\n').sink
    assert (sink.format, sink.label, sink.is_spark) == ("store", str(folder / "news.db"), False)


def test_a_format_of_spark_has_options(load, folder):
    sink = load(sink=f'{OUT}format = "kafka"\noptions = {{ topic = "news" }}\n').sink
    assert (sink.is_spark, sink.options) == (True, {"topic": "news"})
    assert sink.label == f"kafka ({folder / 'out'})"
    assert sink.select == KAFKA
    sink = load(sink=f'{OUT}format = "csv"\noptions = {{ path = "t" }}\n').sink
    assert (sink.options["path"], sink.select) == (str((folder / "t").resolve()), None)


@pytest.mark.parametrize(
    ("sink", "reason"),
    [
        (
            f"{OUT}colour = 'red'\n",
            "[sink]: unknown field 'colour'; expected one of: 'path'",
        ),
        (OUT.replace("out", "events.jsonl"), "path must be a folder, but 'events.jsonl' is a file"),
        (OUT.replace("out", "x" * 5_000), "cannot be a folder: File name too long"),
        (OUT.replace('"out"', "7"), "[sink] path must be a non-empty string, not 7"),
        (f"{OUT}format = 'a b'\n", "[sink] format must be a name such as 'kafka', not 'a b'"),
        (
            f"{OUT}format = 'csv'\n",
            "[sink] unknown format 'csv'; expected one of: parquet, jsonl, store, or a format of ",
        ),
        (f"{OUT}format = 'store'\n", "[sink] store is missing: set its address"),
        (
            f"{OUT}format = 'jsonl'\nstore = 'sqlite:///a.db'\n",
            "[sink] store requires format = 'store', not 'jsonl'",
        ),
        (f"{OUT}store = 'a.db'\n", "[sink] store cannot be read; write sqlite:///path"),
        (f"{OUT}options = {{}}\n", "[sink] options requires a Spark format, not 'parquet'"),
        (f"{OUT}format = 'x'\noptions = {{}}\nselect = 3\n", "[sink] select must be a non-empty"),
    ],
)
def test_a_mistake_is_reported_with_key_value_and_rule(load, folder, sink, reason):
    with pytest.raises(InvalidForm) as error:
        load(sink=sink)
    assert str(error.value).startswith(f"{folder}/run.toml: ")
    assert reason in str(error.value)
