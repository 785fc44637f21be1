"""Forms are strict, and what `to_dict` writes they read back."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import InvalidForm, TidingsError
from tidings.formats.json_forms import fields, loads_event, loads_subscriber, loads_subscription
from tidings.model.limits import Limits
from tidings.model.records import Event, Subscription
from tidings.policy import Policy, Subscriber
from tidings.window.sliding import Sliding

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
TIMES = st.datetimes(timezones=st.just(UTC))
SCALARS = st.booleans() | NUMBERS.filter(lambda n: abs(n) < 1e300) | st.text(max_size=3) | TIMES
VALUES = SCALARS | st.lists(SCALARS, max_size=3)
EVENTS = st.builds(
    Event,
    st.text(min_size=1, max_size=3),
    st.dictionaries(st.sampled_from(["genre", "year", "id"]), VALUES),
    st.integers(0, 10**9) | TIMES,
    st.none() | st.integers(0, 5),
)
CONDITIONS = ["genre = 'drama'", "year between 2000 and 2010 or title like 'Big%'", "seen != true"]
WEIGHTED = st.tuples(
    st.sampled_from(["carrier = 'AT&T'", "storage <= 16"]),
    st.sampled_from([0, 0.4, 1]),
    st.sampled_from(["active", "inactive", "dead"]),
)
RANKS = st.none() | st.floats(0, 1)
SUBSCRIPTIONS = st.builds(
    Subscription, st.just("s"), st.just("bob"), st.sampled_from(CONDITIONS), prefrank=RANKS
) | st.builds(
    Subscription,
    st.just("s"),
    st.just("bob"),
    any=st.lists(WEIGHTED, min_size=1, max_size=3),
    score=RANKS,
)


@given(EVENTS)
def test_an_event_reads_back_as_it_was_written(event):
    read = loads_event(event.to_dict())
    assert (read.id, read.published_us, read.sequence) == (
        event.id,
        event.published_us,
        event.sequence,
    )
    assert read.attributes == event.attributes


@given(SUBSCRIPTIONS)
def test_a_subscription_reads_back_as_it_was_written(subscription):
    assert loads_subscription(subscription.to_dict()) == subscription


@pytest.mark.parametrize("when", ["1970-01-01T00:01:00Z", "1970-01-01T02:01:00+02:00", 60, 60.0])
def test_times_are_rfc_3339_or_epoch_seconds(when):
    event = loads_event({"id": "e1", "published_at": when, "attributes": {}})
    assert event.published_us == 60_000_000


def test_a_time_is_an_attribute_too():
    form = {"id": "e", "published_at": 0, "attributes": {"seen": {"time": "2004-02-13T00:00:00Z"}}}
    assert loads_event(form).attributes == {"seen": datetime(2004, 2, 13, tzinfo=UTC)}


def test_a_field_that_may_be_left_out_may_be_null():
    event = {"id": "e1", "published_at": 0, "attributes": {}, "sequence": None}
    assert loads_event(event).sequence is None
    form = {"id": "s", "subscriber": "bob", "where": "a = 1", "any": None, "prefrank": None}
    assert loads_subscription(form) == Subscription("s", "bob", where="a = 1")


EVENT = {"id": "e1", "published_at": 0, "attributes": {}}
SUBSCRIPTION = {"id": "s1", "subscriber": "bob"}


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ([], r"event: the form is an object with named fields, not \[\]"),
        ({"id": "e1", "published_at": 0}, "event e1: field 'attributes' is missing"),
        ({"published_at": 0, "attributes": {}}, "event: field 'id' is missing"),
        (
            EVENT | {"rank": 1},
            "event e1: unknown field 'rank'; expected one of: 'id'",
        ),
        (EVENT | {"published_at": "soon"}, "event e1: published_at: 'soon' is not a time"),
        (EVENT | {"published_at": None}, "event e1: published_at: null"),
        (EVENT | {"attributes": ["drama"]}, "event e1: attributes are a mapping"),
        (EVENT | {"attributes": {"year": None}}, "event e1: attribute year: null"),
        (EVENT | {"attributes": {"year": float("nan")}}, "event e1: attribute year: nan"),
        (EVENT | {"attributes": {"year": {"low": 1}}}, "event e1: attribute year: .* is a dict"),
        (EVENT | {"sequence": -1}, "event e1: sequence is a whole number"),
        (EVENT | {"id": 7}, "an event's id is a non-empty string, not 7"),
    ],
)
def test_a_wrong_event_is_refused_by_name(form, message):
    with pytest.raises(TidingsError, match=message):
        loads_event(form)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "subscription s1: give either `where` or `any`"),
        ({"where": "a = 1", "k": 3}, "subscription s1: unknown field 'k'; expected one of: 'id'"),
        ({"where": 5}, "subscription s1: 5 is not a condition"),
        ({"where": "a ="}, "subscription s1: "),
        ({"any": 5}, "subscription s1: `any` is a list"),
        ({"any": "a = 1"}, "subscription s1: `any` is a list"),
        ({"any": ["a = 1"]}, r"subscription s1: .* write \[condition, weight\]"),
        ({"any": [["a = 1", -1]]}, "subscription s1: .*the weight.* is at least 0"),
        ({"any": [["a = 1", 1, "asleep"]]}, "subscription s1: .*the state.* is one of"),
        ({"where": "a = 1", "prefrank": 2}, "subscription s1: prefrank is between 0 and 1"),
    ],
)
def test_a_wrong_subscription_is_refused_by_name(fields, message):
    with pytest.raises(TidingsError, match=message):
        loads_subscription(SUBSCRIPTION | fields)


def test_fields_gives_what_was_asked_for_and_no_optional_nulls():
    assert fields({"b": 2, "a": None, "c": None}, "thing", ("a",), ("b", "c")) == {
        "b": 2,
        "a": None,
    }


def test_fields_names_the_record_without_an_id():
    with pytest.raises(InvalidForm, match="policy: unknown field 'size'; expected one of: 'k'"):
        fields({"size": 3}, "policy", (), ("k",))


def test_a_subscriber_reads_back_as_it_was_written():
    policy = Policy(k=2, window=Sliding(4))
    for person in (Subscriber("bob"), Subscriber("addison", policy, [("s1", "s2")])):
        assert loads_subscriber(person.to_dict()) == person
    assert loads_subscriber({"id": "bob", "policy": None, "prefers": None}) == Subscriber("bob")


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (
            {"policy": {"size": 3}},
            "subscriber bob: policy: unknown field 'size'; expected one",
        ),
        ({"policy": {"k": 0}}, "subscriber bob: k is a whole number"),
        ({"policy": "sliding"}, "subscriber bob: policy: the form is an object"),
        ({"policy": ""}, "subscriber bob: policy: the form is an object"),
        ({"prefers": 5}, r"subscriber bob: `prefers` is a list of \[better, worse\] pairs"),
        ({"prefers": ["s1"]}, "subscriber bob: 's1' is not a preference"),
    ],
)
def test_a_wrong_subscriber_is_refused_by_name(form, message):
    with pytest.raises(TidingsError, match=message):
        loads_subscriber({"id": "bob"} | form)


def test_content_is_read_and_written_and_absent_where_there_is_none() -> None:
    form = {"id": "e1", "published_at": "1970-01-01T00:00:00Z", "attributes": {}}
    assert loads_event(form | {"content": None}).to_dict() == form
    with_content = form | {"content": {"title": "Big Fish", "tags": [{"new": None}]}}
    assert loads_event(with_content).to_dict() == with_content
    with pytest.raises(TidingsError, match="event e1: content is an object with named fields"):
        loads_event(form | {"content": ["Big Fish"]})


def test_content_counts_in_the_size_of_a_record_and_its_strings_have_no_limit() -> None:
    form = {"id": "e1", "published_at": 0, "attributes": {}}
    limits, long_text = Limits.public(), "x" * 100_000
    assert loads_event(form | {"content": {"text": [long_text]}}, limits).content
    with pytest.raises(TidingsError, match="string in bytes is 100,000, above the limit string_b"):
        loads_event(form | {"attributes": {"content": long_text}}, limits)
    with pytest.raises(TidingsError, match="above the limit record_bytes"):
        loads_event(form | {"content": {"text": [long_text] * 3}}, limits)
    deep: object = 1
    for _ in range(8):
        deep = [deep]
    with pytest.raises(TidingsError, match="above the limit nesting = 8"):
        loads_event(form | {"content": {"deep": deep}}, limits)
