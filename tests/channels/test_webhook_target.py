"""Webhooks go to allowed hosts at public addresses, whatever names and addresses look like."""

import asyncio
import socket
from ipaddress import ip_address
from typing import Any

import httpx2
import pytest

from tidings.channels.webhook_target import TargetRules, read_url, resolve
from tidings.errors import InvalidForm, TidingsError

PUBLIC = TargetRules.of(["*"], [])


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.9.9.9",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "fc00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a00:1",
        "2002:7f00:1::",
        "2002:c0a8:101::",
        "2001:db8::1",
    ],
)
def test_addresses_that_are_not_public_are_refused(address: str) -> None:
    assert not PUBLIC.allow_address(ip_address(address))
    host = f"[{address}]" if ":" in address else address
    with pytest.raises(InvalidForm, match="not public"):
        read_url(f"https://{host}/hook", PUBLIC)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1::1", "::ffff:8.8.8.8"])
def test_public_addresses_are_allowed(address: str) -> None:
    assert PUBLIC.allow_address(ip_address(address))


def test_networks_may_be_allowed() -> None:
    rules = TargetRules.of(["*"], ["10.0.0.0/8", "::1/128"])
    assert rules.allow_address(ip_address("10.1.2.3"))
    assert rules.allow_address(ip_address("::ffff:10.1.2.3"))
    assert rules.allow_address(ip_address("::1"))
    assert not rules.allow_address(ip_address("127.0.0.1"))
    with pytest.raises(TidingsError, match="webhook_networks"):
        TargetRules.of(["*"], ["10.0.0.1/8"])


@pytest.mark.parametrize(
    "url",
    [
        "",
        "hook",
        "//host/hook",
        "ftp://host/hook",
        "file:///etc/passwd",
        "http://",
        "http://user@host/",
        "http://user:secret@host/",
        "http://host/#part",
        "http://host:99999/",
        "http://ho st/",
        "http://localhost/",
        "http://a.localhost./",
        f"http://host/{'x' * 2_000}",
        7,
        None,
    ],
)
def test_what_is_no_address_of_a_receiver_is_refused(url: Any) -> None:
    with pytest.raises(InvalidForm):
        read_url(url, PUBLIC)


def test_only_listed_hosts_are_allowed() -> None:
    rules = TargetRules.of(["hooks.example.com", "*.Example.org"], [])
    for host in ("hooks.example.com", "HOOKS.example.com", "a.b.example.org"):
        assert read_url(f"https://{host}/", rules).host == host.lower()
    for host in ("example.com", "example.org", "hooks.example.com.evil.net", "8.8.8.8"):
        with pytest.raises(InvalidForm, match="may not go to the host"):
            read_url(f"https://{host}/", rules)


@pytest.mark.parametrize(
    ("answers", "allowed"),
    [
        (["93.184.216.34"], True),
        (["93.184.216.34", "10.0.0.1"], False),
        (["127.0.0.1"], False),
        (["fe80::1%eth0"], False),
    ],
)
def test_names_are_checked_by_all_their_addresses(
    answers: list[str], allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lookup(*arguments: Any, **options: Any) -> Any:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (answer, 443)) for answer in answers]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    url = read_url("https://hooks.example.com:8443/a?b=c", PUBLIC)
    if not allowed:
        with pytest.raises(InvalidForm, match="not public"):
            asyncio.run(resolve(url, PUBLIC))
        return
    target = asyncio.run(resolve(url, PUBLIC))
    assert target.direct_url == httpx2.URL(f"https://{answers[0]}:8443/a?b=c")
    assert target.host_header == "hooks.example.com:8443"


def test_numbers_in_other_notations_are_addresses_too() -> None:
    for host in ("2130706433", "0x7f000001", "127.1"):
        with pytest.raises(InvalidForm, match="not public"):
            read_url(f"http://{host}/", PUBLIC)
        # A name server might know them as names; what it answers is checked again.
        with pytest.raises(TidingsError):
            asyncio.run(resolve(httpx2.URL(f"http://{host}/"), PUBLIC))
