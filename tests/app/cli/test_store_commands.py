"""The commands on stores, as a user calls them."""

import json

import pytest
from tests.app.cli.commands import EVENTS, SUBSCRIBERS, SUBSCRIPTIONS, printed, tidings

from tidings.model.dead_letter import DeadLetter
from tidings.model.records import Delivery
from tidings.store import open_store


@pytest.fixture
def store(tmp_path):
    """Return the path of a store with the records of the example."""
    path = tmp_path / "films.db"
    result = tidings("store", "add", path, SUBSCRIPTIONS, SUBSCRIBERS)
    assert (result.exit_code, result.stdout) == (0, "17 records, 17 new or changed; version 17\n")
    return path


def deliver(path, subscriber, *events):
    deliveries = [
        Delivery(subscriber, event, 0.5, 1, {"name": "continuous"}, ("s1",), number, 1_000_000)
        for number, event in enumerate(events, start=1)
    ]
    with open_store(path) as store:
        store.notifications.append(
            "q", 1, deliveries, dead=[DeadLetter({"id": "e9"}, "no such time")]
        )


def test_adding_the_same_again_changes_nothing(store):
    again = tidings("store", "add", store, SUBSCRIPTIONS)
    assert again.stdout == "13 records, 0 new or changed; version 17\n"


def test_records_are_listed_page_by_page(store):
    ids = [record["id"] for record in printed(tidings("store", "list", store, "--json"))]
    assert len(ids) == 13
    assert ids == sorted(ids)
    page = tidings("store", "list", store, "--limit", "2", columns=200).stdout
    assert f"2 subscriptions; continue with --after {ids[1]}" in page
    rest = printed(tidings("store", "list", store, "--after", ids[1], "--json"))
    assert [record["id"] for record in rest] == ids[2:]
    people = printed(tidings("store", "list", store, "subscriber", "--json"))
    assert [person["id"] for person in people][:2] == ["ada", "bruno"]
    own = printed(tidings("store", "list", store, "--subscriber", "ada", "--json"))
    assert {record["subscriber"] for record in own} == {"ada"}
    table = tidings("store", "list", store, "subscriber", columns=200).stdout
    assert "ada" in table
    assert "4 subscribers" in table


def test_a_changed_record_is_added_with_replace_only(store, tmp_path):
    changed = tmp_path / "changed.jsonl"
    changed.write_text('{"id": "ada-new", "subscriber": "ada", "where": "n > 1"}\n')
    assert tidings("store", "add", store, changed).exit_code == 0
    changed.write_text('{"id": "ada-new", "subscriber": "ada", "where": "n > 2"}\n')
    refused = tidings("store", "add", store, changed)
    assert refused.exit_code == 1
    assert "subscription 'ada-new' already exists" in refused.stderr
    assert tidings("store", "add", store, changed, "--replace").exit_code == 0
    assert '"where": "n > 2"' in tidings("store", "list", store, "--json").stdout


def test_bad_records_and_files_are_named_and_the_others_added(tmp_path):
    path, mixed = tmp_path / "new.db", tmp_path / "mixed.jsonl"
    mixed.write_text(
        '{"id": "s1", "subscriber": "ann", "where": "n > 1"}\n'
        '{"id": "s2", "subscriber": "ann", "where": "n >"}\n'
    )
    result = tidings("store", "add", path, mixed, EVENTS, "--json", columns=200)
    assert result.exit_code == 1
    form = json.loads(result.stdout)
    assert (form["records"], form["changed"], len(form["problems"])) == (1, 1, 2)
    assert "mixed.jsonl:2" in result.stderr
    assert "holds events" in result.stderr


def test_a_subscriber_is_removed_with_its_subscriptions(store):
    form = printed(tidings("store", "remove", store, "subscriber", "ada", "--json"))
    assert form == [{"removed": ["ada"], "missing": []}]
    assert '"subscriber": "ada"' not in tidings("store", "list", store, "--json").stdout
    again = tidings("store", "remove", store, "subscriber", "ada")
    assert again.exit_code == 1
    assert "there is no subscriber 'ada'" in again.stderr


def test_a_subscriber_is_paused_and_resumed(store):
    assert tidings("store", "pause", store, "ada", "bruno").stdout == "2 subscribers paused\n"
    people = printed(tidings("store", "list", store, "subscriber", "--json"))
    assert [person["id"] for person in people if person.get("paused")] == ["ada", "bruno"]
    assert printed(tidings("store", "resume", store, "ada", "--json")) == [{"resumed": ["ada"]}]
    people = printed(tidings("store", "list", store, "subscriber", "--json"))
    assert [person["id"] for person in people if person.get("paused")] == ["bruno"]
    unknown = tidings("store", "pause", store, "bruno", "nobody")
    assert unknown.exit_code == 1
    assert "no subscriber 'nobody'" in unknown.stderr


def test_an_inbox_has_the_newest_first_and_is_marked_as_read(store):
    deliver(store, "ada", "e1", "e2", "e3")
    rows = printed(tidings("store", "inbox", store, "ada", "--limit", "2", "--json"))
    assert [(row["event"], row["read"]) for row in rows] == [("e3", False), ("e2", False)]
    first = tidings("store", "inbox", store, "ada", "--read", columns=200).stdout
    assert "3 notifications, 3 unread" in first
    again = tidings("store", "inbox", store, "ada", columns=200).stdout
    assert "3 notifications, 0 unread" in again
    assert "0 notifications" in tidings("store", "inbox", store, "bruno").stdout
    unknown = tidings("store", "inbox", store, "nobody")
    assert unknown.exit_code == 1
    assert "no subscriber 'nobody'" in unknown.stderr


def test_letters_are_listed_with_their_reasons(store):
    deliver(store, "ada", "e1")
    assert "no such time" in tidings("store", "letters", store, columns=200).stdout
    (letter,) = printed(tidings("store", "letters", store, "--json"))
    assert letter["record"] == {"id": "e9"}
    assert tidings("store", "letters", store, "late").stdout == "0 letters waiting\n"


def test_old_notifications_are_pruned(store):
    deliver(store, "ada", "e1", "e2")
    pruned = printed(tidings("store", "prune", store, "--older-than", "30d", "--json"))
    assert pruned == [{"deleted": 2}]
    assert tidings("store", "prune", store, "--older-than", "30d").stdout == (
        "0 notifications deleted\n"
    )
    wrong = tidings("store", "prune", store, "--older-than", "soon")
    assert wrong.exit_code == 1
    assert "'soon' is not a duration" in wrong.stderr


@pytest.mark.parametrize(
    "arguments",
    [["list"], ["remove", "subscription", "s"], ["inbox", "ada"], ["prune", "--older-than", "1d"]],
)
def test_a_store_that_does_not_exist_is_not_created(tmp_path, arguments):
    name, *rest = arguments
    result = tidings("store", name, tmp_path / "typo.db", *rest)
    assert result.exit_code == 1
    assert "typo.db; `tidings store add` creates one" in result.stderr
    assert not (tmp_path / "typo.db").exists()
