"""Subscribers whose own policy fails: set aside and named, while the others get theirs."""

import logging
from typing import Final

_LOG: Final = logging.getLogger(__name__)


def note(aside: dict[str, str], subscriber: str, why: str) -> None:
    """Note a subscriber that is set aside, and warn of it."""
    aside[subscriber] = why
    _LOG.warning("subscriber %s is set aside until it is enrolled again: %s", subscriber, why)
