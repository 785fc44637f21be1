"""Configs of a service with anything in them: read, or refused by file without a secret."""

import json
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from tests.app.config.test_config_fuzz import VALUES
from tests.app.serve.test_config import PEOPLE, WHOLE
from tests.damage import SECRET, hostile_text, run_cases, shows_secret
from tests.fuzz import cases
from tests.mutation import mutated

from tidings.app.serve.config import load_serve_config
from tidings.errors import TidingsError

pytestmark = pytest.mark.fuzz

LOGIN = f'"https://ann:{SECRET}@q/1.fifo"'
SERVICE, _, LIMITS = WHOLE.partition("[limits]")
LINES = [
    *SERVICE.replace("sqlite:///films.db", f"postgresql://ann:{SECRET}@127.0.0.1:1/db")
    .replace('engine = "local"', 'engine = "spark"')
    .split("\n"),
    'spark_tenants = ["acme"]',
    *PEOPLE.replace("[service]", "").replace('{env = "MAIL_PASSWORD"}', f'"{SECRET}"').split("\n"),
    *f"[limits]{LIMITS}".split("\n"),
    *("[[channels]]", 'type = "kafka"', 'servers = "a:1"', 'topic = "t"'),
    f'options = {{ sasl.password = "{SECRET}" }}',
    *("[[channels]]", 'type = "sqs"', 'queue = "https://q/1.fifo"'),
    *('access_key = "a"', f'secret_key = "{SECRET}"'),
    *("[[people]]", 'id = "p"', 'subscriber = "ada"', 'kind = "mail"', 'every = "day"'),
    *('address = "ada@example.org"', 'at = ["08:00", "17:30"]', 'zone = "Europe/Athens"'),
]


class ChangedConfig(NamedTuple):
    """A config, and whether pieces of it were moved, maybe pieces of a secret into a name."""

    content: bytes
    is_mixed: bool


def config(rng: Random) -> ChangedConfig:
    """Return a config in which some values, or some bytes, are changed."""
    dropped = rng.choice((0, 0, 0.03))
    lines = [line for line in LINES if "=" not in line or rng.random() >= dropped]
    for number in rng.sample(range(len(lines)), rng.choice((0, 1, 1, 2, 4))):
        key, equals, value = lines[number].partition(" = ")
        if equals:
            text = hostile_text(rng, value.strip('"'))
            changed = json.dumps(text).replace("\x7f", "\\u007f")
            other = rng.choice([changed, changed, LOGIN, *VALUES])
            # An id is shown, whatever it is.
            lines[number] = f"{key} = {changed if key in ('id', 'subscriber') else other}"
    if "engine" not in "".join(lines):
        lines = [line for line in lines if "spark_tenants" not in line]
    content = "\n".join(lines).encode()
    if rng.random() < 0.2:
        return ChangedConfig(mutated(rng, content), is_mixed=True)
    return ChangedConfig(content, is_mixed=False)


def test_configs_of_a_service(tmp_path: Path) -> None:
    path = tmp_path / "service.toml"

    def case(rng: Random) -> None:
        content, is_mixed = config(rng)
        path.write_bytes(content)
        try:
            shown = repr(load_serve_config(str(path)))
        except TidingsError as error:
            shown = str(error)
            if "service.toml: " not in shown:
                raise AssertionError(f"the file is not named: {shown}") from None
            raise
        finally:
            if SECRET in shown or (shows_secret(shown) and not is_mixed):
                raise AssertionError(f"a secret is shown: {shown}")

    refused = run_cases("service", case, cases(400))
    assert 0 < refused < cases(400)
