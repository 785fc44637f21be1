"""Events from columns find what the same events find as objects."""

from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.index.access.workload import subscriptions

from tidings.formats.arrow_by_column import quick_events
from tidings.index.access import Access
from tidings.index.access.encode_columns import encode_columns, joined
from tidings.index.access.query import encode_events
from tidings.index.access.vocabulary import Vocabulary
from tidings.index.scan import Scan
from tidings.model.event_columns import attached, detach
from tidings.model.records import Event, Subscription

SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "published_at": pa.timestamp("us"),
        "o": pa.int64(),
        "g0": pa.string(),
        "texts": pa.map_(pa.string(), pa.string()),
        "numbers": pa.map_(pa.string(), pa.float64()),
    }
)


def rows(count: int, chance: Random) -> list[dict[str, Any]]:
    """Draw rows in which an attribute is a number in one event, and a text in another."""

    def some(names: list[str], draw: Any) -> list[tuple[str, Any]]:
        return [(name, draw()) for name in names if chance.random() < 0.8]

    def row(number: int) -> dict[str, Any]:
        numbers = ["n0", "n1", "n2"] + ["m"] * (number % 2)
        texts = ["g1", "g2", "odd"] + ["m"] * (1 - number % 2)
        return {
            "id": f"e{number}",
            "published_at": number,
            "o": chance.choice([None, chance.randrange(60)]),
            "g0": chance.choice([None, f"w{chance.randrange(20)}"]),
            "texts": some(texts, lambda: f"w{chance.randrange(20)}"),
            "numbers": some(numbers, lambda: float(chance.randrange(25))),
        }

    return [row(number) for number in range(count)]


def events(count: int, seed: int) -> list[Event]:
    [batch] = pa.Table.from_pylist(rows(count, Random(seed)), SCHEMA).to_batches()
    return quick_events(batch, attaches=True) or []


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("count", [3, 300])
def test_columns_match_what_the_scan_matches(seed: int, count: int) -> None:
    wanted = subscriptions(count, seed)
    index, scan = Access(wanted), Scan(wanted)
    stream = [*events(20, seed), *events(20, seed + 100)]
    for _ in range(2):  # with and without texts in the cache
        hits = index.matching_many(stream)
        found = [
            sorted(subscription.id for subscription in hits.subscriptions(place))
            for place in range(40)
        ]
        assert found == [
            [subscription.id for subscription in scan.matching(event)] for event in stream
        ]
        tops, partial = index.top_many(stream, 5), index.touching_many(stream)
        assert tops == [scan.top(event, 5) for event in stream]
        touched = [
            sorted(subscription.id for subscription in partial.subscriptions(place))
            for place in range(40)
        ]
        assert touched == [
            [subscription.id for subscription in scan.touching(event)] for event in stream
        ]


def test_the_encoding_has_the_same_numbers() -> None:
    index = Access(subscriptions(200, 5))
    vocabulary, stream = index.snapshot.vocabulary, events(30, 5)
    parts = attached(stream) or []
    columns = joined([encode_columns(vocabulary, part) for part in parts])
    detach(stream)
    plain = encode_events(vocabulary, stream).events
    spans, plain_spans = columns.spans.reshape(-1, 4), plain.spans.reshape(-1, 4)
    assert spans.shape == plain_spans.shape
    for span, other in zip(spans, plain_spans, strict=True):
        values, others = (
            sorted(zip(one.slots[a:b], one.upper[a:b], one.lower[a:b], strict=True))
            for one, (_, _, a, b) in ((columns, span), (plain, other))
        )
        assert values == others


def test_a_changed_vocabulary_changes_the_encoding() -> None:
    """Texts are looked up among operands of `=` until an attribute gets another predicate."""
    index = Access([Subscription("s1", "u", "g0 = 'w1'")])
    [batch] = pa.table({"id": ["e"], "published_at": [0], "g0": ["w1"]}).to_batches()
    for subscription, expected in (
        (None, ["s1"]),
        (Subscription("s2", "u", "g0 like 'w%'"), ["s1", "s2"]),
        (Subscription("s3", "u", "g0 <> 'w2'"), ["s1", "s2", "s3"]),
        (Subscription("s4", "u", "g0 is not null"), ["s1", "s2", "s3", "s4"]),
    ):
        if subscription is not None:
            index.add(subscription)
        stream = quick_events(batch, attaches=True) or []
        assert attached(stream) is not None
        found = index.matching_many(stream).subscriptions(0)
        assert sorted(one.id for one in found) == expected


def test_events_without_known_attributes_have_nothing() -> None:
    [part] = attached(events(3, 1)) or []
    encoded = encode_columns(Vocabulary(), part)
    assert (len(encoded.items), len(encoded.slots), encoded.spans.tolist()) == (0, 0, [0] * 12)


def test_numbers_have_the_terms_of_equalities_and_of_lists() -> None:
    wheres = ["n = 3", "n in (3, 4)", "n not in (3, 5)", "m = 3 and n = 3", "m not in (4)"]
    wanted = [Subscription(f"s{number}", "u", where) for number, where in enumerate(wheres)]
    columns = {"n": [3.0, 4.0, 5.0, None, 6.0, 3.0], "m": [3.0, 3.0, 4.0, 4.0, None, None]}
    ids = [f"e{number}" for number in range(6)]
    [batch] = pa.table({"id": ids, "published_at": range(6), **columns}).to_batches()
    stream, scan = quick_events(batch, attaches=True) or [], Scan(wanted)
    assert attached(stream) is not None
    hits = Access(wanted).matching_many(stream)
    for place, event in enumerate(stream):
        found = sorted(subscription.id for subscription in hits.subscriptions(place))
        assert found == [subscription.id for subscription in scan.matching(event)]
