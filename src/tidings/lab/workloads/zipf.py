"""Zipf's law."""

import numpy as np

from tidings.compiled.array_types import Float64s


def zipf_weights(count: int, exponent: float = 1.0) -> Float64s:
    """Return the probabilities of ranks 1 to `count`.

    >>> zipf_weights(2).round(3).tolist(), zipf_weights(2, 0).tolist()
    ([0.667, 0.333], [0.5, 0.5])
    """
    weights = np.arange(1, count + 1) ** -float(exponent)
    probabilities: Float64s = weights / weights.sum()
    return probabilities
