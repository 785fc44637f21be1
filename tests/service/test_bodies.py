"""Bodies of requests: within limits of size, records and time, and parsed strictly."""

import asyncio
import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import Request

from tidings.model.dead_letter import BadRecord
from tidings.model.limits import Limits
from tidings.service.bodies import JSON, Body, NumberedForm, _read_body, _read_form
from tidings.service.problems import HttpProblem
from tidings.service.settings import ServiceSettings

SETTINGS = ServiceSettings(body_bytes=40, body_records=3)


def body(content: str | bytes, media_type: str = JSON, **more: Any) -> Body:
    text = content if isinstance(content, bytes) else content.encode()
    return Body(text, media_type, ServiceSettings(**{"body_records": 3, **more}))


def problem(work: Any) -> tuple[int, str, Any]:
    """Return the status, the words and the pointer of a refusal."""
    with pytest.raises(HttpProblem) as error:
        work()
    return error.value.status, error.value.detail, error.value.more.get("pointer")


def request(
    *chunks: bytes, settings: ServiceSettings = SETTINGS, gone: bool = False, **headers: str
) -> Request:
    """Return a request whose body comes in pieces; its client may leave behind the last."""
    messages: Iterator[dict[str, Any]] = iter(
        [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
        + ([{"type": "http.disconnect"}] if gone else [{"type": "http.request", "body": b""}])
    )

    async def receive() -> dict[str, Any]:
        return next(messages)

    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    app = SimpleNamespace(state=SimpleNamespace(gate=SimpleNamespace(settings=settings)))
    return Request({"type": "http", "method": "POST", "headers": named, "app": app}, receive)


def read(*chunks: bytes, **more: Any) -> Body:
    return asyncio.run(_read_body(request(*chunks, **more)))


def test_a_body_is_joined_from_its_pieces() -> None:
    found = read(b'{"a"', b"", b": 1}", content_type="Application/JSON ; charset=utf-8")
    assert found == Body(b'{"a": 1}', JSON, SETTINGS)
    assert found.json() == {"a": 1}


def test_without_a_type_a_body_is_json() -> None:
    assert read().media_type == JSON
    assert read().content == b""


@pytest.mark.parametrize(
    ("size", "fits"), [(0, True), (39, True), (40, True), (41, False), (400, False)]
)
def test_a_body_has_at_most_so_many_bytes(size: int, fits: bool) -> None:
    pieces = [b"x" * min(7, size - start) for start in range(0, size, 7)]
    for headers in ({}, {"content_length": str(size)}):
        if fits:
            assert len(read(*pieces, **headers).content) == size
        else:
            assert problem(lambda found=headers: read(*pieces, **found)) == (
                413,
                "the body is above the limit of 40 bytes",
                None,
            )


@pytest.mark.parametrize("length", ["41", "-1", "x", "1e3", "9" * 21, "", " 5"])
def test_a_length_that_is_none_or_too_large_is_refused_before_the_body(length: str) -> None:
    status, detail, _ = problem(lambda: read(content_length=length))
    assert (status, detail) == (413, "the body is above the limit of 40 bytes")


@pytest.mark.parametrize("encoding", ["gzip", "br", "identity, gzip", ""])
def test_a_compressed_body_is_refused(encoding: str) -> None:
    assert problem(lambda: read(b"{}", content_encoding=encoding))[:2] == (
        415,
        "the body is compressed; send it uncompressed",
    )
    assert read(b"{}", content_encoding="identity").json() == {}


def test_a_client_that_is_gone_has_sent_an_incomplete_body() -> None:
    assert problem(lambda: read(b"{", gone=True))[:2] == (400, "the body is incomplete")


def test_a_body_that_does_not_arrive_is_given_up() -> None:
    async def slow() -> Body:
        waiting = request(settings=ServiceSettings(body_s=0.01))

        async def receive() -> dict[str, Any]:
            await asyncio.Event().wait()
            raise AssertionError

        waiting._receive = receive
        return await _read_body(waiting)

    assert problem(lambda: asyncio.run(slow()))[:2] == (
        408,
        "the body has not arrived within 0.01 s",
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "Expecting value"),
        (b"{", "Expecting property name"),
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b'{"a": 1, "a": 2}', "the name 'a' occurs twice in an object"),
        (b"\xff", "it is not UTF-8: byte 1"),
        (b"[" * 100_000, "its lists and objects nest too deeply"),
    ],
)
def test_json_is_read_strictly(content: bytes, reason: str) -> None:
    status, detail, _ = problem(body(content).json)
    assert status == 400
    assert detail.startswith(f"the body is not JSON: {reason}")


