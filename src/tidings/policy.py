"""Policies, and the subscribers that hold them: scorer, decay, window, diversifier, k and rules."""

from collections.abc import Collection, Sequence
from dataclasses import InitVar, dataclass
from typing import Any, Final

from tidings.diversify import DIVERSIFIERS, Diversifier
from tidings.diversify.covers import Disc
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.diversify.memory_limits import check_keys, check_sets
from tidings.diversify.none import NoDiversity
from tidings.diversify.optimal import Optimal
from tidings.errors import InvalidPolicy, InvalidSubscription, TidingsError, shown
from tidings.model import named_parts, validate
from tidings.model.limits import TRUSTED, UNLIMITED, Limits, check_limits
from tidings.model.values import format_duration
from tidings.rules import RULES, RulePart, in_order
from tidings.rules.different import Different
from tidings.rules.quota import Quota
from tidings.score import DECAYS, SCORERS, Decay, Scorer
from tidings.score.decay import NoDecay
from tidings.score.preference import Preference, winnow
from tidings.window import WINDOWS, WindowPart
from tidings.window.continuous import Continuous
from tidings.window.length import Length

PAUSED: Final = "the subscriber is paused"
"""The reason for which a delivery is dropped that would be due."""
MOST_RULES: Final = 16
"""The most rules of a policy."""
_BY_ORDER: Final = frozenset({NoDiversity, Disc, MaxDivRelLsh})
"""Diversifiers that depend only on the order of ranks, which no decay changes."""


def is_steady(decay: Any, diversify: Any) -> bool:
    """Return whether the same events always give the same choice, however much time passes."""
    return type(decay) is NoDecay or type(diversify) in _BY_ORDER


