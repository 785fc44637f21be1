"""Openers of the senders of people's channels: mail by SMTP, chats by their webhooks."""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from tidings.channels.card import Card, CardTemplate
from tidings.channels.chat import JSON_HEADERS, KEY_HEADER, chat_body, read_answer
from tidings.channels.digest_sender import DigestSender, DigestTransport
from tidings.channels.group_commit import GroupCommit
from tidings.channels.guarded_post import open_http, post
from tidings.channels.layouts import Digest
from tidings.channels.mail import code_mail, digest_mail
from tidings.channels.person_channel import KINDS, MAIL, PersonChannel
from tidings.channels.reader_links import LinkOwner, ReaderLinks
from tidings.channels.sender import Message, OpenSender, Outcome, Sender, Status
from tidings.channels.smtp import SmtpConnections, SmtpSettings, send_mail
from tidings.channels.webhook_target import TargetRules
from tidings.errors import TidingsError
from tidings.model.records import Delivery
from tidings.model.values import SECOND_US
from tidings.store import Store
from tidings.store.channels import Channel
from tidings.store.digests import FixedDigest
from tidings.store.records import SUBSCRIPTION

if TYPE_CHECKING:
    import httpx2

_MAILS_AT_ONCE: Final = 8
_CHATS_AT_ONCE: Final = 2
_MOST_IN_MAIL: Final = 200
_MOST_IN_CHAT: Final = 10
_MOST_WORDS: Final = 80
_LOOK_EVERY_S: Final = 60.0
NO_MAIL: Final = "this service sends no mail; the table [mail] of its config names a server"


@dataclass(frozen=True)
class PersonSettings:
    """How a service renders messages and reaches people; without `smtp` it sends no mail."""

    template: CardTemplate
    links: ReaderLinks
    rules: TargetRules
    smtp: SmtpSettings | None = None


class _Composer(Protocol):
    def __call__(self, deliveries: Sequence[Delivery], digest: FixedDigest) -> Digest: ...


@dataclass(frozen=True)
class MailTransport:
    """Mails to one address, over connections that all addresses share."""

    smtp: SmtpSettings
    connections: SmtpConnections
    to: str
    compose: _Composer
    threads: ThreadPoolExecutor
    most: int = _MOST_IN_MAIL

    async def send(self, deliveries: Sequence[Delivery], digest: FixedDigest) -> Outcome:
        """Send a mail; its Message-ID is the id of the digest."""
        work = partial(self._send, deliveries, digest)
        return await asyncio.get_running_loop().run_in_executor(self.threads, work)

    async def close(self) -> None:
        """Close the idle connections, unless another channel sends mail too."""
        await asyncio.to_thread(self.connections.release)

    def _send(self, deliveries: Sequence[Delivery], digest: FixedDigest) -> Outcome:
        composed = self.compose(deliveries, digest)
        mail = digest_mail(self.smtp, self.to, composed, digest.id, digest.fixed_us)
        return self.connections.send(self.to, mail)


@dataclass(frozen=True)
class ChatTransport:
    """Messages to the webhook of one chat."""

    person: PersonChannel
    rules: TargetRules
    compose: _Composer
    threads: ThreadPoolExecutor
    http: "httpx2.AsyncClient"
    clock: Callable[[], float]
    most: int = _MOST_IN_CHAT

    async def send(self, deliveries: Sequence[Delivery], digest: FixedDigest) -> Outcome:
        """Send a message with the key of the digest, which chats ignore, but relays may know."""
        work = partial(self.compose, deliveries, digest)
        composed = await asyncio.get_running_loop().run_in_executor(self.threads, work)
        body = chat_body(self.person.kind, composed)
        headers = {**JSON_HEADERS, KEY_HEADER: digest.id}
        answer = await post(self.http, self.person.address, self.rules, body, headers)
        return read_answer(answer, int(self.clock() * SECOND_US))

    async def close(self) -> None:
        """Release connections."""
        await self.http.aclose()


