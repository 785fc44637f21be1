"""Messages in a table: every row once, in the order of keys, and with rows that appear late."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kill.stream import write_stream
from tests.sources.kills import start
from tests.sources.pipelines import check, lines, run_here, write_config

from tidings.errors import SourceError
from tidings.sources.outbox import OutboxReader, open_reader, read_options
from tidings.store import Spool

GIVEN = {"url": "sqlite:///a.db", "table": "outbox", "key": "id", "value": "event"}
CREATE = {
    "sqlite": "CREATE TABLE outbox (id INTEGER PRIMARY KEY AUTOINCREMENT, event TEXT)",
    "postgres": "CREATE TABLE public.outbox (id BIGSERIAL PRIMARY KEY, event TEXT)",
}


@pytest.fixture
def insert(address: str) -> Iterator[Callable[..., None]]:
    """Yield a function that adds rows to a new table."""
    database = Spool.open(address, "unused").database
    table = "outbox" if database.dialect == "sqlite" else "public.outbox"
    database.write(lambda session: session.run(f"DROP TABLE IF EXISTS {table}"))
    database.write(lambda session: session.run(CREATE[database.dialect]))

    def add(*values: str | None) -> None:
        def write(session: Any) -> None:
            for value in values:
                session.run(f"INSERT INTO {table} (event) VALUES (?)", value)
            if database.dialect == "postgres":
                session.run("NOTIFY new_films")

        database.write(write)

    yield add
    database.close()


def reader(address: str, **more: str) -> OutboxReader:
    url = address if "://" in address else f"sqlite:///{address}"
    return open_reader({**GIVEN, "url": url, **more}, None)


def values(open_one: OutboxReader, start: Any, end: Any) -> list[Any]:
    return [
        row["value"]
        for span in open_one.spans(start, end)
        for batch in open_one.read(span)
        for row in batch.to_pylist()
    ]


def test_rows_are_read_once_and_in_order(address: str, insert: Callable[..., None]) -> None:
    open_one = reader(address)
    position = open_one.starting("latest")
    assert open_one.advance(position, open_one.latest(), None) == position
    insert("a", "b", None, "d")
    end = open_one.advance(position, open_one.latest(), 3)
    assert values(open_one, position, end) == [b"a", b"b", None]
    assert values(open_one, end, open_one.ending()) == [b"d"]
    late = reader(address, starting="latest")
    assert late.starting("latest") == open_one.ending()
    late.close()
    open_one.close()


def test_a_run_that_waits_goes_on_when_rows_are_announced(
    address: str, insert: Callable[..., None], tmp_path: Path
) -> None:
    expected = write_stream(tmp_path, files=8)
    events = lines(tmp_path)
    url = address if "://" in address else f"sqlite:///{address}"
    config = write_config(tmp_path, "outbox", {**GIVEN, "url": url, "listen": "new_films"})
    config.write_text(
        config.read_text().replace("[stream]", '[stream]\ntrigger = "1h"\nfuture = "off"')
    )
    insert(*events[:20])
    run = start(config)
    try:
        state = tmp_path / "out" / "progress" / "state.json"
        assert run.until(state.exists, 0.01), run.output()
        insert(*events[20:])
        assert run.until(
            lambda: json.loads(state.read_text())["end"]["key"] == len(events), 0.01
        ), run.output()
        run.process.terminate()
        assert run.wait() == 0, run.output()
    finally:
        run.kill()
    check(tmp_path, expected)


def test_a_wrong_column_or_option_is_named(address: str, insert: Callable[..., None]) -> None:
    insert("a")
    wrong = reader(address, value="form")
    with pytest.raises(SourceError, match="outbox has no column 'form', but there are: id, event"):
        wrong.starting("latest")
    wrong.close()
    with pytest.raises(SourceError, match="starting must be 'earliest' or 'latest'"):
        read_options({**GIVEN, "starting": "now"})
    with pytest.raises(SourceError, match="option 'value' is missing"):
        read_options({name: text for name, text in GIVEN.items() if name != "value"})


def test_keys_that_are_used_again_are_refused(address: str, insert: Callable[..., None]) -> None:
    insert("a")
    open_one = reader(address)
    with pytest.raises(SourceError, match="was read up to key 9, but its largest is now 1"):
        open_one.advance({"key": 9}, open_one.latest(), None)
    open_one.close()


def test_a_restart_resumes_and_everything_is_delivered_once(
    tmp_path: Path, address: str, insert: Callable[..., None]
) -> None:
    expected = write_stream(tmp_path, files=8)
    all_lines = lines(tmp_path)
    url = address if "://" in address else f"sqlite:///{address}"
    config = write_config(tmp_path, "outbox", {**GIVEN, "url": url, "maxRecordsPerTrigger": 20})
    for part in (all_lines[:33], all_lines[33:]):
        insert(*part)
        assert run_here(config).events == len(part)
    check(tmp_path, expected)
