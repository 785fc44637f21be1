"""Previews of templates: what notifications look like."""

from typing import Any, Final, NamedTuple

from fastapi import APIRouter

from tidings.channels.card import CardTemplate
from tidings.channels.layouts import Digest, all_layouts
from tidings.channels.person_senders import interest_words
from tidings.channels.samples import SAMPLE, sample_delivery
from tidings.errors import InvalidForm, prefix_errors
from tidings.formats.json_forms import fields
from tidings.model import validate
from tidings.model.content import read_content
from tidings.model.records import Delivery
from tidings.service.access import Caller, ReaderCaller
from tidings.service.bodies import FormBody
from tidings.service.openapi import accepts, answers
from tidings.service.problems import Form, HttpProblem, load_form
from tidings.service.routes.deliveries import check_known

router = APIRouter(prefix="/v1", tags=["channels"])
_SHOWN: Final = 10


class TemplateQuestion(NamedTuple):
    """A template, and what it shows: a subscriber's newest notifications, or some content."""

    template: CardTemplate
    subscriber: str | None
    content: dict[str, Any]


@router.post("/templates:preview", **accepts("template_question"), **answers("template_preview"))
def preview_template(caller: ReaderCaller, form: FormBody) -> Form:
    """Show what a message looks like as text, as HTML, in Slack and in Teams.

    It shows the newest notifications of a `subscriber`, or one with some `content`. Without a
    `template`, that of the service is used.
    """
    service: CardTemplate = caller.tenant.settings.template
    question = load_form(lambda form: _read(form, service), form)
    deliveries = _deliveries(caller, question)
    words = interest_words(caller.tenant.store, deliveries)
    cards = [question.template.card(delivery, words) for delivery in deliveries]
    return all_layouts(Digest.of(cards))


def _read(form: Form, service: CardTemplate) -> TemplateQuestion:
    values = fields(form, "the question", (), ("template", "subscriber", "content"))
    template = service
    if "template" in values:
        with prefix_errors("template: ", InvalidForm, InvalidForm):
            template = CardTemplate.load(values["template"])
    subscriber = values.get("subscriber")
    if subscriber is not None:
        validate.name("`subscriber`", subscriber, InvalidForm)
    content = validate.mapping("`content` is an object", values.get("content", SAMPLE), InvalidForm)
    read_content("the question", content, InvalidForm)
    return TemplateQuestion(template, subscriber, content)


def _deliveries(caller: Caller, question: TemplateQuestion) -> list[Delivery]:
    if question.subscriber is not None:
        check_known(caller, question.subscriber)
        newest = caller.tenant.store.notifications.newest(question.subscriber, _SHOWN)
        if not newest:
            raise HttpProblem(409, "the subscriber has no notifications yet")
        return newest
    return [sample_delivery(question.content)]
