"""Over which events, and when? Windows are pure state machines that can be saved."""

from tidings.window.protocol import Chooser, Moment, Pick, Window, WindowPart
from tidings.window.registry import WINDOWS
from tidings.window.reorder import Arrivals, Late

__all__ = ["WINDOWS", "Arrivals", "Chooser", "Late", "Moment", "Pick", "Window", "WindowPart"]
