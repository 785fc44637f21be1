"""Plans: the valid records of a config, and the refused ones."""

import json

import pytest
from tests.app.run.conftest import write

from tidings import Policy
from tidings.app.config import load_config
from tidings.app.run.plan import make_plan, read_plan
from tidings.errors import TidingsError


def refused(folder):
    text = (folder / "out/refused.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_a_plan_is_read_without_writing(folder):
    plan = read_plan(load_config(folder / "run.toml"))
    assert [subscription.id for subscription in plan.subscriptions] == ["s1", "s3"]
    assert [(subscriber.id, subscriber.policy) for subscriber in plan.subscribers] == [
        ("ann", Policy()),
        ("bob", Policy()),
    ]
    assert [problem.id for problem in plan.refused] == ["s2", "s1"]
    assert not (folder / "out").exists()


def test_refused_subscriptions_are_written_until_they_are_corrected(folder):
    make_plan(load_config(folder / "run.toml"))
    assert [(refusal["line"], refusal["id"]) for refusal in refused(folder)] == [
        (2, "s2"),
        (4, "s1"),
    ]
    write(folder / "subscriptions.jsonl", {"id": "s1", "subscriber": "ann", "where": "year > 0"})
    make_plan(load_config(folder / "run.toml"))
    assert not (folder / "out/refused.jsonl").exists()


def test_a_config_without_a_valid_subscription_is_refused(folder):
    write(folder / "subscriptions.jsonl", {"id": "s1", "subscriber": "ann", "where": "year >"})
    with pytest.raises(TidingsError, match=r"`tidings check .*run.toml` lists the problems"):
        make_plan(load_config(folder / "run.toml"))
    assert not (folder / "out").exists()


def test_a_wrong_option_of_a_source_is_an_error_before_anything_is_written(folder):
    text = (folder / "run.toml").read_text().replace('path = "[0-9].jsonl"', 'format = "nats"', 1)
    (folder / "run.toml").write_text(text)
    with pytest.raises(TidingsError, match="tidings-nats: option 'servers' is missing"):
        make_plan(load_config(folder / "run.toml"))
    assert not (folder / "out").exists()
