"""The timeline of a subscriber agrees with its deliveries, and names reasons."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lab.test_replay import any_policy, plain_run, recorded

from tidings.errors import TidingsError
from tidings.lab.recording import read_recording
from tidings.lab.timeline import timeline, timeline_page
from tidings.lab.variants import Variant
from tidings.policy import Policy

FILMS = [
    {"id": f"e{n}", "published_at": n * 60, "attributes": {"genre": genre, "title": f"<{genre}>"}}
    for n, genre in enumerate(["drama", "drama", "comedy", "horror"])
]
SUBSCRIPTIONS = [
    {"id": "s1", "subscriber": "ann", "where": "genre = 'drama'", "prefrank": 0.9},
    {"id": "s2", "subscriber": "ann", "where": "genre = 'comedy'", "prefrank": 0.4},
]


@settings(max_examples=25)
@given(st.integers(0, 3), any_policy)
def test_what_a_timeline_delivers_an_engine_delivers(seed: int, policy: Policy) -> None:
    recording = recorded(seed, events=30, people=2)
    _, deliveries = plain_run(recording, Variant("one", policy))
    for name in ("u00", "u01"):
        told = timeline(recording, name, policy=policy)
        sent = {delivery.event for delivery in deliveries if delivery.subscriber == name}
        delivered = {
            event.event
            for window in told.windows
            for event in window.chosen
            if "delivered at" in event.fate
        }
        assert told.delivered == len(sent)
        assert delivered == sent


def test_a_window_names_the_chosen_and_why_others_were_not() -> None:
    recording = read_recording(FILMS, SUBSCRIPTIONS)
    policy = Policy(k=1, window={"name": "periodic", "length": "1h"})
    told = timeline(recording, "ann", end="1970-01-01T01:00:00Z", policy=policy)
    assert str(told).splitlines()[2:] == [
        "1970-01-01T01:00:00Z  3 candidates from 1970-01-01T00:00:00Z to 1970-01-01T01:00:00Z",
        "  + <drama> (e1), rank 0.9: delivered at 1970-01-01T01:00:00Z",
        "  - <drama> (e0), rank 0.9: number 2 by rank; newer events rank at least as high",
        "  - <comedy> (e2), rank 0.4: number 3 by rank; others rank higher",
    ]
    page = timeline_page(told)
    assert "&lt;drama&gt;" in page
    assert "<drama>" not in page


def test_a_period_limits_the_windows_but_not_what_they_hold() -> None:
    recording = read_recording(FILMS, SUBSCRIPTIONS)
    policy = Policy(k=2, window={"name": "sliding", "length": 5})
    told = timeline(recording, "ann", start=90, end=150, policy=policy)
    (window,) = told.windows
    assert (told.matches, window.candidates) == (1, 3)
    assert [event.fate for event in window.chosen] == ["chosen again", "chosen again"]
    assert timeline_page(told).count('<li class="again">') == 2
    first = timeline(recording, "ann", end=0, policy=policy)
    assert ": 1 match, 1 delivered" in str(first)
    assert "1 candidate from <time>1970-01-01T00:00:00Z</time> to " in timeline_page(first)


def test_publications_after_the_period_do_not_count() -> None:
    """A window that counts publications is still open: only two of three have come."""
    recording = read_recording(FILMS, SUBSCRIPTIONS)
    policy = Policy(k=1, window={"name": "periodic", "length": 3, "count": "published"})
    assert timeline(recording, "ann", end=60, policy=policy).windows == ()
    (window,) = timeline(recording, "ann", end=180, policy=policy).windows
    assert window.candidates == 3
    assert timeline(recording, "ann", start=-9, end=-1, policy=policy).matches == 0


def test_rules_and_histories_have_their_fates() -> None:
    recording = read_recording(FILMS, SUBSCRIPTIONS)
    quota = Policy(k=5, rules=[{"name": "quota", "n": 1, "per": "day", "pick": "first"}])
    fates = [
        event.fate
        for window in timeline(recording, "ann", policy=quota).windows
        for event in window.chosen
    ]
    assert any(fate.startswith("dropped by quota: 1 has passed") for fate in fates)
    history = Policy(k=1, window={"name": "history", "length": 10})
    told = timeline(recording, "ann", policy=history)
    assert len(told.windows[0].chosen) == 1
    assert told.to_dict()["windows"][-1]["passed"][0]["fate"].startswith("not delivered")


def test_unknown_subscribers_and_reversed_periods_are_refused() -> None:
    recording = read_recording(FILMS, SUBSCRIPTIONS)
    with pytest.raises(TidingsError, match="there is no subscriber 'bob' in the recording"):
        timeline(recording, "bob")
    with pytest.raises(TidingsError, match="before it starts"):
        timeline(recording, "ann", start=10, end=5)
