"""The OpenAPI description: schemas of the forms, and what each path accepts and answers.

Forms are read by `formats`, not by the web framework, so their schemas are written here, once.
"""

from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from tidings.service.problems import MEDIA_TYPE as PROBLEM
from tidings.store.protocol import FOREVER, MAX_ID_BYTES

Schema = dict[str, Any]
_ID: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": MAX_ID_BYTES}
_TIME: Final[Schema] = {"type": "string", "format": "date-time"}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0, "maximum": FOREVER}
_TEXT: Final[Schema] = {"type": "string"}
_FLAG: Final[Schema] = {"type": "boolean"}
_OBJECT: Final[Schema] = {"type": "object"}
_SCORE: Final[Schema] = {"type": "number", "minimum": 0}
_PART: Final[Schema] = {
    "description": "A name, or an object with a name and its parameters; see docs/policies.md.",
    "anyOf": [
        {"type": "string"},
        {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
    ],
}


def _maybe(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _form(required: str, closed: bool = True, **properties: Schema) -> Schema:
    schema = {"type": "object", "required": required.split(), "properties": properties}
    return schema | ({"additionalProperties": False} if closed else {})


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _page(name: str, key: Schema) -> Schema:
    return _form("items next", items=_list(_ref(name)), next=_maybe(key))


SCHEMAS: Final[dict[str, Schema]] = {
    "event": _form(
        "id attributes",
        id=_ID,
        published_at={"anyOf": [_TIME, {"type": "number"}]},
        attributes=_OBJECT,
        sequence=_COUNT,
        probabilities=_OBJECT,
        content=_OBJECT,
    ),
    "policy": _form(
        "",
        k={"type": "integer", "minimum": 1},
        scorer=_PART,
        decay=_PART,
        window=_PART,
        diversify=_PART,
        rules=_list(_PART),
    ),
    "subscriber": _form(
        "",
        id=_ID,
        policy=_ref("policy"),
        prefers={
            "description": "Pairs of subscriptions: the first is preferred to the second.",
            **_list({"type": "array", "items": _ID, "minItems": 2, "maxItems": 2}),
        },
        paused=_FLAG,
    ),
    "subscription": _form(
        "subscriber",
        id=_ID,
        subscriber=_ID,
        where={"type": "string", "examples": ["genre = 'drama' and year >= 2003"]},
        any=_list({"type": "array", "minItems": 2, "maxItems": 3}),
        prefrank={"type": "number", "minimum": 0, "maximum": 1},
        score=_SCORE,
    ),
    "record": {"anyOf": [_ref("subscription"), _ref("subscriber")]},
    "records": {"description": "JSON Lines: a subscription or subscriber a line.", **_TEXT},
    "subscribers": _page("subscriber", _ID),
    "subscriptions": _page("subscription", _ID),
    "change": _form("version applied", version=_COUNT, applied=_maybe(_FLAG)),
    "imported": _form(
        "accepted refused problems version applied",
        accepted=_COUNT,
        refused=_COUNT,
        problems=_list(_form("line detail", line=_COUNT, detail=_TEXT)),
        version=_COUNT,
        applied=_maybe(_FLAG),
    ),
    "published": _form(
        "accepted repeated refused problems",
        accepted=_COUNT,
        repeated=_COUNT,
        refused=_COUNT,
        problems=_list(_form("position detail", position=_COUNT, detail=_TEXT)),
    ),
    "delivery": _form(
        "subscriber event rank position window matched sequence delivered_at",
        subscriber=_ID,
        event=_ID,
        rank=_SCORE,
        position=_COUNT,
        window=_OBJECT,
        matched=_list(_ID),
        sequence=_COUNT,
        delivered_at=_TIME,
        content=_OBJECT,
    ),
    "deliveries": _form("items", items=_list(_ref("delivery"))),
    "inbox": _form("last read unread", last=_COUNT, read=_COUNT, unread=_COUNT),
    "notifications": _form(
        "items next inbox",
        items=_list(_ref("delivery")),
        next=_maybe(_COUNT),
        inbox=_ref("inbox"),
    ),
    "stream": {
        "description": "Server-sent events: the id is the sequence number, the data a delivery.",
        **_TEXT,
    },
    "read_mark": _form("sequence", sequence=_COUNT),
    "target_question": _form(
        "event",
        event=_ref("event"),
        k={"type": "integer", "minimum": 1, "maximum": 1_000},
        scorer=_PART,
    ),
    "target": _form(
        "items", items=_list(_form("subscription score", subscription=_ID, score=_SCORE))
    ),
    "explanation": _form(
        "subscriber event text", closed=False, subscriber=_ID, event=_ID, text=_TEXT
    ),
    "preview_question": _form(
        "",
        subscriber=_ID,
        policy=_ref("policy"),
        where=_TEXT,
        subscriptions=_list(_ref("subscription")),
    ),
    "preview": _form("publications items", publications=_COUNT, items=_list(_ref("delivery"))),
    "health": _form("status", status=_TEXT),
    "problem": _form(
        "type title status detail",
        closed=False,
        type=_TEXT,
        title=_TEXT,
        status={"type": "integer"},
        detail=_TEXT,
        pointer={"description": "The field at fault, a JSON pointer (RFC 6901).", **_TEXT},
        position={"description": "The character of a condition that is wrong.", **_COUNT},
        parameter=_TEXT,
    ),
}
_PROBLEMS: Final = {
    400: "The body cannot be parsed.",
    401: "There is no valid token.",
    403: "The token does not allow this.",
    404: "There is no such thing.",
    405: "The path does not have this method.",
    408: "The body came too slowly.",
    409: "The state does not allow this.",
    413: "The body is too large.",
    415: "The body has another type.",
    422: "A field or parameter is wrong.",
    429: "There were too many requests.",
    503: "The store cannot be reached.",
}


def accepts(schema: str, *media_types: str, example: Any = None) -> dict[str, Any]:
    """Return the description of a body: its schema, as JSON unless other types are named."""
    content = {"schema": _ref(schema)} | ({} if example is None else {"example": example})
    types = media_types or ("application/json",)
    body = {"required": True, "content": dict.fromkeys(types, content)}
    return {"openapi_extra": {"requestBody": body}}


def answers(schema: str, *statuses: int, media_type: str = "application/json") -> dict[str, Any]:
    """Return the description of the answers: a schema, and problems."""
    problem = {"content": {PROBLEM: {"schema": _ref("problem")}}}
    responses: dict[int | str, Any] = {
        status: {"description": description, **problem} for status, description in _PROBLEMS.items()
    }
    content = {"content": {media_type: {"schema": _ref(schema)}}}
    first, *others = statuses or (200,)
    for status in (first, *others):
        responses[status] = {"description": "Done.", **content}
    return {"status_code": first, "response_model": None, "responses": responses}


def describe(app: FastAPI) -> Schema:
    """Return the description of all paths, with the schemas of the forms."""
    if not app.openapi_schema:
        description = get_openapi(
            title=app.title,
            version=app.version,
            summary=app.summary,
            routes=app.routes,
            tags=app.openapi_tags,
        )
        schemas = description.setdefault("components", {}).setdefault("schemas", {})
        schemas.clear()  # the framework's own, of answers that are never given
        schemas.update(SCHEMAS)
        app.openapi_schema = description
    return app.openapi_schema
