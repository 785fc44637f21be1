"""Matching and explaining events of files; tests/app/cli runs the commands."""

import json
from io import StringIO
from pathlib import Path

import pytest

from tidings import Event, Exact, Relaxed
from tidings.app.match_files import (
    ExplainQuery,
    MatchQuery,
    explain_event,
    match_events,
    read_events_or_event,
    read_inputs,
)
from tidings.errors import InvalidEvent, InvalidForm

SUBSCRIPTIONS = [
    {"id": "s1", "subscriber": "ann", "where": "year > 1 and genre = 'drama'"},
    {"id": "s2", "subscriber": "bob", "where": "year > 2"},
    {"id": "bad", "subscriber": "bob", "where": "year >"},
]
EVENT = '{"year": 3, "genre": "comedy"}'


def lines(forms):
    return "".join(json.dumps(form) + "\n" for form in forms)


@pytest.fixture
def inputs(tmp_path):
    path = tmp_path / "subscriptions.jsonl"
    path.write_text(lines(SUBSCRIPTIONS))
    return read_inputs(path)


def rows(inputs, query):
    return list(match_events(inputs, read_events_or_event(None, EVENT), query))


def test_bad_records_are_problems_and_the_others_match(inputs):
    assert [problem.id for problem in inputs.problems] == ["bad"]
    assert [row["subscriber"] for row in rows(inputs, MatchQuery())] == ["bob"]


def test_a_scorer_overrides_the_policies(inputs):
    relaxed = rows(inputs, MatchQuery(scorer=Relaxed()))
    assert [row["subscriber"] for row in relaxed] == ["ann", "bob"]


def test_targets_are_ranked_by_the_exact_score_by_default(inputs):
    (row,) = rows(inputs, MatchQuery("target"))
    assert (row["position"], row["subscription"], row["subscriber"]) == (1, "s2", "bob")
    assert rows(inputs, MatchQuery("target", Exact())) == [row]
    assert len(rows(inputs, MatchQuery("target", Relaxed(), k=1))) == 1


def test_standard_input_is_read_line_by_line(monkeypatch):
    monkeypatch.setattr("sys.stdin", StringIO(lines(SUBSCRIPTIONS)))
    inputs = read_inputs(Path("-"))
    assert [subscription.id for subscription in inputs.subscriptions] == ["s1", "s2"]
    assert [(problem.path, problem.line) for problem in inputs.problems] == [(Path("stdin"), 3)]


def test_an_event_is_attributes_or_a_whole_form():
    (event,) = read_events_or_event(None, EVENT)
    assert isinstance(event, Event)
    assert event.attributes["year"] == 3
    form = {"id": "e7", "published_at": 5, "attributes": {"year": 1}}
    (event,) = read_events_or_event(None, json.dumps(form))
    assert isinstance(event, Event)
    assert event.id == "e7"
    with pytest.raises(InvalidForm, match="the event is not valid JSON"):
        read_events_or_event(None, "{")


def test_the_event_to_explain_must_be_in_the_file(inputs, tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text(lines([{"id": "e1", "published_at": 0, "attributes": {"year": 3}}]))
    query = ExplainQuery("e1", subscriber="bob")
    explanation = explain_event(inputs, read_events_or_event(path, None), query, path)
    assert explanation.to_dict()["delivery"] is not None
    with pytest.raises(InvalidEvent, match=r"event 'e2' is not in .*events\.jsonl"):
        explain_event(inputs, read_events_or_event(path, None), ExplainQuery("e2"), path)


def test_a_closed_standard_input_is_refused(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InvalidForm, match="no standard input"):
        read_events_or_event(Path("-"), None)
