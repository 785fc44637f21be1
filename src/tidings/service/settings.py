"""The settings of a service, with their defaults."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from tidings.channels.address_book import EntryDraft
from tidings.channels.card import CardTemplate
from tidings.channels.person_senders import PersonSettings
from tidings.channels.reader_links import ReaderLinks
from tidings.channels.smtp import SmtpSettings
from tidings.channels.transport import DeclaredChannel
from tidings.channels.webhook_target import TargetRules
from tidings.model.limits import Limits
from tidings.model.values import SECOND_US

LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class ServiceSettings:
    """The limits of a service, and how it processes requests."""

    limits: Limits = field(default_factory=Limits.public)
    """The limits of one record, condition or policy."""
    body_bytes: int = 16_000_000
    """Bytes of one request."""
    body_records: int = 100_000
    """Records of one request."""
    head_s: float = 10.0
    """How long the head of a request may take to arrive."""
    body_s: float = 30.0
    """How long its body may take."""
    rate: int = 1_000
    """Requests per second of one token, on average; bursts of twice as many are allowed."""
    subscriptions: int = 1_000
    """Subscriptions of one subscriber."""
    lateness: str = "0s"
    """How far out of order publications may arrive."""
    future_us: int = 300 * SECOND_US
    """How far ahead of the clock a publication may be."""
    keep_us: int | None = None
    """How long notifications and publications are kept; None means forever."""
    recent: int = 10_000
    """Publications that `explain` and `preview` consider."""
    wait_s: float = 30.0
    """How long `?wait=applied` and `?wait=delivered` wait."""
    streams: int = 100
    """Live streams of one subscriber."""
    heartbeat_s: float = 15.0
    """How often a live stream sends a heartbeat, and checks whether its token has expired."""
    webhooks: int = 10
    """Webhooks of one subscriber."""
    webhook_hosts: tuple[str, ...] = ("*",)
    """Hosts that webhooks may name; `*.example.com` stands for all below one."""
    webhook_networks: tuple[str, ...] = ()
    """Networks such as 10.0.0.0/8 that are not public but that webhooks may reach."""
    channels: int = 20
    """Channels of one subscriber: addresses of mail and chats."""
    queues: tuple[DeclaredChannel, ...] = ()
    """Channels that the config declares: queues that receive the deliveries of all subscribers."""
    mail: SmtpSettings | None = None
    """The server that mail goes through; without one, the service sends no mail."""
    template: CardTemplate = field(default_factory=CardTemplate.load)
    """The appearance of notifications in mail and chats."""
    templates: Mapping[str, CardTemplate] = field(default_factory=dict)
    """The templates of tenants that have their own."""
    entries: tuple[EntryDraft, ...] = ()
    """Addresses of people in the default tenant that the operator has entered."""
    public_url: str | None = None
    """The public address of the service; without it, messages have no links to it."""
    track: bool = False
    """Whether links in messages lead through the service, and a picture records that mail was
    opened."""

    def of_tenant(self, name: str) -> "ServiceSettings":
        """Return the settings of one tenant, with its own template if it has one."""
        own = self.templates.get(name)
        return self if own is None else replace(self, template=own)

    @property
    def rules(self) -> TargetRules:
        """The hosts and networks that webhooks and chats may use."""
        return TargetRules.of(self.webhook_hosts, self.webhook_networks)

    @property
    def people(self) -> PersonSettings:
        """The settings for the channels of people."""
        links = ReaderLinks(self.public_url, self.track)
        return PersonSettings(self.template, links, self.rules, self.mail)