@dataclass(frozen=True)
class UnverifiedSender:
    """The sender of an address that is not verified: everything waits."""

    clock: Callable[[], float]
    batch: int = 1
    in_order: bool = True
    rate: float | None = None

    async def send(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        """Look again in a minute, so that many such channels take no time from others."""
        until_us = int((self.clock() + _LOOK_EVERY_S) * SECOND_US)
        return [Outcome(Status.LATER, until_us=until_us)] * len(messages)

    async def close(self) -> None:
        """Do nothing."""


def person_openers(
    store: Store,
    tenant: str,
    settings: PersonSettings,
    clock: Callable[[], float] = time.time,
) -> dict[str, OpenSender]:
    """Return the functions that open the senders of people's channels, by kind."""
    threads, commits = ThreadPoolExecutor(_MAILS_AT_ONCE, "mail"), GroupCommit(store.database)
    # Few, since each reads the store; and their own, which a mail server that hangs leaves free.
    composing = ThreadPoolExecutor(_CHATS_AT_ONCE, "chats")
    connections = None if settings.smtp is None else SmtpConnections(settings.smtp)

    def open_sender(channel: Channel) -> Sender | None:
        if channel.subscriber is None:
            return None
        if channel.settings.get("verified_us") is None:
            return UnverifiedSender(clock)
        person = PersonChannel.of(channel.settings)
        owner = LinkOwner(tenant, channel.key, str(channel.settings["secret"]))
        compose = partial(_compose, store, settings, owner)
        transport: DigestTransport
        if person.kind == MAIL:
            if settings.smtp is None or connections is None:
                raise TidingsError(NO_MAIL)
            connections.retain()
            transport = MailTransport(settings.smtp, connections, person.address, compose, threads)
        else:
            http = open_http()
            transport = ChatTransport(person, settings.rules, compose, composing, http, clock)
        return DigestSender(channel.key, channel.subscriber, person, commits, transport, clock)

    return dict.fromkeys(KINDS, open_sender)


def _compose(
    store: Store,
    settings: PersonSettings,
    owner: LinkOwner,
    deliveries: Sequence[Delivery],
    digest: FixedDigest,
) -> Digest:
    """Return deliveries as people see them, the best first."""
    words = interest_words(store, deliveries)
    best_first = sorted(deliveries, key=lambda delivery: (-delivery.rank, delivery.sequence))
    cards = [settings.template.card(delivery, words) for delivery in best_first]
    return Digest.of(cards, settings.links.of(owner, cards, digest.first))


def interest_words(store: Store, deliveries: Sequence[Delivery]) -> dict[str, str]:
    """Return the conditions of the subscriptions that deliveries have matched, if they are short.

    The name of one that is gone, or has a long condition, says more.
    """
    names = {name for delivery in deliveries for name in delivery.matched}
    words = dict[str, str]()
    for entry in store.catalogue.find(SUBSCRIPTION, names):
        where = entry.form.get("where") if entry.form else None
        if isinstance(where, str) and len(where) <= _MOST_WORDS:
            words[entry.id] = where
    return words


def send_code(
    settings: PersonSettings, person: PersonChannel, code: str, key: str, now_us: int
) -> Outcome:
    """Send a code to an address that is to be verified."""
    shown = "-".join((code[:3], code[3:6], code[6:]))
    text = f"Your code for Tidings is {shown}. It is valid for an hour."
    if person.kind == MAIL:
        if settings.smtp is None:
            raise TidingsError(NO_MAIL)
        unasked = "If you did not ask for it, ignore this mail: nothing else will be sent to you."
        name = f"code.{key}.{now_us}"
        mail = code_mail(settings.smtp, person.address, f"{text}\n\n{unasked}\n", name, now_us)
        return send_mail(settings.smtp, person.address, mail)
    card = Card(0, text, None, None, None, "")
    body = chat_body(person.kind, Digest.of([card]))
    return asyncio.run(_post_once(settings.rules, person.address, body, now_us))


def send_sample(
    settings: PersonSettings, person: PersonChannel, delivery: Delivery, now_us: int
) -> Outcome:
    """Send one delivery to an address at once, whatever times and ranks the address asks for."""
    digest = Digest.of([settings.template.card(delivery)])
    if person.kind == MAIL:
        if settings.smtp is None:
            raise TidingsError(NO_MAIL)
        mail = digest_mail(settings.smtp, person.address, digest, f"sample.{now_us}", now_us)
        return send_mail(settings.smtp, person.address, mail)
    body = chat_body(person.kind, digest)
    return asyncio.run(_post_once(settings.rules, person.address, body, now_us))


async def _post_once(rules: TargetRules, url: str, body: bytes, now_us: int) -> Outcome:
    async with open_http() as http:
        return read_answer(await post(http, url, rules, body, JSON_HEADERS), now_us)
