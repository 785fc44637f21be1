"""The cuts by which the numbers of an attribute become codes of one byte."""

from typing import Final

import numpy as np

from tidings.index.box.protocol import Boxes, Floats
from tidings.kernels.codes import CUTS, Cuts, code_rows

SAMPLE: Final = 32_768


def cuts_of(boxes: Boxes) -> Cuts:
    """Cut each attribute where its lows and highs lie close, at quantiles of a sample of both."""
    step = max(1, len(boxes) // SAMPLE)
    sample = np.concatenate([boxes.low[::step], boxes.high[::step]])
    cuts, counts = np.full((boxes.attributes, CUTS), np.inf), np.zeros(boxes.attributes, np.int64)
    for attribute, bounds in enumerate(sample.T):
        found = quantiles(bounds[np.isfinite(bounds)])
        cuts[attribute, : len(found)] = found
        counts[attribute] = len(found)
    return cuts, counts


def quantiles(bounds: Floats) -> Floats:
    """Give at most 254 different numbers, each as often met as the next."""
    found = np.unique(bounds)
    if len(found) <= CUTS:
        return found
    places = np.linspace(0, len(bounds) - 1, CUTS).astype(np.int64)
    return np.unique(np.sort(bounds)[places])


def coded(cuts: Cuts, events: Floats) -> np.typing.NDArray[np.uint8]:
    """Give the codes of events."""
    codes = np.empty(events.shape, np.uint8)
    code_rows(cuts, events, codes)
    return codes
