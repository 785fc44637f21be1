"""Addresses of stores: their syntax, and which parts of them may be shown.

An address may contain a user, a password and driver options. Only its host and its database are
ever shown. An ambiguous address, such as one with a bare `/` or `@` in its password, is refused,
and no part of it is shown.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os.path import realpath
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from tidings.errors import StoreError, TidingsError, prefix_errors, shown
from tidings.formats.redaction import Hide, hider, is_like_address

_SYNTAX: Final = "a path, sqlite:///path, or postgresql://user@host/database"
_ENCODING: Final = (
    "the characters / # ? @ : % [ ] and spaces of a password as %2F %23 %3F %40 %3A %25 ..."
)
_SQLITE: Final = "sqlite:///"
_READ_ONLY: Final = "?mode=ro"
_NO_FILE: Final = ("", ":memory:", _SQLITE, f"{_SQLITE}:memory:")
_ESCAPE: Final = r"%[0-9A-Fa-f]{2}"
_WORD: Final = rf"(?:[^\s:@/?#%\[\]]|{_ESCAPE})*"
_PASSWORD: Final = rf"(?:[^\s@/?#%\[\]]|{_ESCAPE})*"
_HOST: Final = rf"(?:\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9_.\-]|{_ESCAPE})*)(?::[0-9]{{1,5}})?"
_POSTGRES: Final = re.compile(
    rf"postgres(?:ql)?://(?:(?P<user>{_WORD})(?::(?P<password>{_PASSWORD}))?@)?"
    rf"(?P<hosts>{_HOST}(?:,{_HOST})*)"
    rf"(?P<path>/(?P<database>{_WORD}))?(?:\?(?P<parameters>(?:[^\s@?#%\[\]]|{_ESCAPE})*))?"
)
_PORT: Final = re.compile(r":[0-9]+$")
# The parameters of libpq. An unknown name may be part of a password, so it is refused unshown.
# fmt: off
_PARAMETERS: Final = frozenset((
    "host", "hostaddr", "port", "dbname", "user", "password", "passfile", "require_auth",
    "channel_binding", "connect_timeout", "client_encoding", "options", "application_name",
    "fallback_application_name", "keepalives", "keepalives_idle", "keepalives_interval",
    "keepalives_count", "tcp_user_timeout", "replication", "gssencmode", "sslmode", "requiressl",
    "sslnegotiation", "sslcompression", "sslcert", "sslkey", "sslkeylogfile", "sslpassword",
    "sslcertmode", "sslrootcert", "sslcrl", "sslcrldir", "sslsni", "requirepeer",
    "ssl_min_protocol_version", "ssl_max_protocol_version", "min_protocol_version",
    "max_protocol_version", "krbsrvname", "gsslib", "gssdelegation", "scram_client_key",
    "scram_server_key", "service", "servicefile", "target_session_attrs", "load_balance_hosts",
    "oauth_issuer", "oauth_client_id", "oauth_client_secret", "oauth_scope",
))
# fmt: on
_SHOWN: Final = ("host", "dbname")
DEFAULT_TENANT: Final = "default"
_TENANT: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")


@dataclass(frozen=True)
class Address:
    """The location of a store: `url` for `open_store`, and `shown` for messages.

    `file` is the path of an SQLite file, `schema` where the tables are in PostgreSQL. `secrets`
    are the parts that are never shown.
    """

    url: str = field(repr=False)
    shown: str
    file: Path | None = None
    read_only: bool = False
    secrets: tuple[str, ...] = field(default=(), repr=False)
    schema: str = "tidings"

    def __str__(self) -> str:
        return self.shown

    @property
    def hide(self) -> Hide:
        """A function that replaces the secrets of this address in a text."""
        return hider(self.secrets)

    def of_tenant(self, tenant: str) -> "Address":
        """Return the address of a tenant's own store: another file, or another schema.

        >>> str(read_address("shop.db").of_tenant("acme"))
        'shop.acme.db'
        """
        if tenant == DEFAULT_TENANT:
            return self
        if self.file is not None:
            path = self.file.with_suffix(f".{tenant}{self.file.suffix}")
            return _of_file(path, read_only=self.read_only)
        return replace(self, schema=f"{self.schema}_{tenant}")


def check_tenant(name: object) -> str:
    """Return the name of a tenant if it is valid: it becomes part of a file or schema name."""
    if not isinstance(name, str) or not _TENANT.fullmatch(name):
        raise StoreError(
            "the name of a tenant has 1 to 40 lower-case letters, digits and underscores, and "
            f"begins with a letter; not {shown(name)}"
        )
    return name


def read_address(
    value: object,
    *,
    base: Path | None = None,
    label: str = "the address of a store",
    error: type[TidingsError] = StoreError,
) -> Address:
    """Parse an address: a path, `sqlite:///path` or `postgresql://user@host/database`.

    Relative paths start at the folder `base`. With a `base`, as in a config, a bare path is
    refused. An already parsed address is returned unchanged.
    """
    if isinstance(value, Address):
        return value
    syntax = _SYNTAX if base is None else _SYNTAX.removeprefix("a path, ")
    refusal = f"{label} cannot be read; write {syntax}, with {_ENCODING}"
    if isinstance(value, Path) and base is None:
        with prefix_errors(f"{shown(str(value))} is not a valid file name: ", ValueError, error):
            return _of_file(value, read_only=False)
    if not isinstance(value, str) or not value.isprintable():
        raise error(refusal)
    if value in _NO_FILE:
        raise error(f"{label} names no file, but a store must be durable; write {syntax}")
    address = None
    if value.startswith(_SQLITE):
        address = _sqlite(value, base or Path())
    elif value.startswith(("postgresql://", "postgres://")):
        address = _postgres(value, needs_database=base is not None)
    elif base is None and not is_like_address(value):
        address = _of_file(Path(value), read_only=False) if value else None
    if address is None:
        raise error(refusal)
    return address


def _sqlite(text: str, base: Path) -> Address | None:
    """Parse the address of a file; one with `user:password@` in it was meant for a server."""
    rest = text.removeprefix(_SQLITE)
    path = unquote(rest.removesuffix(_READ_ONLY))
    suspicious = "?" in rest.removesuffix(_READ_ONLY) or "\0" in path or re.search(":.*@", path)
    if not path or path == ":memory:" or suspicious or not path.isprintable():
        return None
    return _of_file(base / path, read_only=rest.endswith(_READ_ONLY))


def _of_file(path: Path, *, read_only: bool) -> Address:
    url = f"{_SQLITE}{realpath(path)}".replace("%", "%25").replace("?", "%3F")
    return Address(f"{url}{_READ_ONLY if read_only else ''}", str(path), path, read_only)


def _postgres(text: str, *, needs_database: bool) -> Address | None:
    parts = _POSTGRES.fullmatch(text)
    if parts is None or (needs_database and parts["path"] is None):
        return None
    parameters = _parameters(parts["parameters"] or "")
    if parameters is None:
        return None
    database = unquote(parts["database"] or "") or parameters.get("dbname", "")
    hosts = [_PORT.sub("", host) for host in parts["hosts"].split(",")]
    host = unquote(",".join(hosts)) or parameters.get("host", "") or "localhost"
    # With an `@`, the host is half a password, whose own `@` is not encoded; and the driver would
    # parse a database name that looks like an address as one.
    if "@" in host or "=" in database or "://" in database or not f"{host}{database}".isprintable():
        return None
    hidden = [value for name, value in parameters.items() if name not in _SHOWN]
    secrets = tuple(filter(None, (parts["user"], parts["password"], *hidden)))
    return Address(text, f"postgresql://{host}/{database}", secrets=secrets)


def _parameters(text: str) -> Mapping[str, str] | None:
    """Return the parameters of an address; None if one is unknown or has no value."""
    parameters = {}
    for part in text.split("&") if text else ():
        name, equals, value = part.partition("=")
        if name not in _PARAMETERS or not equals or "=" in value:
            return None
        parameters[name] = unquote(value)
    return parameters
