"""POST to an address that came from outside, only where the rules of webhooks allow it."""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from ssl import SSLContext
from typing import TYPE_CHECKING, Final, NamedTuple

from tidings.channels.webhook_target import TargetRules, read_url, resolve
from tidings.errors import InvalidForm, TidingsError, described

if TYPE_CHECKING:
    import httpx2

ATTEMPT_S: Final = 15.0
_READ_BYTES: Final = 1_000
_IS_POSTING: Final = ContextVar("_IS_POSTING", default=False)
# The library logs the URL of each request, and anyone who knows that of a chat can write to it.
logging.getLogger("httpx2").addFilter(lambda _: not _IS_POSTING.get())


class PostAnswer(NamedTuple):
    """The answer to a request: the status is 0 if there was none, and `text` says why.

    `allowed` is false if the rules did not let the request be made.
    """

    status: int
    text: str
    retry_after: str | None = None
    allowed: bool = True

    @property
    def is_away(self) -> bool:
        """Whether nothing has answered, except perhaps a proxy."""
        return self.allowed and self.status in (0, 502, 503, 504)

    @property
    def is_success(self) -> bool:
        """Whether the receiver has taken it."""
        return 200 <= self.status < 300


def open_http(trust: SSLContext | None = None) -> "httpx2.AsyncClient":
    """Return a client without proxies, redirects or connection reuse; `trust` may be shared.

    A proxy would resolve names by itself, and a kept connection could be reused for another host
    at the same address.
    """
    import httpx2

    return httpx2.AsyncClient(
        verify=trust or True,
        follow_redirects=False,
        trust_env=False,
        timeout=ATTEMPT_S,
        limits=httpx2.Limits(max_keepalive_connections=0),
    )


async def post(
    http: "httpx2.AsyncClient",
    url: str,
    rules: TargetRules,
    body: bytes,
    headers: Mapping[str, str],
) -> PostAnswer:
    """Send a request once; return the answer with the beginning of its text."""
    import httpx2

    try:
        async with asyncio.timeout(ATTEMPT_S):
            # Both are checked again each time: rules change, and names move.
            target = await resolve(read_url(url, rules), rules)
            request = http.build_request(
                "POST",
                target.direct_url,
                content=body,
                headers={"Host": target.host_header, "User-Agent": "Tidings", **headers},
                extensions={"sni_hostname": target.url.raw_host.decode("ascii")},
            )
            with _unlogged():
                response = await http.send(request, stream=True)
            try:
                text = await _beginning(response)
            finally:
                await response.aclose()
    except TimeoutError:
        return PostAnswer(0, f"no answer within {ATTEMPT_S:g} s")
    except InvalidForm as error:
        return PostAnswer(0, described(error), allowed=False)
    except (httpx2.HTTPError, httpx2.InvalidURL, TidingsError, OSError) as error:
        return PostAnswer(0, described(error))
    return PostAnswer(response.status_code, text, response.headers.get("retry-after"))


@contextmanager
def _unlogged() -> Iterator[None]:
    token = _IS_POSTING.set(True)
    try:
        yield
    finally:
        _IS_POSTING.reset(token)


async def _beginning(response: "httpx2.Response") -> str:
    content = b""
    async for chunk in response.aiter_raw(_READ_BYTES):
        content += chunk
        if len(content) >= _READ_BYTES:
            break
    return content[:_READ_BYTES].decode(errors="replace")
