"""The targets that a webhook may have: allowed hosts at public addresses.

A name may resolve to another address at any time. So it is resolved once for each attempt, all its
addresses are checked, and the connection is made to an address that was checked.
"""

import asyncio
import re
import socket
from collections.abc import Iterable
from fnmatch import fnmatchcase
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tidings.errors import InvalidForm, TidingsError, shown
from tidings.formats.public_address import NetworkAddress, embedded_address, is_public
from tidings.formats.redaction import HIDDEN, shown_server

if TYPE_CHECKING:
    import httpx2

_URL_BYTES: Final = 2_000
_PORTS: Final = 65_535
_HOST: Final = re.compile(rb"[a-z0-9_.-]{1,253}|\[?[0-9a-f:.]+\]?")
_LOOPBACK: Final = IPv4Address("127.0.0.1")


class TargetRules(NamedTuple):
    """Allowed hosts, and networks that are allowed even though they are not public."""

    hosts: tuple[str, ...]
    networks: tuple[IPv4Network | IPv6Network, ...]

    @classmethod
    def of(cls, hosts: Iterable[str], networks: Iterable[str]) -> "TargetRules":
        """Return the rules of settings, in which networks are texts."""
        try:
            allowed = tuple(map(ip_network, networks))
        except ValueError as error:
            raise TidingsError(f"webhook_networks: {error}") from None
        return cls(tuple(host.lower() for host in hosts), allowed)

    def allow_address(self, address: NetworkAddress) -> bool:
        """Return whether an address is public, or in one of the networks."""
        embedded = embedded_address(address)
        if embedded is not None:
            return self.allow_address(embedded)
        return any(address in network for network in self.networks) or is_public(address)


class CheckedTarget(NamedTuple):
    """An address to connect to, for a URL that names a host."""

    url: "httpx2.URL"
    address: str

    @property
    def direct_url(self) -> "httpx2.URL":
        """The URL with the address in place of the name."""
        return self.url.copy_with(host=self.address)

    @property
    def host_header(self) -> str:
        """The name, and the port if it is not the usual one."""
        return self.url.netloc.decode("ascii")


def read_url(text: object, rules: TargetRules) -> "httpx2.URL":
    """Return a URL that a webhook may have; its name is resolved only when it is used."""
    if not isinstance(text, str) or len(text.encode(errors="replace")) > _URL_BYTES:
        raise InvalidForm(f"`url` is an address of at most {_URL_BYTES:,} bytes")
    url = _parse(text)
    if url is None or url.userinfo or url.fragment or (url.port or 0) > _PORTS:
        raise InvalidForm(
            "`url` is http:// or https:// with a host, without a user or a fragment, "
            f"not {shown_server(text)}"
        )
    if not any(fnmatchcase(url.host.lower(), pattern) for pattern in rules.hosts):
        raise InvalidForm(f"webhooks of this service may not go to the host {shown(url.host)}")
    literal = _literal(url.host)
    if literal is not None:
        _check([literal], url, rules)
    return url


def _parse(text: str) -> "httpx2.URL | None":
    """Return a URL of HTTP with a host; None for anything else."""
    http = _http()
    try:
        url: httpx2.URL = http.URL(text)
        is_complete = url.scheme in ("http", "https") and _HOST.fullmatch(url.raw_host)
    except (http.InvalidURL, ValueError, UnicodeError):
        return None
    return url if is_complete else None


def shorten_url(url: str) -> str:
    """Return a URL without what may be secret in it: only its host.

    >>> shorten_url("https://hooks.slack.com/services/T0/B0/secret")
    'https://hooks.slack.com/...'
    """
    known = _parse(url)
    if known is None:  # damaged in the store
        return HIDDEN
    return f"{known.scheme}://{known.netloc.decode('ascii')}/..."


async def resolve(url: "httpx2.URL", rules: TargetRules) -> CheckedTarget:
    """Return an address of a URL; refuse it if any of its addresses is not allowed."""
    port = url.port or (443 if url.scheme == "https" else 80)
    name = url.raw_host.decode("ascii").strip("[]")
    loop = asyncio.get_running_loop()
    try:
        resolved = await loop.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise TidingsError(f"{name} cannot be resolved: {error.strerror or error}") from None
    addresses = [ip_address(str(entry[4][0]).partition("%")[0]) for entry in resolved]
    _check(addresses, url, rules)
    return CheckedTarget(url, str(addresses[0]))


def _check(addresses: list[NetworkAddress], url: "httpx2.URL", rules: TargetRules) -> None:
    if not addresses or not all(map(rules.allow_address, addresses)):
        raise InvalidForm(
            f"{shown(url.host)} is at an address that is not public; webhooks need a public one"
        )


def _http() -> Any:
    """Return the HTTP library, which mail does not need."""
    try:
        import httpx2
    except ImportError as error:
        reason = f"webhooks and chats need {error.name}"
        raise TidingsError(f"{reason}; install it with: pip install 'tidings[client]'") from None
    return httpx2


def _literal(host: str) -> NetworkAddress | None:
    """Return the address that a host literally is, without resolving names."""
    name = host.strip("[]").rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return _LOOPBACK
    try:
        return ip_address(name)
    except ValueError:
        pass
    try:  # 2130706433, 0x7f000001 and 127.1 are all 127.0.0.1
        return IPv4Address(socket.inet_aton(name))
    except OSError:
        return None
