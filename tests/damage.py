"""Damage to state that is read again: flipped bits, cuts and hostile values.

Each case runs in a child process, so that a signal, five seconds of CPU time or a few gigabytes of
memory fail only that case.
"""

import os
import resource
import signal
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
from tests.fuzz import FIRST

from tidings.errors import TidingsError
from tidings.model import validate

SECONDS = 5
MEMORY = 2 << 30
BATCH = 100
OUTCOMES = OK, REFUSED = "ok", "refused"
NUMBERS = [-(2**63), -(2**62), -1, 0, 1, 2, 3, 7, 2**31 - 1, 2**31, 2**61, 2**62, 2**63 - 1]
FLOATS = [float("nan"), float("inf"), -1.0, 0.0, 0.5, 1e300, -0.0]
JUNK: list[Any] = [None, True, "", "x", -1, 0, 2**70, 1e400, [], [[]], {}, {"a": 1}, "\ud800"]
SECRET = "Sw0rdfish"
TEXTS = [
    *("", " ", "\0", "\u202e", "x" * 100_000, "9" * 5_000, "-1", "0", "1e999", "nan", "1_0"),
    *("٣", "²", "true", "off", "..", "/", "*", "**", "[[", "~", "%ff", "%00", "\n", ",", ",,a"),
    *("[" * 100_000, "{}", "[]", '{"a":1}', '{"a":{"0":NaN}}', '{"a":[0,"x",1e999]}', "("),
    *("a{99999999999}", "(a+)+$", "http://[", "http://a:99999", "mqtt://a:b", "https://é/"),
    *("9999999999999d", "1970-01-01", "' or 1=1 --", "-", "--", "--help", "{{", "@", "a@b"),
]
Case = Callable[[Random], None]


def run_cases(name: str, case: Case, count: int) -> int:
    """Run a case with `count` seeds in child processes; return how many raised a `TidingsError`.

    Any other error fails.
    """
    failed, refused = [], 0
    end = FIRST + count
    for first in range(FIRST, end, BATCH):
        seeds = [f"{name}-{number}" for number in range(first, min(end, first + BATCH))]
        while seeds:
            found = _in_child(case, seeds)
            failed += [line for line in found if line not in OUTCOMES]
            refused += found.count(REFUSED)
            seeds = seeds[len(found) :]
    assert not failed, f"{len(failed)} of {count} cases failed: " + "\n".join(failed[:20])
    return refused


