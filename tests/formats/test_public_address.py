"""Addresses that are public, and those that only seem to be."""

from ipaddress import ip_address

import pytest

from tidings.formats.public_address import is_public


@pytest.mark.parametrize("text", ["8.8.8.8", "2001:4860:4860::8888", "::ffff:8.8.8.8"])
def test_public(text: str) -> None:
    assert is_public(ip_address(text))


@pytest.mark.parametrize(
    "text",
    [
        *("127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fe80::1", "::ffff:127.0.0.1"),
        *("64:ff9b::a00:1", "2002:a00:1::", "224.0.0.1", "240.0.0.1", "0.0.0.0"),
        *("fec0::1", "fd00::1", "::7f00:1", "64:ff9b:1::1", "4000::1"),
    ],
)
def test_not_public(text: str) -> None:
    assert not is_public(ip_address(text))
