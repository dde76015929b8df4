"""Which IP addresses belong to the public Internet; everything else is somebody's inside.

For addresses that a name resolved to, before anything connects. Lists what may be reached instead of trusting that all
that may not is known: an IPv6 address must be global unicast (2000::/3), and an IPv4 address within another one counts
as itself. Looks nothing up.
"""

from __future__ import annotations

import ipaddress
from typing import Final

# IANA's registries of special-purpose addresses, all that is not globally reachable, and multicast.
_V4: Final = tuple(
    map(
        ipaddress.IPv4Network,
        (
            *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
            *("192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24"),
            *("192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
            *("224.0.0.0/4", "240.0.0.0/4"),
            # A public address by number only: a host service that every virtual machine of one cloud reaches.
            "168.63.129.16/32",
        ),
    )
)
_V6_GLOBAL: Final = ipaddress.IPv6Network("2000::/3")
_V6: Final = tuple(
    map(
        ipaddress.IPv6Network,
        # Protocols' own (Teredo and ORCHID among them), documentation, 6to4 (which leads to any IPv4 address).
        ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"),
    )
)
_MAPPED: Final = ipaddress.IPv6Network("::ffff:0:0/96")
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Whether the literal address is one of the public Internet; false for what is no address, or has a scope."""
    if "%" in address:
        return False
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv6Address) and (parsed in _MAPPED or parsed in _NAT64):
        # Networks without IPv4 reach it through the latter.
        parsed = ipaddress.IPv4Address(int(parsed) & 0xFFFF_FFFF)
    if isinstance(parsed, ipaddress.IPv4Address):
        return not any(parsed in network for network in _V4)
    return parsed in _V6_GLOBAL and not any(parsed in network for network in _V6)
