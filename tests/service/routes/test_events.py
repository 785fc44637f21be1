"""Publications over HTTP: read from every format, refused one by one, and accepted once."""

import json
import time
from collections.abc import Iterator
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from tests.service.routes.serving import Served, problem, serving
from tests.store.appender import delivery

from tidings.service.bodies import Body
from tidings.service.problems import HttpProblem
from tidings.service.routes.events import MEDIA_TYPES, PublicationBatch, read_publications
from tidings.service.settings import ServiceSettings
from tidings.store.append_batch import BatchAppend
from tidings.store.engine_log import EngineStep

JSON, LINES = "application/json", "application/x-ndjson"
SETTINGS = ServiceSettings(body_records=4)
NUMBERS = count()
CLOUD: dict[str, Any] = {
    "specversion": "1.0",
    "id": "c1",
    "source": "/films",
    "type": "film",
    "data": {"genre": "drama"},
}


def read(
    content: Any, media_type: str = JSON, headers: dict[str, str] | None = None
) -> PublicationBatch:
    if not isinstance(content, bytes):
        content = json.dumps(content).encode()
    return read_publications(Body(content, media_type, SETTINGS), headers or {})


def ids(batch: PublicationBatch) -> list[str]:
    return [publication.event.id for publication in batch.publications]


def refused(batch: PublicationBatch) -> list[tuple[int | None, str]]:
    return [(bad.position, bad.reason) for bad in batch.refused]


def refusal(*arguments: Any) -> tuple[int, str, Any]:
    with pytest.raises(HttpProblem) as error:
        read(*arguments)
    return error.value.status, error.value.detail, error.value.more.get("pointer")


def event(name: str, at: Any = None, **attributes: Any) -> dict[str, Any]:
    form = {"id": name, "attributes": attributes}
    return form if at is None else form | {"published_at": at}


def test_one_event_may_have_a_time_or_not() -> None:
    [timed] = read(event("e", 7, n=1)).publications
    assert (timed.timed, timed.event.published_us) == (True, 7_000_000)
    for form in (event("e"), event("e") | {"published_at": None}):
        [untimed] = read(form).publications
        assert not untimed.timed


def test_a_single_event_that_is_wrong_refuses_the_request() -> None:
    status, _, pointer = refusal(event("e", 7, n={}))
    assert (status, str(pointer).startswith("/attributes")) == (422, True)
    assert refusal({"attributes": {}})[0] == 422
    assert refusal(event(""))[2] == "/id"


def test_of_several_events_wrong_ones_do_not_stop_the_others() -> None:
    forms = [event("a", 1), event("", 2), event("b", 3), 7]
    batch = read(forms)
    assert ids(batch) == ["a", "b"]
    assert [position for position, _ in refused(batch)] == [2, 4]
    lines = "\n".join(map(json.dumps, [*forms[:3]])).encode() + b"\n{"
    batch = read(lines, LINES)
    assert ids(batch) == ["a", "b"]
    assert [position for position, _ in refused(batch)] == [2, 4]
    assert refused(batch)[1][1].startswith("the line is not JSON: ")


def test_events_are_sorted_if_all_have_a_time() -> None:
    late, early = event("late", 9), event("early", 1)
    assert ids(read([late, early])) == ["early", "late"]
    assert ids(read([late, early, event("now")])) == ["late", "early", "now"]


def test_an_event_may_not_be_far_ahead_of_the_clock() -> None:
    now = time.time()
    assert ids(read([event("soon", now + 200)])) == ["soon"]
    [(_, reason)] = refused(read([event("far", now + 1_000)]))
    assert reason.startswith("event far is published ")
    assert reason.endswith(" ahead of the clock; 5m is allowed")


def test_an_id_must_fit_a_store() -> None:
    [(_, reason)] = refused(read([event("x" * 1_001, 1)]))
    assert reason.startswith("the id of an event is at most 1000 bytes long")


def test_records_are_limited() -> None:
    many = [event(f"e{n}", n) for n in range(5)]
    for content, media_type in (
        (many, JSON),
        ("\n".join(map(json.dumps, many)).encode(), LINES),
        (arrow(5), "application/vnd.apache.arrow.stream"),
        ([CLOUD] * 5, "application/cloudevents-batch+json"),
    ):
        assert refusal(content, media_type)[:2] == (
            413,
            "there are more than 4 records; send several requests",
        )


def arrow(rows: int, file: bool = False, **columns: Any) -> bytes:
    table = pa.table(
        {
            "id": [f"e{n}" for n in range(rows)],
            "published_at": pa.array(range(rows), pa.timestamp("s", "UTC")),
            "genre": ["drama"] * rows,
            **columns,
        }
    )
    sink = pa.BufferOutputStream()
    new = pa.ipc.new_file if file else pa.ipc.new_stream
    with new(sink, table.schema) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


