"""The page: static files under a strict content security policy, and the role of its viewer."""

from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Annotated, Final, NamedTuple

from fastapi import APIRouter, Header, Path, Response

from tidings.service.access import MaybeCaller
from tidings.service.openapi import answers
from tidings.service.problems import Form, HttpProblem

_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# Nothing is loaded from other sites except pictures, if the reader asks for them. Trusted types
# make the browser refuse to parse text as markup, even if a script tried to.
_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' https:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
router = APIRouter(tags=["operations"])
Known = Annotated[str | None, Header(alias="If-None-Match", max_length=1_000)]


class PageFile(NamedTuple):
    """A file of the page, with its media type and its entity tag."""

    content: bytes
    media_type: str
    etag: str


def read_page() -> dict[str, PageFile]:
    """Return the files of the page by their paths."""
    return dict(_read(files("tidings.service") / "page", ""))


def _read(folder: Traversable, prefix: str) -> list[tuple[str, PageFile]]:
    pages = list[tuple[str, PageFile]]()
    for entry in folder.iterdir():
        name = f"{prefix}{entry.name}"
        media_type = _TYPES.get(f".{entry.name.rpartition('.')[2]}")
        if entry.is_dir():
            pages += _read(entry, f"{name}/")
        elif media_type:
            content = entry.read_bytes()
            pages.append((name, PageFile(content, media_type, f'"{sha256(content).hexdigest()}"')))
    return pages


# The files are in memory, so the routes below never block and need no threads.
PAGE: Final = read_page()


@router.get("/", include_in_schema=False)
@router.head("/", include_in_schema=False)
async def show_page(known: Known = None) -> Response:
    """Return the page."""
    return _answer("index.html", known)


@router.get("/docs", include_in_schema=False)
@router.head("/docs", include_in_schema=False)
async def show_docs(known: Known = None) -> Response:
    """Return the human-readable description of the HTTP API."""
    return _answer("docs.html", known)


@router.get("/page/{name:path}", include_in_schema=False)
@router.head("/page/{name:path}", include_in_schema=False)
async def show_file(name: Annotated[str, Path(max_length=100)], known: Known = None) -> Response:
    """Return a file of the page."""
    return _answer(name, known)


@router.get("/v1/me", **answers("caller"))
def me(caller: MaybeCaller) -> Form:
    """Return the role, the tenant and, if any, the subscriber of the caller.

    Everything is null if a token is required but missing, so a page knows that it has to ask for
    one.
    """
    if caller is None:
        return {"role": None, "subscriber": None, "tenant": None}
    name = caller.tenant.name
    return {"role": caller.role, "subscriber": caller.subscriber, "tenant": name}


def _answer(name: str, known: str | None) -> Response:
    file = PAGE.get(name)
    if file is None:
        raise HttpProblem(404, "the page has no such file")
    headers = _HEADERS | {"ETag": file.etag}
    if known == file.etag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)
