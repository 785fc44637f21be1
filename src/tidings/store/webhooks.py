"""Webhooks: channels that subscribers create, each with an address and a secret."""

import secrets
from base64 import b64encode
from dataclasses import dataclass
from typing import Final

from tidings.store.channels import Channel, ChannelDraft, Channels

WEBHOOK: Final = "webhook"
_SECRET_BYTES: Final = 32


@dataclass(frozen=True)
class Webhook:
    """A webhook; its `key` is unique forever, while its id may be reused after a removal."""

    key: str
    id: str
    subscriber: str
    url: str
    secret: str
    old_secret: str | None
    old_until_us: int
    created_us: int
    sequence: int
    failures: int
    disabled: str | None

    @classmethod
    def of(cls, channel: Channel) -> "Webhook":
        """Return a channel as a webhook, without settings that are damaged in the store."""
        settings = channel.settings
        url, secret, old_secret = (settings.get(name) for name in ("url", "secret", "old_secret"))
        old_until_us = settings.get("old_until_us")
        return cls(
            channel.key,
            channel.id,
            channel.subscriber or "",
            url if isinstance(url, str) else "",
            secret if isinstance(secret, str) else "",
            old_secret if isinstance(old_secret, str) else None,
            old_until_us if isinstance(old_until_us, int) else 0,
            channel.created_us,
            channel.reached,
            channel.failures,
            channel.disabled,
        )

    def secrets(self, now_us: int) -> tuple[str, ...]:
        """Return the secrets that sign messages, including the previous one for some time."""
        if self.old_secret is not None and now_us < self.old_until_us:
            return self.secret, self.old_secret
        return (self.secret,)


class Webhooks:
    """The webhooks of a tenant."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels

    def put(self, subscriber: str, name: str, url: str, now_us: int) -> Webhook:
        """Add a webhook, which sends deliveries from now on, or change the address of one.

        A new address is tried at once, even if the previous one was given up.
        """
        channels = self._channels.find(name, kind=WEBHOOK, subscriber=subscriber)
        settings = {**channels[0].settings, "url": url} if channels else _new(url)
        draft = ChannelDraft(WEBHOOK, name, subscriber, settings)
        return Webhook.of(self._channels.put(draft, now_us))

    def find(self, name: str, subscriber: str | None = None) -> list[Webhook]:
        """Return the webhooks with an id, of one subscriber or of all."""
        return self._webhooks(name, subscriber)

    def of(self, subscriber: str | None) -> list[Webhook]:
        """Return the webhooks of a subscriber, or of all, in order of id."""
        return self._webhooks(None, subscriber)

    def remove(self, key: str) -> bool:
        """Remove a webhook with its unsent messages; return whether it existed."""
        return self._channels.remove(key)

    def change_secret(self, key: str, old_until_us: int) -> str:
        """Replace the secret of a webhook; the old one signs as well until a time."""
        channel, secret = self._channels.get(key), _new_secret()
        old = channel.settings.get("secret") if channel else None
        changes = {"secret": secret, "old_secret": old, "old_until_us": old_until_us}
        self._channels.change_settings(key, changes)
        return secret

    def _webhooks(self, name: str | None, subscriber: str | None) -> list[Webhook]:
        channels = self._channels.find(name, kind=WEBHOOK, subscriber=subscriber)
        return [Webhook.of(channel) for channel in channels]


def _new(url: str) -> dict[str, object]:
    return {"url": url, "secret": _new_secret(), "old_secret": None, "old_until_us": 0}


def _new_secret() -> str:
    return f"whsec_{b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()}"
