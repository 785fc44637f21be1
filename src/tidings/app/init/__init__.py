"""`tidings init`: look at a file, and propose a config and subscriptions for it."""

from tidings.app.init.proposal import Proposal, propose, write

__all__ = ["Proposal", "propose", "write"]
