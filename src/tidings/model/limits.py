"""Limits: how much one record, condition or policy may ask of the machine that everybody shares.

A limit is checked where the thing is made or read, so whatever exists is within it. `Limits()` is
the preset for trusted callers and refuses only what would take the memory or never end;
`Limits.public()` is the preset for requests of strangers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import islice
from sys import maxsize
from typing import Any, Final, Self

from tidings.errors import InvalidForm, TidingsError, described, shown
from tidings.model import validate

DAY_US: Final = 86_400_000_000
UNLIMITED: Final = maxsize
_SCALAR_BYTES: Final = 8
_INT32: Final = 2**31 - 1
_CEILINGS: Final = {
    # Readers of nested values recurse; 256 levels fit into any stack that Python gives a thread.
    "nesting": 256,
    # Kernels index windows with 32 bits.
    "k": _INT32,
    "window_events": _INT32,
    # Times of events plus the length of a window must fit into 64 bits of microseconds.
    "window_us": 1_000 * 366 * DAY_US,
}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """One upper bound per resource; every refusal names the limit that it ran into.

    >>> Limits(k=100).check("k", 500, "k")
    Traceback (most recent call last):
    tidings.errors.TidingsError: k is 500, above the limit k = 100
    """

    record_bytes: int = 16_000_000
    """Bytes of one record, about as many as its JSON takes."""
    string_bytes: int = 16_000_000
    """Bytes of one string in a record."""
    nesting: int = 64
    """Levels of lists and objects in a record, and of parentheses and `not` in a condition."""
    attributes: int = 1_000_000
    """Attributes of one event."""
    list_values: int = 1_000_000
    """Values of one list attribute."""
    condition_bytes: int = 1_000_000
    """Bytes of the text of one condition, as written and in disjunctive normal form."""
    predicates: int = 10_000
    """Different predicates of one condition; its normal form may have 4 times as many."""
    conjunction_predicates: int = 10_000
    """Predicates of one conjunction of it."""
    conjunctions: int = 1_024
    """Conjunctions of it."""
    in_values: int = 100_000
    """Members of one `in (...)`."""
    any_predicates: int = 10_000
    """Weighted predicates of one subscription's `any`."""
    prefers: int = 100_000
    """Preferences of one subscriber."""
    k: int = 10_000_000
    """Events that a policy may choose at once."""
    window_events: int = 10_000_000
    """Length or step of a window that counts events."""
    window_us: int = 100 * 366 * DAY_US
    """Length or step of a window of time, in microseconds: 100 years."""
    window_steps: int = 1_000_000
    """How many times the step of a jumping window fits into its length."""
    decayed_steps: int = 1_000
    """The same for steps of time with a decay and a diversifier by distance: each may differ."""
    period_us: int = 1
    """The shortest period or step of time, in microseconds."""
    lsh_cells: int = 100_000
    """Tables times rows of `maxdivrel-lsh`."""
    optimal_sets: int = 10_000_000
    """Sets of k that `optimal` may compare for one choice."""
    optimal_events: int = UNLIMITED
    """Events that `optimal` may choose from."""
    kept_letters: int = 10_000
    """Late events, and dead letters, that an engine keeps; it counts all of them."""

    @validate.guarded_by(TidingsError)
    def __post_init__(self) -> None:
        for each in fields(self):
            value, most = getattr(self, each.name), _CEILINGS.get(each.name, UNLIMITED)
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
                bound = "at least 1" if most == UNLIMITED else f"between 1 and {most:,}"
                raise TidingsError(f"the limit {each.name} must be {bound}, not {shown(value)}")

    @classmethod
    def trusted(cls) -> Self:
        """Return the default preset: for callers in process, for files and for Spark."""
        return cls()

    @classmethod
    def public(cls) -> Self:
        """Return the preset for records, conditions and policies that strangers send."""
        return cls(
            record_bytes=256_000,
            string_bytes=8_000,
            nesting=8,
            attributes=200,
            list_values=1_000,
            condition_bytes=8_000,
            predicates=32 * 64,
            conjunction_predicates=64,
            conjunctions=32,
            in_values=1_000,
            any_predicates=64,
            prefers=500,
            k=1_000,
            window_events=100_000,
            window_us=366 * DAY_US,
            window_steps=10_000,
            period_us=1_000_000,
            lsh_cells=10_000,
            optimal_events=30,
        )

    def check(
        self, name: str, value: int, what: str, error: type[TidingsError] = TidingsError
    ) -> None:
        """Refuse a value above the limit of this name; `what` names the value in the error."""
        limit = getattr(self, name)
        if value > limit:
            # Python refuses to print integers of more than 4,300 digits.
            number = f"{value:,}" if value.bit_length() <= 128 else shown(value)
            raise error(f"{what} is {number}, above the limit {name} = {limit:,}")

    def check_record(
        self, record: object, what: str, error: type[TidingsError] = InvalidForm
    ) -> None:
        """Refuse a record that is too large or nests too deeply. O(its size), without recursion."""
        try:
            self._check_size(record, what, error)
        except TidingsError:
            raise
        except Exception as failure:  # noqa: BLE001 - the methods of a foreign class
            raise error(f"{what} cannot be read: {described(failure)}") from None

    def _check_size(self, record: object, what: str, error: type[TidingsError]) -> None:
        size, waiting = 0, [(record, 1)]
        while waiting:
            value, depth = waiting.pop()
            if isinstance(value, str | bytes):
                size += self._string_size(value, what, error)
            elif isinstance(value, Mapping):
                self.check("nesting", depth, f"{what}: its nesting", error)
                # One entry more than can fit is enough: `items()` of a foreign class may never end.
                entries = list(islice(value.items(), self.record_bytes // _SCALAR_BYTES + 1))
                waiting += ((inner, depth + 1) for _, inner in entries)
                size += sum(len(str(name)) + _SCALAR_BYTES for name, _ in entries)
            elif isinstance(value, list | tuple | set | frozenset):
                self.check("nesting", depth, f"{what}: its nesting", error)
                self.check("list_values", len(value), f"{what}: the size of a list", error)
                waiting += ((inner, depth + 1) for inner in value)
            else:
                size += _SCALAR_BYTES
            self.check("record_bytes", size, f"{what}: its size in bytes", error)

    def _string_size(self, text: Any, what: str, error: type[TidingsError]) -> int:
        # Encoding is needed only where the text might be too long: UTF-8 takes up to 4 bytes.
        size = len(text)
        if size * 4 > self.string_bytes and isinstance(text, str):
            size = len(text.encode(errors="replace"))
        self.check("string_bytes", size, f"{what}: the size of a string in bytes", error)
        return size


TRUSTED: Final = Limits.trusted()


def check_limits(value: object, error: type[TidingsError] = TidingsError) -> Limits:
    """Return limits as they are; refuse anything else."""
    if not validate.is_a(value, Limits):
        raise error(f"limits must be a tidings.Limits, not {shown(value)}")
    return value  # type: ignore[return-value]
