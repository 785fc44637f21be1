"""Subscriptions compared with events: typing errors in conditions, and those that never matched.

A condition that no event satisfies is not an error, since such an event may still arrive. But a
subscriber that receives nothing should learn why.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tidings.errors import clipped
from tidings.model.conditions.parser import render_predicate
from tidings.model.conditions.predicate import Predicate
from tidings.model.profile import FIELDS, Flaw, Profile
from tidings.model.records import Subscription

FLAWS: Final[tuple[Flaw, ...]] = ("attribute", "type", "value")
MOST_FINDINGS: Final = 10
"""Findings in words; further ones are counted."""
NAMED: Final = 3
"""Subscriptions that a finding names; further ones are counted."""
MOST_COMPARED: Final = 100_000
"""Subscriptions whose predicates are compared with a profile."""
_SHOWN: Final = 200


@dataclass(frozen=True)
class Finding:
    """Predicates that hold for no event, all for the same reason.

    `predicate` and `advice` are those of the first. `subscriptions` are the ids of the first that
    have such a predicate, and `count` is the number of all.
    """

    flaw: Flaw
    attribute: str
    predicate: str
    advice: str
    subscriptions: tuple[str, ...]
    count: int

    def __str__(self) -> str:
        """Return the finding in words."""
        return f"{self.predicate}: {self.advice} ({_named(self.subscriptions, self.count)})"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return vars(self) | {"subscriptions": list(self.subscriptions)}


@dataclass(frozen=True)
class Diagnosis:
    """Findings about subscriptions that the events cannot satisfy.

    `events` is the number of events in the profile; of many, the values are a sample.
    `findings` are the first, and `counts` are the numbers of all by their flaws. `unmatched` is the
    number of subscriptions that matched none of the events `tried`, or None if it is unknown;
    `examples` are some of them, first those without a finding.
    """

    events: int
    subscriptions: int
    findings: tuple[Finding, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    unmatched: int | None = None
    tried: int = 0
    examples: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Return whether there is anything to report."""
        return bool(self.findings or self.unmatched)

    def __str__(self) -> str:
        """Return the diagnosis in words, one line for each finding."""
        return "\n".join([self.summary, *(f"  {line}" for line in self.lines)])

    @property
    def summary(self) -> str:
        """The compared records, and the subscriptions that matched nothing."""
        compared = f"{_plural(self.subscriptions, 'subscription')}, {_plural(self.events, 'event')}"
        if self.unmatched:
            tried = f" of {self.tried:,} tried" if self.tried < self.events else ""
            return f"{compared}: none{tried} matched {_named(self.examples, self.unmatched)}"
        return f"{compared}: {'check these conditions' if self.findings else 'nothing to report'}"

    @property
    def lines(self) -> list[str]:
        """Each finding in words, and the number of those that are left out."""
        more = sum(self.counts.values()) - len(self.findings)
        return [
            *map(str, self.findings),
            *([f"... and {more:,} more of this kind"] if more else []),
        ]

    def only(self, *flaws: Flaw) -> "Diagnosis":
        """Return the diagnosis with the findings of some flaws only."""
        findings = tuple(finding for finding in self.findings if finding.flaw in flaws)
        counts: dict[str, int] = {flaw: self.counts[flaw] for flaw in flaws if flaw in self.counts}
        return replace(self, findings=findings, counts=counts)

    def with_renamed(self, columns: Mapping[str, str]) -> "Diagnosis":
        """Return the diagnosis with the new names of columns that conditions call by the old."""

        def renamed(finding: Finding) -> Finding:
            new = columns.get(finding.attribute)
            if finding.flaw != "attribute" or new is None:
                return finding
            old = finding.attribute
            advice = f"the config reads {old} as {new}"
            if new in FIELDS:
                advice += f'; add {old} = "{old}" to [source] columns to have both'
            return replace(finding, advice=advice)

        return replace(self, findings=tuple(map(renamed, self.findings)))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        findings = [finding.to_dict() for finding in self.findings]
        more = {"counts": dict(self.counts), "examples": list(self.examples)}
        return vars(self) | {"findings": findings, **more}


