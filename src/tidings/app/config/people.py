"""The tables `[mail]` and `[template]`: how people are reached, and what they see."""

from pathlib import Path
from typing import Any, Final

from tidings.channels.card import CardTemplate
from tidings.channels.smtp import SmtpSettings
from tidings.errors import InvalidForm, prefix_errors
from tidings.formats.toml_file import Form, read_toml
from tidings.model import validate

MAIL: Final = "mail"
TEMPLATE: Final = "template"
PEOPLE: Final = (MAIL, TEMPLATE)


def read_people(form: Form, base: Path) -> dict[str, Any]:
    """Return the mail server and the template of a config, as far as it has them."""
    people = dict[str, Any]()
    if MAIL in form:
        with prefix_errors("[mail] ", raised=InvalidForm):
            table = validate.mapping("it is a table", form[MAIL], InvalidForm)
            people[MAIL] = SmtpSettings.load(table, base)
    if TEMPLATE in form:
        with prefix_errors("[template] ", raised=InvalidForm):
            people[TEMPLATE] = CardTemplate.load(form[TEMPLATE])
    return people


def load_template(path: Path) -> CardTemplate:
    """Return the template of a file: its table `[template]`, whatever other tables it has."""
    with prefix_errors(f"{path}: ", raised=InvalidForm):
        form = read_toml(path)
        if TEMPLATE not in form:
            raise InvalidForm("there is no table [template]")
        template: CardTemplate = read_people({TEMPLATE: form[TEMPLATE]}, path.parent)[TEMPLATE]
        return template
