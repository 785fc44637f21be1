"""How a run is stopped: first in order, between batches, then at once."""

from collections.abc import Callable
from dataclasses import dataclass


def _nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Stop:
    """What is done when a run is asked to stop: the first time, and before it is torn away."""

    heard: Callable[[], None] = _nothing
    at_once: Callable[[], None] = _nothing
