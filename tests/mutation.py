"""Files with flipped bits and cuts, each read in a child process: a signal or a hang fails."""

import os
import random
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from tests.fuzz import FIRST

from tidings.errors import MESSAGE_BYTES, TidingsError

_MEMORY = 8 << 30
_BATCH = 200
_HANG_S = 5.0
_LARGE = (b"\xff" * 8, b"\0" * 8, b"\xff\xff\xff\x7f", b"\0\0\0\0\0\0\0\x10", b"\0\0\0\x40")


def mutated(chance: random.Random, content: bytes) -> bytes:
    """Return a copy with a few changes: bits, bytes, numbers, cuts and repetitions."""
    data = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 4, 8))):
        at = chance.randrange(len(data) + 1)
        if chance.random() < 0.4:  # the metadata of a file is often at its end
            at = max(0, len(data) - 1 - int(chance.expovariate(1 / 300)))
        _change(chance, data, at)
    return bytes(data)


def _change(chance: random.Random, data: bytearray, at: int) -> None:
    kind = chance.random()
    if kind < 0.4 and at < len(data):
        data[at] ^= 1 << chance.randrange(8)
    elif kind < 0.55:
        data[at : at + 1] = bytes([chance.choice((0, 255, 127, 128, 34, 91, 123, 44, 10))])
    elif kind < 0.7:
        data[at : at + 8] = chance.choice((*_LARGE, chance.randbytes(4)))
    elif kind < 0.82:
        del data[at : at + chance.randrange(1, 50)]
    elif kind < 0.9:
        del data[at:]
    else:
        start = chance.randrange(len(data) + 1)
        data[at:at] = data[start : start + chance.randrange(1, 64)]


def try_all(
    folder: Path,
    samples: Mapping[str, bytes],
    read: Callable[[Path], Iterable[object]],
    number: int,
    *,
    named: bool = True,
) -> None:
    """Read `number` mutations in child processes; only our errors may be raised."""
    end = FIRST + number
    for start in range(FIRST, end, _BATCH):
        note = folder / "case"
        child = os.fork()
        if child == 0:
            os._exit(
                _children(folder, samples, read, range(start, min(start + _BATCH, end)), named)
            )
        status = _waited(child, note)
        assert status == 0, f"case {note.read_text()}: status {status}"


def _waited(child: int, note: Path) -> int:
    """Wait for a child that runs cases, and kill it if one hangs."""
    last, since = "", time.monotonic()
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        case = note.read_text() if note.exists() else ""
        if case != last:
            last, since = case, time.monotonic()
        # Far more than a case may take on the processor: the machine may be busy with others.
        if time.monotonic() - since > 20 * _HANG_S:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return -1
        time.sleep(0.005)


def _children(
    folder: Path,
    samples: Mapping[str, bytes],
    read: Callable[[Path], Iterable[object]],
    numbers: Iterable[int],
    named: bool,
) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    unraisable = list[str]()  # what a library only prints, because its caller is not Python
    sys.unraisablehook = lambda found: unraisable.append(repr(found.exc_value))
    for number in numbers:
        chance = random.Random(number)
        name = chance.choice(sorted(samples))
        path = folder / f"{number}-{name}"
        path.write_bytes(mutated(chance, samples[name]))
        (folder / "case").write_text(path.name)
        began = time.process_time()
        try:
            for _ in read(path):
                pass
        except TidingsError as error:
            if len(str(error).encode(errors="replace")) > MESSAGE_BYTES:
                return 2
            if named and path.name not in str(error):
                (folder / "case").write_text(f"{path.name} is not named: {error}")
                return 3
        except BaseException as error:  # noqa: BLE001 (any is a failure, and a child must end)
            (folder / "case").write_text(
                f"{path.name}: {''.join(traceback.format_exception(error))}"
            )
            return 4
        if time.process_time() - began > _HANG_S:
            return 5
        if unraisable:
            (folder / "case").write_text(f"{path.name}: {unraisable[0]}")
            return 6
        for left in folder.glob(f"{number}-*"):
            left.unlink()
    return 0
