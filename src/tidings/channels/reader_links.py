"""Links to the service in messages, with which a reader can act without a token.

Each holds a keyed hash of its action. So a link for another channel or notification cannot be
forged, and one that leaks does only what it says.
"""

import hmac
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, NamedTuple
from urllib.parse import quote

from tidings.channels.card import Card
from tidings.channels.layouts import DigestLinks
from tidings.store.marks import NOT_FOR_ME, OPENED, READ

PREFIX: Final = "/readers"
PAUSE: Final = "pause"
ACTIONS: Final = (PAUSE, NOT_FOR_ME, READ, OPENED)
_HASH_BYTES: Final = 18


class LinkOwner(NamedTuple):
    """The owner of links: the channel of a tenant, and its secret."""

    tenant: str
    key: str
    secret: str


@dataclass(frozen=True)
class ReaderLinks:
    """The links of a service that readers reach at an address; with `track`, also what they open.

    Without an address, messages have no links to the service.
    """

    base: str | None = None
    track: bool = False

    def of(self, owner: LinkOwner, cards: Iterable[Card], first: int) -> DigestLinks:
        """Return the links of the message whose first sequence is known."""
        if self.base is None:
            return DigestLinks()
        sequences = [card.sequence for card in cards]
        dismiss = {number: self.link(owner, NOT_FOR_ME, number) for number in sequences}
        pause = self.link(owner, PAUSE, 0)
        if not self.track:
            return DigestLinks(pause, dismiss)
        visit = {number: self.link(owner, READ, number) for number in sequences}
        return DigestLinks(pause, dismiss, visit, self.link(owner, OPENED, first))

    def link(self, owner: LinkOwner, action: str, number: int) -> str:
        """Return the address of an action."""
        names = f"{quote(owner.tenant, safe='')}/{owner.key}/{action}/{number}"
        return (
            f"{(self.base or '').rstrip('/')}{PREFIX}/{names}/{seal(owner.secret, action, number)}"
        )


def seal(secret: str, action: str, number: int) -> str:
    """Return the keyed hash of an action on a notification."""
    digest = hmac.digest(secret.encode(), f"{action}:{number}".encode(), sha256)
    return urlsafe_b64encode(digest[:_HASH_BYTES]).decode()
