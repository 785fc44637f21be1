"""Files of records checked one by one and against each other: what is good, and what is wrong."""

from tidings.app.check.record_audit import Audit, Checked, Problem, place

__all__ = ["Audit", "Checked", "Problem", "place"]