def test_another_type_is_refused_with_those_expected() -> None:
    wrong = body("a=1", "text/plain")
    assert problem(lambda: wrong.check_type(JSON))[:2] == (
        415,
        "the content type is 'text/plain'; expected: application/json",
    )
    status, detail, _ = problem(wrong.records)
    assert status == 415
    assert detail.endswith(
        "application/json, application/x-ndjson, application/jsonl, application/jsonlines"
    )


def test_the_records_of_an_array_are_numbered() -> None:
    assert body('[{"a": 1}, 2]').records() == [NumberedForm(1, {"a": 1}), NumberedForm(2, 2)]
    assert body("[]").records() == []


@pytest.mark.parametrize("content", ["{}", "7", "null", '"[]"'])
def test_records_are_an_array(content: str) -> None:
    assert problem(body(content).records) == (422, "the body is not a JSON array", "")


@pytest.mark.parametrize(
    "media_type", ["application/x-ndjson", "application/jsonl", "application/jsonlines"]
)
def test_lines_are_numbered_and_a_bad_one_does_not_stop_the_others(media_type: str) -> None:
    found = body('{"a": 1}\n\n{"a"\n3', media_type).records()
    assert found[0] == NumberedForm(1, {"a": 1})
    assert found[2] == NumberedForm(4, 3)
    bad = found[1]
    assert isinstance(bad, BadRecord)
    assert bad.reason.startswith("the line is not JSON: ")
    assert len(found) == 3


def test_a_line_that_is_too_long_is_a_bad_record() -> None:
    short = Limits(record_bytes=10)
    found = body('{"a": 1}\n{"a": "too long"}\n2', "application/jsonl", limits=short).records()
    assert found[0] == NumberedForm(1, {"a": 1})
    assert found[1] == BadRecord({}, "the line is too long", 2)
    assert found[2] == NumberedForm(3, 2)


@pytest.mark.parametrize("media_type", [JSON, "application/jsonl"])
def test_there_are_at_most_so_many_records(media_type: str) -> None:
    def content(count: int) -> str:
        numbers = [str(number) for number in range(count)]
        return f"[{','.join(numbers)}]" if media_type == JSON else "\n".join(numbers)

    assert len(body(content(3), media_type).records()) == 3
    assert problem(body(content(4), media_type).records)[:2] == (
        413,
        "there are more than 3 records; send several requests",
    )


def test_a_form_is_a_json_object() -> None:
    assert asyncio.run(_read_form(body('{"a": 1}'))) == {"a": 1}
    large = json.dumps({"a": "x" * 30_000})
    assert asyncio.run(_read_form(body(large))) == json.loads(large)


@pytest.mark.parametrize("content", ["[]", "1", json.dumps(["x" * 30_000])])
def test_a_form_that_is_no_object_is_refused(content: str) -> None:
    assert problem(lambda: asyncio.run(_read_form(body(content)))) == (
        422,
        "the body is not a JSON object",
        "",
    )


def test_lines_are_no_form() -> None:
    wrong = body("{}", "application/jsonl")
    assert problem(lambda: asyncio.run(_read_form(wrong)))[0] == 415
