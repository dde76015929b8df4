from __future__ import annotations

import gzip
import os
import random
import tracemalloc
import zlib

import brotli
import pytest
from backports import zstd
from hypothesis import example, given
from hypothesis import strategies as st

from router.request.content_coding import FREE_BYTES, MOST_MEMBERS, UnknownCoding, decode, encode, read_codings
from router.request.errors import RequestError
from router.request.limits import RequestLimits

LIMITS = RequestLimits(decoded_bytes=4 << 20)
CODINGS = ("gzip", "deflate", "br", "zstd")
TEXT = '{"messages":[{"role":"user","content":"Чертёж моста 橋 🌉"}]}'.encode()

codings = st.lists(st.sampled_from(CODINGS), min_size=1, max_size=4).map(tuple)
# Around the sizes at which decoders hand over what they have.
sizes = st.one_of(
    st.integers(0, 100), st.sampled_from([1, 2, 4]).flatmap(lambda n: st.integers(-2, 2).map(lambda d: n * 65_536 + d))
)


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    size = draw(sizes)
    if draw(st.booleans()):
        return bytes([draw(st.integers(0, 255))]) * size
    return random.Random(draw(st.integers(0, 9))).randbytes(size)


def raw_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


def refusal(body: bytes, layers: tuple[str, ...], limits: RequestLimits = LIMITS) -> tuple[int, str]:
    with pytest.raises(RequestError) as caught:
        decode(body, layers, limits)
    assert caught.value.pointer == ""
    return caught.value.status, caught.value.code


BROKEN = (400, "invalid_content_encoding")
TOO_LARGE = (413, "request_too_large")


@given(bodies(), codings)
@example(b"", CODINGS)
@example(b"a" * 65_536, ("gzip",))
@example(b"a" * 98_272, ("br",))
def test_what_was_packed_in_any_stack_comes_back(body: bytes, layers: tuple[str, ...]) -> None:
    assert decode(encode(body, layers), layers, LIMITS) == body


@given(bodies(), st.sampled_from(CODINGS), st.data())
def test_no_stream_that_is_cut_off_or_followed_by_more_is_taken(body: bytes, coding: str, data: st.DataObject) -> None:
    packed = encode(body, (coding,))
    cut = data.draw(st.integers(0, len(packed) - 1))
    more = data.draw(st.binary(min_size=1, max_size=40))
    assert refusal(packed[:cut], (coding,)) == BROKEN
    assert refusal(packed + more, (coding,)) == BROKEN


def test_what_follows_a_stream_is_seen_even_between_two_pieces() -> None:
    letters = random.Random(0)
    packed = next(
        packed for size in range(16_300, 16_384) if len(packed := encode(letters.randbytes(size), ("br",))) == 16_384
    )
    assert decode(packed, ("br",), LIMITS)
    assert refusal(packed + b"x", ("br",)) == BROKEN


@given(st.binary(max_size=300), codings)
def test_any_bytes_are_decoded_or_refused(junk: bytes, layers: tuple[str, ...]) -> None:
    try:
        decode(junk, layers, LIMITS)
    except RequestError as error:
        assert (error.status, error.code) in (BROKEN, TOO_LARGE)


@given(bodies(), st.sampled_from(CODINGS), st.data())
def test_a_flipped_bit_never_raises_anything_else(body: bytes, coding: str, data: st.DataObject) -> None:
    packed = bytearray(encode(body, (coding,)))
    at = data.draw(st.integers(0, len(packed) - 1))
    packed[at] ^= 1 << data.draw(st.integers(0, 7))
    try:
        decode(bytes(packed), (coding,), LIMITS)
    except RequestError as error:
        assert (error.status, error.code) in (BROKEN, TOO_LARGE)


@pytest.mark.parametrize(
    "packed",
    [
        gzip.compress(TEXT),
        # Parallel packers write several members, and empty ones.
        gzip.compress(TEXT[:9]) + gzip.compress(b"") + gzip.compress(TEXT[9:]),
    ],
    ids=["one member", "three members"],
)
def test_every_member_of_a_gzip_body_is_read(packed: bytes) -> None:
    assert decode(packed, ("gzip",), LIMITS) == TEXT


def test_deflate_is_read_with_and_without_zlibs_header() -> None:
    for body in (TEXT, b"", b"x" * 200_000):
        assert decode(zlib.compress(body), ("deflate",), LIMITS) == body
        assert decode(raw_deflate(body), ("deflate",), LIMITS) == body
    assert refusal(zlib.compress(TEXT)[:-1] + b"\0", ("deflate",)) == BROKEN


