"""Content codings of responses, undone piece by piece."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Callable, Iterable
from itertools import pairwise

import brotli
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.extproc.decoding import BrokenCodingError, Decoding, TooMuchError
from router.request.content_coding import UnknownCoding

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": lambda data: gzip.compress(data[: len(data) // 2]) + gzip.compress(data[len(data) // 2 :]),
    "deflate": zlib.compress,
    "Deflate": raw_deflate,
    "br": brotli.compress,
    "zstd": lambda data: zstd.compress(data[:7]) + zstd.compress(data[7:]),
    "gzip, identity, br": lambda data: brotli.compress(gzip.compress(data)),
    "zstd,deflate": lambda data: zlib.compress(zstd.compress(data)),
}


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    ends = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[begin:end] for begin, end in pairwise(ends)]


@settings(deadline=None)
@given(
    coding=st.sampled_from(sorted(ENCODERS)),
    data=st.binary(max_size=300) | st.binary(min_size=1, max_size=9).map(lambda some: some * 40_000),
    places=st.lists(st.integers(min_value=0), max_size=12),
)
def test_what_comes_out_is_what_went_in_however_it_is_cut(coding: str, data: bytes, places: list[int]) -> None:
    decoding = Decoding(coding)
    out = b"".join(part for piece in cut(ENCODERS[coding](data), places) for part in decoding.feed(piece))
    assert out == data
    assert decoding.whole and decoding.encoded


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_what_is_cut_off_is_not_whole(coding: str) -> None:
    decoding = Decoding(coding)
    packed = ENCODERS[coding](b"hello " * 100)
    list(decoding.feed(packed[: len(packed) // 2]))
    assert not decoding.whole


def test_what_has_no_coding_comes_back_as_it_is() -> None:
    decoding = Decoding("identity")
    assert list(decoding.feed(b"hello")) == [b"hello"]
    assert decoding.whole and not decoding.encoded


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd", "deflate"])
def test_what_is_none_is_said_to_be_broken(coding: str) -> None:
    with pytest.raises(BrokenCodingError):
        list(Decoding(coding).feed(b"\xff\xfehello, this is plain text" * 10))


@pytest.mark.parametrize("coding", ["deflate", "br"])
def test_nothing_may_follow_what_has_an_end(coding: str) -> None:
    decoding = Decoding(coding)
    list(decoding.feed(ENCODERS[coding](b"hello")))
    with pytest.raises(BrokenCodingError):
        list(decoding.feed(b"more"))


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, gzip"])
def test_no_bomb_becomes_larger_than_the_bound_and_no_step_large(coding: str) -> None:
    bomb = b"\0" * (8 << 20)
    packed = gzip.compress(gzip.compress(bomb)) if coding == "gzip, gzip" else ENCODERS[coding](bomb)
    steps: list[int] = []
    with pytest.raises(TooMuchError):
        steps += (len(step) for step in Decoding(coding, 1 << 20).feed(packed))
    assert max(steps, default=0) <= 1 << 17


@pytest.mark.parametrize("header", ["snappy", "gzip, snappy", "gzip, gzip, gzip, gzip, gzip"])
def test_what_is_not_known_is_said_to_be_so(header: str) -> None:
    with pytest.raises(UnknownCoding):
        Decoding(header)
