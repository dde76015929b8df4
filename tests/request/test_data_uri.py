from __future__ import annotations

import base64
from urllib.parse import quote, quote_from_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.request.data_uri import read_base64_or_data_uri, read_url

BYTES = bytes(range(256))
B64 = base64.b64encode(BYTES).decode()
URL_SAFE = base64.urlsafe_b64encode(BYTES).decode()


@pytest.mark.parametrize(
    "uri",
    [
        f"data:image/png;base64,{B64}",
        f"DATA:IMAGE/PNG;BASE64,{B64}",
        f"dAtA:image/PNG;Base64,{B64}",
        f"data:image/png;name=a.png;base64,{B64}",
        f'data:image/png;charset="utf-8";x=;base64,{B64}',
        f"data:image/png;name=my%20file%2C1.png;base64,{B64}",
        f"data:image/png; base64,{B64}",
        f"data:image%2Fpng;base64,{B64}",
        f"data:image/png;base64,{B64.rstrip('=')}",
        f"data:image/png;base64,{B64.replace('=', '%3D').replace('+', '%2B').replace('/', '%2f')}",
        "data:image/png;base64," + "".join(f"%{ord(c):02x}" for c in B64),
        f"data:image/png;base64,{URL_SAFE}",
        f"data:image/png;base64,{URL_SAFE.rstrip('=')}",
        f"data:image/png;base64,{URL_SAFE.replace('-', '%2D')}",
        "data:image/png;base64," + "\r\n".join(B64[i : i + 76] for i in range(0, len(B64), 76)) + "\n",
        f"data:image/png;base64, \t{B64[:10]} {B64[10:]}%0A",
        f"  data:image/png;base64,{B64}",
        "data:image/png," + quote_from_bytes(BYTES, safe=""),
        "data:image/png," + "".join(f"%{byte:02x}\n" for byte in BYTES),
    ],
)
def test_every_legal_form_gives_the_bytes_and_the_media_type(uri: str) -> None:
    source = read_url(uri)
    assert (source.status, source.reason) == ("inline", "")
    assert source.data == BYTES
    assert source.media_type == "image/png"


@pytest.mark.parametrize(
    ("uri", "data", "media_type"),
    [
        ("data:,", b"", "text/plain"),
        ("data:,a%20b", b"a b", "text/plain"),
        ("data:;base64,QQ==", b"A", "text/plain"),
        ("data:;charset=utf-8,a,b", b"a,b", "text/plain"),
        ("data:image/svg+xml,<svg xmlns='x'/>", b"<svg xmlns='x'/>", "image/svg+xml"),
        ("data:image/png;base64,", b"", "image/png"),
        ("data:application/vnd.a-b+c;base64,QUI", b"AB", "application/vnd.a-b+c"),
        ("data:text/plain;base64=no,QQ==", b"QQ==", "text/plain"),
    ],
)
def test_defaults_and_edge_forms(uri: str, data: bytes, media_type: str) -> None:
    source = read_url(uri)
    assert (source.status, source.data, source.media_type) == ("inline", data, media_type)


@pytest.mark.parametrize(
    "uri",
    [
        "data:",
        "data:image/png;base64",
        "data:image/png;base64;AAAA",
        "data:png;base64,AAAA",
        "data:image/;base64,AAAA",
        "data:/png;base64,AAAA",
        "data:base64,AAAA",
        "data:image/png;base64;x=1,AAAA",
        "data:image/png;;base64,AAAA",
        "data:image/png;name;base64,AAAA",
        "data:image/png;na me=x;base64,AAAA",
        "data:image/p%ZZng;base64,AAAA",
        "data:image/png;base64,A",
        "data:image/png;base64,AAAAA",
        "data:image/png;base64,AA=",
        "data:image/png;base64,AA===",
        "data:image/png;base64,AAAA====",
        "data:image/png;base64,=",
        "data:image/png;base64,AA==AAAA",
        "data:image/png;base64,AA=A",
        "data:image/png;base64,AA*A",
        "data:image/png;base64,AA%2",
        "data:image/png;base64,AA%GG",
        "data:image/png;base64,AA%FF",
        "data:image/png;base64,+A-A",
        "data:image/png;base64,AAAé",
        "data:image/png;base64,AAAA#fragment",
        "data:image/png;base64,AA\0A",
        "data:image/png,é",
        "data:image/png,%G0",
        "data:image/png,a#b",
        "data:image/png,\0",
        "data:image/png,\x7f",
        "data:image/png" + ";a=b" * 2_000 + ";base64,AAAA",
    ],
)
def test_every_illegal_data_uri_is_malformed_and_says_why_without_quoting_it(uri: str) -> None:
    source = read_url(uri)
    assert (source.status, source.data) == ("malformed", b"")
    assert source.reason.startswith("data URI with")
    assert "AA" not in source.reason


@pytest.mark.parametrize("url", ["http://example.com/a.png", "https://example.com/a", "HTTPS://X", " http://x"])
def test_web_addresses_are_kept_but_not_fetched(url: str) -> None:
    assert read_url(url).status == "not_fetched"


@pytest.mark.parametrize(
    "url",
    ["", "  ", "image.png", "//example.com/a.png", "file:///etc/passwd", "gs://b/o", "javascript:x", ":", "1:x", B64],
)
def test_any_other_url_is_malformed(url: str) -> None:
    source = read_url(url)
    assert source.status == "malformed"
    assert source.reason


@pytest.mark.parametrize(
    ("text", "status", "data"),
    [
        (B64, "inline", BYTES),
        (B64.rstrip("="), "inline", BYTES),
        (f"data:application/pdf;base64,{B64}", "inline", BYTES),
        ("", "inline", b""),
        ("https://example.com/a.wav", "not_fetched", b""),
        ("no base64!", "malformed", b""),
        ("A", "malformed", b""),
    ],
)
def test_fields_for_base64_also_take_data_uris(text: str, status: str, data: bytes) -> None:
    source = read_base64_or_data_uri(text)
    assert (source.status, source.data) == (status, data)


@given(st.binary(max_size=200), st.sampled_from(["standard", "url-safe"]), st.booleans(), st.randoms(), st.booleans())
def test_any_bytes_survive_any_legal_spelling(data: bytes, alphabet: str, pad: bool, choose, escape: bool) -> None:
    text = (base64.b64encode if alphabet == "standard" else base64.urlsafe_b64encode)(data).decode()
    text = text if pad else text.rstrip("=")
    text = "".join(c + choose.choice(["", "", "", " ", "\n"]) for c in text)
    if escape:
        text = "".join(quote(c, safe="") if choose.random() < 0.5 else c for c in text)
    assert read_url("data:image/png;base64," + text).data == data
    assert read_url("data:image/png," + quote_from_bytes(data)).data == data


@given(st.one_of(st.text(), st.text(alphabet="data:;,=%base64/AZ+-_ \n#é").map("data:".__add__)))
def test_no_text_raises(text: str) -> None:
    for source in (read_url(text), read_base64_or_data_uri(text)):
        assert (source.status == "malformed") == bool(source.reason)
        assert source.status == "inline" or not source.data


def test_bytes_stay_out_of_reprs() -> None:
    assert B64[:8] not in repr(read_url(f"data:image/png;base64,{B64}"))
