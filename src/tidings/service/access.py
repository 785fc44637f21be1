"""Access control: the caller, tenant and role of a request, and rate limits.

Without any token, the service listens only on the loopback interface, where every caller is an
administrator.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Annotated, Final, ParamSpec, TypeVar

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from tidings.model.values import SECOND_US
from tidings.service.problems import HttpProblem
from tidings.service.settings import LOOPBACK, ServiceSettings
from tidings.service.tenant import Tenant, Tenants

_SCHEME: Final = HTTPBearer(
    auto_error=False, description="A token that `tidings token create` has printed."
)
_CHALLENGE: Final = {"WWW-Authenticate": "Bearer"}
_LOCAL: Final = "local"
_MOST_BUCKETS: Final = 10_000

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Caller:
    """The sender of a request: its tenant and its role; a subscriber has a name."""

    tenant: Tenant
    role: str
    subscriber: str | None = None

    async def ask(self, answer: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """Return the answer to an expensive question; see `QuestionSlots`."""
        name = f"{self.role} {self.subscriber or ''}"
        return await self.tenant.questions.run(name, answer, *arguments, **options)

    def check_is(self, subscriber: str) -> None:
        """Refuse a subscriber access to another one, whether that exists or not."""
        if self.role == "subscriber" and subscriber != self.subscriber:
            raise HttpProblem(403, "a token with the role subscriber may access only its own feed")


class RateLimit:
    """Token buckets by name: `rate` requests per second, and bursts of twice as many."""

    def __init__(self, rate: int) -> None:
        self._rate, self._burst = rate, 2 * rate
        self._buckets: dict[str, tuple[float, float]] = {}
        self._lock = Lock()

    def check(self, name: str) -> None:
        """Count a request; refuse it if there were too many."""
        now = time.monotonic()
        with self._lock:
            level, then = self._buckets.get(name, (float(self._burst), now))
            level = min(self._burst, level + (now - then) * self._rate)
            if len(self._buckets) > _MOST_BUCKETS:
                self._buckets.clear()
            self._buckets[name] = (max(0.0, level - 1), now)
        if level < 1:
            raise HttpProblem(
                429,
                f"more than {self._rate} requests per second; try again later",
                headers={"Retry-After": "1"},
            )


@dataclass
class Gate:
    """The access control of a service; `is_local` if only this machine can reach it."""

    tenants: Tenants
    settings: ServiceSettings
    is_local: bool
    _limit: RateLimit = field(init=False)
    _has_tokens: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._limit = RateLimit(self.settings.rate)

    def check_rate(self, name: str) -> None:
        """Count a request without a token; refuse it if there were too many with this name."""
        self._limit.check(name)

    def admit_again(self, request: Request) -> Caller:
        """Return the caller of a streaming request; refuse a token that was revoked."""
        return self.admit(request, _bearer(request), is_new=False)

    def admit(self, request: Request, token: str | None, *, is_new: bool = True) -> Caller:
        """Return the caller of a request; refuse an invalid token, and too many requests.

        A request that is not new does not count towards the limit.
        """
        tokens = self.tenants.main.store.tokens
        self._has_tokens = self._has_tokens or tokens.exist()
        if not self._has_tokens and self.is_local:
            _check_origin(request)
            if is_new:
                self._limit.check(_LOCAL)
            return Caller(self.tenants.main, "admin")
        if token is None:
            raise HttpProblem(401, "a bearer token is required", headers=_CHALLENGE)
        login = tokens.find(token, time.time_ns() * SECOND_US // 10**9)
        if login is None:
            raise HttpProblem(401, "the token is not valid", headers=_CHALLENGE)
        if is_new:
            self._limit.check(login.id)
        return Caller(self.tenants.get(login.tenant), login.role, login.subscriber)


def _bearer(request: Request) -> str | None:
    """Return the token in the header of a request."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _check_origin(request: Request) -> None:
    """Refuse other sites' pages, and this service under another name (DNS rebinding)."""
    host = request.url.hostname
    if host not in LOOPBACK:
        raise HttpProblem(403, "without tokens, the service answers only requests to localhost")
    if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise HttpProblem(
            403, "without tokens, the service answers only requests from its own page"
        )


def _caller(
    request: Request,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_SCHEME)],
) -> Caller:
    gate: Gate = request.app.state.gate
    caller = gate.admit(request, credentials.credentials if credentials else None)
    request.state.tenant = caller.tenant
    return caller


def _maybe_caller(request: Request) -> Caller | None:
    """Return the caller of a request, or None if it needs a token but has none."""
    gate: Gate = request.app.state.gate
    token = _bearer(request)
    try:
        caller = gate.admit(request, token)
    except HttpProblem as problem:
        if problem.status == 401 and token is None:
            return None
        raise
    request.state.tenant = caller.tenant
    return caller


def _checked(caller: Caller, *roles: str) -> Caller:
    if caller.role not in roles:
        raise HttpProblem(403, f"a token with the role {caller.role} may not do this")
    return caller


async def _admin(caller: Annotated[Caller, Depends(_caller)]) -> Caller:
    return _checked(caller, "admin")


async def _publisher(caller: Annotated[Caller, Depends(_caller)]) -> Caller:
    return _checked(caller, "admin", "publisher")


async def _reader(caller: Annotated[Caller, Depends(_caller)]) -> Caller:
    return _checked(caller, "admin", "subscriber")


MaybeCaller = Annotated[Caller | None, Depends(_maybe_caller)]
AnyCaller = Annotated[Caller, Depends(_caller)]
AdminCaller = Annotated[Caller, Depends(_admin)]
PublisherCaller = Annotated[Caller, Depends(_publisher)]
ReaderCaller = Annotated[Caller, Depends(_reader)]
