"""The feeds of a bucket of subscribers: the state stage, without Spark.

A bucket is driven by rows of FLOW and keeps everything in one packed blob, since state by
subscriber costs many times more. What it delivers depends on the sequence of publications only,
never on where a batch ends.
"""

import json
import math
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tidings.errors import TidingsError
from tidings.feed import Feed
from tidings.model import Delivery, Event, Match
from tidings.policy import Subscriber
from tidings.values import moment
from tidings.window import Arrivals, Late, Moment

VERSION: Final = 1
Outcome = dict[str, Any]
Account = dict[str, list[float]]


class Row(NamedTuple):
    """A row of FLOW within its bucket."""

    kind: str
    us: int
    sequence: int | None
    event: str
    body: str

    @property
    def order(self) -> tuple[int, bool, int, str]:
        """Publication time, then ticks after matches, then number, then id."""
        return (self.us, self.kind == "tick", self.sequence or 0, self.event)


class Bucket:
    """The feeds of some subscribers, opened when they get their first match."""

    def __init__(
        self, subscribers: Mapping[str, Subscriber], lateness_us: int = 0, buckets: int = 1
    ) -> None:
        self._subscribers = subscribers
        self._format = {"version": VERSION, "buckets": buckets}
        self._feeds: dict[str, Feed] = {}
        self._arrivals: Arrivals[Row] = Arrivals(lateness_us)
        self._published: set[str] = set()
        self._sequence = 0

    def run(self, rows: Iterable[Row]) -> Iterator[Outcome]:
        """Take the rows of one batch, in whatever order.

        Give deliveries, late and dead records, and an account of each subscriber's matches.
        """
        account: Account = defaultdict(list)
        for row in sorted(rows, key=lambda row: row.order):
            if row.kind == "dead":
                yield _dead(**json.loads(row.body))
            else:
                yield from self._arrive(row, account)
        yield from self._advance(self._arrivals.watermark_us or 0)
        for subscriber, scores in account.items():
            yield _account(subscriber, scores)

    def _arrive(self, row: Row, account: Account) -> Iterator[Outcome]:
        if row.event in self._published:
            record = json.loads(row.body)["event"]
            yield _dead(record, f"event {row.event!r} was published before")
            return
        try:
            released = self._arrivals.offer(row.us, row, row.sequence)
        except Late as late:
            released = []
            if row.kind == "match":
                yield _late(row, str(late))
        if row.kind == "match":
            self._published.add(row.event)
        for each in released:
            yield from self._process(each, account)

    def _process(self, row: Row, account: Account) -> Iterator[Outcome]:
        """Take the next row in order of publication: a match through its feeds, a tick to all."""
        self._sequence = max(row.sequence or 0, self._sequence)
        if row.kind == "tick":
            yield from self._advance(row.us)
            return
        body = json.loads(row.body)
        event = Event.from_dict(body["event"])
        for subscriber, score, matched in body["matches"]:
            account[subscriber].append(score)
            match = Match(subscriber, event, score, tuple(matched))
            now = Moment(row.us, self._sequence)
            yield from map(outcome, self._feed(subscriber).offer(match, now))

    def _advance(self, us: int) -> Iterator[Outcome]:
        now = Moment(us, self._sequence)
        for feed in self._feeds.values():
            yield from map(outcome, feed.advance(now))

    def _feed(self, subscriber: str) -> Feed:
        if subscriber not in self._feeds:
            self._feeds[subscriber] = Feed(self._subscribers[subscriber])
        return self._feeds[subscriber]

    def pack(self) -> bytes:
        """Give the whole state as bytes."""
        state = {
            **self._format,
            "feeds": {name: feed.snapshot() for name, feed in self._feeds.items()},
            "arrivals": self._arrivals.snapshot(list),
            "published": sorted(self._published),
            "sequence": self._sequence,
        }
        return zlib.compress(json.dumps(state).encode(), level=1)

    def unpack(self, blob: bytes) -> None:
        """Go on from packed bytes; those of another version or number of buckets are refused."""
        state = json.loads(zlib.decompress(blob))
        for name, wanted in self._format.items():
            if state[name] != wanted:
                raise TidingsError(
                    f"the checkpoint was begun with {name} {state[name]}, and this is {wanted}; "
                    "start with a new checkpoint"
                )
        for name, feed in state["feeds"].items():
            if name in self._subscribers:
                self._feed(name).restore(feed)
        self._arrivals.restore(state["arrivals"], lambda item: Row(*item))
        self._published = set(state["published"])
        self._sequence = state["sequence"]


def outcome(delivery: Delivery) -> Outcome:
    """Give a delivery as a row of OUTCOMES."""
    return delivery.to_dict() | {
        "kind": "delivery",
        "window": json.dumps(dict(delivery.window)),
        "delivered_at": moment(delivery.delivered_us),
    }


def _account(subscriber: str, scores: Sequence[float]) -> Outcome:
    """Say how many matches a subscriber had in a batch, and their mean score."""
    mean = math.fsum(scores) / len(scores)
    return {"kind": "account", "subscriber": subscriber, "rank": mean, "position": len(scores)}


def _late(row: Row, reason: str) -> Outcome:
    record = json.dumps(json.loads(row.body)["event"])
    return {"kind": "late", "event": row.event, "record": record, "reason": reason}


def _dead(record: Any, reason: str, position: int = 0) -> Outcome:
    return {"kind": "dead", "record": json.dumps(record), "reason": reason}
