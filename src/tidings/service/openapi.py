"""The OpenAPI description: the schemas of JSON forms, and what each path accepts and returns.

Forms are parsed by `formats`, not by the web framework, so their schemas are written here, once.
"""

from collections.abc import Sequence
from typing import Any, Final, get_args

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from tidings.channels.person_channel import EVERY, KINDS
from tidings.engine.explain import Outcome
from tidings.service.problems import MEDIA_TYPE as PROBLEM
from tidings.store.marks import MARKS
from tidings.store.protocol import FOREVER, MAX_ID_BYTES

Schema = dict[str, Any]
_ID: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": MAX_ID_BYTES}
_NAME: Final[Schema] = {"type": "string", "minLength": 1}
_ID_OR_NUMBER: Final[Schema] = {"anyOf": [_ID, {"type": "integer"}]}
_TIME: Final[Schema] = {"type": "string", "format": "date-time"}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0, "maximum": FOREVER}
_TEXT: Final[Schema] = {"type": "string"}
_FLAG: Final[Schema] = {"type": "boolean"}
_OBJECT: Final[Schema] = {"type": "object"}
_SCORE: Final[Schema] = {"type": "number", "minimum": 0}
_MANY: Final[Schema] = {
    "description": "Several records; bad ones do not stop the others.",
    "type": "array",
}
_PART: Final[Schema] = {
    "description": "A name, or an object with a name and its parameters; see docs/policies.md.",
    "anyOf": [
        {"type": "string"},
        {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
    ],
}
_KIND: Final[Schema] = {"type": "string", "enum": list(KINDS)}
_LABEL: Final[Schema] = {"type": "string", "maxLength": 100}
_MARK: Final[Schema] = {"type": "string", "enum": list(MARKS)}
_OUTCOME: Final[Schema] = {"type": "string", "enum": list(get_args(Outcome))}


def _maybe(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _form(*, optional: str = "", closed: bool = True, **properties: Schema) -> Schema:
    required = [name for name in properties if name not in optional.split()]
    schema = {"type": "object", "required": required, "properties": properties}
    return schema | ({"additionalProperties": False} if closed else {})


def _all(schema: Schema, names: str) -> dict[str, Any]:
    """Return the same schema for several fields, whose names are separated by spaces."""
    return dict.fromkeys(names.split(), schema)


def _request(required: str, **properties: Schema) -> Schema:
    """Return the schema of a request: a field that is not required may be null."""
    optional = properties.keys() - required.split()
    forms: dict[str, Any] = {
        name: _maybe(form) if name in optional else form for name, form in properties.items()
    }
    return _form(optional=" ".join(optional), **forms)


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _page(name: str, key: Schema) -> Schema:
    return _form(items=_list(_ref(name)), next=_maybe(key))


_FAILURE: Final[Schema] = _form(
    sequence=_COUNT, attempts=_COUNT, next_at=_maybe(_TIME), reason=_TEXT
)
_EVENT: Final[dict[str, Schema]] = {
    "id": _ID_OR_NUMBER,
    "published_at": {"anyOf": [_TIME, {"type": "number"}]},
    "attributes": _OBJECT,
    "sequence": _COUNT,
    "probabilities": _OBJECT,
    "content": _OBJECT,
}
_PUBLICATION: Final[dict[str, Any]] = {
    "event": _ID,
    "published_at": _TIME,
    "attributes": _OBJECT,
    "content": _OBJECT,
}
_WEBHOOK: Final[dict[str, Any]] = {"id": _ID, "subscriber": _ID, "url": _TEXT}
_SCHEDULE: Final[dict[str, Any]] = {
    "zone": {"description": "A time zone such as Europe/Athens.", **_TEXT},
    "every": {"type": "string", "enum": list(EVERY)},
    "at": {"description": "Local times of day, such as 08:00.", **_list(_TEXT)},
    "days": {"description": "Days of the week, such as mon.", **_list(_TEXT)},
}
_REFUSED: Final[Schema] = _list(_form(position=_COUNT, detail=_TEXT))
SCHEMAS: Final[dict[str, Schema]] = {
    "event": _request("id attributes", **_EVENT),
    "events": {"anyOf": [_ref("event"), _MANY]},
    "recent_events": _form(items=_list(_ref("event"))),
    "cloud_event": _form(
        optional="time",
        closed=False,
        specversion={"const": "1.0"},
        id=_ID,
        source=_ID,
        type=_NAME,
        time=_maybe(_TIME),
    ),
    "policy": _request(
        "",
        k={"type": "integer", "minimum": 1},
        scorer=_PART,
        decay=_PART,
        window=_PART,
        diversify=_PART,
        rules=_list(_PART),
    ),
    "subscriber": _request(
        "",
        id=_ID,
        policy=_ref("policy"),
        prefers={
            "description": "Pairs of subscriptions: the first is preferred to the second.",
            **_list({"type": "array", "items": _NAME, "minItems": 2, "maxItems": 2}),
        },
        paused=_FLAG,
    ),
    "subscription": _request(
        "subscriber",
        id=_ID,
        subscriber=_ID,
        where={
            "description": "A condition, as after `where` in SQL. Alternatively, `any`.",
            "type": "string",
            "examples": ["genre = 'drama' and year >= 2003"],
        },
        any={
            "description": "Weighted predicates, each as `[condition, weight]`.",
            **_list({"type": "array", "minItems": 2, "maxItems": 3}),
            "minItems": 1,
        },
        prefrank={"type": "number", "minimum": 0, "maximum": 1},
        score=_SCORE,
    ),
    "lines": {"description": "JSON Lines: one object per line.", **_TEXT},
    "columns": {"description": "An Arrow stream or file.", "type": "string", "format": "binary"},
    "metrics": {"description": "The text format of Prometheus.", **_TEXT},
    "records": _MANY,
    "subscribers": _page("subscriber", _ID),
    "subscriptions": _page("subscription", _ID),
    "change": _form(version=_COUNT, applied=_maybe(_FLAG)),
    "imported": _form(
        accepted=_COUNT, refused=_COUNT, problems=_REFUSED, version=_COUNT, applied=_maybe(_FLAG)
    ),
    "published": _form(
        optional="deliveries",
        **_all(_COUNT, "accepted repeated refused"),
        problems=_REFUSED,
        deliveries=_maybe(_list(_ref("delivery"))),
    ),
    "delivery": _form(
        optional="content",
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
    "deliveries": _form(items=_list(_ref("delivery"))),
    "inbox": _form(last=_COUNT, read=_COUNT, unread=_COUNT),
    "notifications": _form(items=_list(_ref("delivery")), next=_maybe(_COUNT), inbox=_ref("inbox")),
    "stream": {
        "description": "Server-sent events: the id is the sequence number, the data a delivery.",
        **_TEXT,
    },
    "feed_address": _form(atom=_TEXT, json=_TEXT),
    "feed_document": {"description": "Atom (RFC 4287), or JSON Feed 1.1."},
    "removed": _form(removed=_FLAG),
    "webhook": _request("url", **_WEBHOOK),
    "webhook_secret": _form(secret=_TEXT),
    "webhook_state": _form(
        optional="secret",
        **_WEBHOOK,
        created_at=_TIME,
        **_all(_COUNT, "sequence waiting failures"),
        disabled=_maybe(_TEXT),
        failed=_list(_FAILURE),
        secret={"description": "Returned only once, for a new webhook.", **_TEXT},
    ),
    "webhooks": _form(items=_list(_ref("webhook_state"))),
    "channel": _request(
        "kind address",
        id=_ID,
        kind=_KIND,
        address={"description": "A mailbox, or the URL of an incoming webhook.", **_TEXT},
        label=_LABEL,
        **_SCHEDULE,
        min_rank=_SCORE,
        below_rank=_SCORE,
        interests=_list(_ID),
        verified={"description": "Whether an administrator vouches for the address.", **_FLAG},
    ),
    "channel_code": _request("code", code=_TEXT),
    "channel_state": _form(
        id=_ID,
        subscriber=_ID,
        kind=_KIND,
        address={"description": "For a chat, only the host, because the rest is secret.", **_TEXT},
        label=_LABEL,
        **_SCHEDULE,
        min_rank=_SCORE,
        below_rank=_maybe(_SCORE),
        interests=_list(_ID),
        created_at=_TIME,
        verified=_FLAG,
        paused=_FLAG,
        **_all(_COUNT, "sent waiting failures"),
        reason=_maybe(_TEXT),
        disabled=_maybe(_TEXT),
        failed=_list(_FAILURE),
    ),
    "channels": _form(items=_list(_ref("channel_state")), kinds=_list(_KIND)),
    "mark": _request("sequence mark", sequence=_COUNT | {"minimum": 1}, mark=_MARK),
    "marked": _form(marked=_FLAG),
    "marks": _form(
        items=_list(_form(sequence=_COUNT, mark=_MARK, channel=_maybe(_ID), marked_at=_TIME))
    ),
    "template": _request(
        "",
        **{
            part: {"description": "Text with values such as {{title}}.", **_TEXT}
            for part in ("title", "summary", "link", "image", "reason")
        },
    ),
    "template_question": _request("", template=_ref("template"), subscriber=_ID, content=_OBJECT),
    "template_preview": _form(**_all(_TEXT, "heading text html"), slack=_OBJECT, teams=_OBJECT),
    "read_mark": _request("sequence", sequence=_COUNT),
    "target_question": _request(
        "event",
        event=_request("attributes", **_EVENT),
        k={
            "description": "At most the limit `k` of the service, 1,000 by default.",
            "type": "integer",
            "minimum": 1,
        },
        scorer=_PART,
        others={
            "description": "How many others to explain; without it, nothing is explained.",
            "type": "integer",
            "minimum": 0,
            "maximum": 100,
        },
    ),
    "target": _form(
        optional="others", items=_list(_ref("placement")), others=_list(_ref("placement"))
    ),
    "placement": _form(
        optional="event position k kth_score lacking reason",
        subscription=_ID,
        score=_maybe(_SCORE),
        event=_ID,
        position=_maybe(_COUNT),
        k=_COUNT,
        kth_score=_maybe(_SCORE),
        lacking=_maybe(_SCORE),
        reason=_OBJECT,
    ),
    "explanation": _form(
        closed=False,
        subscriber=_ID,
        event=_ID,
        outcome=_OUTCOME,
        verdict=_TEXT,
        rank=_maybe(_SCORE),
        reasons=_list(_OBJECT),
        text=_TEXT,
        events={"description": "The events that it mentions, by id.", **_OBJECT},
    ),
    "decision": _form(
        optional="content",
        **_PUBLICATION,
        outcome=_OUTCOME,
        verdict=_TEXT,
        rank=_maybe(_SCORE),
        matched=_list(_ID),
        other={"description": "The event that it is too similar to.", **_maybe(_ID)},
        until={"description": "The latest time until which it is held.", **_maybe(_TIME)},
        note=_maybe(_TEXT),
        sequence={"description": "The sequence number of its notification.", **_maybe(_COUNT)},
    ),
    "decisions": _form(publications=_COUNT, items=_list(_ref("decision")), next=_maybe(_ID)),
    "attributes": _form(
        publications=_COUNT,
        items=_list(
            _form(
                name=_NAME,
                written={"description": "The name in the syntax of conditions.", **_NAME},
                publications=_COUNT,
                types=_list(_NAME),
                distinct=_COUNT,
                values=_list(_form(written=_TEXT, publications=_COUNT)),
            )
        ),
    ),
    "condition_question": _request("where", where=_TEXT),
    "condition_answer": _form(
        problem=_maybe(_form(detail=_TEXT, position=_maybe(_COUNT))),
        publications=_maybe(_COUNT),
        matched=_maybe(_COUNT),
        examples=_list(_form(optional="content", **_PUBLICATION)),
        advice=_list(_form(predicate=_TEXT, text=_TEXT)),
    ),
    "preview_question": _request(
        "",
        subscriber=_ID,
        policy=_ref("policy"),
        where=_TEXT,
        subscriptions=_list(_ref("subscription")),
        compare={"description": "Whether to compare with the saved policy.", **_FLAG},
        limit={"type": "integer", "minimum": 1, "maximum": 1_000},
    ),
    "preview": _form(
        optional="comparison",
        publications=_COUNT,
        items=_list(_ref("delivery")),
        comparison=_ref("comparison"),
    ),
    "comparison": _form(
        **_all(_ref("figures"), "tried saved"),
        **_all(_ref("change_list"), "comes goes stays"),
        timeline=_maybe(
            _form(
                start=_TIME,
                seconds=_SCORE,
                **_all(_list(_COUNT), "published tried saved"),
            )
        ),
    ),
    "change_list": _form(count=_COUNT, items=_list(_ref("delivery"))),
    "figures": _form(
        matches=_COUNT,
        delivered=_COUNT,
        **_all(_maybe(_SCORE), "share mean_score mean_rank mean_age_s diversity coverage"),
        **_all(_COUNT, "held released dropped"),
        dropped_by=_OBJECT,
    ),
    "caller": _form(role=_maybe(_NAME), subscriber=_maybe(_ID), tenant=_maybe(_NAME)),
    "health": _form(status=_TEXT),
    "operations": _form(
        time=_TIME,
        pipeline={"enum": ["idle", "working", "stalled"]},
        publications=_form(last=_COUNT, taken=_COUNT, waiting=_COUNT, lag_s=_SCORE),
        **_all(_COUNT, "delivered subscribers subscriptions"),
        index=_form(
            **_all(_COUNT, "version applied step"),
            files={
                "description": "The last versions of the index files of a pipeline on Spark.",
                **_list(
                    _form(
                        version=_COUNT, source=_COUNT, parts=_COUNT, changes=_COUNT, built_at=_TIME
                    )
                ),
            },
        ),
        letters=_form(late=_COUNT, dead=_COUNT),
        set_aside=_form(count=_COUNT, items=_list(_form(subscriber=_ID, reason=_TEXT))),
        webhooks=_form(**_all(_COUNT, "total disabled failing outbox retries given_up")),
        samples={
            "description": "Columns of samples, one every five seconds, for at most the last hour.",
            **_form(closed=False, times=_list(_TIME)),
        },
    ),
    "conditions": _form(
        publications=_COUNT,
        subscriptions=_COUNT,
        broad=_list(_ref("condition_figures")),
        slow=_list(_ref("condition_figures")),
        unmatched=_form(count=_COUNT, items=_list(_ref("condition_figures"))),
    ),
    "condition_figures": _form(
        optional="where any matches microseconds hint",
        subscription=_ID,
        subscriber=_ID,
        where=_TEXT,
        any={"type": "array"},
        matches=_COUNT,
        microseconds={
            "description": "The processor time of this condition alone, per publication.",
            **_SCORE,
        },
        hint=_maybe(_TEXT),
    ),
    "letters": _form(items=_list(_ref("letter")), next=_maybe(_COUNT)),
    "letter": _form(
        id=_COUNT,
        kind={"enum": ["dead", "late"]},
        record={"description": "The event or other record, as far as it could be parsed."},
        reason=_TEXT,
        query=_TEXT,
        batch=_COUNT,
        taken_at=_maybe(_TIME),
    ),
    "retry_question": _request("ids", ids={"minItems": 1, "maxItems": 1_000, **_list(_COUNT)}),
    "retried": _form(published=_COUNT, problems=_list(_form(id=_COUNT, detail=_TEXT))),
    "problem": _form(
        optional="pointer position parameter error",
        closed=False,
        type=_TEXT,
        title=_TEXT,
        status={"type": "integer"},
        detail=_TEXT,
        pointer={"description": "The field at fault, a JSON pointer (RFC 6901).", **_TEXT},
        position={"description": "The position of the error in a condition.", **_COUNT},
        parameter=_TEXT,
        error={"description": "The exception that `tidings.Client` raises.", **_TEXT},
    ),
}
_PROBLEMS: Final = {
    400: "The body cannot be parsed.",
    401: "There is no valid token.",
    403: "The token does not allow this.",
    404: "The record does not exist.",
    405: "The path does not support this method.",
    408: "The body arrived too slowly.",
    409: "The state does not allow this.",
    412: "The condition of the request, such as If-None-Match, does not hold.",
    413: "The body is too large.",
    415: "The type of the body is not supported.",
    422: "A field or parameter is wrong.",
    429: "There were too many requests.",
    503: "The store cannot be reached, or the service has just started.",
}


def accepts(schema: str, **other_schemas: Sequence[str]) -> dict[str, Any]:
    """Return the description of a body: its schema as JSON, and other schemas by media types."""
    content = {"application/json": {"schema": _ref(schema)}}
    for other, media_types in other_schemas.items():
        content |= {media_type: {"schema": _ref(other)} for media_type in media_types}
    return {"openapi_extra": {"requestBody": {"required": True, "content": content}}}


def answers(schema: str, *statuses: int, media_type: str = "application/json") -> dict[str, Any]:
    """Return the description of the responses: a schema, and problems."""
    problem = {"content": {PROBLEM: {"schema": _ref("problem")}}}
    responses: dict[int | str, Any] = {
        status: {"description": description, **problem} for status, description in _PROBLEMS.items()
    }
    content = {"content": {media_type: {"schema": _ref(schema)}}}
    first, *rest = statuses or (200,)
    for status in (first, *rest):
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
        schemas.clear()  # the framework's own, for responses that are never sent
        schemas.update(SCHEMAS)
        app.openapi_schema = description
    return app.openapi_schema
