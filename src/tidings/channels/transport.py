"""The settings of a channel in a config: where it sends, with which secrets, and how fast."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from tidings.channels.sender import Sender
from tidings.errors import InvalidForm, TidingsError, shown
from tidings.formats.redaction import HIDDEN, is_like_address, is_secret, is_server, shown_safely
from tidings.model import validate
from tidings.store.address import DEFAULT_TENANT
from tidings.store.channels import NEW, Channel

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FREE_OF_SECRETS: Final = re.compile(r"(?!.*%40)[^@\uFE6B\uFF20?#=;&\s]+")  # with other signs for @
_FASTEST: Final = 1e9


@dataclass(frozen=True)
class Secret:
    """A secret in a config, or in an environment variable that is read when needed."""

    variable: str | None = None
    value: str = field(default="", repr=False)

    def reveal(self) -> str:
        """Return the secret; a variable that is not set is an error that names it."""
        if self.variable is None:
            return self.value
        if not os.environ.get(self.variable):
            raise TidingsError(f"the environment variable {self.variable} is not set")
        return os.environ[self.variable]


class Transport(Protocol):
    """The settings of a kind of channel; the library that it needs is loaded by `open`."""

    @property
    def label(self) -> str:
        """The target, in a few words without secrets."""

    def open(self, channel: Channel) -> Sender:
        """Return the sender of a channel."""


@dataclass(frozen=True)
class DeclaredChannel:
    """A channel that a config declares."""

    kind: str
    id: str
    transport: Transport
    subscriber: str | None = None
    start: str = NEW
    tenant: str = DEFAULT_TENANT


class TransportForm:
    """The table of a channel in a config, read key by key; errors name the key and the rule."""

    def __init__(self, form: Mapping[str, Any], known: Sequence[str]) -> None:
        self._form = form
        for name in form:
            if name not in known:
                listed = ", ".join(sorted(known))
                text = HIDDEN if is_like_address(str(name)) else shown(name)
                raise InvalidForm(f"unknown key {text}; expected one of: {listed}")

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text; without a default, the key is required."""
        if name not in self._form and default is not None:
            return default
        if name not in self._form:
            raise InvalidForm(f"{name} is missing")
        value = self._form[name]
        if not isinstance(value, str) or not value or not value.isprintable():
            text = HIDDEN if is_secret(name) else shown_safely(value)
            raise InvalidForm(f"{name} must be a non-empty string, not {text}")
        return value

    def host(self, name: str) -> str:
        """Return the address of a server; what may hold a password is refused unseen."""
        value = self.text(name)
        if not _FREE_OF_SECRETS.fullmatch(value):
            raise InvalidForm(
                f"{name} must not hold a user or a password; they have their own keys"
            )
        return value

    def matched(self, name: str, pattern: re.Pattern[str], rule: str) -> str:
        """Return a text of a certain form; another one may hold a password, or be misread."""
        value = self.text(name)
        if not pattern.fullmatch(value):
            raise InvalidForm(f"{name} must be {rule}, not {shown_safely(value)}")
        return value

    def servers(self, name: str, default: str | None = None) -> tuple[str, ...]:
        """Return a list of servers, each a host with or without a scheme and a port.

        Anything else may hold a password, so it is refused without being shown.
        """
        listed = tuple(server.strip() for server in self.text(name, default).split(","))
        if not all(map(is_server, listed)):
            raise InvalidForm(
                f"{name} must list hosts such as node1:4222, without a user or a password; they "
                "have their own keys"
            )
        return listed

    def optional(self, name: str) -> str | None:
        """Return a text, or None if the key is missing."""
        return self.text(name) if name in self._form else None

    def secret(self, name: str) -> Secret | None:
        """Return a secret: a text, or a table `{env = "NAME"}`; None if the key is missing."""
        return None if name not in self._form else read_secret(name, self._form[name])

    def options(self, name: str) -> dict[str, Secret]:
        """Return a table of options, any of which may be secret; dotted keys are joined."""
        table = self._form.get(name, {})
        if not isinstance(table, Mapping):
            raise InvalidForm(f"{name} must be a table of names and values")
        return dict(_flatten(name, table, ""))

    def number(self, name: str, default: float | None = None) -> float | None:
        """Return a positive number."""
        value = self._form.get(name, default)
        if value is None:
            return None
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not 0 < value < _FASTEST
        ):
            raise InvalidForm(f"{name} must be a positive number, not {shown_safely(value)}")
        return float(value)

    def choice(self, name: str, choices: Sequence[str], default: str) -> str:
        """Return one of several words."""
        value = self._form.get(name, default)
        validate.choice(name, value, choices, InvalidForm)
        return str(value)


def read_secret(name: str, value: object) -> Secret:
    """Return a secret from a config: a text, or a table `{env = "NAME"}`."""
    if isinstance(value, str) and value:
        return Secret(value=value)
    if isinstance(value, Mapping) and set(value) == {"env"}:
        variable = value["env"]
        if isinstance(variable, str) and _VARIABLE.fullmatch(variable):
            return Secret(variable)
    raise InvalidForm(f'{name} must be a string, or name a variable: {{env = "NAME"}}')


def _flatten(name: str, table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Secret]]:
    for part, value in table.items():
        key = f"{prefix}{part}"
        if isinstance(value, Mapping) and set(value) != {"env"}:
            yield from _flatten(name, value, f"{key}.")
        elif isinstance(value, bool):
            yield key, Secret(value=str(value).lower())
        else:
            is_number = isinstance(value, int | float)
            yield key, read_secret(f"{name} {key}", str(value) if is_number else value)


def needs(extra: str, error: ImportError) -> TidingsError:
    """Return the error for a library that is not installed."""
    return TidingsError(f"{error}; install it with: pip install 'tidings[{extra}]'")
