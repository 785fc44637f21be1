"""The people of a config: who reads where, and clear refusals."""

from pathlib import Path

import pytest

from tidings.app.config.people import read_people
from tidings.errors import InvalidForm
from tidings.formats.toml_file import read_toml

MAIL = '[mail]\nhost = "localhost"\nfrom = "t@films.example"\n'
ADA = '[[people]]\nsubscriber = "ada"\nkind = "mail"\naddress = "ada@example.org"\n'
CHAT = '[[people]]\nsubscriber = "ada"\nkind = "slack"\naddress = "http://10.0.0.1/hooks/x"\n'


def read(folder: Path, text: str):
    path = folder / "p.toml"
    path.write_text(text)
    return read_people(read_toml(path), folder)


def test_people_are_read(tmp_path: Path) -> None:
    text = MAIL + ADA + 'at = "07:30"\nstart = "all"\n' + CHAT + "min_rank = 0.9\n"
    people = read(tmp_path, text + '[template]\ntitle = "{{name}}"\n')
    mail, chat = people.entries
    assert (mail.subscriber, mail.id, mail.verified, mail.start) == ("ada", "mail", True, "all")
    assert (mail.person.at, mail.person.every) == (("07:30",), "day")
    assert (chat.id, chat.person.min_rank) == ("slack", 0.9)
    assert people.settings.template.title.source == "{{name}}"
    assert read(tmp_path, MAIL) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (ADA, r"\[\[people\]\] 1: this service sends no mail"),
        (MAIL + ADA + ADA, r"\[\[people\]\] 2: ada has two entries with the id 'mail'"),
        (MAIL + ADA + "colour = 1", "unknown field 'colour'"),
        (MAIL + ADA.replace('subscriber = "ada"\n', ""), "`subscriber` is a non-empty string"),
        (MAIL + ADA + 'start = "later"', "start is one of"),
        ("people = 7", r"write \[\[people\]\] above each"),
        ("people = [7]", r"write \[\[people\]\] above each"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(InvalidForm, match=reason):
        read(tmp_path, text)
