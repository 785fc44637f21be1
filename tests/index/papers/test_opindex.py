"""The modified OpIndex: the predicates that it visits, and the memory that it releases."""

from tidings.index.papers.opindex import OpIndex
from tidings.model.records import Event, Subscription


def test_predicates_are_found_once_and_conjunctions_counted() -> None:
    index = OpIndex(
        [Subscription("s", "u", "a > 1 and b like 'x%'"), Subscription("t", "u", "a > 1")]
    )
    event = Event("e", {"a": [2, 3], "b": ["xa", "xb"]}, 0)
    assert [match.id for match in index.matching(event)] == ["s", "t"]
    assert index.counters() == {"predicates": 2, "subscriptions": 2}


def test_a_removed_subscription_leaves_nothing_behind() -> None:
    index = OpIndex()
    subscriptions = [
        Subscription("s", "u", "a in (1, 2) and b like '%x%' or c != 3 and d between 1 and 2"),
        Subscription("t", "u", any=[["a in (1, 2)", 1], ["d < 'x'", 1], ["e like '%y'", 1]]),
    ]
    for subscription in subscriptions:
        index.add(subscription)
    for subscription in subscriptions:
        index.remove(subscription.id)
    left = (index._subscriptions, index._predicates, index._lists, index._conjunctions)
    assert left == ({}, {}, {}, {})
