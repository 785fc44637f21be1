"""The preferential subscription graph (PREF 6.1): matches an event and ranks it by prefranks.

The conditions of all subscribers form one cover graph. Equal conditions share a node, whose
PrefRank set holds the subscribers with their prefranks. An event descends from the roots, and only
below nodes that match. With 20,000 subscriptions an event takes 4,742 us, against 183 us of
`access` (bench/results/covers.md).
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from tidings.index.papers.cover_graph.poset import CoverNode, CoverPoset, PlacedNode, link, unlink
from tidings.index.papers.cover_graph.regions import Region
from tidings.index.protocol import Score, best_found, relaxed_score
from tidings.index.scan import Scan
from tidings.model.conditions.predicate import TokenMap
from tidings.model.records import Event, Subscription

RankAggregate = Callable[[Sequence[float]], float]
"""F of PREF Def. 5: the rank of the prefranks of the most specific subscriptions."""

_NO_WEIGHTS: Final[Mapping[str, float]] = MappingProxyType({})


@dataclass(eq=False, slots=True)
class PrefRankEntry:
    """A subscriber in the PrefRank set of a node: its prefranks there, by subscription.

    `parents` and `children` are the subscriber's next entries above and below, skipping the nodes
    that do not hold it.
    """

    node: CoverNode
    prefranks: dict[str, float] = field(default_factory=dict)
    parents: list["PrefRankEntry"] = field(default_factory=list)
    children: list["PrefRankEntry"] = field(default_factory=list)

    @property
    def status(self) -> bool:
        """The status bit: whether a more specific subscription of the subscriber lies below."""
        return bool(self.children)

    def covers(self, other: "PrefRankEntry") -> bool:
        """Return whether the node covers that of another entry."""
        return self.node.covers(other.node)


class PreferentialGraph:
    """Subscriptions of all subscribers in one graph of covers, matched from its roots.

    `counters()` reports the nodes that were tested as `subscriptions`, and each distinct predicate
    once per event. A subscription without a prefrank has 1 until `rerank` changes it.
    """

    def __init__(self, subscriptions: Iterable[Subscription] = ()) -> None:
        self.poset = CoverPoset()
        self._subscriptions: dict[str, Subscription] = {}
        self._node_of: dict[str, CoverNode] = {}
        self._entries_of: dict[str, dict[CoverNode, PrefRankEntry]] = defaultdict(dict)
        self._visits = Counter[str]()
        for subscription in subscriptions:
            self.add(subscription)

    def add(self, subscription: Subscription) -> None:
        """Add a subscription; one without active predicates has no node, since nothing matches."""
        self._subscriptions[subscription.id] = subscription
        if not all(subscription.conjunctions):
            return
        placed = self.poset.add(subscription.conjunctions)
        node, owner = placed.node, subscription.subscriber
        if owner not in node.entries:
            self._add_entry(owner, placed)
        prefrank = 1.0 if subscription.prefrank is None else subscription.prefrank
        node.entries[owner].prefranks[subscription.id] = prefrank
        self._node_of[subscription.id] = node

    def remove(self, subscription: str) -> None:
        """Remove a subscription by id, and its node if no other subscription is there."""
        owner = self._subscriptions.pop(subscription).subscriber
        node = self._node_of.pop(subscription, None)
        if node is None:
            return
        del node.entries[owner].prefranks[subscription]
        if not node.entries[owner].prefranks:
            self._remove_entry(owner, node)
        if not node.entries:
            self.poset.remove(node)

    def rerank(self, subscription: str, prefrank: float) -> None:
        """Set the prefrank of a subscription, such as one derived from preferences."""
        node = self._node_of.get(subscription)
        if node is not None:
            owner = self._subscriptions[subscription].subscriber
            node.entries[owner].prefranks[subscription] = prefrank

    def matching(self, event: Event) -> list[Subscription]:
        entries = (entry for node in self.matched(event) for entry in node.entries.values())
        ids = sorted(id for entry in entries for id in entry.prefranks)
        return [self._subscriptions[id] for id in ids]

    def touching(self, event: Event) -> list[Subscription]:
        scan = Scan(self._subscriptions.values())
        touched = scan.touching(event)
        self._visits.update(scan.counters())
        return touched

    def top(self, event: Event, k: int, score: Score | None = None) -> list[tuple[str, float]]:
        return best_found(self, event, k, score)

    def top_relaxed(self, event: Event, k: int) -> list[tuple[str, float]]:
        return self.top(event, k, relaxed_score)

    def ranks(
        self,
        event: Event,
        aggregate: RankAggregate = max,
        weights: Mapping[str, float] = _NO_WEIGHTS,
        subscribers: Collection[str] | None = None,
    ) -> dict[str, float]:
        """Return the rank of an event for each subscriber that it matches, by name (PREF Def. 5).

        A rank is `aggregate` over the prefranks, times the `weights` of their ids, of the most
        specific matching subscriptions. With `subscribers`, only theirs are computed, and the walk
        ends where none of them has anything more specific.
        """
        specific = self.most_specific(event, subscribers)
        return {
            subscriber: aggregate([rank * weights.get(id, 1.0) for id, rank in ranks.items()])
            for subscriber, ranks in specific.items()
        }

    def most_specific(
        self, event: Event, subscribers: Collection[str] | None = None
    ) -> dict[str, dict[str, float]]:
        """Return each subscriber's most specific matching subscriptions with their prefranks.

        An entry whose status bit is 0 is most specific; another one is if none of the next below
        it matches, since those further below match only if these do.
        """
        matched = dict.fromkeys(self.matched(event, subscribers))
        specific: dict[str, dict[str, float]] = defaultdict(dict)
        for node in matched:
            for subscriber, entry in _entries(node, subscribers):
                if not any(child.node in matched for child in entry.children):
                    specific[subscriber] |= entry.prefranks
        return {name: dict(sorted(specific[name].items())) for name in sorted(specific)}

    def matched(self, event: Event, subscribers: Collection[str] | None = None) -> list[CoverNode]:
        """Return the nodes that match, breadth-first; only for `subscribers` if given.

        A node is tested when all its parents match. The walk does not go below a node that holds
        all given subscribers, each with a status bit of 0 (PREF 6.1).
        """
        return self._walk(event, lambda node: _is_settled(node, subscribers))

    def notified(self, event: Event, subscribers: Collection[str]) -> set[str]:
        """Return those of `subscribers` that the event matches at all, as SIENA finds them.

        The walk does not go below a node that holds all of them.
        """
        nodes = self._walk(event, lambda node: all(name in node.entries for name in subscribers))
        return {name for name in subscribers if any(name in node.entries for node in nodes)}

    def counters(self) -> dict[str, int]:
        """Return how many predicates and nodes were tested so far."""
        return {name: self._visits[name] for name in ("predicates", "subscriptions")}

    def _walk(self, event: Event, stops_at: Callable[[CoverNode], bool]) -> list[CoverNode]:
        tokens = event.tokens
        truths: dict[Region, bool] = {}
        matching_parents: dict[CoverNode, int] = defaultdict(int)
        matched, waiting, tested = [], deque(self.poset.roots), 0
        while waiting:
            node = waiting.popleft()
            tested += 1
            if not _matches(node, tokens, truths):
                continue
            matched.append(node)
            for child in () if stops_at(node) else node.children:
                matching_parents[child] += 1
                if matching_parents[child] == len(child.parents):
                    waiting.append(child)
        self._visits.update(subscriptions=tested, predicates=len(truths))
        return matched

    def _add_entry(self, owner: str, placed: PlacedNode) -> None:
        """Add a subscriber to a node, linked with its other entries."""
        node, owned = placed.node, self._entries_of[owner]
        if placed.is_new:
            above = [other.entries[owner] for other in placed.above if owner in other.entries]
            below = [other.entries[owner] for other in placed.below if owner in other.entries]
        else:
            above = [entry for entry in owned.values() if entry.node.covers(node)]
            below = [entry for entry in owned.values() if node.covers(entry.node)]
        node.entries[owner] = owned[node] = PrefRankEntry(node)
        link(node.entries[owner], above, below)

    def _remove_entry(self, owner: str, node: CoverNode) -> None:
        """Remove a subscriber from a node."""
        unlink(node.entries[owner])
        del node.entries[owner], self._entries_of[owner][node]
        if not self._entries_of[owner]:
            del self._entries_of[owner]


def _matches(node: CoverNode, tokens: TokenMap, truths: dict[Region, bool]) -> bool:
    """Return whether some conjunction holds; each region is tested once per event."""
    for conjunction in node.conjunctions:
        for region in conjunction.regions:
            holds = truths.get(region)
            if holds is None:
                holds = region.predicate.holds(tokens)
                truths[region] = holds
            if not holds:
                break
        else:
            return True
    return False


def _is_settled(node: CoverNode, subscribers: Collection[str] | None) -> bool:
    if subscribers is None:
        return False
    return all(name in node.entries and not node.entries[name].status for name in subscribers)


def _entries(
    node: CoverNode, subscribers: Collection[str] | None
) -> Iterable[tuple[str, PrefRankEntry]]:
    if subscribers is None:
        return node.entries.items()
    return [(name, node.entries[name]) for name in subscribers if name in node.entries]
