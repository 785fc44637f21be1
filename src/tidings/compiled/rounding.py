"""Scores rounded to 12 decimals, with the result of `round(score, 12)` to the last bit."""

from typing import Final

import numpy as np

from tidings.compiled.jit import inner

DECIMALS: Final = 1e12
WHOLE: Final = 9007.0
"""From here on, neighbouring floats are more than 1e-12 apart, and rounding changes nothing."""
SPLITTER: Final = 134217729.0  # 2**27 + 1
TOP: Final = SPLITTER * DECIMALS - (SPLITTER * DECIMALS - DECIMALS)
REST: Final = DECIMALS - TOP


@inner
def product_error(score: float, product: float) -> float:
    """Return score * 1e12 - product exactly (Dekker): products of 26-bit halves have no error."""
    top = SPLITTER * score - (SPLITTER * score - score)
    rest = score - top
    return ((top * TOP - product) + top * REST + rest * TOP) + rest * REST


@inner
def rounded(score: float) -> float:
    """Round to 12 decimals, half to even; an exact half needs the error of the product."""
    # Written so that NaN returns as well.
    if not score < WHOLE:
        return score
    product = score * DECIMALS
    whole = np.floor(product)
    if product - whole == 0.5:
        error = product_error(score, product)
        if error > 0:
            return (whole + 1) / DECIMALS
        if error < 0:
            return whole / DECIMALS
    return np.rint(product) / DECIMALS
