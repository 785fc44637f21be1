"""Errors as problem details (RFC 9457): what is wrong, and where in the request.

A `pointer` (RFC 6901) names the field of the body at fault, and a `position` the character at which
a condition cannot be parsed.
"""

import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from tidings.errors import InvalidCondition, StoreError, TidingsError, described
from tidings.model.conditions.parser import parse

_LOG: Final = logging.getLogger(__name__)
MEDIA_TYPE: Final = "application/problem+json"
_HARMLESS: Final = {
    "id": "x",
    "subscriber": "x",
    "where": "true",
    "attributes": {},
    "published_at": 0,
}
_HARMLESS_TYPES: Final = {str: "x is not null", int: 1, float: 1}
"""Values that are valid for required fields, and for lists of them."""
_SEARCHED: Final = 10_000
"""The largest form, in characters of its `repr`, in which the field at fault is searched."""
_WORK: Final = 300_000
"""The characters that the search may parse again: a large list is pointed at as a whole."""

Form = dict[str, Any]
Load = Callable[[Form], object]


class HttpProblem(Exception):
    """A refused request: the status, what is wrong, and where."""

    def __init__(
        self, status: int, detail: str, *, headers: Mapping[str, str] | None = None, **more: Any
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})
        self.more = {name: value for name, value in more.items() if value is not None}

    def to_dict(self) -> Form:
        """Return the JSON form."""
        title = HTTPStatus(self.status).phrase
        form = {"type": "about:blank", "title": title, "status": self.status}
        return form | {"detail": self.detail} | self.more


def load_form(load: Load, form: Any, base: str = "") -> Any:
    """Read a form; raise a problem that points at the field at fault."""
    try:
        return load(form)
    except StoreError:
        raise
    except TidingsError as error:
        pointer = find_pointer(load, form)
        position = find_position(form, pointer)
        kind = type(error).__name__
        raise HttpProblem(
            422, str(error), error=kind, pointer=base + pointer, position=position
        ) from None


def find_pointer(load: Load, form: Any) -> str:
    """Return a pointer to the smallest part of a form that causes its refusal.

    Each part in turn is left out, or replaced by a harmless value; where the error disappears or
    changes, the part is at fault.
    """
    size = len(repr(form))
    if not isinstance(form, dict) or size > _SEARCHED:
        return ""
    path = list[str | int]()
    error = _error(load, form)
    while (key := _member_at_fault(load, form, path, error, _WORK // size)) is not None:
        path.append(key)
    return "".join(f"/{str(key).replace('~', '~0').replace('/', '~1')}" for key in path)


def _member_at_fault(
    load: Load, form: Form, path: list[str | int], error: str | None, most: int
) -> str | int | None:
    """Return the key of the member at fault in the part of a form at a path, or None.

    A part with more than `most` members is not searched.
    """
    part: Any = form
    for key in path:
        part = part[key]
    keys: list[str | int] = []
    if isinstance(part, dict):
        keys = list(part)
    elif isinstance(part, list):
        keys = list(range(len(part)))
    if len(keys) > most:
        return None
    remaining = {key: _errors(load, form, [*path, key]) for key in keys}
    healed = [key for key in keys if None in remaining[key]]
    changed = [key for key in keys if error not in remaining[key] and key != "id"]
    return next(iter(healed + (changed if isinstance(part, dict) else [])), None)


def _errors(load: Load, form: Form, path: list[str | int]) -> set[str | None]:
    """Return the errors of a form without the member at a path, or with a harmless one instead."""
    return {_error(load, _replaced(form, path, instead)) for instead in (False, True)}


def _error(load: Load, form: Form) -> str | None:
    try:
        load(form)
    except TidingsError as error:
        return str(error)
    return None


def _replaced(form: Any, path: list[str | int], instead: bool) -> Any:
    """Return a form without the member at a path, or with a harmless value `instead` of it."""
    key, *rest = path
    if rest:
        member = [_replaced(form[key], rest, instead)]
    else:
        harmless = _HARMLESS.get(str(key), _HARMLESS_TYPES.get(type(form[key])))
        member = [harmless] if instead and harmless is not None else []
    if isinstance(form, list):
        index = int(key)
        return [*form[:index], *member, *form[index + 1 :]]
    siblings = {name: value for name, value in form.items() if name != key}
    return {**siblings, key: member[0]} if member else siblings


def find_position(form: Any, pointer: str) -> int | None:
    """Return the position of the first character of a condition that cannot be parsed."""
    part, keys = form, pointer.split("/")[1:]
    if "where" not in keys[-1:] and "any" not in keys[-3:]:
        return None
    for key in keys:
        part = part[int(key)] if isinstance(part, list) else part.get(key)
    if isinstance(part, str):
        try:
            parse(part)
        except InvalidCondition as error:
            return error.position
        except TidingsError:
            return None
    return None


def _methods(request: Request) -> set[str]:
    """Return all methods of a path; the framework names those of one handler."""
    return {
        method.upper()
        for path, methods in request.app.openapi()["paths"].items()
        if compile_path(path)[0].match(request.url.path)
        for method in methods
    }


def _place(request: Request) -> str:
    """Return the method and the path of a request without its ids, some of which are secret."""
    return f"{request.method} {getattr(request.scope.get('route'), 'path', 'elsewhere')}"


def answer_problems(app: FastAPI) -> None:
    """Make the application answer every error with problem details."""

    @app.exception_handler(HttpProblem)
    def answer(request: Request, problem: HttpProblem) -> JSONResponse:
        del request
        return JSONResponse(
            problem.to_dict(), problem.status, headers=problem.headers, media_type=MEDIA_TYPE
        )

    @app.exception_handler(RequestValidationError)
    def refuse(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        place, *path = first["loc"]
        name = ".".join(map(str, path))
        detail = f"the {place} parameter {name} is refused: {first['msg']}"
        return answer(request, HttpProblem(422, detail, parameter=name))

    @app.exception_handler(StoreError)
    def wait(request: Request, error: StoreError) -> JSONResponse:
        _LOG.error("%s: %s", _place(request), error)
        detail = "the store cannot be read or written at the moment; try again"
        return answer(request, HttpProblem(503, detail, headers={"Retry-After": "1"}))

    @app.exception_handler(TidingsError)
    def explain(request: Request, error: TidingsError) -> JSONResponse:
        return answer(request, HttpProblem(422, described(error), error=type(error).__name__))

    @app.exception_handler(HTTPException)
    def pass_on(request: Request, error: HTTPException) -> JSONResponse:
        headers = dict(error.headers or {})
        if "Allow" in headers:
            headers["Allow"] = ", ".join(sorted(_methods(request)))
        return answer(request, HttpProblem(error.status_code, str(error.detail), headers=headers))

    @app.exception_handler(Exception)
    def fail(request: Request, error: Exception) -> JSONResponse:
        _LOG.error("%s failed", _place(request), exc_info=error)
        return answer(
            request, HttpProblem(500, "this is a bug in Tidings; its log has the details")
        )
