"""Digests: every delivery is in exactly one message, whatever stops its sender."""

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings import Delivery
from tidings.channels.digest_sender import DigestSender, digest_key
from tidings.channels.group_commit import GroupCommit
from tidings.channels.person_channel import PersonChannel
from tidings.channels.progress import progress_of
from tidings.channels.sender import SENT, Message, Outcome, Status, delivery_key
from tidings.model.values import SECOND_US, parse_time_us
from tidings.store import Store, open_store
from tidings.store.channels import Channel, ChannelDraft
from tidings.store.digests import FixedDigest

HOUR = 3_600
DAY = 24 * HOUR
START = parse_time_us("2026-03-02T12:00:00Z") // SECOND_US
NUMBERS = count()


class Killed(BaseException):
    """The process has ended."""


@dataclass
class Post:
    """A transport that remembers its messages, and fails or ends the process as it is told.

    `meanwhile` is called when a message is about to be sent.
    """

    most: int = 200
    answers: list[Any] = field(default_factory=list)
    messages: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    meanwhile: Callable[[], None] = lambda: None

    async def send(self, deliveries: Sequence[Delivery], digest: FixedDigest) -> Outcome:
        self.meanwhile()
        answer = self.answers.pop(0) if self.answers else SENT
        if answer == "killed before":
            raise Killed
        if isinstance(answer, Outcome) and answer.status is not Status.SENT:
            return answer
        assert digest.id == digest_key(deliveries)
        self.messages.append((digest.id, tuple(delivery.sequence for delivery in deliveries)))
        if answer == "killed after":
            raise Killed
        return SENT

    async def close(self) -> None:
        """Do nothing."""


class Reader:
    """A person with one channel, and a dispatcher for it that can be killed."""

    def __init__(self, store: Store, post: Post, **form: Any) -> None:
        self.store, self.post, self.now = store, post, float(START)
        self.after_page = self.after_send = lambda: None
        self.name = f"reader-{next(NUMBERS)}"
        self.person = PersonChannel("mail", "a@b.example", **form)
        draft = ChannelDraft("mail", "mail", self.name, {"person": self.person.to_dict()})
        self.key = store.channels.put(draft, self._now_us()).key

    def deliver(self, *ranks: float, age_s: int = 0) -> None:
        """Deliver something now, or as if some time ago."""
        at_us = self._now_us() - age_s * SECOND_US
        deliveries = [
            Delivery(self.name, f"e{next(NUMBERS)}", rank, 1, {}, ("s",), 0, at_us)
            for rank in ranks
        ]
        self.store.notifications.append(self.name, next(NUMBERS), deliveries)

    def turn(self) -> None:
        """Send what is due, as a dispatcher does, unless it is killed."""
        sender = DigestSender(
            self.key,
            self.name,
            self.person,
            GroupCommit(self.store.database),
            self.post,
            lambda: self.now,
            batch=4,
        )
        channel = self.channel
        if channel.next_us > self._now_us() or channel.disabled:
            return
        owner = f"d{next(NUMBERS)}"
        self.store.outbox.lease(self.key, owner, 2**62, 0)
        going: Channel | None = channel
        while going is not None:
            page = self.store.outbox.page(going, self._now_us(), sender.batch)
            if not page.entries:
                return
            messages = [
                Message(entry.delivery, entry.attempts) for entry in page.entries if entry.delivery
            ]
            self.after_page()
            outcomes = asyncio.run(sender.send(messages))
            assert len(outcomes) == len(messages)
            self.after_send()
            now_us = self._now_us()
            progress = progress_of(going, page, outcomes, in_order=True, now_us=now_us)
            going = self.store.outbox.note(self.key, owner, progress)
            if progress.next_us:
                return

    def wait(self, seconds: float) -> None:
        """Let time pass, and send what has become due."""
        self.now += seconds
        self.turn()

    def overtake(self) -> None:
        """Let another dispatcher send what is due, while one that has lost its turn is stopped."""
        self.after_page = self.after_send = self.post.meanwhile = lambda: None
        thread = threading.Thread(target=self.turn)
        thread.start()
        thread.join()

    @property
    def channel(self) -> Channel:
        """The channel, as the store has it."""
        channel = self.store.channels.get(self.key)
        assert channel is not None
        return channel

    @property
    def sent(self) -> list[tuple[int, ...]]:
        """The sequences of each message."""
        return [sequences for _, sequences in self.post.messages]

    def _now_us(self) -> int:
        return int(self.now * SECOND_US)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with open_store(tmp_path_factory.mktemp("digests") / "t.db") as store:
        yield store