@pytest.mark.parametrize("file", [True, False])
def test_rows_of_arrow_are_events(file: bool) -> None:
    batch = read(arrow(3, file), "application/vnd.apache.arrow.stream")
    assert ids(batch) == ["e0", "e1", "e2"]
    assert batch.publications[1].event.published_us == 1_000_000
    assert dict(batch.publications[1].event.attributes) == {"genre": "drama"}
    assert batch.refused == []


@pytest.mark.parametrize("content", [b"", b"ARROW", b"{}", arrow(2)[:-40]])
def test_what_is_no_arrow_is_refused_without_a_path(content: bytes) -> None:
    status, detail, _ = refusal(content, "application/vnd.apache.arrow.file")
    assert status == 400
    assert "/tmp" not in detail
    assert "[source]" not in detail


def test_cloud_events_are_structured_a_batch_or_in_headers() -> None:
    [one] = read(CLOUD, "application/cloudevents+json").publications
    assert one.event.attributes["genre"] == "drama"
    batch = read([CLOUD, CLOUD | {"id": "c2"}, 7], "application/cloudevents-batch+json")
    assert len(batch.publications) == 2
    assert [position for position, _ in refused(batch)] == [3]
    headers = {f"ce-{name}": CLOUD[name] for name in ("specversion", "id", "source", "type")}
    [binary] = read(CLOUD["data"], JSON, headers).publications
    assert binary.event.id == one.event.id
    assert binary.event.attributes["genre"] == "drama"


def test_another_type_is_refused_with_those_expected() -> None:
    status, detail, _ = refusal(b"a", "text/csv")
    assert status == 415
    assert detail == f"the content type is 'text/csv'; expected: {', '.join(MEDIA_TYPES)}"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("events"), ServiceSettings(wait_s=0.05)) as running:
        yield running


def publish(served: Served, *forms: dict[str, Any], **query: str) -> dict[str, Any]:
    answer = served.admin.post("/v1/events", json=list(forms), params=query)
    assert answer.status_code == 202, answer.text
    return dict(answer.json())


def test_an_event_is_accepted_once(served: Served) -> None:
    first, second = (f"e{next(NUMBERS)}" for _ in range(2))
    assert publish(served, event(first, 1), event(second, 2), event(first, 3)) == {
        "accepted": 2,
        "repeated": 1,
        "refused": 0,
        "problems": [],
    }
    assert publish(served, event(first, 1))["repeated"] == 1


def test_refused_records_are_counted_and_named(served: Served) -> None:
    answer = publish(served, event(""), event(f"e{next(NUMBERS)}", 1))
    assert (answer["accepted"], answer["refused"]) == (1, 1)
    assert [each["position"] for each in answer["problems"]] == [1]


def test_a_request_with_nothing_to_accept_is_refused(served: Served) -> None:
    answer = served.admin.post("/v1/events", json=[event(""), 7])
    status, detail, _ = problem(answer)
    assert status == 422
    assert detail.startswith("no event is accepted: ")
    assert [each["position"] for each in answer.json()["problems"]] == [1, 2]
    assert served.admin.post("/v1/events", json=[]).json()["accepted"] == 0


def test_waiting_returns_what_was_caused_or_nothing_in_time(served: Served) -> None:
    name = f"e{next(NUMBERS)}"
    assert publish(served, event(name, 1), wait="delivered")["deliveries"] is None
    served.process()
    assert publish(served, event(name, 1), wait="delivered")["deliveries"] == []


def test_only_deliveries_written_meanwhile_are_returned(served: Served) -> None:
    """The pipeline of this test delivers in the moment in which the request looks at the store."""
    store, name = served.store, f"e{next(NUMBERS)}"
    earlier = BatchAppend.of("q", 1, [delivery("ada", "before")], late=[], dead=[])
    store.database.write(earlier.write)
    publish(served, event(name, 1))
    number = store.log.last().number + 1
    step = EngineStep(number, None, 0, store.publications.last())
    assert store.log.append(step, BatchAppend.of("q", 2, [], late=[], dead=[]))
    assert publish(served, event(name, 1), wait="delivered")["deliveries"] == []


def test_the_last_publications_are_listed_newest_first(served: Served) -> None:
    names = [f"e{next(NUMBERS)}" for _ in range(3)]
    publish(served, *(event(name, n) for n, name in enumerate(names, start=1)))
    served.process()
    items = served.admin.get("/v1/events", params={"limit": 2}).json()["items"]
    assert [item["id"] for item in items] == names[:0:-1]


def test_subscribers_do_not_publish(served: Served) -> None:
    ada = served.as_subscriber("ada")
    assert ada.post("/v1/events", json=event("x", 1)).status_code == 403
    assert ada.get("/v1/events").status_code == 403
