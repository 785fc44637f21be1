"""The tables `[mail]`, `[template]` and `[[people]]`: how people are reached, and what they see."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tidings.channels.address_book import EntryDraft
from tidings.channels.card import CardTemplate
from tidings.channels.person_channel import MAIL as MAIL_KIND
from tidings.channels.person_channel import PersonChannel
from tidings.channels.person_senders import NO_MAIL, PersonSettings
from tidings.channels.reader_links import ReaderLinks
from tidings.channels.smtp import SmtpSettings
from tidings.channels.webhook_target import TargetRules
from tidings.errors import InvalidForm, prefix_errors
from tidings.formats.toml_file import Form, read_toml
from tidings.model import validate
from tidings.store.address import check_tenant
from tidings.store.channels import NEW, STARTS

MAIL: Final = "mail"
TEMPLATE: Final = "template"
TEMPLATES: Final = "templates"
PEOPLE: Final = "people"
TABLES: Final = (MAIL, TEMPLATE, PEOPLE)
_ANYWHERE: Final = TargetRules.of(["*"], ["0.0.0.0/0", "::/0"])
"""The hosts allowed for chats of a config: its author may reach anything that the machine can."""


@dataclass(frozen=True)
class PeopleConfig:
    """The people that a run sends messages to, and how."""

    settings: PersonSettings
    entries: tuple[EntryDraft, ...]


def read_mail_and_template(form: Form, base: Path) -> dict[str, Any]:
    """Return the mail server and the template of a config, each None if it is missing."""
    parts = dict[str, Any]()
    if MAIL in form:
        with prefix_errors("[mail] ", raised=InvalidForm):
            table = validate.mapping("it must be a table", form[MAIL], InvalidForm)
            parts[MAIL] = SmtpSettings.load(table, base)
    if TEMPLATE in form:
        with prefix_errors("[template] ", raised=InvalidForm):
            parts[TEMPLATE] = CardTemplate.load(form[TEMPLATE])
    return parts


def read_templates(forms: object) -> dict[str, CardTemplate]:
    """Read the tables `[templates.TENANT]`: templates of tenants."""
    templates = dict[str, CardTemplate]()
    for name, form in validate.mapping("templates must be tables", forms, InvalidForm).items():
        with prefix_errors(f"[templates.{name}] ", raised=InvalidForm):
            templates[check_tenant(name)] = CardTemplate.load(form)
    return templates


def read_entries(forms: object, smtp: SmtpSettings | None) -> tuple[EntryDraft, ...]:
    """Read the tables `[[people]]`; ids are unique within a subscriber."""
    if not isinstance(forms, list) or not all(isinstance(form, Mapping) for form in forms):
        raise InvalidForm("people must be tables: write [[people]] above each")
    entries = dict[tuple[str, str], EntryDraft]()
    for number, form in enumerate(forms, start=1):
        with prefix_errors(f"[[people]] {number}: ", raised=InvalidForm):
            entry = _read_entry(form)
            if entry.person.kind == MAIL_KIND and smtp is None:
                raise InvalidForm(NO_MAIL)
            if entries.setdefault((entry.subscriber, entry.id), entry) is not entry:
                raise InvalidForm(f"{entry.subscriber} has two entries with the id {entry.id!r}")
    return tuple(entries.values())


def read_people(form: Form, base: Path) -> PeopleConfig | None:
    """Return the people of a config, and how they are reached; None if there are none."""
    parts = read_mail_and_template(form, base)
    entries = read_entries(form.get(PEOPLE, []), parts.get(MAIL))
    if not entries:
        return None
    template = parts.get(TEMPLATE) or CardTemplate.load()
    settings = PersonSettings(template, ReaderLinks(), _ANYWHERE, parts.get(MAIL))
    return PeopleConfig(settings, entries)


def load_template(path: Path) -> CardTemplate:
    """Return the template of a file: its table `[template]`, whatever other tables it has."""
    with prefix_errors(f"{path}: ", raised=InvalidForm):
        form = read_toml(path)
        if TEMPLATE not in form:
            raise InvalidForm("there is no table [template]")
        parts = read_mail_and_template({TEMPLATE: form[TEMPLATE]}, path.parent)
        template: CardTemplate = parts[TEMPLATE]
        return template


def _read_entry(form: Mapping[str, Any]) -> EntryDraft:
    rest = {name: value for name, value in form.items() if name not in ("subscriber", "start")}
    subscriber = validate.name("`subscriber`", form.get("subscriber"), InvalidForm)
    person = PersonChannel.load(rest, _ANYWHERE)
    name = validate.name("`id`", form.get("id", person.kind), InvalidForm)
    start = validate.choice("start", form.get("start", NEW), STARTS, InvalidForm)
    return EntryDraft(subscriber, name, person, verified=True, start=start)
