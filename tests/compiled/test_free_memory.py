"""Free memory goes back to the system, or stays where the C library keeps it."""

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tidings.compiled.free_memory import release_free_memory

CELLS = 1024  # small enough to lie within the heap


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return 4096 * pages


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the C library keeps its heap"
)
def test_gaps_in_the_heap_are_released() -> None:
    arrays = [np.ones(CELLS) for _ in range(8000)]
    kept = arrays[::100]
    del arrays
    before = resident()
    assert release_free_memory()
    assert before - resident() > 8 * CELLS * 4000
    assert all(array.all() for array in kept)


@pytest.mark.parametrize("error", [AttributeError, OSError, TypeError])
def test_another_c_library_keeps_its_heap(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Any) -> None:
        raise error("no such function")

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    assert not release_free_memory()
