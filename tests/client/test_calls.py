"""Calls: what each method sends, without any connection, and how answers and problems are read."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings import errors
from tidings.client.calls import (
    EVENTS,
    Call,
    Calls,
    Page,
    chunked,
    read_problem,
    stream_path,
    subscription_forms,
)
from tidings.errors import (
    InvalidCondition,
    InvalidEvent,
    InvalidForm,
    InvalidPolicy,
    InvalidSubscription,
    ServiceError,
    TidingsError,
)
from tidings.model.dead_letter import DeadLetter
from tidings.model.records import Delivery, Event, Subscription
from tidings.policy import Policy, Subscriber

CALLS, AT_ONCE = Calls(wait=True), Calls(wait=False)
FORM = {"id": "s1", "subscriber": "ada", "where": "n = 1"}
DELIVERY = Delivery("ada", "e", 0.5, 1, {"name": "sliding"}, ("s1",), 1, 0)


def sent(call: Call[Any]) -> Any:
    assert call.content is not None
    return json.loads(call.content)


def refusal(kind: type[TidingsError], work: Any) -> str:
    with pytest.raises(kind) as error:
        work()
    assert type(error.value) is kind
    return str(error.value)


def test_changes_wait_until_they_are_applied_if_the_client_waits() -> None:
    for calls, query in ((CALLS, {"wait": "applied"}), (AT_ONCE, {})):
        for call in (
            calls.put(FORM, new=True),
            calls.load([FORM], []),
            calls.delete("subscribers", "ada"),
            calls.set_paused("ada", paused=True),
        ):
            assert dict(call.query) == query
    for calls, query in ((CALLS, {"wait": "delivered"}), (AT_ONCE, {})):
        assert dict(calls.publish([], list[DeadLetter]().append).query) == query
        assert dict(calls.publish_table(pa.table({"id": ["e"]})).query) == query


@pytest.mark.parametrize(
    ("record", "path"),
    [
        (FORM, "/v1/subscriptions/s1"),
        (Subscription("s1", "ada", where="n = 1"), "/v1/subscriptions/s1"),
        ({"id": "ada"}, "/v1/subscribers/ada"),
        (Subscriber("ada", Policy()), "/v1/subscribers/ada"),
    ],
)
def test_a_record_is_new_or_it_exists(record: Any, path: str) -> None:
    new, old = CALLS.put(record, new=True), CALLS.put(record, new=False)
    assert (new.method, new.path, old.path) == ("PUT", path, path)
    assert (dict(new.headers), dict(old.headers)) == ({"If-None-Match": "*"}, {"If-Match": "*"})
    assert sent(new)["id"] == path.rpartition("/")[2]


@given(st.text(min_size=1, max_size=8).filter(lambda text: text not in (".", "..")))
def test_an_id_is_one_part_of_a_path(name: str) -> None:
    if any("\ud800" <= char <= "\udfff" for char in name):
        return
    path = stream_path(name)
    assert path.startswith("/v1/notifications/")
    assert path.endswith("/stream")
    assert path.count("/") == 4
    assert path.isascii()
    assert "?" not in path
    assert "#" not in path


@pytest.mark.parametrize("name", [".", ".."])
def test_an_id_that_a_path_would_lose_is_refused(name: str) -> None:
    assert refusal(InvalidSubscription, lambda: CALLS.feed(name)) == (
        f"an id in a path cannot be . or ..: {name!r}"
    )


@pytest.mark.parametrize("name", ["", None, 7, "\ud800"])
def test_an_id_is_text(name: Any) -> None:
    for call in (CALLS.feed, lambda each: CALLS.put_channel("ada", each, {})):
        assert refusal(InvalidSubscription, lambda do=call: do(name)).startswith("an id is ")


def test_a_channel_is_below_its_subscriber() -> None:
    path = CALLS.put_channel("a/b", "c d", {"kind": "mail"}).path
    assert path == "/v1/subscribers/a%2Fb/channels/c%20d"


def test_what_cannot_be_repeated_says_so() -> None:
    assert not CALLS.delete("subscribers", "ada").repeatable
    assert not CALLS.remove_channel("ada", "m").repeatable
    assert not CALLS.verify_channel("ada", "m", "1").repeatable
    actions = {name: CALLS.change_channel("ada", "m", name) for name in ("code", "pause", "retry")}
    assert {name: call.repeatable for name, call in actions.items()} == {
        "code": False,
        "pause": True,
        "retry": True,
    }


def test_refused_records_are_found_by_their_position() -> None:
    refused, forms = list[DeadLetter](), [FORM, FORM | {"id": "s2"}, FORM | {"id": "s3"}]
    call = CALLS.load(forms, refused)
    assert [json.loads(line) for line in call.content.splitlines()] == forms  # type: ignore[union-attr]
    call.read({"problems": [{"position": 3, "detail": "no"}, {"position": 1, "detail": "bad"}]})
    assert [(letter.record["id"], letter.reason) for letter in refused] == [
        ("s3", "no"),
        ("s1", "bad"),
    ]


def test_an_import_that_is_not_applied_has_still_refused_some() -> None:
    refused = list[DeadLetter]()
    call = CALLS.load([FORM], refused)
    answer = {"problems": [{"position": 1, "detail": "no"}], "applied": False}
    assert refusal(ServiceError, lambda: call.read(answer)) == (
        "the change is saved, but the pipeline of the service has not applied it yet; check that "
        "it is running"
    )
    assert len(refused) == 1


@pytest.mark.parametrize("answer", [{}, {"applied": True}, {"applied": None}])
def test_a_change_without_a_word_about_it_is_applied(answer: dict[str, Any]) -> None:
    CALLS.delete("subscribers", "ada").read(answer)


def test_publications_have_deliveries_unless_nobody_waits_for_them() -> None:
    refused = list[DeadLetter]()
    call = CALLS.publish([{"id": "a"}, {"id": "b"}], refused.append)
    answer = {"problems": [{"position": 2, "detail": "no"}], "deliveries": [DELIVERY.to_dict()]}
    assert call.read(answer) == [DELIVERY]
    assert [letter.record for letter in refused] == [{"id": "b"}]
    assert call.read({"problems": []}) == []
    assert refusal(ServiceError, lambda: call.read({"problems": [], "deliveries": None})) == (
        "the events are published, but the pipeline of the service has not processed them yet; "
        "check that it is running, and follow the subscribers to see what they receive"
    )


def test_a_page_has_the_state_of_its_inbox() -> None:
    call = CALLS.notifications("ada", 3, 7)
    assert dict(call.query) == {"after": 3, "limit": 7}
    answer = {
        "items": [DELIVERY.to_dict()],
        "next": 4,
        "inbox": {"last": 9, "read": 2, "unread": 7},
    }
    assert call.read(answer) == Page([DELIVERY], 4, 9, 2, 7)


def test_a_target_is_asked_with_the_form_of_a_scorer() -> None:
    event = Event("e", {"n": 1}, 0)
    for scorer in ("relaxed", {"name": "relaxed"}):
        call = CALLS.target(event, 3, scorer)
        assert sent(call) == {"event": event.to_dict(), "k": 3, "scorer": scorer}
    assert call.read({"items": [{"subscription": "s1", "score": 2.0}]}) == [("s1", 2.0)]


def test_a_preview_asks_only_for_what_is_given() -> None:
    assert sent(CALLS.preview(None, None, None)) == {}
    assert sent(CALLS.preview("ada", Policy(k=3), "n = 1")) == {
        "subscriber": "ada",
        "policy": Policy(k=3).to_dict(),
        "where": "n = 1",
    }
    assert refusal(InvalidPolicy, lambda: CALLS.preview("ada", "k", None))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("count", "sizes"), [(0, []), (1, [1]), (EVENTS, [EVENTS]), (EVENTS + 1, [EVENTS, 1])]
)
def test_events_are_cut_into_requests(count: int, sizes: list[int]) -> None:
    chunks = [*chunked(Event(f"e{number}", {}, 0) for number in range(count))]
    assert [len(chunk) for chunk in chunks] == sizes
    assert [form["id"] for chunk in chunks for form in chunk] == [f"e{n}" for n in range(count)]


def test_what_is_no_record_is_refused_by_its_kind() -> None:
    assert refusal(InvalidEvent, lambda: list(chunked(["e"]))) == (  # type: ignore[list-item]
        "a record is an object or its form, not 'e'"
    )
    assert refusal(InvalidSubscription, lambda: subscription_forms([7])) == (  # type: ignore[list-item]
        "a record is an object or its form, not 7"
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}])
def test_what_json_cannot_hold_is_refused(value: Any) -> None:
    words = refusal(InvalidForm, lambda: CALLS.put(FORM | {"x": value}, new=True))
    assert "cannot be written as JSON" in words


@pytest.mark.parametrize(
    ("status", "problem", "kind", "words"),
    [
        (422, {"detail": "no", "error": "InvalidPolicy"}, InvalidPolicy, "no"),
        (422, {"detail": "no", "error": "InvalidEvent"}, InvalidEvent, "no"),
        (422, {"detail": "no", "error": "TidingsError"}, TidingsError, "no"),
        (404, {"detail": "no"}, InvalidSubscription, "no"),
        (409, {"detail": "no"}, ServiceError, "no"),
        (500, {"detail": "no", "error": "ServiceError"}, ServiceError, "no"),
        (500, {"detail": "no", "error": "KeyError"}, ServiceError, "no"),
        (500, {"detail": "no", "error": "shown"}, ServiceError, "no"),
        (500, {"detail": "no", "error": ["x"]}, ServiceError, "no"),
        (404, {"detail": 7}, InvalidSubscription, "7"),
    ],
)
def test_a_problem_is_the_error_of_an_engine_if_it_is_named(
    status: int, problem: Any, kind: type[TidingsError], words: str
) -> None:
    error = read_problem(status, json.dumps(problem).encode())
    assert type(error) is kind
    assert str(error) == words
    if isinstance(error, ServiceError):
        assert error.status == status


@pytest.mark.parametrize(("position", "read"), [(3, 3), (None, None), ("3", None)])
def test_a_wrong_condition_has_a_position(position: Any, read: int | None) -> None:
    problem = {"detail": "no", "error": "InvalidCondition", "position": position}
    error = read_problem(422, json.dumps(problem).encode())
    assert isinstance(error, InvalidCondition)
    assert error.position == read


@pytest.mark.parametrize("content", [b"", b"<html>", b"[]", b"7", b"{}", b"\xff", b"[" * 100_000])
def test_an_answer_without_a_reason_is_an_error_as_well(content: bytes) -> None:
    error = read_problem(502, content)
    assert isinstance(error, ServiceError)
    assert str(error) == "the service answered with status 502, and no reason"
    assert error.status == 502


def test_every_error_of_the_library_can_be_named_by_a_service() -> None:
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type)
        and issubclass(kind, TidingsError)
        and kind not in (ServiceError, InvalidCondition)
    ]
    assert len(kinds) > 5
    for kind in kinds:
        problem = json.dumps({"detail": "no", "error": kind.__name__}).encode()
        assert type(read_problem(422, problem)) is kind
