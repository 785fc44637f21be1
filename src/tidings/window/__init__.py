"""Over which events, and when? Windows are pure state machines with snapshots."""

from tidings.window.arrivals import Arrivals, Late
from tidings.window.protocol import Chooser, Moment, Pick, Window, WindowPart
from tidings.window.registry import WINDOWS

__all__ = ["WINDOWS", "Arrivals", "Chooser", "Late", "Moment", "Pick", "Window", "WindowPart"]
