"""Random policies, some of them extreme, and a short stream for each through all kinds of feeds.

As a script, the module tries a range of cases with limited memory.
"""

import random
import resource
import signal
import sys
from pathlib import Path
from typing import Any, Final

from tidings.diversify import DIVERSIFIERS
from tidings.errors import TidingsError
from tidings.feed import FEEDS
from tidings.formats.json_forms import loads_policy
from tidings.model.records import Event, Match
from tidings.policy import Policy, Subscriber
from tidings.window import Moment

MORE_BYTES: Final = 4 << 30
CASE_S: Final = 5

WHOLE: Final = [0, 1, 1, 2, 2, 3, 5, 10, 1_000, 10**6, 10**7, 10**7 + 1, 2**31, 2**63, 2**70, -1]
DURATIONS: Final = ["0.000001s", "1ms", "1s", "2s", "3s", "10s", "1h", "30d", "36500d", "40000d"]
FLOATS: Final = [0, 1, 0.5, 0.3, 1e-300, 5e-324, 1e308, 1e9, -0.0, -1, 2.5, 10**400]
ODD: Final = [None, True, "", "x", [], {}, [1], {"name": "x"}, {"name": 1}, 1.5, "1e400d", "-1s"]
ZONES: Final = ["UTC", "Europe/Athens", "Asia/Kathmandu", "Pacific/Apia", "Mars"]
PERIODS: Final = ["hour", "day", "week", "minute", *DURATIONS]
CLOCK: Final = ["00:00", "00:00:01", "00:00:03", "23:59:59.999999", "24:00", "7:00"]
TIMES: Final = [0, 1, -5, "1970-01-01", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", 1e18, "x"]


def form_of(pick: random.Random) -> Any:
    """Return a form of a policy; most are valid."""
    form = {"k": whole(pick), "window": window(pick)}
    form |= {"diversify": diversify(pick)} if pick.random() < 0.8 else {}
    form |= {"decay": decay(pick)} if pick.random() < 0.5 else {}
    if pick.random() < 0.5:
        form["rules"] = odd(pick, [rule(pick) for _ in range(pick.randint(1, 3))])
    return form if pick.random() < 0.97 else pick.choice([*ODD, {**form, "more": 1}])


def odd(pick: random.Random, value: Any, chance: float = 0.02) -> Any:
    return pick.choice(ODD) if pick.random() < chance else value


def whole(pick: random.Random) -> Any:
    small = pick.random() < 0.7
    return odd(pick, pick.randint(1, 6) if small else pick.choice(WHOLE))


def length(pick: random.Random) -> Any:
    return whole(pick) if pick.random() < 0.5 else odd(pick, pick.choice(DURATIONS))


def number(pick: random.Random) -> Any:
    return odd(pick, pick.choice(FLOATS[:4] if pick.random() < 0.6 else FLOATS))


def window(pick: random.Random) -> Any:
    name = pick.choice(["continuous", "periodic", "sliding", "jumping", "history"])
    form: dict[str, Any] = {"name": name}
    if name == "continuous":
        form |= {"expires": length(pick)} if pick.random() < 0.6 else {}
    else:
        form["length"] = length(pick)
        form |= {"count": "published"} if pick.random() < 0.2 else {}
    form |= {"step": length(pick)} if name == "jumping" else {}
    form |= {"wait": pick.random() < 0.3} if pick.random() < 0.5 else {}
    if name in ("sliding", "jumping"):
        form |= {"delivered": pick.choice(["keep", "leave"])}
    form |= {"strict": True} if name == "history" and pick.random() < 0.3 else {}
    form |= {"origin": pick.choice(TIMES)} if name == "periodic" and pick.random() < 0.3 else {}
    return odd(pick, form)


def decay(pick: random.Random) -> Any:
    name = pick.choice(["none", "exponential", "polynomial", "logarithmic"])
    form: dict[str, Any] = {"name": name}
    form |= {"rate": number(pick)} if name == "exponential" else {}
    form |= {"exponent": number(pick)} if name == "polynomial" else {}
    form |= {"landmark": pick.choice(TIMES)} if name != "none" and pick.random() < 0.4 else {}
    return odd(pick, form)


def diversify(pick: random.Random) -> Any:
    name = pick.choice(
        [
            "none",
            "divrank",
            "optimal",
            "maxmin",
            "maxsum",
            "maxavg",
            "disc",
            "maxdivrel",
            "maxdivrel-lsh",
        ]
    )
    form: dict[str, Any] = {"name": name}
    if name in ("divrank", "optimal", "maxmin", "maxsum", "maxavg") and pick.random() < 0.5:
        form["sigma"] = number(pick)
    if name in ("disc", "maxdivrel") and pick.random() < 0.5:
        form["alpha"] = number(pick)
    if name == "maxdivrel-lsh":
        form |= pick.choice(
            [
                {},
                {"tables": whole(pick), "rows": whole(pick)},
                {"error": number(pick), "threshold": number(pick)},
                {"seed": whole(pick)},
            ]
        )
    if pick.random() < 0.3:
        weights = {"a": number(pick), "b": number(pick)}
        distances = ["jaccard", "overlap", {"name": "overlap", "weights": weights}]
        form["distance"] = odd(pick, pick.choice(distances), 0.1)
    return odd(pick, form)


def rule(pick: random.Random) -> Any:
    name = pick.choice(["different", "quota", "quiet"])
    form: dict[str, Any] = {"name": name}
    if name == "different":
        form |= {"within": odd(pick, pick.choice(DURATIONS))} if pick.random() < 0.6 else {}
        form |= {"min": number(pick)} if pick.random() < 0.4 else {}
        form |= {"distance": "jaccard"} if pick.random() < 0.3 else {}
    else:
        form |= {"zone": odd(pick, pick.choice(ZONES))} if pick.random() < 0.4 else {}
        form |= {"urgent": number(pick)} if pick.random() < 0.3 else {}
    if name == "quota":
        form |= {"n": whole(pick), "pick": pick.choice(["best", "first"])}
        form |= {"per": odd(pick, pick.choice(PERIODS))} if pick.random() < 0.7 else {}
    if name == "quiet" and pick.random() < 0.8:
        form |= {side: odd(pick, pick.choice(CLOCK)) for side in ("start", "end")}
    return odd(pick, form)


def drive(policy: Policy, pick: random.Random) -> None:
    """Run one short stream through all kinds of feeds, and compare all that they return."""
    both = [kind() for kind in FEEDS.values()]
    for feeds in both:
        for name in "uv":
            feeds.enrol(Subscriber(name, policy))
    us, sequence = pick.choice([0, 10**9, 1_700_000_000 * 10**6]), 0
    for n in range(pick.randint(1, 14)):
        us += pick.choice([0, 1, 10**6, 10**6, 3_600 * 10**6])
        sequence += pick.choice([1, 1, 1, 3])
        attributes = {"a": pick.randint(0, 2), "b": pick.choice("xy")}
        event = Event(f"{pick.choice('de')}{n}", attributes, us / 10**6, sequence)
        now = Moment(event.published_us, sequence)
        score = pick.choice([0.0, 0.2, 0.5, 0.5, 1.0])
        offers = [(Match(name, event, score, ("s",)), now) for name in "uv"[: pick.randint(1, 2)]]
        same([feeds.offer_many(offers) for feeds in both])
        same([feeds.current("u", now) for feeds in both])
    for later in (10**6, 86_400 * 10**6, 10**16):
        same([feeds.advance(Moment(us + later, sequence + later)) for feeds in both])
    same([dict.fromkeys(feeds.set_aside) for feeds in both])
    for feeds in both:
        feeds.snapshot()


def same(results: list[Any]) -> None:
    assert all(result == results[0] for result in results), results


def warm_up() -> None:
    """Compile every kernel, or read it from its cache, before the time limit applies."""
    lengths = {"continuous": {}, "jumping": {"length": 12, "step": 12}}
    for name in ("continuous", "periodic", "sliding", "jumping", "history"):
        part = {"name": name, **lengths.get(name, {"length": 12})}
        for chosen in DIVERSIFIERS:
            drive(Policy(k=2, window=part, diversify=chosen), random.Random(6))
    rules = ["different", {"name": "quota", "n": 2}, {"name": "quota", "n": 2, "pick": "first"}]
    for rule in (*rules, "quiet"):
        drive(Policy(k=2, window="continuous", rules=[rule]), random.Random(6))


def try_cases(seed: int, first: int, last: int) -> int:
    """Try cases in this process, printing each number first; return how many were accepted."""
    with Path("/proc/self/statm").open() as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MORE_BYTES, used + MORE_BYTES))
    warm_up()
    accepted = 0
    for case in range(first, last):
        sys.stdout.write(f"{case}\n")
        sys.stdout.flush()
        signal.setitimer(signal.ITIMER_PROF, CASE_S)  # CPU time of this process
        pick = random.Random(f"{seed}-{case}")
        form = form_of(pick)
        try:
            policy = loads_policy(form)
        except TidingsError:
            continue
        drive(policy, pick)
        accepted += 1
    signal.setitimer(signal.ITIMER_PROF, 0)
    return accepted


if __name__ == "__main__":
    sys.stdout.write(f"accepted {try_cases(*map(int, sys.argv[1:]))}\n")
