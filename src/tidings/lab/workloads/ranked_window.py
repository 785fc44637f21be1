"""Windows of publications, ranked for one subscriber by its preference graph (TKS 4.2.1)."""

from collections.abc import Iterable, Sequence

from tidings.diversify import Candidate
from tidings.lab.workloads.catalogue import (
    SubscriptionLaw,
    View,
    publications,
    subscriptions,
)
from tidings.model.records import Event, Subscription
from tidings.policy import Policy, Subscriber
from tidings.rank.matcher import Matcher

SUBSCRIBER = "reader"


def ranked(events: Sequence[Event], subscriptions: Iterable[Subscription]) -> list[Candidate]:
    """Return the events that satisfy a tuple, with their relevance to the subscriber."""
    subscriber = Subscriber(SUBSCRIBER, Policy(scorer="graph"))
    matches = Matcher([subscriber], subscriptions, index="access").match_many(events)
    return [
        Candidate(events[place], rank, rank)
        for place, rank in zip(matches.events.tolist(), matches.ranks.tolist(), strict=True)
    ]


def subscriptions_of(
    view: View, seed: int, law: SubscriptionLaw | None = None, count: int = 1
) -> list[Subscription]:
    """Return the subscriptions of the one subscriber to a view."""
    return subscriptions(view, count, law, subscriber=SUBSCRIBER, seed=seed)


def best_matching_window(view: View, size: int, seed: int) -> list[Candidate]:
    """Return a window in which all publications match (TKS 7.2), in order of publication."""
    own = subscriptions_of(view, seed)
    return ranked(publications(view, size, own, "best-matching", seed=seed), own)
