"""Over which events, and when? Windows are pure state machines that can be saved."""

from tidings.window.protocol import Chooser, Moment, Pick, Window, WindowPart
from tidings.window.registry import WINDOWS
from tidings.window.reorder import HOLD_US, Arrivals, BatchOrder, Late

__all__ = [
    "HOLD_US",
    "WINDOWS",
    "Arrivals",
    "BatchOrder",
    "Chooser",
    "Late",
    "Moment",
    "Pick",
    "Window",
    "WindowPart",
]