def test_one_message_each_morning(store: Store) -> None:
    reader = Reader(
        store, Post(), zone="Europe/Athens"
    )  # 08:00 is 06:00 UTC, from noon 18 hours on
    reader.deliver(0.5)
    reader.turn()
    reader.wait(17 * HOUR)
    reader.deliver(0.9, 0.1)
    reader.turn()
    assert reader.sent == []
    reader.wait(HOUR)
    assert reader.sent == [(1, 2, 3)]
    reader.deliver(0.5)
    reader.turn()
    reader.wait(23 * HOUR)
    assert len(reader.sent) == 1
    reader.wait(HOUR)
    assert reader.sent[1:] == [(4,)]
    reader.wait(3 * DAY)
    assert len(reader.sent) == 2
    assert reader.channel.sent == 4


def test_what_a_stopped_service_missed_goes_at_once(store: Store) -> None:
    reader = Reader(store, Post(), at=("08:00",))
    reader.deliver(0.5)
    reader.wait(DAY)
    assert reader.sent == [(1,)]
    reader.deliver(0.5, age_s=10 * DAY)  # a stream of old events: still one message a day
    reader.turn()
    assert len(reader.sent) == 1
    reader.wait(DAY)
    assert reader.sent == [(1,), (2,)]


def test_at_once_and_hourly(store: Store) -> None:
    chat = Reader(store, Post(most=2), every="delivery")
    chat.deliver(0.5, 0.6, 0.7)
    chat.turn()
    chat.deliver(0.1)
    chat.turn()
    assert chat.sent == [(1, 2), (3,), (4,)]
    hourly = Reader(store, Post(), every="hour")
    hourly.deliver(0.5)
    hourly.wait(HOUR / 2)
    hourly.deliver(0.5)
    assert hourly.sent == []
    hourly.wait(HOUR / 2)
    assert hourly.sent == [(1, 2)]


def test_urgent_ones_in_the_chat_and_the_rest_in_the_mail(store: Store) -> None:
    chat = Reader(store, Post(), every="delivery", min_rank=0.9)
    mail = Reader(store, Post(), below_rank=0.9)
    for reader in (chat, mail):
        reader.deliver(0.95, 0.2, 0.9, 0.89, 0.1, 0.99)
        reader.turn()
        reader.wait(DAY)
    assert chat.sent == [(1, 3, 6)]
    assert mail.sent == [(2, 4, 5)]
    assert chat.channel.reached == mail.channel.reached == 6


def test_a_long_list_is_split_within_its_period(store: Store) -> None:
    reader = Reader(store, Post(most=5))
    reader.deliver(*[0.5] * 12)
    reader.turn()
    reader.wait(DAY)
    assert [len(message) for message in reader.sent] == [5, 5, 2]


def test_a_sparse_route_is_one_message(store: Store) -> None:
    """Although its deliveries are on many pages of the outbox."""
    reader = Reader(store, Post(), min_rank=0.9)
    reader.deliver(*([0.1] * 7 + [0.95]) * 4)
    reader.turn()
    reader.wait(DAY)
    assert reader.sent == [(8, 16, 24, 32)]


