"""Messages: their keys, by which receivers recognise a repetition, and their bodies."""

import json

from hypothesis import given
from hypothesis import strategies as st

from tidings.channels.sender import SENT, Message, Outcome, Status, delivery_key
from tidings.model.records import Delivery

names = st.sampled_from(["a", "b", "ab", "a,b", '"', "ä", "a\\"])


def delivery(subscriber: str = "ada", event: str = "film-1", sequence: int = 7) -> Delivery:
    return Delivery(subscriber, event, 0.5, 1, {}, (), sequence, 0)


@given(names, names, st.integers(1, 3), names, names, st.integers(1, 3))
def test_keys_are_equal_for_the_same_delivery_only(
    one: str, event: str, number: int, other: str, other_event: str, other_number: int
) -> None:
    key = delivery_key(delivery(one, event, number))
    other_key = delivery_key(delivery(other, other_event, other_number))
    assert (key == other_key) == ((one, event, number) == (other, other_event, other_number))
    assert len(key) == 48


def test_a_key_does_not_depend_on_what_may_be_shown_differently() -> None:
    again = Delivery("ada", "film-1", 0.9, 4, {"name": "sliding"}, ("s",), 7, 99, '{"a":1}')
    assert delivery_key(again) == delivery_key(delivery())
    assert (
        Message(delivery(), attempts=3).key == Message(delivery()).key == delivery_key(delivery())
    )


def test_a_body_is_compact_json_in_utf_8() -> None:
    letter = Delivery("ädä", "e", 0.5, 1, {"name": "sliding"}, ("s1",), 7, 0, '{"title":"Größe"}')
    body = Message(letter).body
    assert json.loads(body) == letter.to_dict()
    assert '"ädä"' in body
    assert ": " not in body
    assert ", " not in body


def test_an_outcome_has_no_reason_unless_there_is_one() -> None:
    assert Outcome(Status.SENT) == SENT == (Status.SENT, "", 0)
    assert len({status.value for status in Status}) == len(Status) == 7


def test_a_key_depends_on_the_subscriber_the_event_and_the_sequence() -> None:
    others = [delivery(subscriber="bob"), delivery(event="film-2"), delivery(sequence=8)]
    keys = {delivery_key(each) for each in (delivery(), *others)}
    assert len(keys) == 4
