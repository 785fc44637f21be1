"""Senders of people's channels: who gets one, what they compose, and codes and samples at once."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from tests.channels.mailbox import Mailbox, mail_server
from tests.service.receiving import receiver

from tidings import Delivery, Subscription
from tidings.channels.address_book import EntryDraft, put_entry
from tidings.channels.card import CardTemplate
from tidings.channels.digest_sender import DigestSender, digest_key
from tidings.channels.person_channel import KINDS, PersonChannel
from tidings.channels.person_senders import (
    NO_MAIL,
    ChatTransport,
    MailTransport,
    PersonSettings,
    UnverifiedSender,
    interest_words,
    person_openers,
    send_code,
    send_sample,
)
from tidings.channels.reader_links import ReaderLinks
from tidings.channels.samples import sample_delivery
from tidings.channels.sender import SENT, Message, Sender, Status
from tidings.channels.smtp import SmtpSettings
from tidings.channels.webhook_target import TargetRules
from tidings.errors import TidingsError
from tidings.store import Store, open_store
from tidings.store.channels import ALL, Channel, ChannelDraft

HERE = TargetRules.of(["*"], ["127.0.0.0/8"])
MAIL = PersonChannel("mail", "ada@films.example", every="delivery")
NOW_US = 1_700_000_000_000_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "tidings.db")) as opened:
        yield opened


@pytest.fixture(scope="module")
def box() -> Iterator[Mailbox]:
    with mail_server() as box:
        yield box


def settings(box: Mailbox | None = None, base: str | None = None) -> PersonSettings:
    form = {"host": "127.0.0.1", "security": "none", "from": "t@films.example"}
    smtp = None if box is None else SmtpSettings.load(form | {"port": box.port}, Path())
    return PersonSettings(CardTemplate.load(), ReaderLinks(base), HERE, smtp)


def entry(store: Store, person: PersonChannel = MAIL, verified: bool = True) -> Channel:
    return put_entry(store, EntryDraft("ada", person.kind, person, verified, ALL), NOW_US)


def opened(store: Store, channel: Channel, own: PersonSettings) -> Sender | None:
    return person_openers(store, "main", own, lambda: NOW_US / 1e6)[channel.kind](channel)


def send(sender: Sender, deliveries: Sequence[Delivery]) -> list[Any]:
    async def work() -> list[Any]:
        try:
            return list(await sender.send([Message(delivery) for delivery in deliveries]))
        finally:
            await sender.close()

    return asyncio.run(work())


def chat(url: str) -> PersonChannel:
    return PersonChannel("slack", url, every="delivery")


def letters(store: Store, *titles: str) -> list[Delivery]:
    """Return deliveries to ada, the later the better."""
    made = [
        Delivery("ada", f"e{n}", n / 10, 1, {}, ("s1",), 1, NOW_US, json.dumps({"title": title}))
        for n, title in enumerate(titles, start=1)
    ]
    store.notifications.append("q", 0, made)
    return store.notifications.after("ada")


def text_of(mail: EmailMessage) -> str:
    part = mail.get_body(("plain",))
    assert part is not None
    return str(part.get_content())


def test_every_kind_of_person_has_an_opener(store: Store) -> None:
    assert person_openers(store, "main", settings()).keys() == {*KINDS}


def test_a_channel_of_nobody_is_not_served(store: Store) -> None:
    assert opened(store, store.channels.put(ChannelDraft("mail", "m"), 0), settings()) is None


def test_everything_waits_for_an_address_that_is_not_verified(store: Store) -> None:
    sender = opened(store, entry(store, verified=False), settings())
    assert isinstance(sender, UnverifiedSender)
    assert (sender.batch, sender.in_order, sender.rate) == (1, True, None)
    outcomes = send(sender, letters(store, "A", "B"))
    assert [outcome.status for outcome in outcomes] == [Status.LATER] * 2
    assert {outcome.until_us for outcome in outcomes} == {NOW_US + 60_000_000}


def test_without_a_mail_server_mail_fails_with_the_way_out(store: Store) -> None:
    with pytest.raises(TidingsError) as error:
        opened(store, entry(store), settings())
    assert str(error.value) == NO_MAIL
    assert "[mail]" in NO_MAIL


def test_a_mail_has_all_that_is_due_the_best_first(store: Store, box: Mailbox) -> None:
    store.catalogue.put({"id": "ada"}, Subscription("s1", "ada", where="genre = 'drama'"))
    box.mails.clear()
    channel = entry(store)
    sender = opened(store, channel, settings(box, "https://films.example"))
    assert isinstance(sender, DigestSender)
    assert isinstance(sender.transport, MailTransport)
    assert send(sender, letters(store, "Low", "High")) == [SENT] * 2
    [mail] = box.mails
    assert (mail["To"], mail["Subject"]) == ("ada@films.example", "High, and 1 more")
    text = text_of(mail)
    assert text.index("High") < text.index("Low")
    assert "genre = 'drama'" in text
    assert f"https://films.example/readers/main/{channel.key}/pause/0/" in text


def test_a_message_without_an_address_of_the_service_has_no_links(
    store: Store, box: Mailbox
) -> None:
    box.mails.clear()
    sender = opened(store, entry(store), settings(box))
    assert sender is not None
    send(sender, letters(store, "A"))
    assert "readers" not in text_of(box.mails[0])


def test_a_chat_gets_a_message(store: Store) -> None:
    with receiver() as hook:
        sender = opened(store, entry(store, chat(hook.url)), settings())
        assert isinstance(sender, DigestSender)
        assert isinstance(sender.transport, ChatTransport)
        assert send(sender, letters(store, "Low", "High")) == [SENT] * 2
        [received] = hook.received
    assert received.headers["content-type"] == "application/json"
    text = received.body.decode()
    assert text.index("High") < text.index("Low")
    assert "readers" not in text


def test_a_chat_message_that_is_sent_again_has_the_same_key(store: Store) -> None:
    with receiver() as hook:
        hook.statuses[:] = [500]
        channel = entry(store, chat(hook.url))
        deliveries = letters(store, "A", "B")
        for status in (Status.FAILED, Status.SENT):
            sender = opened(store, channel, settings())
            assert sender is not None
            assert [outcome.status for outcome in send(sender, deliveries)] == [status] * 2
        first, second = hook.received
    assert first == second
    assert first.headers["idempotency-key"] == digest_key(deliveries)


def test_a_chat_message_has_links_to_the_service(store: Store) -> None:
    with receiver() as hook:
        channel = entry(store, chat(hook.url))
        sender = opened(store, channel, settings(base="https://t.example"))
        assert sender is not None
        send(sender, letters(store, "A"))
        [received] = hook.received
    for action in ("pause/0", "not-for-me/1"):
        assert f"https://t.example/readers/main/{channel.key}/{action}/" in received.body.decode()


def test_a_chat_that_is_gone_wants_no_more(store: Store) -> None:
    with receiver() as hook:
        hook.statuses[:] = [410]
        sender = opened(store, entry(store, chat(hook.url)), settings())
        assert sender is not None
        outcomes = send(sender, letters(store, "A"))
    assert outcomes[0].status is Status.GONE


def test_a_message_has_at_most_as_many_as_its_kind_holds() -> None:
    assert MailTransport.most == 200
    assert ChatTransport.most == 10


def test_short_conditions_say_why_and_names_where_they_are_long_or_gone(store: Store) -> None:
    words_of_80, words_of_81 = (f"a = '{'x' * size}'" for size in (74, 75))
    store.catalogue.put(
        {"id": "ada"},
        Subscription("short", "ada", where="year > 2000"),
        Subscription("fits", "ada", where=words_of_80),
        Subscription("long", "ada", where=words_of_81),
        Subscription("any", "ada", any=[("year > 2000", 1.0)]),
    )
    names = ("short", "fits", "long", "any", "gone")
    delivery = Delivery("ada", "e", 0.5, 1, {}, names, 1, 0)
    words = interest_words(store, [delivery, delivery])
    assert words == {"short": "year > 2000", "fits": words_of_80}
    assert interest_words(store, []) == {}


def test_a_code_is_mailed_in_parts_that_can_be_read_aloud(box: Mailbox) -> None:
    box.mails.clear()
    assert send_code(settings(box), MAIL, "123456789", "k1", NOW_US) == SENT
    [mail] = box.mails
    text = str(mail.get_content())
    assert "Your code for Tidings is 123-456-789. It is valid for an hour." in text
    assert "ignore this mail" in text
    assert mail["Message-ID"] == f"<code.k1.{NOW_US}@films.example>"


def test_a_code_is_sent_to_a_chat() -> None:
    with receiver() as hook:
        assert send_code(settings(), chat(hook.url), "123456789", "k1", NOW_US) == SENT
        assert "123-456-789" in hook.received[0].body.decode()
        hook.statuses[:] = [500]
        outcome = send_code(settings(), chat(hook.url), "123456789", "k1", NOW_US)
        assert outcome.status is Status.FAILED


def test_a_sample_is_sent_at_once(box: Mailbox) -> None:
    box.mails.clear()
    daily = PersonChannel("mail", "ada@films.example", min_rank=1.0)
    assert send_sample(settings(box), daily, sample_delivery(), NOW_US) == SENT
    assert box.mails[0]["Subject"] == "A title"
    with receiver() as hook:
        assert send_sample(settings(), chat(hook.url), sample_delivery(), NOW_US) == SENT
        assert "A title" in hook.received[0].body.decode()


@pytest.mark.parametrize("rules", [TargetRules.of(["*"], []), TargetRules.of([], ["127.0.0.0/8"])])
def test_a_chat_may_be_only_where_webhooks_may(rules: TargetRules) -> None:
    with receiver() as hook:
        own = PersonSettings(CardTemplate.load(), ReaderLinks(), rules)
        outcome = send_sample(own, chat(hook.url), sample_delivery(), NOW_US)
        assert outcome.status is Status.FAILED
        assert hook.received == []


def test_without_a_mail_server_neither_code_nor_sample_is_sent() -> None:
    for work in (
        lambda: send_code(settings(), MAIL, "123456789", "k1", NOW_US),
        lambda: send_sample(settings(), MAIL, sample_delivery(), NOW_US),
    ):
        with pytest.raises(TidingsError) as error:
            work()
        assert str(error.value) == NO_MAIL
