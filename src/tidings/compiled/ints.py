"""Casts to machine numbers for kernels, typed as casts to plain Python numbers."""

from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np

int64: Final = cast(Callable[[Any], int], np.int64)
uint64: Final = cast(Callable[[Any], int], np.uint64)
float32: Final = cast(Callable[[Any], float], np.float32)