def test_a_busy_server_is_asked_again_and_the_message_stays_the_same(store: Store) -> None:
    busy = Outcome(Status.FAILED, "451 later")
    reader = Reader(store, Post(answers=[busy, busy]), every="delivery")
    reader.deliver(0.5)
    reader.turn()
    assert reader.channel.failures == 1
    reader.deliver(0.5)
    for _ in range(3):
        reader.wait(HOUR)
    assert reader.sent == [(1,), (2,)]
    assert reader.channel.failures == 0


def test_what_fails_for_days_is_given_up(store: Store) -> None:
    busy = Outcome(Status.FAILED, "451 later")
    reader = Reader(store, Post(answers=[busy] * 80), every="delivery")
    reader.deliver(0.5)
    reader.turn()
    for _ in range(80):
        reader.wait(HOUR)
    [failure] = store.channels.failures(reader.key)
    assert (failure.number, failure.next_us, failure.reason) == (1, None, "451 later")
    reader.post.answers.clear()
    reader.deliver(0.5)
    reader.turn()
    assert reader.sent == [(2,)]


def test_a_bounce_is_a_dead_letter_and_three_end_the_channel(store: Store) -> None:
    unknown = Outcome(Status.REFUSED, "550 no such user")
    reader = Reader(store, Post(answers=[unknown] * 3), every="delivery")
    for failed in (1, 2):
        reader.deliver(0.5)
        reader.turn()
        assert len(store.channels.failures(reader.key)) == failed
    reader.deliver(0.5)
    reader.turn()
    assert reader.channel.disabled == "550 no such user"
    store.channels.retry(reader.key)
    reader.turn()
    assert sorted(number for message in reader.sent for number in message) == [1, 2, 3]
    assert store.channels.failures(reader.key) == []


def test_a_single_delivery_has_the_same_key_everywhere(store: Store) -> None:
    reader = Reader(store, Post(), every="delivery")
    reader.deliver(0.5)
    reader.turn()
    [delivery] = store.notifications.after(reader.name)
    assert reader.post.messages[0][0] == delivery_key(delivery)


OUTCOMES = {"sent": SENT, "busy": Outcome(Status.FAILED, "busy")}
steps = st.lists(
    st.one_of(
        st.tuples(st.just("deliver"), st.lists(st.sampled_from([0.1, 0.5, 0.9]), max_size=6)),
        st.tuples(st.just("wait"), st.sampled_from([60, HOUR, 7 * HOUR, DAY, 40 * DAY])),
        st.tuples(st.just("step"), st.sampled_from([-40 * DAY, -DAY, -HOUR, HOUR, 3 * DAY])),
        st.tuples(st.just("answer"), st.sampled_from([*OUTCOMES, "killed before", "killed after"])),
        st.tuples(st.just("lost"), st.none()),
    ),
    max_size=14,
)


@settings(deadline=None)
@given(
    steps=steps,
    every=st.sampled_from(["delivery", "hour", "day"]),
    most=st.sampled_from([1, 3, 200]),
    min_rank=st.sampled_from([0.0, 0.5]),
)
def test_each_delivery_is_in_exactly_one_message(
    store: Store, steps: list[Any], every: str, most: int, min_rank: float
) -> None:
    reader = Reader(store, Post(most), every=every, min_rank=min_rank)
    for what, value in steps:
        if what == "deliver":
            reader.deliver(*value)
        elif what == "answer":
            reader.post.answers.append(OUTCOMES.get(value, value))
        elif what == "step":
            reader.now += value
        elif what == "lost":  # another dispatcher has the channel, so a note changes nothing
            store.outbox.lease(reader.key, "another", 2**62, 0)
        try:
            reader.wait(value if what == "wait" else 0)
        except Killed:
            continue
    reader.post.answers.clear()
    reader.now = START + 365.0 * DAY
    for _ in range(3):
        reader.wait(2 * DAY)
    contents = defaultdict(set)
    for name, sequences in reader.post.messages:
        contents[name].add(sequences)
    assert all(len(versions) == 1 for versions in contents.values())
    arrived = [
        number for versions in contents.values() for version in versions for number in version
    ]
    failures = store.channels.failures(reader.key)  # the server was busy for more than three days
    assert all(failure.reason == "busy" for failure in failures)
    given_up = [failure.number for failure in failures]
    deliveries = store.notifications.after(reader.name, limit=1_000)
    wanted = [delivery.sequence for delivery in deliveries if delivery.rank >= min_rank]
    assert sorted([*arrived, *given_up]) == wanted