def test_zstd_frames_follow_each_other_and_some_are_skipped() -> None:
    skipped = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"
    packed = zstd.compress(TEXT[:9]) + skipped + zstd.compress(TEXT[9:])
    assert decode(packed, ("zstd",), LIMITS) == TEXT


def test_a_zstd_window_beyond_that_of_the_coding_is_refused() -> None:
    body = os.urandom(1 << 10) * (10 << 10)
    options = {zstd.CompressionParameter.window_log: 24}
    packed = zstd.ZstdCompressor(options=options)
    assert refusal(packed.compress(body) + packed.flush(), ("zstd",), RequestLimits()) == BROKEN


def test_more_members_than_anybody_writes_are_refused() -> None:
    for empty, coding in ((gzip.compress(b""), "gzip"), (zstd.compress(b""), "zstd")):
        assert decode(empty * MOST_MEMBERS, (coding,), LIMITS) == b""
        assert refusal(empty * (MOST_MEMBERS + 1), (coding,)) == BROKEN


def test_layers_are_undone_from_the_last_to_the_first() -> None:
    packed = brotli.compress(gzip.compress(TEXT))
    assert decode(packed, read_codings("gzip, br"), LIMITS) == TEXT
    assert refusal(packed, read_codings("br, gzip")) == BROKEN


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", ()),
        ("identity", ()),
        ("GZip", ("gzip",)),
        ("x-gzip", ("gzip",)),
        (" gzip ,, Identity,\tBR ", ("gzip", "br")),
        ("gzip, gzip, gzip, gzip, identity", ("gzip",) * 4),
    ],
)
def test_a_header_names_its_layers(header: str, expected: tuple[str, ...]) -> None:
    assert read_codings(header) == expected


@pytest.mark.parametrize("header", ["compress", "gzip;q=1", "gzip br", "dcb", "*", "ｇzip", "gzip, aes128gcm"])
def test_what_is_not_known_says_so(header: str) -> None:
    with pytest.raises(UnknownCoding):
        read_codings(header)


def test_a_fifth_layer_is_refused() -> None:
    with pytest.raises(RequestError) as caught:
        read_codings("br, br, br, br, br")
    assert caught.value.status == 415


def bomb(size: int, layers: tuple[str, ...]) -> bytes:
    """`size` zeros, packed as small as each coding can."""
    pack = {
        "gzip": lambda body: gzip.compress(body, 9),
        "deflate": lambda body: zlib.compress(body, 9),
        "br": lambda body: brotli.compress(body, quality=9),
        "zstd": lambda body: zstd.compress(body, 19),
    }
    body = bytes(size)
    for layer in layers:
        body = pack[layer](body)
    return body


@pytest.mark.parametrize(
    "layers", [*((coding,) for coding in CODINGS), ("gzip", "gzip", "gzip"), ("zstd", "br", "gzip")]
)
def test_a_bomb_is_refused_within_its_bounds_of_memory(layers: tuple[str, ...]) -> None:
    packed = bomb(96 << 20, layers)
    for limits in (LIMITS, RequestLimits(decoded_bytes=1 << 30)):
        most = min(limits.decoded_bytes, max(FREE_BYTES, limits.decoded_ratio * len(packed)))
        tracemalloc.start()
        try:
            assert refusal(packed, layers, limits) == TOO_LARGE
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        # Two layers, whose buffers grow by an eighth, and the pieces in between.
        assert peak < 2.25 * most + (1 << 20)


def test_the_ratio_holds_from_a_mebibyte_on() -> None:
    limits = RequestLimits(decoded_ratio=2)
    assert len(decode(bomb(FREE_BYTES, ("gzip",)), ("gzip",), limits)) == FREE_BYTES
    assert refusal(bomb(FREE_BYTES + 1, ("gzip",)), ("gzip",), limits) == TOO_LARGE
    honest = os.urandom(700_000)
    assert decode(encode(honest * 2, ("gzip",)), ("gzip",), limits) == honest * 2


def test_the_bound_itself_is_allowed() -> None:
    limits = RequestLimits(decoded_bytes=1000)
    for coding in CODINGS:
        assert decode(encode(bytes(1000), (coding,)), (coding,), limits) == bytes(1000)
        assert refusal(encode(bytes(1001), (coding,)), (coding,), limits) == TOO_LARGE


def test_packing_gives_the_same_bytes_each_time() -> None:
    for coding in CODINGS:
        assert encode(TEXT, (coding,)) == encode(TEXT, (coding,))
