"""The cuts by which the numbers of an attribute become codes of one byte, and events in codes."""

from typing import Final

import numpy as np

from tidings.compiled.array_types import Float64s
from tidings.index.boxes.kernels.quantize import CUTS, Asked, Cuts, code_rows
from tidings.index.boxes.protocol import Boxes, Events

SAMPLE: Final = 32_768


def cuts_of(boxes: Boxes) -> Cuts:
    """Cut each attribute where its lows and highs lie close, at quantiles of a sample of both.

    There is one attribute more, without a cut: all its codes are 0.
    """
    step = max(1, len(boxes) // SAMPLE)
    sample = np.concatenate([boxes.low[::step], boxes.high[::step]])
    cuts = np.full((boxes.attributes + 1, CUTS), np.inf)
    counts = np.zeros(boxes.attributes + 1, np.int64)
    for attribute, bounds in enumerate(sample.T):
        found = quantiles(bounds[np.isfinite(bounds)])
        cuts[attribute, : len(found)] = found
        counts[attribute] = len(found)
    return cuts, counts


def quantiles(bounds: Float64s) -> Float64s:
    """Give at most 254 different numbers, each as often met as the next."""
    found = np.unique(bounds)
    if len(found) <= CUTS:
        return found
    places = np.linspace(0, len(bounds) - 1, CUTS).astype(np.int64)
    return np.unique(np.sort(bounds)[places])


def asked_of(cuts: Cuts, events: Events) -> Asked:
    """Give events as kernels ask them."""
    below = coded(cuts, events.below)
    above = coded(cuts, events.above) if events.ranged else below
    peaks = events.share.max(axis=1)
    return below, above, events.below, events.above, events.share, peaks, events.ranged


def coded(cuts: Cuts, numbers: Float64s) -> np.typing.NDArray[np.uint8]:
    """Give the codes of rows of numbers, each row with a 0 behind, flat."""
    codes = np.zeros((len(numbers), numbers.shape[1] + 1), np.uint8)
    code_rows(cuts, numbers, codes)
    return codes.ravel()
