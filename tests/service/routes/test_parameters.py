"""Ids in paths: whatever an id holds, its quoted form leads back to it."""

import asyncio
import json
from typing import Any
from urllib.parse import quote, unquote

from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st

from tidings.service.routes.parameters import PathId, SlashesInIds

app = FastAPI()
app.add_middleware(SlashesInIds)


@app.get("/things/{id}/end")
def thing(id: PathId) -> dict[str, str]:
    return {"id": id}


def asked(raw_path: bytes) -> tuple[int, bytes]:
    """Return the status and the body of the answer to a GET, as a server calls the application."""
    sent: list[dict[str, Any]] = []
    scope = {
        "type": "http",
        "method": "GET",
        "path": unquote(raw_path.decode()),
        "raw_path": raw_path,
        "query_string": b"",
        "headers": [],
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], sent[1]["body"]


IDS = st.text(st.sampled_from("a/%2Ff?#.é \u2215"), min_size=1, max_size=6)


@given(IDS)
def test_a_quoted_id_is_one_segment(name: str) -> None:
    status, body = asked(f"/things/{quote(name, safe='')}/end".encode())
    assert status == 200
    assert json.loads(body) == {"id": name}


def test_a_slash_that_is_not_quoted_separates_segments() -> None:
    assert asked(b"/things/a/b/end")[0] == 404
    assert asked(b"/things/a%2Fb/end/")[0] == 404
