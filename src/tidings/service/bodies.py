"""The bodies of requests: read within limits of size and time, and parsed strictly."""

import asyncio
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import Annotated, Any, Final, NamedTuple, TypeVar

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from tidings.errors import InvalidForm
from tidings.formats.json_text import read_json, read_lines
from tidings.model.dead_letter import BadRecord
from tidings.service.problems import Form, HttpProblem
from tidings.service.settings import ServiceSettings

JSON: Final = "application/json"
JSON_LINES: Final = ("application/x-ndjson", "application/jsonl", "application/jsonlines")
_SMALL_BYTES: Final = 20_000
T = TypeVar("T")


class NumberedForm(NamedTuple):
    """A record of a body and its position from 1: its line, or its place in the array."""

    position: int
    form: Any


class Body(NamedTuple):
    """The body of a request, its media type in lower case, and the settings that apply."""

    content: bytes
    media_type: str
    settings: ServiceSettings

    def check_type(self, *expected: str) -> None:
        """Refuse a body of an unexpected type."""
        if self.media_type not in expected:
            listed = ", ".join(expected)
            raise HttpProblem(415, f"the content type is {self.media_type!r}; expected: {listed}")

    def json(self) -> Any:
        """Return the body as JSON."""
        try:
            return read_json(self.content)
        except InvalidForm as error:
            raise HttpProblem(400, f"the body is not JSON: {error}") from None

    def records(self) -> list[NumberedForm | BadRecord]:
        """Return the records of JSON Lines or of a JSON array; a line may be a bad record."""
        self.check_type(JSON, *JSON_LINES)
        if self.media_type == JSON:
            forms = self.json()
            if not isinstance(forms, list):
                raise HttpProblem(422, "the body is not a JSON array", pointer="")
            return [NumberedForm(*item) for item in enumerate(self.limited(forms), start=1)]
        lines = read_lines(BytesIO(self.content), self.settings.limits.record_bytes)
        return [self._line(*line) for line in self.limited(lines)]

    def limited(self, records: Iterable[T]) -> Iterator[T]:
        """Yield the records of the body; refuse it if there are too many.

        Otherwise, a body of tiny records within the limit of bytes could keep a core busy for a
        minute.
        """
        most = self.settings.body_records
        for number, record in enumerate(records):
            if number == most:
                raise HttpProblem(
                    413, f"there are more than {most:,} records; send several requests"
                )
            yield record

    def _line(self, position: int, text: bytes, whole: bool) -> NumberedForm | BadRecord:
        reason = "the line is too long"
        if whole:
            try:
                return NumberedForm(position, read_json(text))
            except InvalidForm as error:
                reason = f"the line is not JSON: {error}"
        return BadRecord({}, reason, position)


async def _read_body(request: Request) -> Body:
    settings: ServiceSettings = request.app.state.gate.settings
    if request.headers.get("content-encoding", "identity") != "identity":
        raise HttpProblem(415, "the body is compressed; send it uncompressed")
    too_large = HttpProblem(413, f"the body is above the limit of {settings.body_bytes:,} bytes")
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > 20 or int(length) > settings.body_bytes:
        raise too_large
    content = bytearray()
    try:
        async with asyncio.timeout(settings.body_s):
            async for chunk in request.stream():
                content += chunk
                if len(content) > settings.body_bytes:
                    raise too_large
    except ClientDisconnect:  # the client is gone
        raise HttpProblem(400, "the body is incomplete") from None
    except TimeoutError:
        raise HttpProblem(408, f"the body has not arrived within {settings.body_s:g} s") from None
    media_type = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    return Body(bytes(content), media_type, settings)


AnyBody = Annotated[Body, Depends(_read_body)]


async def _read_form(body: AnyBody) -> Form:
    body.check_type(JSON)
    # While the event loop parses a large body, all other requests would wait.
    is_small = len(body.content) <= _SMALL_BYTES
    form = body.json() if is_small else await run_in_threadpool(body.json)
    if not isinstance(form, dict):
        raise HttpProblem(422, "the body is not a JSON object", pointer="")
    return form


FormBody = Annotated[Form, Depends(_read_form)]