def _in_child(case: Case, seeds: Sequence[str]) -> list[str]:
    """Run cases until all are done or one ends the child; return the outcome of each."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(readable)
        _run_child(case, seeds, writable)
    os.close(writable)
    with os.fdopen(readable) as lines:
        found = [line.rstrip("\n") for line in lines]
    _, status = os.waitpid(child, 0)
    if len(found) < len(seeds):
        died = os.WIFSIGNALED(status)
        why = signal.Signals(os.WTERMSIG(status)).name if died else f"status {status}"
        found.append(f"{seeds[len(found)]}: {why}")
    return found


def _run_child(case: Case, seeds: Sequence[str], writable: int) -> None:
    """Run cases, write a line for each, and end this process, whatever happens."""
    try:
        _limit_memory()
        for seed in seeds:
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            signal.alarm(20 * SECONDS)  # one that waits for something uses no CPU time
            os.write(writable, (_tried(case, seed) + "\n").encode(errors="replace"))
    finally:
        os._exit(0)


def _limit_memory() -> None:
    with open("/proc/self/statm") as statm:  # noqa: PTH123
        used = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _tried(case: Case, seed: str) -> str:
    try:
        case(Random(seed))
    except TidingsError as error:
        size = len(str(error).encode(errors="ignore"))
        sound = size <= 1000 and validate.encodable(str(error))
        return REFUSED if sound else f"{seed}: a message that cannot be printed: {error!r}"
    except BaseException as error:  # noqa: BLE001
        return f"{seed}: {type(error).__name__}: {error}".replace("\n", " ")[:300]
    return OK


def flipped(rng: Random, state: bytes) -> bytes:
    """Flip some bits, or cut."""
    found = bytearray(state)
    if rng.random() < 0.2:
        return bytes(found[: rng.randrange(len(found))])
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
    return bytes(found)


def hostile_columns(rng: Random, columns: dict[str, Any]) -> dict[str, Any]:
    """Change columns that are then written with a right checksum."""
    found = dict(columns)
    for _ in range(rng.choice([1, 1, 2, 3])):
        name = rng.choice(sorted(found)) if found else "x"
        if name in found:
            found[name] = hostile_column(rng, found[name])
        if rng.random() < 0.03:
            del found[name]
        if rng.random() < 0.03:
            found[rng.choice(["x", "slot-9", "head9-0", "us"])] = np.arange(rng.randrange(9))
        if rng.random() < 0.05:
            found[name] = found[rng.choice(sorted(found))] if found else np.zeros(1)
    return found


def hostile_column(rng: Random, column: Any) -> Any:
    """Change one column: a value, the order, the length or the type."""
    if isinstance(column, bytes):
        return flipped(rng, column)
    if isinstance(column, list):
        return _hostile_texts(rng, column)
    change = rng.choice(["value"] * 6 + ["step"] * 8 + ["order", "length", "type", "all"])
    made = column.astype(np.int64) if column.dtype.kind in "iu" else column.copy()
    flat = made.reshape(-1)
    if change == "type":
        with np.errstate(invalid="ignore", over="ignore"):  # a NaN becomes any integer
            return made.astype(rng.choice([np.float64, np.uint64, np.int8, np.bool_, np.float32]))
    if change == "length":
        size = rng.choice([0, len(made) - 1, len(made) + 1, 2 * len(made)])
        return np.resize(made, (max(0, size), *made.shape[1:]))
    if change == "order":
        return made[::-1] if rng.random() < 0.5 else made[rng.sample(range(len(made)), len(made))]
    for _ in range(rng.choice([1, 1, 3])):
        if len(flat):
            at = slice(None) if change == "all" else rng.randrange(len(flat))
            values = FLOATS if made.dtype.kind == "f" else NUMBERS
            with np.errstate(over="ignore"):
                near = flat[at] + rng.choice([-3, -2, -1, 1, 1, 2, 3, 7])
            flat[at] = near if change == "step" else rng.choice(values)
    return made


def _hostile_texts(rng: Random, column: list[str]) -> list[str]:
    made = list(column)
    change = rng.randrange(4)
    if made and change == 0:
        made[rng.randrange(len(made))] = rng.choice(["", "x", "{}", "[" * 3000, '{"id": 1}', "é"])
    elif made and change == 1:
        made.append(rng.choice(made))
    elif made and change == 2:
        made.pop(rng.randrange(len(made)))
    else:
        rng.shuffle(made)
    return made


def hostile_json(rng: Random, value: Any) -> Any:
    """Change something within a JSON value."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        name = rng.choice(sorted(value))
        return value | {name: hostile_json(rng, value[name])}
    if isinstance(value, list) and value and rng.random() < 0.9:
        made, at = list(value), rng.randrange(len(value))
        made[at] = hostile_json(rng, made[at])
        return made
    if isinstance(value, dict) and value and rng.random() < 0.5:
        name = rng.choice(sorted(value))
        return {each: inner for each, inner in value.items() if each != name}
    if isinstance(value, int) and rng.random() < 0.6:
        return value + rng.choice([-7, -2, -1, 1, 2, 10**9, 10**15])
    if rng.random() < 0.05:
        return deep(rng.choice([10, 300, 100_000]))
    return rng.choice([*JUNK, *NUMBERS])


def hostile_text(rng: Random, text: str) -> str:
    """Change some characters of a text, or all of it."""
    if rng.random() < 0.4:
        return rng.choice(TEXTS)
    for _ in range(rng.choice([1, 1, 2])):
        at = rng.randrange(len(text) + 1)
        sign = rng.choice([*"/#?@:%[]&=, '\"\\\0", "", "", "é", "%2F", "://"])
        text = text[:at] + sign + text[at + rng.randrange(3) :]
    return text


def shows_secret(text: str) -> bool:
    """Return whether a text has four consecutive characters of the secret."""
    return any(SECRET[at : at + 4] in text for at in range(len(SECRET) - 3))


def deep(levels: int) -> Any:
    """Return lists in lists."""
    found: list[Any] = []
    for _ in range(levels):
        found = [found]
    return found
