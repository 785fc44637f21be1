"""Which network addresses are public: neither of this machine, nor of its network, nor reserved."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import Final

_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
"""All others of IPv6 are private, of one link, of one site, or unassigned."""
_NAT64: Final = IPv6Network("64:ff9b::/96")
NetworkAddress = IPv4Address | IPv6Address


def is_public(address: NetworkAddress) -> bool:
    """Return whether an address, or the one that it stands for, is public.

    >>> from ipaddress import ip_address
    >>> is_public(ip_address("8.8.8.8")), is_public(ip_address("::ffff:10.0.0.1"))
    (True, False)
    """
    embedded = embedded_address(address)
    if embedded is not None:
        return is_public(embedded)
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def embedded_address(address: NetworkAddress) -> IPv4Address | None:
    """Return the IPv4 address that an IPv6 address stands for, in any of the usual ways."""
    if isinstance(address, IPv4Address):
        return None
    if address in _NAT64:
        return IPv4Address(address.packed[-4:])
    return address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
