"""Kernels that are linked into their callers."""

from collections.abc import Iterator

import numba
import numpy as np
import pytest

from tidings.compiled.jit import COMPILED, inlined, inner, kernel, nested

pytestmark = pytest.mark.skipif(not COMPILED, reason="nothing is compiled")


@nested
def filled(size: int, number: int) -> np.ndarray:
    numbers = np.empty(size, np.int64)
    numbers[:] = number
    return numbers


@inlined
def twice(number: int) -> int:
    return 2 * number


@inner
def four_times(number: int) -> int:
    return twice(twice(number))


@nested
def refuse(number: int) -> int:
    if number < 0:
        raise ValueError("below zero")
    return number


@kernel
def total(size: int) -> int:
    return int(filled(size, four_times(1)).sum()) + twice(0)


@kernel
def checked(number: int) -> int:
    return refuse(number)


@pytest.fixture(autouse=True, scope="module")
def _an_empty_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Compile everything here: kernels that come from files do not compile what they call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numba.config, "CACHE_DIR", str(tmp_path_factory.mktemp("kernels")))
        yield


def test_a_kernel_contains_those_that_it_calls() -> None:
    assert total(3) == 12


def test_a_linked_kernel_has_no_machine_code_of_its_own() -> None:
    total(3)
    (compiled,) = four_times.overloads.values()  # type: ignore[attr-defined]
    assert compiled.library.get_pointer_to_function("four_times") == 0


def test_constants_share_one_compiled_form() -> None:
    total(3)
    assert len(twice.overloads) == 1  # type: ignore[attr-defined]


def test_python_can_call_a_linked_kernel() -> None:
    assert four_times(5) == 20
    assert filled(2, 7).tolist() == [7, 7]


def test_errors_of_linked_kernels_arrive() -> None:
    assert checked(1) == 1
    with pytest.raises(ValueError, match="below zero"):
        checked(-1)
