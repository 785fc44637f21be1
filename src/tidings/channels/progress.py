"""The progress of a channel after the outcomes of a page: how far it is, and when it continues."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from tidings.channels.sender import Outcome, Status
from tidings.model.values import SECOND_US
from tidings.store.channels import Channel, FailedDelivery
from tidings.store.outbox import OutboxEntry, OutboxPage, PageProgress

PAUSES_S: Final = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
"""Before the next attempt of a message that others do not wait for, after each that fails."""
LONGEST_REST_S: Final = 300
LONGEST_REST_IN_ORDER_S: Final = 60
_STOPPING: Final = (Status.LATER, Status.FAILED, Status.AWAY, Status.GONE)
MOST_AWAY: Final = 870
"""Failures in a row, which take three days, after which messages no longer wait for a receiver."""


def progress_of(
    channel: Channel,
    page: OutboxPage,
    outcomes: Sequence[Outcome],
    *,
    in_order: bool,
    now_us: int,
) -> PageProgress:
    """Return the progress of a channel after a page, of which there is an outcome for each entry.

    In order, the first message that fails stops the page: it and all after it are sent again.
    """
    totals = _Seen(in_order=in_order, now_us=now_us, reached=channel.reached)
    retries = page.upto <= channel.reached
    stopped = False
    for entry, outcome in zip(page.entries, outcomes, strict=True):
        waits = outcome.status is Status.AWAY and channel.failures < MOST_AWAY
        stops = not retries and (waits or (in_order and outcome.status in _STOPPING))
        stopped = stops or outcome.status is Status.LATER
        if stopped:
            totals.rest(outcome)
            break
        totals.add(entry, outcome)
    upto = totals.reached if stopped else max(page.upto, totals.reached)
    return totals.progress(channel, upto)


@dataclass
class _Seen:
    """The outcomes of a page so far."""

    in_order: bool
    now_us: int
    reached: int
    sent: int = 0
    done: list[int] = field(default_factory=list)
    failed: list[FailedDelivery] = field(default_factory=list)
    failure: Outcome | None = None
    later_us: int = 0
    gone: str | None = None

    def add(self, entry: OutboxEntry, outcome: Outcome) -> None:
        """Add the outcome of an entry that the channel steps over."""
        if outcome.status in (Status.SENT, Status.SKIPPED):
            self.sent += outcome.status is Status.SENT
            self.done.append(entry.number)
        else:
            self.failed.append(self._failure(entry, outcome))
        if outcome.status in (Status.FAILED, Status.AWAY, Status.GONE):
            self.rest(outcome)
        self.reached = max(self.reached, entry.number)

    def rest(self, outcome: Outcome) -> None:
        """Record why the channel does not continue."""
        if outcome.status is Status.LATER:
            self.later_us = outcome.until_us
            return
        self.failure = outcome
        self.gone = outcome.reason if outcome.status is Status.GONE else None

    def _failure(self, entry: OutboxEntry, outcome: Outcome) -> FailedDelivery:
        attempts = entry.attempts + 1
        if outcome.status is Status.REFUSED or attempts > len(PAUSES_S):
            return FailedDelivery(entry.number, attempts, None, outcome.reason)
        again_us = self.now_us + PAUSES_S[attempts - 1] * SECOND_US
        return FailedDelivery(
            entry.number, attempts, max(again_us, outcome.until_us), outcome.reason
        )

    def progress(self, channel: Channel, upto: int) -> PageProgress:
        """Return the progress; repeated failures back off for longer and longer."""
        moved = (upto, self.sent, self.done, self.failed)
        if self.failure is None:
            return PageProgress(*moved, next_us=self.later_us)
        failures = 1 if self.sent else channel.failures + 1
        next_us = max(rest_us(failures, self.now_us, self.in_order), self.failure.until_us)
        return PageProgress(*moved, failures, self.failure.reason, next_us, self.gone)


def channel_failed(channel: Channel, reason: str, now_us: int) -> PageProgress:
    """Return the progress of a channel that could not send at all."""
    failures = channel.failures + 1
    next_us = rest_us(failures, now_us, in_order=True)
    return PageProgress(channel.reached, 0, failures=failures, reason=reason, next_us=next_us)


def rest_us(failures: int, now_us: int, in_order: bool) -> int:
    """Return until when a channel backs off after several consecutive failures."""
    longest_s = LONGEST_REST_IN_ORDER_S if in_order else LONGEST_REST_S
    return now_us + min(longest_s, 1 << min(failures - 1, 10)) * SECOND_US
