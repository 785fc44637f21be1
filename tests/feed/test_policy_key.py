"""A feed depends on k, the decay, the window and the diversifier of a policy, not on its scorer."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from tidings.diversify.distance import Jaccard
from tidings.diversify.greedy import DivRank
from tidings.diversify.none import NoDiversity
from tidings.errors import InvalidForm, InvalidPolicy
from tidings.feed.policy_key import (
    counts_published,
    feed_form,
    needs_attributes,
    read_feed_form,
    same_feed,
    unregistered,
)
from tidings.policy import Policy
from tidings.window.sliding import Sliding

SLIDING: dict[str, Any] = {"name": "sliding", "length": 4, "wait": True}
DECAY: dict[str, Any] = {"name": "exponential", "rate": 0.5}
DIVERSE: dict[str, Any] = {"name": "divrank", "sigma": 0.25, "distance": "jaccard"}


@dataclass(frozen=True)
class OwnWindow(Sliding):
    """A window of a user."""


@dataclass(frozen=True)
class OwnDistance(Jaccard):
    """A distance of a user."""


@dataclass(frozen=True)
class OwnDiversity(NoDiversity):
    """A diversifier of a user, which goes by the name of a registered one."""


def test_the_form_names_every_part_but_the_scorer():
    assert feed_form(Policy(k=3, scorer="exact")) == {
        "k": 3,
        "decay": "none",
        "window": "continuous",
        "diversify": "none",
    }
    policy = Policy(k=2, decay=DECAY, window=SLIDING, diversify=DIVERSE)
    assert feed_form(policy) == {"k": 2, "decay": DECAY, "window": SLIDING, "diversify": DIVERSE}


def test_a_form_reads_back_with_the_default_scorer():
    policy = Policy(k=2, scorer="relaxed", decay=DECAY, window=SLIDING, diversify=DIVERSE)
    read = read_feed_form(json.loads(json.dumps(feed_form(policy))))
    assert read == Policy(k=2, decay=DECAY, window=SLIDING, diversify=DIVERSE)
    assert same_feed(read, policy)
    assert read != policy


@pytest.mark.parametrize(
    "form",
    [
        None,
        [],
        {},
        {"k": 2},
        {"k": 2, "decay": "none", "window": "continuous"},
        feed_form(Policy()) | {"scorer": "exact"},
    ],
)
def test_a_form_with_other_fields_is_refused(form):
    with pytest.raises(InvalidForm, match="a policy has k, decay, window, diversify; not"):
        read_feed_form(form)


def test_a_part_of_a_user_is_named_by_its_class_and_does_not_read_back():
    form = feed_form(Policy(window=OwnWindow(4)))
    assert form["window"]["name"] == "sliding"
    assert form["window"]["class"].endswith("test_policy_key.OwnWindow")
    with pytest.raises(InvalidPolicy, match="not registered"):
        read_feed_form(form)


def test_the_classes_of_users_are_listed_with_that_of_the_distance():
    assert unregistered(Policy(window=SLIDING, diversify=DIVERSE)) == []
    policy = Policy(window=OwnWindow(4), diversify=DivRank(distance=OwnDistance()))
    assert unregistered(policy) == [OwnWindow, OwnDistance]


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"scorer": "exact"}, True),
        ({"k": 3}, False),
        ({"decay": "none"}, False),
        ({"window": SLIDING | {"length": 5}}, False),
        ({"diversify": DIVERSE | {"distance": "overlap"}}, False),
    ],
    ids=repr,
)
def test_only_the_scorer_makes_no_other_feed(change, same):
    parts: dict[str, Any] = {"k": 2, "decay": DECAY, "window": SLIDING, "diversify": DIVERSE}
    assert same_feed(Policy(**parts), Policy(**parts | change)) is same


def test_only_some_windows_count_published_events():
    assert counts_published(Policy(window=SLIDING | {"count": "published"}))
    assert not counts_published(Policy(window=SLIDING))
    assert not counts_published(Policy())


@pytest.mark.parametrize(
    ("parts", "needed"),
    [
        ({}, False),
        ({"window": SLIDING, "decay": DECAY}, False),
        ({"diversify": DIVERSE}, True),
        ({"window": {"name": "history", "length": 4}}, True),
        ({"window": OwnWindow(4)}, True),
        ({"diversify": OwnDiversity()}, True),
    ],
    ids=repr,
)
def test_attributes_are_needed_where_events_are_compared(parts, needed):
    assert needs_attributes(Policy(**parts)) is needed
