"""Local runs over messages of a broker: restarts, kills, and subscriptions that change."""

import json
from pathlib import Path
from threading import Thread

import pytest
from tests.kill.process import KILLS
from tests.kill.stream import write_stream
from tests.sources.brokers import Brokers
from tests.sources.kills import check_kills, start
from tests.sources.pipelines import check, check_restarts, kafka, lines, run_here

from tidings.app.config import load_config
from tidings.app.run.local import run_local
from tidings.app.run.plan import make_plan
from tidings.errors import TidingsError
from tidings.formats.files import read_subscriptions, write_subscriptions
from tidings.model.diagnosis import Diagnosis
from tidings.model.records import Subscription


@pytest.fixture
def brokers() -> Brokers:
    return Brokers()


def test_a_restart_resumes_and_everything_is_delivered_once(
    tmp_path: Path, brokers: Brokers
) -> None:
    check_restarts(tmp_path, brokers, run_here)


def test_subscriptions_may_change_between_runs(tmp_path: Path, brokers: Brokers) -> None:
    write_stream(tmp_path, files=8)
    all_lines, path = lines(tmp_path), tmp_path / "subscriptions.jsonl"
    config = kafka(tmp_path, brokers.address)
    brokers.send("films", all_lines[:20], partition=0)
    assert run_here(config).deliveries > 0
    listed = [
        subscription
        for subscription in read_subscriptions(path)
        if isinstance(subscription, Subscription)
    ]
    stays = listed[0].subscriber
    write_subscriptions([one for one in listed if one.subscriber == stays], path)
    changed = {"id": stays, "policy": {"k": 3}}
    (tmp_path / "subscribers.jsonl").write_text(json.dumps(changed) + "\n")
    brokers.send("films", all_lines[20:], partition=0)
    assert run_here(config).delivered.keys() <= {stays}


def test_another_engine_does_not_continue_a_local_run(tmp_path: Path, brokers: Brokers) -> None:
    write_stream(tmp_path, files=4)
    brokers.send("films", lines(tmp_path), partition=0)
    config = kafka(tmp_path, brokers.address)
    run_here(config)
    (tmp_path / "out" / "progress" / "state.json").write_text("{}")
    with pytest.raises(TidingsError, match=r"state.json is damaged: it has no batch; start over"):
        run_here(config)
    assert run_here(config, fresh=True).events == len(lines(tmp_path))


def test_an_endless_run_waits_for_messages_until_it_is_stopped(
    tmp_path: Path, brokers: Brokers
) -> None:
    expected = write_stream(tmp_path, files=8)
    config = kafka(tmp_path, brokers.address)
    config.write_text(
        config.read_text().replace("[stream]", '[stream]\ntrigger = "0.05s"\nfuture = "off"')
    )
    brokers.send("films", lines(tmp_path)[:20], partition=0)
    run = start(config)
    try:
        state = tmp_path / "out" / "progress" / "state.json"
        assert run.until(state.exists, 0.01), run.output()
        sender = Thread(target=lambda: brokers.send("films", lines(tmp_path)[20:], partition=0))
        sender.start()
        sender.join()
        assert run.until(
            lambda: json.loads(state.read_text())["end"]["films"]["0"] == len(lines(tmp_path)), 0.01
        )
        run.process.terminate()
        assert run.wait() == 0, run.output()
    finally:
        run.kill()
    check(tmp_path, expected)


def test_wrong_conditions_on_messages_are_reported_early(
    tmp_path: Path, brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.app.run.summary.FIRST_LOOK", 3)
    write_stream(tmp_path, files=8)
    typo = Subscription("typo", "ann", where="no_such_attribute = 1")
    with (tmp_path / "subscriptions.jsonl").open("a") as file:
        file.write(json.dumps(typo.to_dict()) + "\n")
    config = kafka(tmp_path, brokers.address)
    brokers.send("films", lines(tmp_path), partition=0)
    told: list[Diagnosis] = []
    list(run_local(make_plan(load_config(config)), None, told.append))
    assert [finding.subscriptions for finding in told[0].findings] == [("typo",)]


@pytest.mark.kill
def test_kills_in_mid_stream_lose_nothing_and_repeat_nothing(
    tmp_path: Path, brokers: Brokers
) -> None:
    expected = write_stream(tmp_path, files=12)
    brokers.send("films", lines(tmp_path), partition=0)
    config = kafka(tmp_path, brokers.address, maxOffsetsPerTrigger=1 if KILLS else 5)
    check_kills(config, expected, kills=20 if KILLS else 2)
