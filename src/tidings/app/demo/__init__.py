"""`tidings demo`: a real movie catalogue as a stream, for subscribers with different tastes."""

from tidings.app.demo.run import run_demo

__all__ = ["run_demo"]