def test_a_kill_between_two_messages_of_a_page(store: Store) -> None:
    """The first was sent and not noted: it is recognised, and the second is sent as it was."""
    reader = Reader(store, Post(most=2, answers=[SENT, "killed before"]), every="delivery")
    reader.deliver(0.5, 0.6, 0.7, 0.8, 0.9)
    with pytest.raises(Killed):
        reader.turn()
    assert reader.sent == [(1, 2)]
    reader.turn()
    assert reader.sent == [(1, 2), (3, 4), (5,)]
    assert reader.channel.reached == reader.channel.sent == 5


def test_what_was_left_out_before_a_kill_stays_out(store: Store) -> None:
    """Although the channel takes more by now: a later message was fixed without it."""
    reader = Reader(store, Post(answers=["killed after"]), every="delivery", min_rank=0.5)
    reader.deliver(0.1, 0.9)
    with pytest.raises(Killed):
        reader.turn()
    reader.person = PersonChannel("mail", "a@b.example", every="delivery")
    reader.turn()
    assert {*reader.sent} == {(2,)}
    assert reader.channel.reached == 2


def test_digests_survive_in_a_file(tmp_path: Path) -> None:
    """One that was fixed before the end of a process is sent by the next."""
    address = tmp_path / "t.db"
    with open_store(address) as store:
        reader = Reader(store, Post(answers=["killed after"]), every="delivery")
        reader.deliver(0.5, 0.6)
        with pytest.raises(Killed):
            reader.turn()
    with open_store(address) as store:
        reader.store = store
        reader.deliver(0.7)
        reader.turn()
    assert reader.sent == [(1, 2), (1, 2), (3,)]
    assert reader.post.messages[0] == reader.post.messages[1]


@pytest.mark.parametrize("at", ["after the page", "before a message", "after all"])
@pytest.mark.parametrize("most", [2, 3, 200])
def test_one_that_lost_its_turn_sends_nothing_twice(store: Store, at: str, most: int) -> None:
    """It may be stopped for longer than its reservation; then another one sends what is left."""
    reader = Reader(store, Post(most), every="delivery")
    reader.deliver(*[0.5] * 6)
    if at == "after the page":
        reader.after_page = reader.overtake
    elif at == "after all":
        reader.after_send = reader.overtake
    else:
        reader.post.meanwhile = reader.overtake
    reader.turn()
    reader.deliver(0.7)
    reader.turn()
    sent = dict(reader.post.messages)
    assert sorted(number for numbers in sent.values() for number in numbers) == [*range(1, 8)]
    # A message that both were about to send has its id twice.
    assert len(reader.sent) - len(sent) == (at == "before a message")
    assert reader.channel.reached == 7


def test_what_failed_is_sent_again_by_one_of_two(store: Store) -> None:
    refused = Outcome(Status.REFUSED, "550 no")
    reader = Reader(store, Post(answers=[refused]), every="delivery")
    reader.deliver(0.5, 0.6)
    reader.turn()
    store.channels.retry(reader.key)
    reader.after_page = reader.overtake
    reader.turn()
    assert reader.sent == [(1, 2)]


def test_what_is_skipped_by_hand_is_not_sent(store: Store) -> None:
    """Although its page was read before."""
    reader = Reader(store, Post(), every="delivery")
    reader.deliver(0.5, 0.6)
    reader.after_page = lambda: skip_once(reader)
    reader.turn()
    assert reader.sent == [(2,)]
    [failure] = store.channels.failures(reader.key)
    assert (failure.number, failure.next_us) == (1, None)


def skip_once(reader: Reader) -> None:
    reader.after_page = lambda: None
    reader.store.outbox.skip(reader.key)
