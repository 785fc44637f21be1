"""Spark Connect, with a server and a client in separate processes."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.ports import reserved_port
from tests.spark.connected import WORK

from tidings import Engine
from tidings.rank.matcher import Matcher

pytest.importorskip("grpc", reason="a client of Spark Connect needs grpcio")
pytestmark = pytest.mark.spark
PROGRAM = Path(__file__).with_name("connected.py")
PATIENCE_S = 600


@contextmanager
def server(port: int) -> Iterator[None]:
    """Run a server, which ends with its input."""
    line = [sys.executable, str(PROGRAM), str(port)]
    with subprocess.Popen(
        line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        try:
            yield
        finally:
            process.kill()


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the results of each function in a client."""
    with reserved_port() as port, server(port):
        done = subprocess.run(
            [sys.executable, PROGRAM, str(port), tmp_path_factory.mktemp("connected")],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(line) for line in done.stdout.splitlines())


@pytest.fixture(scope="module")
def delivered() -> list[list[str]]:
    engine = Engine()
    for subscriber in WORK.subscribers:
        engine.subscribe(subscriber)
    engine.add_many(WORK.subscriptions)
    return sorted(
        [delivery.subscriber, delivery.event] for delivery in engine.publish_many(WORK.events)
    )


def test_the_session_is_that_of_a_client(results: dict[str, Any]) -> None:
    assert results["session"] == "pyspark.sql.connect.session"


def test_matches_and_targets_are_found(results: dict[str, Any]) -> None:
    matcher = Matcher(WORK.subscribers, WORK.subscriptions)
    matches = [match for event in WORK.events for match in matcher.matches(event)]
    assert results["match"] == sorted([match.subscriber, match.event.id] for match in matches)
    assert results["target"] == sum(bool(matcher.matches(event)) for event in WORK.events)


def test_batches_deliver_as_the_engine_does(
    results: dict[str, Any], delivered: list[list[str]]
) -> None:
    assert results["feed"] == delivered
    assert results["outcomes"] == sum(results["evaluate"]) == len(delivered)


@pytest.mark.parametrize("sink", ["stream", "parquet_sink"])
def test_streams_deliver_as_the_engine_does(
    results: dict[str, Any], delivered: list[list[str]], sink: str
) -> None:
    assert results[sink] == delivered


@pytest.mark.parametrize("way", ["maxdivrel-lsh", "divrank", "approximately"])
def test_candidates_are_diversified(results: dict[str, Any], way: str) -> None:
    assert results[way] == 3


def test_the_state_of_a_checkpoint_is_read(results: dict[str, Any]) -> None:
    assert results["rebucket"] == 4


def test_the_store_sink_is_refused_with_an_alternative(results: dict[str, Any]) -> None:
    assert "store_sink does not work through Spark Connect" in results["store_sink"]
