"""Whatever comes of messages, each is sent, skipped or given up, and in order where that is due."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st
from tests.store.appender import delivery

from tidings.channels.progress import MOST_AWAY, PAUSES_S, channel_failed, progress_of, rest_us
from tidings.channels.sender import SENT, Outcome, Status
from tidings.store.channels import Channel, FailedDelivery
from tidings.store.outbox import OutboxEntry, OutboxPage, PageProgress

STATUSES = st.sampled_from(Status)
FAILED, REFUSED = Outcome(Status.FAILED, "away"), Outcome(Status.REFUSED, "bad")


def channel(reached: int = 0, failures: int = 0) -> Channel:
    return Channel("k", "sqs", "q", None, {}, 0, reached, 0, failures, None, 0, None, None)


def page(*numbers: int, upto: int | None = None) -> OutboxPage:
    entries = [OutboxEntry(number, 0, delivery("ada", f"e{number}")) for number in numbers]
    return OutboxPage(numbers[-1] if upto is None else upto, entries)


@dataclass
class PlainChannel:
    """A channel of a plain model, which applies progress as a store does."""

    last: int
    in_order: bool
    reached: int = 0
    failures: int = 0
    now_us: int = 0
    sent: list[int] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    failed: dict[int, FailedDelivery] = field(default_factory=dict)

    def page(self, size: int) -> OutboxPage:
        due = [
            OutboxEntry(failure.number, failure.attempts, delivery("ada", "e"))
            for failure in sorted(self.failed.values())
            if failure.next_us is not None and failure.next_us <= self.now_us
        ]
        if due:
            return OutboxPage(self.reached, due[:size])
        numbers = range(self.reached + 1, min(self.reached + size, self.last) + 1)
        entries = [OutboxEntry(number, 0, delivery("ada", "e")) for number in numbers]
        return OutboxPage(numbers[-1] if entries else self.reached, entries)

    def apply(self, progress: PageProgress) -> None:
        self.reached = max(self.reached, progress.upto)
        self.failures = progress.failures
        for number in progress.done:
            self.failed.pop(number, None)
        self.failed |= {failure.number: failure for failure in progress.failed}
        self.now_us = max(self.now_us, progress.next_us)


@given(st.integers(1, 12), st.integers(1, 4), st.booleans(), st.data())
def test_nothing_is_lost_whatever_comes_of_messages(
    last: int, size: int, in_order: bool, data: st.DataObject
) -> None:
    plain = PlainChannel(last, in_order)
    while True:
        given_page = plain.page(size)
        if not given_page.entries:
            waiting = [
                failure.next_us for failure in plain.failed.values() if failure.next_us is not None
            ]
            if not waiting:
                break
            plain.now_us = max(plain.now_us, min(waiting))
            continue
        outcomes = [Outcome(data.draw(STATUSES), "why") for _ in given_page.entries]
        progress = progress_of(
            channel(plain.reached, plain.failures),
            given_page,
            outcomes,
            in_order=in_order,
            now_us=plain.now_us,
        )
        for entry, outcome in zip(given_page.entries, outcomes, strict=True):
            if entry.number in progress.done:
                kept = plain.sent if outcome.status is Status.SENT else plain.skipped
                kept.append(entry.number)
        assert progress.sent == sum(
            outcome.status is Status.SENT and entry.number in progress.done
            for entry, outcome in zip(given_page.entries, outcomes, strict=True)
        )
        plain.apply(progress)
    everything = [*plain.sent, *plain.skipped, *plain.failed]
    assert sorted(everything) == [*range(1, last + 1)]
    if in_order:
        assert plain.sent == sorted(plain.sent)


def test_in_order_the_first_failure_stops_and_a_refusal_does_not() -> None:
    outcomes = [SENT, REFUSED, SENT, FAILED, SENT]
    progress = progress_of(channel(), page(1, 2, 3, 4, 5), outcomes, in_order=True, now_us=0)
    assert (progress.upto, progress.sent, progress.done) == (3, 2, [1, 3])
    assert progress.failed == [FailedDelivery(2, 1, None, "bad")]
    assert (progress.failures, progress.reason, progress.next_us) == (1, "away", 1_000_000)


def test_without_order_a_failure_is_stepped_over_and_tried_again() -> None:
    progress = progress_of(channel(), page(1, 2), [FAILED, SENT], in_order=False, now_us=7)
    again_us = 7 + PAUSES_S[0] * 1_000_000
    assert progress.failed == [FailedDelivery(1, 1, again_us, "away")]
    assert (progress.upto, progress.done, progress.failures) == (2, [2], 1)


def test_a_channel_that_fails_rests_longer_and_longer() -> None:
    rests_s = [
        channel_failed(channel(failures=failures), "away", 0).next_us // 1_000_000
        for failures in range(8)
    ]
    assert rests_s == [1, 2, 4, 8, 16, 32, 60, 60]


def test_what_waits_for_a_receiver_that_is_away_waits_for_three_days() -> None:
    away = Outcome(Status.AWAY, "no answer")
    waits = progress_of(channel(), page(1, 2), [away, SENT], in_order=False, now_us=0)
    assert (waits.upto, waits.failed, waits.failures, waits.reason) == (0, [], 1, "no answer")
    failures, now_us = 0, 0
    while failures < MOST_AWAY:
        failures, now_us = failures + 1, rest_us(failures + 1, now_us, in_order=False)
    assert 2.9 < now_us / 86_400e6 < 3.1
    long = progress_of(channel(0, failures), page(1), [away], in_order=False, now_us=0)
    assert (long.upto, [each.number for each in long.failed]) == (1, [1])


def test_later_is_no_failure() -> None:
    later = Outcome(Status.LATER, until_us=99)
    progress = progress_of(channel(), page(1, 2), [SENT, later], in_order=False, now_us=5)
    assert (progress.upto, progress.next_us, progress.failures) == (1, 99, 0)


def test_a_receiver_that_is_gone_disables_the_channel() -> None:
    gone = Outcome(Status.GONE, "no such queue")
    progress = progress_of(channel(), page(1), [gone], in_order=True, now_us=5)
    assert (progress.upto, progress.disabled) == (0, "no such queue")


def test_numbers_without_a_delivery_are_passed() -> None:
    progress = progress_of(channel(3), page(5, upto=9), [SENT], in_order=True, now_us=0)
    assert progress.upto == 9
