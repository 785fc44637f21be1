"""Checks of configs and record files: each record by itself, and against the others."""

from tidings.app.check.audit import Audit, CheckedFile, Problem, audit_config, location

__all__ = ["Audit", "CheckedFile", "Problem", "audit_config", "location"]
