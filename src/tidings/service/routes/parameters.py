"""Parameters that several paths share: limits, and ids, which are one segment of a path.

An id may contain slashes, which are written as %2F. A server decodes the whole path before it is
routed, so `a%2Fb` would become two segments. The middleware decodes segment by segment, and marks
the slashes within one until the id is read.
"""

from typing import Annotated, Final
from urllib.parse import unquote

from fastapi import Path, Query
from pydantic import BeforeValidator
from starlette.types import ASGIApp, Receive, Scope, Send

from tidings.store.protocol import MAX_ID_BYTES

Limit = Annotated[int, Query(ge=1, le=1_000, description="The maximum number to return.")]

_MARK: Final = "\udc2f"
"""Stands for a slash; no path that is UTF-8 decodes to this half of a surrogate pair."""


def _with_slashes(text: str) -> str:
    return text.replace(_MARK, "/")


PathId = Annotated[
    str,
    Path(min_length=1, max_length=MAX_ID_BYTES, description="A slash is written as %2F."),
    BeforeValidator(_with_slashes),
]


class SlashesInIds:
    """Middleware that keeps an encoded slash in its segment."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, routed by its segments."""
        raw: bytes = scope.get("raw_path") or b""
        # A path that ends in a slash has no id at its end, and may be redirected as it is.
        if b"%2f" in raw.lower() and not raw.endswith(b"/"):
            scope = {**scope, "path": _decoded(raw.partition(b"?")[0].decode("ascii", "replace"))}
        await self._app(scope, receive, send)


def _decoded(path: str) -> str:
    return "/".join(unquote(segment).replace("/", _MARK) for segment in path.split("/"))
