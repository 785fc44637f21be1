"""Limits on the resources that one record, condition or policy may use.

Limits are checked where an object is created or read, so every existing object is within them.
`Limits()` is the preset for trusted callers, and refuses only what would exhaust the memory or not
terminate; `Limits.public()` is the preset for untrusted requests.
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
CONTENT: Final = "content"
"""The field of an event that carries its content."""
_SCALAR_BYTES: Final = 8
_INT32: Final = 2**31 - 1
_CEILINGS: Final = {
    # Readers of nested values recurse; 256 levels fit into the stack of any thread.
    "nesting": 256,
    # Kernels index windows with 32 bits.
    "k": _INT32,
    "window_events": _INT32,
    # Times of events plus the length of a window must fit into 64 bits of microseconds.
    "window_us": 1_000 * 366 * DAY_US,
}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """One upper bound per resource; every refusal names the limit.

    >>> Limits(k=100).check("k", 500, "k")
    Traceback (most recent call last):
    tidings.errors.TidingsError: k is 500, above the limit k = 100
    """

    record_bytes: int = 16_000_000
    """Bytes of one record, about as many as its JSON takes."""
    string_bytes: int = 16_000_000
    """Bytes of one string in a record, other than in its content or its condition."""
    nesting: int = 64
    """Levels of lists and objects in a record, and of parentheses and `not` in a condition."""
    attributes: int = 1_000_000
    """Attributes of one event."""
    list_values: int = 1_000_000
    """Values of one list attribute."""
    condition_bytes: int = 1_000_000
    """Bytes of the text of one condition, as written and in disjunctive normal form."""
    predicates: int = 10_000
    """Distinct predicates of one condition; its normal form may repeat them up to 4 times."""
    conjunction_predicates: int = 10_000
    """Predicates of one conjunction."""
    conjunctions: int = 1_024
    """Conjunctions of one condition."""
    in_values: int = 100_000
    """Members of one `in (...)`."""
    any_predicates: int = 10_000
    """Weighted predicates of one subscription's `any`."""
    prefers: int = 100_000
    """Preferences of one subscriber."""
    k: int = 10_000_000
    """The largest k of a policy."""
    window_events: int = 10_000_000
    """Length or step of a window in events."""
    window_us: int = 100 * 366 * DAY_US
    """Length or step of a window of time, in microseconds: 100 years."""
    window_steps: int = 1_000_000
    """Length / step of a jumping window."""
    decayed_steps: int = 1_000
    """The same with a decay and a distance-based diversifier, which choose again at each step."""
    period_us: int = 1
    """The shortest period or step of time, in microseconds."""
    lsh_cells: int = 100_000
    """Tables times rows of `maxdivrel-lsh`."""
    lsh_keys: int = 200_000_000
    """Tables of `maxdivrel-lsh` times the events in its window."""
    optimal_sets: int = 10_000_000
    """Sets of k events that `optimal` may compare for one choice."""
    optimal_events: int = UNLIMITED
    """Events that `optimal` may choose from."""
    kept_letters: int = 10_000
    """Late events, and dead letters, that an engine keeps (it counts all of them)."""

    @validate.guarded_by(TidingsError)
    def __post_init__(self) -> None:
        for limit in fields(self):
            value, most = getattr(self, limit.name), _CEILINGS.get(limit.name, UNLIMITED)
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
                bound = "at least 1" if most == UNLIMITED else f"between 1 and {most:,}"
                raise TidingsError(f"the limit {limit.name} must be {bound}, not {shown(value)}")

    @classmethod
    def trusted(cls) -> Self:
        """Return the default preset, for callers in process, files and Spark."""
        return cls()

    @classmethod
    def public(cls) -> Self:
        """Return the preset for untrusted records, conditions and policies."""
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
            # An event is compared with those of the window in two milliseconds.
            lsh_keys=2_000_000,
            # All sets of 4 of 30 events take a millisecond, and all sets of 26 of them about ten.
            optimal_sets=30_000,
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
        self,
        record: object,
        what: str,
        error: type[TidingsError] = InvalidForm,
        *,
        apart: str = CONTENT,
    ) -> None:
        """Refuse a record that is too large or nests too deeply, in O(size) without recursion.

        Only the size of the record limits the strings of the field `apart`: content is shown and
        never compared, and a condition has a limit of its own.
        """
        try:
            self._check_size(record, what, error, apart)
        except TidingsError:
            raise
        except Exception as failure:  # noqa: BLE001 - the methods of a foreign class
            raise error(f"{what} cannot be read: {described(failure)}") from None

    def _check_size(self, record: object, what: str, error: type[TidingsError], apart: str) -> None:
        if not isinstance(record, Mapping) or apart not in record:
            self._size_of(record, "string_bytes", what, error)
            return
        entries = islice(record.items(), self.record_bytes // _SCALAR_BYTES + 1)
        rest = {name: value for name, value in entries if name != apart}
        size = self._size_of(rest, "string_bytes", what, error)
        self._size_of({apart: record[apart]}, "record_bytes", what, error, size)

    def _size_of(
        self, record: object, strings: str, what: str, error: type[TidingsError], size: int = 0
    ) -> int:
        """Add the size of a record; `strings` is the limit of its strings."""
        pending = [(record, 1)]
        while pending:
            value, depth = pending.pop()
            if isinstance(value, str | bytes):
                size += self._string_size(value, strings, what, error)
            elif isinstance(value, Mapping):
                self.check("nesting", depth, f"{what}: its nesting", error)
                # One entry more than can fit is enough: `items()` of a foreign class may never end.
                entries = list(islice(value.items(), self.record_bytes // _SCALAR_BYTES + 1))
                pending += ((inner, depth + 1) for _, inner in entries)
                names = [str(name) for name, _ in entries]
                if 4 * max(map(len, names), default=0) > getattr(self, strings):
                    for name in names:
                        self._string_size(name, strings, what, error)
                size += sum(map(len, names)) + _SCALAR_BYTES * len(names)
            elif isinstance(value, list | tuple | set | frozenset):
                self.check("nesting", depth, f"{what}: its nesting", error)
                members = validate.members(value)
                self.check("list_values", len(members), f"{what}: the size of a list", error)
                pending += ((inner, depth + 1) for inner in members)
                size += _SCALAR_BYTES  # else lists that share others could have parts without end
            else:
                size += _SCALAR_BYTES
            self.check("record_bytes", size, f"{what}: its size in bytes", error)
        return size

    def _string_size(self, text: Any, limit: str, what: str, error: type[TidingsError]) -> int:
        # Encode only if the text might be too long: UTF-8 takes up to 4 bytes per character.
        size = len(text)
        if size * 4 > getattr(self, limit) and isinstance(text, str):
            size = len(text.encode(errors="replace"))
        self.check(limit, size, f"{what}: the size of a string in bytes", error)
        return size


TRUSTED: Final = Limits.trusted()


def check_limits(value: object, error: type[TidingsError] = TidingsError) -> Limits:
    """Return a `Limits` unchanged; refuse anything else."""
    if not validate.is_a(value, Limits):
        raise error(f"limits must be a tidings.Limits, not {shown(value)}")
    return value  # type: ignore[return-value]
