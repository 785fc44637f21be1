"""Policies and the subscribers that hold them: scorer x decay x window x diversifier x k."""

from collections.abc import Collection, Sequence
from dataclasses import InitVar, dataclass
from typing import Any

from tidings import checks, parts
from tidings.bounds import check_window, is_steady, within_limits
from tidings.diversify import DIVERSIFIERS, Diversifier
from tidings.diversify.none import NoDiversity
from tidings.errors import InvalidPolicy, InvalidSubscription, TidingsError, shown
from tidings.limits import TRUSTED, Limits
from tidings.score import DECAYS, SCORERS, Decay, Scorer
from tidings.score.freshness import NoDecay
from tidings.score.preference import Preference, winnow
from tidings.window import WINDOWS, WindowPart
from tidings.window.continuous import Continuous


@dataclass(frozen=True)
class Policy:
    """What a subscriber gets, and when. Each part may be given as itself, its name or its form.

    A policy that asks for more than the `limits` allow is refused; they are not kept.

    >>> Policy(k=2, window={"name": "sliding", "length": 4}).to_dict()
    {'k': 2, 'window': {'name': 'sliding', 'length': 4}}
    """

    k: int = 10
    scorer: Scorer | Any = Preference()
    decay: Decay | Any = NoDecay()
    window: WindowPart | Any = Continuous()
    diversify: Diversifier | Any = NoDiversity()
    limits: InitVar[Limits] = TRUSTED

    def __post_init__(self, limits: Limits) -> None:
        limits.check("k", checks.count("k", self.k), "k", InvalidPolicy)
        read: dict[str, Any] = {
            "scorer": parts.read(SCORERS, "scorer", self.scorer),
            "decay": parts.read(DECAYS, "decay", self.decay),
            "window": parts.read(WINDOWS, "window", self.window),
            "diversify": parts.read(DIVERSIFIERS, "diversifier", self.diversify),
        }
        steady = is_steady(read["decay"], read["diversify"])
        check_window(read["window"], limits, steady=steady)
        read["diversify"] = within_limits(read["diversify"], self.k, read["window"], limits)
        for name, part in read.items():
            object.__setattr__(self, name, part)

    def to_dict(self) -> dict[str, Any]:
        """Give the JSON form: k, and the parts that are not at their defaults."""
        names = ("scorer", "decay", "window", "diversify")
        changed = {name: getattr(self, name) for name in names}
        default = {name: getattr(Policy, name) for name in names}
        return {"k": self.k} | {
            name: parts.form(part) for name, part in changed.items() if part != default[name]
        }


@dataclass(frozen=True)
class Subscriber:
    """Somebody with a policy, and with preferences between subscriptions (PREF Def. 2).

    `prefers` holds pairs (s_i, s_j): s_i over s_j. A cycle is refused, and named. More preferences
    than the `limits` allow are refused; they are not kept.
    """

    id: str
    policy: Policy = Policy()
    prefers: Sequence[tuple[str, str]] = ()
    limits: InitVar[Limits] = TRUSTED

    def __post_init__(self, limits: Limits) -> None:
        name = checks.name("a subscriber's id", self.id, InvalidSubscription)
        object.__setattr__(self, "id", name)
        if not isinstance(self.policy, Policy):
            raise InvalidSubscription(f"subscriber {name}: {shown(self.policy)} is no policy")
        pairs = _pairs(name, self.prefers, limits)
        object.__setattr__(self, "prefers", pairs)
        try:
            winnow({each for pair in pairs for each in pair}, pairs)
        except TidingsError as error:
            raise InvalidSubscription(f"subscriber {name}: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        """Give the JSON form."""
        form: dict[str, Any] = {"id": self.id, "policy": self.policy.to_dict()}
        return form | ({"prefers": [list(pair) for pair in self.prefers]} if self.prefers else {})


def _pairs(subscriber: str, prefers: object, limits: Limits) -> tuple[tuple[str, str], ...]:
    pairs = _listed(prefers)
    if pairs is None:
        what = shown(prefers)
        raise InvalidSubscription(
            f"subscriber {subscriber}: `prefers` is a list of [better, worse] pairs, not {what}"
        )
    what = f"subscriber {subscriber}: the number of preferences"
    limits.check("prefers", len(pairs), what, InvalidSubscription)
    return tuple(_pair(subscriber, pair) for pair in pairs)


def _listed(given: object) -> Sequence[Any] | None:
    """Return a collection, but no text, as a plain one; None for anything else."""
    if type(given) is list or type(given) is tuple:
        return given
    if isinstance(given, str | bytes) or not isinstance(given, Collection):
        return None
    try:
        return list(given)
    except Exception:  # noqa: BLE001 - the methods of a foreign class
        return None


def _pair(subscriber: str, pair: Any) -> tuple[str, str]:
    if isinstance(pair, list | tuple) and len(pair) == 2:
        better, worse = pair
        if isinstance(better, str) and isinstance(worse, str):
            what = f"subscriber {subscriber}: the id of a preferred subscription"
            names = [checks.name(what, each, InvalidSubscription) for each in (better, worse)]
            return (names[0], names[1])
    raise InvalidSubscription(
        f"subscriber {subscriber}: {shown(pair)} is no preference; write [better, worse]"
    )
