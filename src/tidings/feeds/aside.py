"""Subscribers whose own policy fails: set aside and named, while the others get theirs."""

import logging
from typing import Final

from tidings.errors import clipped

_LOG: Final = logging.getLogger(__name__)


def reason(error: BaseException) -> str:
    """Return the kind and the message of an error, in one line of at most 1 kB."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - an error of somebody's own may fail to be printed
        message = ""
    return clipped(" ".join(f"{type(error).__name__}: {message}".split()))


def note(aside: dict[str, str], subscriber: str, why: str) -> None:
    """Note a subscriber that is set aside, and warn of it."""
    aside[subscriber] = why
    _LOG.warning("subscriber %s is set aside until it is enrolled again: %s", subscriber, why)
