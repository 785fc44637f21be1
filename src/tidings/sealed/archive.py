"""Members as bytes: what a base was made of, so that the next one can be made without its source.

Nobody maps these bytes while events are matched.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tidings.sealed import file
from tidings.sealed.member import Member

TOGETHER: Final = 2_000
Chunk = npt.NDArray[np.uint8]


def chunks(members: Iterable[Member]) -> list[Chunk]:
    """Give members as squeezed chunks of bytes."""
    waiting, made = iter(members), []
    while some := list(islice(waiting, TOGETHER)):
        made.append(np.frombuffer(zlib.compress(file.dumps(some), level=1), np.uint8))
    return made


def unpacked(given: Sequence[Any]) -> Iterator[Member]:
    """Give the members again; some 20 us for each of their subscriptions."""
    for each in given:
        yield from file.loads(zlib.decompress(each))
