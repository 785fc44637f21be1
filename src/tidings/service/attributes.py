"""The attributes of recent publications, with the values that authors of conditions need."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice
from threading import Lock
from typing import Any, Final, NamedTuple

from tidings.model.conditions.parser import render_key, render_name
from tidings.model.profile import LONGEST, MOST_ATTRIBUTES, Profile
from tidings.model.records import Event
from tidings.model.values import Range, Token
from tidings.service.recent_publications import RecentPublications
from tidings.store import EngineStep

_MOST_NAMED: Final = 500


class AttributeQuery(NamedTuple):
    """One attribute or all, a text that values must contain, and how many values to list."""

    name: str | None = None
    contains: str = ""
    limit: int = 20


class SeenAttributes:
    """The attributes of events: how many events have each, with which types and values.

    Strings of more than 100 characters are prose, not values to compare with.
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = len(events)
        self.profile = Profile()
        self._publications = Counter[str]()
        self._values = defaultdict[str, Counter[Token]](Counter)
        for event in events:
            self.profile.add(event)
            self._publications.update(event.tokens.keys())
            for name, tokens in event.tokens.items():
                if name in self._values or len(self._values) < MOST_ATTRIBUTES:
                    self._values[name].update(tokens)

    def find(self, query: AttributeQuery) -> list[dict[str, Any]]:
        """Return attributes, the most frequent first, each with its most frequent values."""
        names: Iterable[str] = [name for name, _ in self._publications.most_common(_MOST_NAMED)]
        if query.name is not None:
            names = [query.name] if query.name in self._publications else []
        return [self._form(name, query) for name in names]

    def _form(self, name: str, query: AttributeQuery) -> dict[str, Any]:
        values = self._values[name]
        shown = (_Value(token, count) for token, count in _by_count(values) if _is_short(token))
        text = query.contains.casefold()
        matching = (value for value in shown if text in value.written.casefold())
        return {
            "name": name,
            "written": render_name(name),
            "publications": self._publications[name],
            "types": sorted({family for family, _ in values}),
            "distinct": len(values),
            "values": [value.to_dict() for value in islice(matching, query.limit)],
        }


class _Value(NamedTuple):
    token: Token
    publications: int

    @property
    def written(self) -> str:
        family, key = self.token
        return render_key(family, key)

    def to_dict(self) -> dict[str, Any]:
        return {"written": self.written, "publications": self.publications}


def _by_count(values: Counter[Token]) -> list[tuple[Token, int]]:
    """Return values, most frequent first, and equally frequent ones in order."""
    return sorted(values.items(), key=lambda item: (-item[1], item[0][0], str(item[0][1])))


def _is_short(token: Token) -> bool:
    _, key = token
    return not isinstance(key, Range) and (not isinstance(key, str) or len(key) <= LONGEST)


class RecentAttributes:
    """The attributes of the recent publications, kept until the pipeline takes its next step."""

    def __init__(self, recent: RecentPublications) -> None:
        self._recent = recent
        self._step: EngineStep | None = None
        self._seen = SeenAttributes([])
        self._lock = Lock()

    def seen(self) -> SeenAttributes:
        """Return the current attributes."""
        with self._lock:
            step, events = self._recent.stream()
            if step != self._step:
                self._seen, self._step = SeenAttributes(events), step
            return self._seen
