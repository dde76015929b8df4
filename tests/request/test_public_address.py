from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.request.public_address import is_public

INSIDE = [
    *("127.0.0.1", "127.255.255.254", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1"),
    *("169.254.169.254", "100.64.0.1", "100.100.100.200", "192.0.0.192", "198.18.0.1", "203.0.113.7"),
    *("224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "168.63.129.16"),
    *("::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "2001:db8::1"),
    *("2001::1", "2001:10::1", "2002:7f00:1::", "2002:808:808::", "3fff::1", "100::1", "64:ff9b:1::a00:1", "5f00::1"),
    *("::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::10.0.0.1", "64:ff9b::7f00:1", "::127.0.0.1", "::8.8.8.8"),
]
OUTSIDE = [
    *("8.8.8.8", "1.1.1.1", "172.15.255.255", "172.32.0.1", "100.63.255.255", "100.128.0.1", "223.255.255.255"),
    *("2606:4700::1111", "2a00:1450:4001::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2001:4860:4860::8888"),
]


@pytest.mark.parametrize("address", INSIDE)
def test_what_is_inside_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", OUTSIDE)
def test_what_is_outside_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", ["", "localhost", "0177.0.0.1", "127.1", "2130706433", "0x7f000001", "8.8.8.8%1"])
def test_what_is_no_plain_address_is_not_public(address: str) -> None:
    assert not is_public(address)


@given(st.ip_addresses())
def test_what_python_knows_as_not_global_is_never_public(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    translated = isinstance(address, ipaddress.IPv6Address) and (
        address.ipv4_mapped is not None or address in ipaddress.ip_network("64:ff9b::/96")
    )
    if not translated and (not address.is_global or address.is_multicast or address.is_reserved):
        assert not is_public(str(address))


@given(st.ip_addresses(v=4))
def test_an_address_within_another_counts_as_itself(address: ipaddress.IPv4Address) -> None:
    for outer in ("::ffff:0:0", "64:ff9b::"):
        assert is_public(str(ipaddress.IPv6Address(int(ipaddress.IPv6Address(outer)) + int(address)))) == is_public(
            str(address)
        )
