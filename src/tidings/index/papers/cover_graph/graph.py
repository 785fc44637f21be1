"""The preferential subscription graph (PREF 6.1): who wants an event, and how much.

Conditions of all subscribers stand in one cover graph; equal ones share a node, whose PrefRank set
holds the subscribers with their prefranks. An event goes from the roots downwards, and only below
nodes that match.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from tidings.index.papers.cover_graph.attribute_region import Region
from tidings.index.papers.cover_graph.poset import Node, Placed, Poset
from tidings.index.papers.cover_graph.transitive_reduction import link, unlink
from tidings.index.protocol import Score, best_found
from tidings.index.scan import Scan, weights_that_hold
from tidings.model.conditions.predicate import TokenMap
from tidings.model.records import Event, Subscription

Aggregate = Callable[[Sequence[float]], float]
"""F of PREF Def. 5: the rank of the prefranks of the most specific subscriptions."""

_NO_WEIGHTS: Final[Mapping[str, float]] = MappingProxyType({})


@dataclass(eq=False, slots=True)
class Entry:
    """A subscriber in the PrefRank set of a node: its prefranks there, by subscription.

    `parents` and `children` are the subscriber's entries next above and below, if one leaves out
    the nodes that do not hold it.
    """

    node: Node
    prefranks: dict[str, float] = field(default_factory=dict)
    parents: list["Entry"] = field(default_factory=list)
    children: list["Entry"] = field(default_factory=list)

    @property
    def status(self) -> bool:
        """The status bit: whether a more specific subscription of the subscriber lies below."""
        return bool(self.children)

    def covers(self, other: "Entry") -> bool:
        """Tell whether the node covers that of another entry."""
        return self.node.covers(other.node)


class PreferentialGraph:
    """Subscriptions of all subscribers in one graph of covers, matched from its roots.

    `counters()` tells the nodes that were checked as `subscriptions`, and each different predicate
    once an event. A subscription without a prefrank has 1 until `rerank` says otherwise.
    """

    def __init__(self, subscriptions: Iterable[Subscription] = ()) -> None:
        self.poset = Poset()
        self._subscriptions: dict[str, Subscription] = {}
        self._places: dict[str, Node] = {}
        self._owned: dict[str, dict[Node, Entry]] = defaultdict(dict)
        self._looked = Counter[str]()
        for each in subscriptions:
            self.add(each)

    def add(self, subscription: Subscription) -> None:
        """Add a subscription; without an active predicate it waits outside, as nothing matches."""
        self._subscriptions[subscription.id] = subscription
        if not all(subscription.conjunctions):
            return
        placed = self.poset.add(subscription.conjunctions)
        node, owner = placed.node, subscription.subscriber
        if owner not in node.entries:
            self._enter(owner, placed)
        given = subscription.prefrank
        node.entries[owner].prefranks[subscription.id] = 1.0 if given is None else given
        self._places[subscription.id] = node

    def remove(self, subscription: str) -> None:
        """Remove a subscription by id; the last one takes its node along."""
        owner = self._subscriptions.pop(subscription).subscriber
        node = self._places.pop(subscription, None)
        if node is None:
            return
        del node.entries[owner].prefranks[subscription]
        if not node.entries[owner].prefranks:
            self._leave(owner, node)
        if not node.entries:
            self.poset.remove(node)

    def rerank(self, subscription: str, prefrank: float) -> None:
        """Give a subscription another prefrank, such as one derived from preferences."""
        node = self._places.get(subscription)
        if node is not None:
            owner = self._subscriptions[subscription].subscriber
            node.entries[owner].prefranks[subscription] = prefrank

    def matching(self, event: Event) -> list[Subscription]:
        """Give the subscriptions that cover the event, by id."""
        entries = (entry for node in self.matched(event) for entry in node.entries.values())
        found = sorted(name for entry in entries for name in entry.prefranks)
        return [self._subscriptions[name] for name in found]

    def touching(self, event: Event) -> list[Subscription]:
        """Give the subscriptions of which at least one predicate holds, by id: looks at all."""
        scan = Scan(self._subscriptions.values())
        found = scan.touching(event)
        self._looked.update(scan.counters())
        return found

    def top(self, event: Event, k: int, score: Score | None = None) -> list[tuple[str, float]]:
        """Give the k best by `score`, ties by smaller id."""
        return best_found(self, event, k, score)

    def top_relaxed(self, event: Event, k: int) -> list[tuple[str, float]]:
        """Give the k best by the weights of the predicates that hold, ties by smaller id."""
        return self.top(event, k, weights_that_hold)

    def ranks(
        self,
        event: Event,
        aggregate: Aggregate = max,
        weights: Mapping[str, float] = _NO_WEIGHTS,
        subscribers: Collection[str] | None = None,
    ) -> dict[str, float]:
        """Give the rank of the event for each subscriber that it matches (PREF Def. 5).

        It is `aggregate` over the prefranks, times the `weights` of their ids, of the most specific
        matching subscriptions. With `subscribers`, only theirs are asked for, and the walk ends
        where none of them has anything more specific.
        """
        found = self.most_specific(event, subscribers)
        return {
            subscriber: aggregate([rank * weights.get(name, 1.0) for name, rank in ranks.items()])
            for subscriber, ranks in found.items()
        }

    def most_specific(
        self, event: Event, subscribers: Collection[str] | None = None
    ) -> dict[str, dict[str, float]]:
        """Give each subscriber's most specific matching subscriptions with their prefranks, by id.

        An entry whose status bit is 0 is one at once; another if none of the next below it matches,
        as those further below match only if these do.
        """
        matched = dict.fromkeys(self.matched(event, subscribers))
        found: dict[str, dict[str, float]] = defaultdict(dict)
        for node in matched:
            for subscriber, entry in _entries(node, subscribers):
                if not any(each.node in matched for each in entry.children):
                    found[subscriber] |= entry.prefranks
        return {name: dict(sorted(found[name].items())) for name in sorted(found)}

    def matched(self, event: Event, subscribers: Collection[str] | None = None) -> list[Node]:
        """Give the nodes that match, by breadth; for `subscribers` if some are named.

        A node is checked when all its parents match. The walk does not go below a node that holds
        all named subscribers, each with a status bit of 0 (PREF 6.1).
        """
        return self._walk(event, lambda node: _settled(node, subscribers))

    def notified(self, event: Event, subscribers: Collection[str]) -> set[str]:
        """Give those of `subscribers` that the event matches at all, as SIENA would find them.

        The walk does not go below a node that holds them all: who is notified needs no more.
        """
        nodes = self._walk(event, lambda node: all(name in node.entries for name in subscribers))
        return {name for name in subscribers if any(name in node.entries for node in nodes)}

    def counters(self) -> dict[str, int]:
        """Give how many predicates were tested, and nodes checked, so far."""
        return {name: self._looked[name] for name in ("predicates", "subscriptions")}

    def _walk(self, event: Event, stops: Callable[[Node], bool]) -> list[Node]:
        tokens = event.tokens
        truths: dict[Region, bool] = {}
        matching_parents: dict[Node, int] = defaultdict(int)
        found, waiting, checked = [], deque(self.poset.roots), 0
        while waiting:
            node = waiting.popleft()
            checked += 1
            if not _matches(node, tokens, truths):
                continue
            found.append(node)
            for child in () if stops(node) else node.children:
                matching_parents[child] += 1
                if matching_parents[child] == len(child.parents):
                    waiting.append(child)
        self._looked.update(subscriptions=checked, predicates=len(truths))
        return found

    def _enter(self, owner: str, placed: Placed) -> None:
        """Put a subscriber into a node, among its other entries."""
        node, owned = placed.node, self._owned[owner]
        if placed.new:
            over = [each.entries[owner] for each in placed.over if owner in each.entries]
            under = [each.entries[owner] for each in placed.under if owner in each.entries]
        else:
            over = [each for each in owned.values() if each.node.covers(node)]
            under = [each for each in owned.values() if node.covers(each.node)]
        node.entries[owner] = owned[node] = Entry(node)
        link(node.entries[owner], over, under)

    def _leave(self, owner: str, node: Node) -> None:
        """Take a subscriber out of a node."""
        unlink(node.entries[owner])
        del node.entries[owner], self._owned[owner][node]
        if not self._owned[owner]:
            del self._owned[owner]


def _matches(node: Node, tokens: TokenMap, truths: dict[Region, bool]) -> bool:
    """Tell whether some conjunction holds; what is known of a region is not tested again."""
    for row in node.rows:
        for region in row.regions:
            held = truths.get(region)
            if held is None:
                held = region.slot[0] in tokens and region.part.holds(tokens)
                truths[region] = held
            if not held:
                break
        else:
            return True
    return False


def _settled(node: Node, subscribers: Collection[str] | None) -> bool:
    if subscribers is None:
        return False
    return all(name in node.entries and not node.entries[name].status for name in subscribers)


def _entries(node: Node, subscribers: Collection[str] | None) -> Iterable[tuple[str, Entry]]:
    if subscribers is None:
        return node.entries.items()
    return [(name, node.entries[name]) for name in subscribers if name in node.entries]
