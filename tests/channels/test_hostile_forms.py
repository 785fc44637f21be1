"""Templates, channels, people and returned mail with anything in them: read, or refused by us."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.channels.test_bounces import report
from tests.damage import flipped, hostile_json, run_cases
from tests.fuzz import cases
from tests.mutation import mutated

from tidings.app.config.people import read_entries, read_mail_and_template
from tidings.channels.bounces import read_bounce
from tidings.channels.card import CardTemplate
from tidings.channels.layouts import Digest, all_layouts
from tidings.channels.person_channel import PersonChannel, read_mail_address
from tidings.channels.registry import read_channels
from tidings.channels.webhook_target import TargetRules, read_url
from tidings.errors import InvalidForm
from tidings.model.records import Delivery

RULES = TargetRules.of(["*"], [])
TEMPLATE = {
    "title": "{{title or name}}{{#year}} ({{year}}){{/year}}",
    "summary": "{{#tags}}{{.}} {{/tags}}{{^tags}}none{{/tags}}{{a.b.c}}",
    "link": "https://films.example/{{delivery.event}}?q={{title}}",
}
CONTENT = {"title": "Big Fish", "tags": ["a", 1, {"x": []}], "a": {"b": {"c": 1.5}}, "year": 2003}
TAGS = [
    "{{",
    "}}",
    "{{#tags}}",
    "{{/tags}}",
    "{{^a}}",
    "{{.}}",
    "{{! x }}",
    "{{a.b}}",
    "{{#a}}" * 9,
]
PERSON = {
    "id": "p",
    "subscriber": "ada",
    "kind": "mail",
    "address": "ada@example.org",
    "every": "day",
    "at": ["08:00", "17:30"],
    "days": ["mon"],
    "zone": "Europe/Athens",
    "min_rank": 0.2,
    "interests": ["s1"],
}
MAIL = {
    "host": "mx.example",
    "from": "T <t@films.example>",
    "user": "t",
    "password": "x",
    "port": 25,
}
CHANNELS: list[Any] = [
    {"type": "kafka", "servers": "a:1", "topic": "t", "options": {"sasl": {"password": "x"}}},
    {"type": "nats", "subject": "films.{subscriber}", "token": {"env": "T"}, "rate": 5},
    {"type": "sqs", "queue": "https://q/1.fifo", "access_key": "a", "secret_key": {"env": "S"}},
    {"type": "sns", "topic": "arn:x", "start": "all", "subscriber": "ada", "tenant": "acme"},
]
URLS = ["https://a/b?c=d", "http://[::1]/", "http://127.0.0.1/", "https://ü.example/", "HTTPS://A"]


def template(rng: Random) -> None:
    form: Any = dict(TEMPLATE)
    for _ in range(rng.randint(0, 3)):
        name = rng.choice([*TEMPLATE])
        text = str(form[name])
        at = rng.randrange(len(text) + 1)
        form[name] = text[:at] + rng.choice(TAGS) + text[at + rng.randrange(3) :]
    if rng.random() < 0.2:
        form = hostile_json(rng, form)
    content = hostile_json(rng, hostile_json(rng, CONTENT))
    found = CardTemplate.load(form)
    assert CardTemplate.load(found.to_dict()).to_dict() == found.to_dict()
    try:
        text = json.dumps(content)
    except RecursionError:
        return
    delivery = Delivery("ada", "e 1", 0.5, 1, {}, ("s1",), 1, 0, text)
    if isinstance(content, dict):
        json.dumps(all_layouts(Digest.of([found.card(delivery)])))


def person(rng: Random) -> None:
    form = hostile_json(rng, {name: PERSON[name] for name in PERSON if name != "subscriber"})
    if isinstance(form, dict):
        found = PersonChannel.load(form, RULES)
        assert PersonChannel.of({"person": json.loads(json.dumps(found.to_dict()))}) == found


def tables(rng: Random) -> None:
    chosen = rng.randrange(3)
    if chosen == 0:
        read_channels(hostile_json(rng, CHANNELS))
    elif chosen == 1:
        read_mail_and_template({"mail": hostile_json(rng, MAIL)}, Path())
    else:
        smtp = read_mail_and_template({"mail": MAIL}, Path())["mail"]
        read_entries(hostile_json(rng, [PERSON]), smtp)


def address(rng: Random) -> None:
    text = mutated(rng, rng.choice([*URLS, "ada@example.org"]).encode()).decode(errors="replace")
    try:
        read_mail_address(text)
    except InvalidForm:
        read_url(text, RULES)


def bounce(rng: Random) -> None:
    content = report(kind=rng.choice(["message/rfc822", "text/rfc822-headers"]))
    for _ in range(rng.randint(1, 3)):
        content = mutated(rng, content) if rng.random() < 0.7 else flipped(rng, content or b"x")
    read_bounce(content)


@pytest.mark.fuzz
@pytest.mark.parametrize("case", [template, person, tables, address, bounce])
def test_forms(case: Any) -> None:
    run_cases(case.__name__, case, cases(150))


def test_a_mail_that_nests_endlessly_is_refused() -> None:
    part = 'Content-Type: multipart/mixed; boundary="b{0}"\n\n--b{0}\n'
    content = "".join(part.format(number) for number in range(2_000)).encode()
    with pytest.raises(InvalidForm):
        read_bounce(content)


@pytest.mark.parametrize(
    "form",
    [
        {"type": "kafka", "servers": "ann:Sw0rdfish@host:1", "topic": "t"},
        {"type": "kafka", "servers": "ann:Sw0rdfish", "topic": "t"},
        {"type": "nats", "servers": "nats://ann:Sw0rdfish@host", "subject": "s"},
        {"type": "nats", "servers": "nats://a:4222,nats://ann:Sw0rdfish:4222", "subject": "s"},
        {"type": "nats", "servers": "nats://ann/Sw0rdfish", "subject": "s"},
        {"type": "sqs", "queue": "https://ann:Sw0rdfish@q/1"},
        {"type": "sqs", "queue": "q", "endpoint": "http://ann:Sw0rd/fish@q"},
        {"type": "sns", "topic": "t", "secret_key": ["Sw0rdfish"]},
        {
            "type": "kafka",
            "servers": "h",
            "topic": "t",
            "options": {"sasl.password": ["Sw0rdfish"]},
        },
    ],
)
def test_no_channel_shows_or_takes_a_password_in_an_address(form: dict[str, Any]) -> None:
    with pytest.raises(InvalidForm) as refused:
        read_channels([form])
    assert "Sw0rd" not in str(refused.value)


def test_no_channel_shows_a_login() -> None:
    login = {"user": "Sw0rdfish", "password": "Sw0rdfish", "credentials": "Sw0rdfish"}
    [channel] = read_channels([{"type": "nats", "subject": "s", **login}])
    assert "Sw0rd" not in repr(channel)


@pytest.mark.parametrize(
    "url",
    [
        "https://ann:Sw0rdfish@host/",
        "https://ann:Sw0rd/fish@host/",
        "https://ann:Sw0rd?fish@host/",
        "https://ann:Sw0rd#fish@host/",
        "ann:Sw0rd@host",
        "https://Sw0rd:99999@h/",
    ],
)
def test_no_webhook_shows_a_password(url: str) -> None:
    for read in (
        lambda: read_url(url, RULES),
        lambda: read_mail_and_template({"mail": {**MAIL, "host": url}}, Path()),
    ):
        with pytest.raises(InvalidForm) as refused:
            read()
        assert "Sw0rd" not in str(refused.value)