def diagnose(
    subscriptions: Iterable[Subscription],
    profile: Profile,
    matched: Collection[str] | None = None,
    counts_parts: Callable[[Subscription], bool] = lambda _: False,
    tried: int | None = None,
) -> Diagnosis:
    """Compare subscriptions with the events of a profile.

    `matched` are the ids of the subscriptions that matched some event; None if they are unknown.
    `tried` is the number of events on which they were tried, all by default. All predicates of a
    subscription that matched have held, so it needs no comparison with what may be a sample; unless
    it has several conjunctions, or its scorer `counts_parts` of them.
    """
    comparison, sound, flawed = _Comparison(profile), list[str](), list[str]()
    total = unmatched = 0
    for subscription in subscriptions:
        total += 1
        has_matched = matched is not None and subscription.id in matched
        settled = has_matched and len(subscription.conjunctions) == 1
        has_flaw = False
        if total <= MOST_COMPARED and not (settled and not counts_parts(subscription)):
            has_flaw = comparison.add(subscription, has_matched=has_matched)
        if not has_matched:
            unmatched += 1
            examples = flawed if has_flaw else sound
            if len(examples) < NAMED:
                examples.append(subscription.id)
    findings, counts = comparison.findings(), comparison.counts
    if matched is None:
        return Diagnosis(profile.events, total, findings, counts)
    tried = profile.events if tried is None else tried
    names = tuple([*sound, *flawed][:NAMED])
    return Diagnosis(profile.events, total, findings, counts, unmatched, tried, names)


@dataclass
class _Group:
    """Predicates with the same flaw: the first, and the subscriptions that have one of them."""

    flaw: Flaw
    part: Predicate
    ids: list[str] = field(default_factory=list)
    count: int = 0


class _Comparison:
    """The predicates of subscriptions that hold for no event of a profile, in groups."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._flaws: dict[Predicate, Flaw | None] = {}
        self._groups: dict[Hashable, _Group] = {}

    def add(self, subscription: Subscription, *, has_matched: bool) -> bool:
        """Compare one subscription, and return whether a predicate of it has a flaw.

        For one that has matched, a value that no event has is not a flaw.
        """
        touched = dict[Hashable, _Group]()
        for part in (part for conj in subscription.conjunctions for part in conj):
            if part not in self._flaws:
                self._flaws[part] = self._profile.flaw(part)
            flaw = self._flaws[part]
            if flaw is not None and not (has_matched and flaw == "value"):
                key = _group_key(flaw, part)
                touched[key] = self._groups.setdefault(key, _Group(flaw, part))
        for group in touched.values():
            group.count += 1
            if group.count <= NAMED:
                group.ids.append(subscription.id)
        return bool(touched)

    @property
    def counts(self) -> dict[str, int]:
        """The number of groups by flaw."""
        return dict(Counter(group.flaw for group in self._groups.values()))

    def findings(self) -> tuple[Finding, ...]:
        """Return the first groups in words: attributes, then types, then values."""
        groups = sorted(
            self._groups.values(), key=lambda group: (FLAWS.index(group.flaw), -group.count)
        )
        return tuple(
            Finding(
                group.flaw,
                group.part.attribute,
                clipped(render_predicate(group.part), _SHOWN),
                self._profile.advice(group.part) or "",
                tuple(group.ids),
                group.count,
            )
            for group in groups[:MOST_FINDINGS]
        )


def _group_key(flaw: Flaw, part: Predicate) -> Hashable:
    """Return what predicates must share to be one finding."""
    if flaw == "value":
        return part
    return (part.attribute, part.family if flaw == "type" else None)


def _named(ids: Collection[str], count: int) -> str:
    more = ", ..." if count > len(ids) else ""
    return f"{_plural(count, 'subscription')}: {', '.join(ids)}{more}"


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
