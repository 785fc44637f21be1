"""The rule `quiet`, with the instants of release written out."""

import pytest
from tests.rules.streams import chooser, delivered, pick

from tidings.errors import InvalidForm, InvalidPolicy
from tidings.policy import Policy
from tidings.rules.quiet import Quiet
from tidings.window import Pick

NIGHT = [
    pick("evening", "2026-11-15T19:59:59Z", 0.1),
    pick("a", "2026-11-15T20:00Z", 0.3),
    pick("b", "2026-11-15T23:00Z", 0.5),
    pick("c", "2026-11-16T04:59:59Z", 0.4),
    pick("morning", "2026-11-16T05:00Z", 0.2),
]


def test_the_best_of_the_night_come_in_the_morning() -> None:
    policy = Policy(k=2, rules=[Quiet("22:00", "07:00", "Europe/Athens")])
    assert delivered(policy, NIGHT, "2026-11-17") == [
        "evening 2026-11-15T19:59:59Z",
        "b 2026-11-16T05:00:00Z",
        "c 2026-11-16T05:00:00Z",
        "morning 2026-11-16T05:00:00Z",
    ]


def test_urgent_events_pass_at_once() -> None:
    policy = Policy(k=1, rules=[Quiet(zone="Europe/Athens", urgent=0.5)])
    assert delivered(policy, NIGHT, "2026-11-17")[1:3] == [
        "b 2026-11-15T23:00:00Z",
        "c 2026-11-16T05:00:00Z",
    ]


def test_ranks_are_those_of_the_end() -> None:
    policy = Policy(k=2, decay={"name": "exponential", "half_life": "1h"}, rules=[Quiet()])
    state = policy.rules[0].open(chooser(policy))
    assert state.offer(pick("old", "2026-11-16T05:00Z", 0.9)) == []
    assert state.offer(pick("new", "2026-11-16T06:00Z", 0.5)) == []
    due = state.release()
    assert [(each.match.event.id, each.rank, each.position) for each in due] == [
        ("new", 0.25, 1),
        ("old", 0.225, 2),
    ]


def test_the_diversifier_chooses_among_the_held() -> None:
    policy = Policy(k=2, diversify={"name": "divrank", "sigma": 0.5}, rules=["quiet"])
    night = [
        pick("a", "2026-11-15T23:00Z", 0.9, genre="drama"),
        pick("b", "2026-11-15T23:10Z", 0.9, genre="drama"),
        pick("c", "2026-11-15T23:20Z", 0.6, genre="comedy"),
    ]
    names = [line.split()[0] for line in delivered(policy, night, "2026-11-17")]
    assert sorted(names) == ["b", "c"]


@pytest.mark.parametrize(
    ("zone", "span", "at", "end"),
    [
        # Clocks go from 03:00 to 04:00: 03:30 is skipped and means 04:00, which is 01:00 UTC.
        ("Europe/Athens", ("22:00", "03:30"), "2026-03-28T21:00Z", "2026-03-29T01:00:00Z"),
        # Clocks go from 04:00 back to 03:00: the first 03:30 is meant, which is 00:30 UTC.
        ("Europe/Athens", ("22:00", "03:30"), "2026-10-24T21:00Z", "2026-10-25T00:30:00Z"),
        # A night with an hour less, and one with an hour more.
        ("Europe/Athens", ("22:00", "07:00"), "2026-03-28T21:00Z", "2026-03-29T04:00:00Z"),
        ("Europe/Athens", ("22:00", "07:00"), "2026-10-24T21:00Z", "2026-10-25T05:00:00Z"),
        # A zone of half hours, and one that changes by half an hour.
        ("Asia/Kolkata", ("22:00", "07:00"), "2026-11-15T20:00Z", "2026-11-16T01:30:00Z"),
        ("Australia/Lord_Howe", ("22:00", "07:00"), "2026-04-04T12:00Z", "2026-04-04T20:30:00Z"),
        # A leap day, and a break at noon.
        ("UTC", ("22:00", "07:00"), "2028-02-28T23:00Z", "2028-02-29T07:00:00Z"),
        ("UTC", ("12:00", "13:15"), "2026-11-15T12:30Z", "2026-11-15T13:15:00Z"),
    ],
)
def test_the_end_is_a_local_time(zone: str, span: tuple[str, str], at: str, end: str) -> None:
    policy = Policy(rules=[Quiet(*span, zone=zone)])
    assert delivered(policy, [pick("e", at)], "2030-01-01") == [f"e {end}"]


def test_only_the_k_best_are_kept_where_rank_alone_decides() -> None:
    policy = Policy(k=2, rules=["quiet"])
    state = policy.rules[0].open(chooser(policy))
    night = [pick(f"e{i}", f"2026-11-15T23:{i:02d}Z", i / 100) for i in range(50)]
    for each in night:
        state.offer(each)
        assert len(state.snapshot()["held"]) <= 2
    dropped = [verdict for verdict in state.verdicts if verdict.fate == "dropped"]
    assert [(verdict.event, verdict.at_us) for verdict in dropped] == [
        (old.match.event.id, new.at_us) for old, new in zip(night, night[2:], strict=False)
    ]
    assert [each.match.event.id for each in state.release()] == ["e49", "e48"]


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"start": "25:00"}, "start is a time of day such as 07:30, not '25:00'"),
        ({"start": "7"}, "start is a time of day"),
        ({"start": 7}, "start is a time of day"),
        ({"end": "07:00+02:00"}, "end is a time of day"),
        ({"start": "07:00"}, "start and end are different times"),
        ({"zone": 5}, "zone is the name of a time zone"),
        ({"urgent": "high"}, "urgent"),
    ],
)
def test_bad_parameters_are_refused(form: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidPolicy, match=message):
        Policy(rules=[{"name": "quiet", **form}])


def test_damaged_states_are_refused() -> None:
    state = Quiet().open(chooser(Policy()))
    for damage in ({"end": 5, "held": []}, {"end": None, "held": [1]}, {"end": "x", "held": []}):
        with pytest.raises(InvalidForm):
            state.restore(damage)


def test_times_are_written_as_read() -> None:
    assert Policy(rules=[Quiet("22:00", "06:30:15")]).to_dict()["rules"] == [
        {"name": "quiet", "end": "06:30:15"}
    ]


def test_held_picks_keep_the_window_they_won_in() -> None:
    window: Pick = NIGHT[1]
    policy = Policy(rules=[Quiet(zone="Europe/Athens")])
    state = policy.rules[0].open(chooser(policy))
    state.offer(window)
    [due] = state.release()
    assert due.window == window.window