def check_window(window: Any, limits: Limits, *, steady: bool = True) -> None:
    """Refuse a window that is longer than the limits allow, or has too many steps.

    A steady choice is repeated only when the events change, whatever the number of steps.
    """
    for name in ("length", "expires", "step"):
        size = getattr(window, name, None)
        if isinstance(size, Length):
            _check_length(f"{window.name}: {name}", size, limits)
    if window.name == "periodic" and window.length is not None:
        _check_period("periodic: length", window.length, limits)
    if window.name == "periodic" and window.at:
        shortest = Length(us=window.periods.shortest_us)
        _check_period("periodic: the time between two of `at`", shortest, limits)
    if window.name == "jumping":
        _check_period("jumping: step", window.step, limits)
        _check_steps(window.length, window.step, limits)
        if not steady and window.step.us is not None:
            steps = -(-window.length.us // window.step.us)
            limits.check("decayed_steps", steps, "length / step with a decay", InvalidPolicy)


def _check_length(what: str, size: Length, limits: Limits) -> None:
    if size.us is not None:
        limits.check("window_us", size.us, f"{what} in microseconds", InvalidPolicy)
    else:
        limits.check("window_events", size.count or 0, what, InvalidPolicy)


def _check_period(what: str, period: Length, limits: Limits) -> None:
    if period.us is not None and period.us < limits.period_us:
        least = format_duration(limits.period_us)
        raise InvalidPolicy(f"{what} is {period.to_form()}, below the limit period_us = {least}")


def _check_steps(length: Length, step: Length, limits: Limits) -> None:
    for whole, part in ((length.us, step.us), (length.count, step.count)):
        if whole is not None and part is not None:
            limits.check("window_steps", -(-whole // part), "length / step", InvalidPolicy)


def read_rules(rules: object, limits: Limits) -> tuple[RulePart, ...]:
    """Return rules in the order in which they apply; refuse those above the limits."""
    listed = validate.listed(rules, MOST_RULES)
    if listed is None or isinstance(rules, str):
        raise InvalidPolicy(f"rules is a list of rules, not {shown(rules)}")
    if len(listed) > MOST_RULES:
        raise InvalidPolicy(f"a policy has at most {MOST_RULES} rules, not {len(listed)}")
    parts = in_order([named_parts.read(RULES, "rule", rule) for rule in listed])
    for part in parts:
        if isinstance(part, Quota):
            limits.check("k", part.n, "quota: n", InvalidPolicy)
            if isinstance(part.per, Length):
                _check_period("quota: per", part.per, limits)
                _check_length("quota: per", part.per, limits)
        if isinstance(part, Different):
            _check_length("different: within", part.within, limits)
    return parts


def within_limits(diversify: Any, k: int, window: Any, limits: Limits, rules: Any = ()) -> Any:
    """Return the diversifier, bound to the limits that are checked when it chooses."""
    if isinstance(diversify, MaxDivRelLsh):
        tables, rows = diversify.shape
        limits.check("lsh_cells", tables * rows, "tables times rows", InvalidPolicy)
        check_keys(most_held(window, k) or 1, tables, limits.lsh_keys)
        return diversify.bounded(limits.lsh_keys)
    if not isinstance(diversify, Optimal):
        return diversify
    if window.name != "history":  # it swaps single events and never chooses whole sets
        held = None if any(rule.name == "quiet" for rule in rules) else most_held(window, k)
        _check_optimal(k, held, limits)
    return diversify.bounded(limits.optimal_sets)


def _check_optimal(k: int, most: int | None, limits: Limits) -> None:
    if most is None:
        if limits.optimal_events != UNLIMITED:
            raise InvalidPolicy(
                "optimal needs a window with a length in events, since the limit optimal_events = "
                f"{limits.optimal_events} applies"
            )
        return
    limits.check("optimal_events", most, "the window of optimal, in events,", InvalidPolicy)
    check_sets(most, k, limits.optimal_sets, InvalidPolicy)


def most_held(window: Any, k: int) -> int | None:
    """Return the most events that a choice of this window considers; None if unbounded."""
    size = getattr(window, "expires" if window.name == "continuous" else "length", None)
    if not isinstance(size, Length) or size.count is None:
        return None
    if window.name == "periodic" and window.wait:
        return size.count + k  # a period with fewer than k events carries them over
    return size.count


@dataclass(frozen=True)
class Policy:
    """The events that a subscriber gets, and when: a scorer, decay, window, diversifier, k, rules.

    Each part may be an object, a name or a form. A policy above the `limits` is refused; the limits
    are not stored.

    >>> Policy(k=2, window={"name": "sliding", "length": 4}).to_dict()
    {'k': 2, 'window': {'name': 'sliding', 'length': 4}}
    """

    k: int = 10
    scorer: Scorer | Any = Preference()
    decay: Decay | Any = NoDecay()
    window: WindowPart | Any = Continuous()
    diversify: Diversifier | Any = NoDiversity()
    rules: Sequence[RulePart | Any] = ()
    limits: InitVar[Limits] = TRUSTED

    @validate.guarded_by(InvalidPolicy)
    def __post_init__(self, limits: Limits) -> None:
        check_limits(limits, InvalidPolicy)
        limits.check("k", validate.count("k", self.k), "k", InvalidPolicy)
        parts: dict[str, Any] = {
            "scorer": named_parts.read(SCORERS, "scorer", self.scorer),
            "decay": named_parts.read(DECAYS, "decay", self.decay),
            "window": named_parts.read(WINDOWS, "window", self.window),
            "diversify": named_parts.read(DIVERSIFIERS, "diversifier", self.diversify),
        }
        steady = is_steady(parts["decay"], parts["diversify"])
        check_window(parts["window"], limits, steady=steady)
        rules = parts["rules"] = read_rules(self.rules, limits)
        window = parts["window"]
        parts["diversify"] = within_limits(parts["diversify"], self.k, window, limits, rules)
        for name, part in parts.items():
            object.__setattr__(self, name, part)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form: k, and the parts that differ from their defaults."""
        names = ("scorer", "decay", "window", "diversify")
        changed = {name: getattr(self, name) for name in names}
        default = {name: getattr(Policy, name) for name in names}
        form = {"k": self.k} | {
            name: named_parts.form(part) for name, part in changed.items() if part != default[name]
        }
        rules = [named_parts.form(rule) for rule in self.rules]
        return form | ({"rules": rules} if rules else {})


DEFAULT_POLICY: Final = Policy()
"""The policy of owners of subscriptions that are not subscribers, unless another one is set."""


@dataclass(frozen=True)
class Subscriber:
    """A receiver of events: a policy, and preferences between subscriptions (PREF Def. 2).

    `prefers` holds pairs (s_i, s_j): s_i is preferred to s_j. A cycle is refused, and named. While
    it is `paused`, its windows keep running, and what would be delivered is dropped. More
    preferences than the `limits` allow are refused; the limits are not stored.
    """

    id: str
    policy: Policy = DEFAULT_POLICY
    prefers: Sequence[tuple[str, str]] = ()
    paused: bool = False
    limits: InitVar[Limits] = TRUSTED

    @validate.guarded_by(InvalidSubscription)
    def __post_init__(self, limits: Limits) -> None:
        check_limits(limits, InvalidSubscription)
        name = validate.name("a subscriber's id", self.id, InvalidSubscription)
        object.__setattr__(self, "id", name)
        if not isinstance(self.policy, Policy):
            raise InvalidSubscription(
                f"subscriber {name}: expected a policy, not {shown(self.policy)}"
            )
        if type(self.paused) is not bool:
            raise InvalidSubscription(
                f"subscriber {name}: paused is true or false, not {shown(self.paused)}"
            )
        pairs = _pairs(name, self.prefers, limits)
        object.__setattr__(self, "prefers", pairs)
        try:
            winnow({subscription for pair in pairs for subscription in pair}, pairs)
        except TidingsError as error:
            raise InvalidSubscription(f"subscriber {name}: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        form: dict[str, Any] = {"id": self.id, "policy": self.policy.to_dict()}
        if self.prefers:
            form["prefers"] = [list(pair) for pair in self.prefers]
        return form | ({"paused": True} if self.paused else {})


def _pairs(subscriber: str, prefers: object, limits: Limits) -> tuple[tuple[str, str], ...]:
    pairs: Sequence[Any] | None = validate.listed(prefers, limits.prefers, Collection)  # type: ignore[type-abstract]
    if pairs is None:
        what = shown(prefers)
        raise InvalidSubscription(
            f"subscriber {subscriber}: `prefers` is a list of [better, worse] pairs, not {what}"
        )
    what = f"subscriber {subscriber}: the number of preferences"
    limits.check("prefers", len(pairs), what, InvalidSubscription)
    return tuple(_pair(subscriber, pair) for pair in pairs)


def _pair(subscriber: str, pair: Any) -> tuple[str, str]:
    if isinstance(pair, list | tuple) and len(pair) == 2:
        better, worse = pair
        if isinstance(better, str) and isinstance(worse, str):
            what = f"subscriber {subscriber}: the id of a preferred subscription"
            kind = InvalidSubscription
            return validate.name(what, better, kind), validate.name(what, worse, kind)
    raise InvalidSubscription(
        f"subscriber {subscriber}: {shown(pair)} is not a preference; write [better, worse]"
    )
