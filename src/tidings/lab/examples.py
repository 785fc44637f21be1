"""Examples of events that one policy would have delivered and another not, with the reasons."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.engine.subscriber_replay import Explainer
from tidings.lab.recording import Recording
from tidings.lab.shared_matching import SharedMatcher
from tidings.lab.variants import Variant
from tidings.model.records import Event
from tidings.model.values import format_time, plain, time_us
from tidings.window import Moment

EACH: Final = 3
"""The number of examples in each direction of a pair of policies."""
PEOPLE: Final = 3
"""The number of subscribers that examples are taken from."""
TITLES: Final = ("title", "name", "headline", "subject")
_SHOWN: Final = 5
"""The number of attributes of an example."""


class Example(NamedTuple):
    """A delivery of one policy that another did not make, and why it did not."""

    subscriber: str
    delivered_by: str
    not_by: str
    event: str
    title: str | None
    attributes: dict[str, Any]
    score: float
    published_at: str
    delivered_at: str
    why: str


class _Difference(NamedTuple):
    """The deliveries to one subscriber that only one policy of a pair made, best score first."""

    subscriber: str
    first: list[dict[str, Any]]
    second: list[dict[str, Any]]

    @property
    def weight(self) -> tuple[int, int]:
        """How informative the difference is: differences in both directions count most."""
        sizes = (len(self.first), len(self.second))
        return min(*sizes, EACH), sum(sizes)


def find_examples(
    recording: Recording, variants: Sequence[Variant], delivered: pa.Table, until_us: int
) -> list[Example]:
    """Return examples of the first policy against each other one, from a few subscribers.

    They come from the subscribers for whom the policies differ most.
    """
    ids = _most_different(variants, delivered)
    if len(variants) < 2 or not ids:
        return []
    names = pa.array(ids, pa.string())
    rows = delivered.filter(pc.is_in(delivered["subscriber"], names)).drop(
        ["window", "matched", "content"]
    )
    by_owner: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for row in rows.to_pylist():
        by_owner.setdefault((row["policy"], row["subscriber"]), {})[row["event"]] = row
    replays = _Replays(recording, variants, ids, until_us)
    examples = list[Example]()
    for other in variants[1:]:
        pair = (variants[0], other)
        differences = [_difference(by_owner, pair, name) for name in ids]
        best = max(
            differences,
            key=lambda difference: (*difference.weight, -ids.index(difference.subscriber)),
        )
        examples += replays.explained(best.subscriber, best.first, pair[0], other)
        examples += replays.explained(best.subscriber, best.second, other, pair[0])
    return examples


def _most_different(variants: Sequence[Variant], delivered: pa.Table) -> list[str]:
    """Return the subscribers with the most deliveries that not all policies made."""
    keys = delivered.group_by(["subscriber", "event"]).aggregate([("policy", "count")])
    partly = keys.filter(pc.less(keys["policy_count"], len(variants)))
    counts = partly["subscriber"].value_counts().to_pylist()
    return [
        count["values"]
        for count in sorted(counts, key=lambda count: (-count["counts"], count["values"]))[:PEOPLE]
    ]


def _difference(
    by_owner: dict[tuple[str, str], dict[str, dict[str, Any]]],
    pair: tuple[Variant, Variant],
    subscriber: str,
) -> _Difference:
    first, second = (by_owner.get((variant.name, subscriber), {}) for variant in pair)
    return _Difference(subscriber, _only(first, second), _only(second, first))


def _only(
    deliveries: dict[str, dict[str, Any]], other: dict[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    rows = [row for event, row in deliveries.items() if event not in other]
    return sorted(rows, key=lambda row: (-row["score"], row["delivered_at"], row["event"]))


class _Replays:
    """Replays for some subscribers, which explain what one policy did for one of them."""

    def __init__(
        self,
        recording: Recording,
        variants: Sequence[Variant],
        ids: Collection[str],
        until_us: int,
    ) -> None:
        self._recording = recording
        self._until = Moment(until_us, int(recording.sequences[-1]))
        owners = [subscriber for subscriber in recording.subscribers if subscriber.id in ids]
        self._events = _matching(recording.only(owners), variants)
        self._replays = {
            owner.id: replace(recording, events=[*self._events[owner.id].values()]).replay(
                owner, self._until
            )
            for owner in owners
        }
        self._explainers: dict[tuple[str, str], Explainer] = {}

    def explained(
        self, name: str, rows: Iterable[dict[str, Any]], by: Variant, not_by: Variant
    ) -> list[Example]:
        """Return the first of some deliveries as examples."""
        return [self._example(name, row, by, not_by) for row in list(rows)[:EACH]]

    def _example(self, name: str, row: dict[str, Any], by: Variant, not_by: Variant) -> Example:
        own = self._recording.of_subscriber(name)
        event = self._events[name][row["event"]]
        parts = [
            part
            for subscription in own.subscriptions
            for conj in subscription.conjunctions
            for part in conj
        ]
        return Example(
            name,
            by.name,
            not_by.name,
            event.id,
            title(event),
            shown_attributes(event, {part.attribute for part in parts}),
            row["score"],
            format_time(event.published_us),
            format_time(time_us(row["delivered_at"])),
            self._explainer(own, not_by).explain(event).summary,
        )

    def _explainer(self, own: Recording, variant: Variant) -> Explainer:
        (owner,) = own.subscribers
        key = (owner.id, variant.name)
        if key not in self._explainers:
            subscriber = replace(owner, policy=variant.policy_of(owner))
            self._explainers[key] = Explainer(self._replays[owner.id], subscriber)
        return self._explainers[key]


def _matching(recording: Recording, variants: Sequence[Variant]) -> dict[str, dict[str, Event]]:
    """Return the publications that match each subscriber: windows see no others."""
    matcher = SharedMatcher(recording.subscribers, recording.subscriptions, variants)
    matches = matcher.match(recording.events)
    events = dict[str, dict[str, Event]]()
    for number, subscriber in enumerate(recording.subscribers):
        own = [ranked.events[ranked.subscribers == number] for ranked in matches]
        matched = [recording.events[place] for place in np.unique(np.concatenate(own)).tolist()]
        events[subscriber.id] = {event.id: event for event in matched}
    return events


def title(event: Event) -> str | None:
    """Return a title of an event from its attributes or content, or None."""
    for fields in (event.content or {}, event.attributes):
        for name in TITLES:
            if isinstance(text := fields.get(name), str):
                return text
    return None


def shown_attributes(event: Event, first: Iterable[str] = ()) -> dict[str, Any]:
    """Return some attributes of an event as JSON: those that subscriptions name, then others."""
    names = [*sorted({*first} & event.attributes.keys()), *event.attributes]
    shown = [name for name in dict.fromkeys(names) if name not in TITLES][:_SHOWN]
    return {name: plain(event.attributes[name]) for name in shown}
