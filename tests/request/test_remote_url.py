from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from router.request.errors import ImageError
from router.request.remote_url import RemoteImages, is_host_entry, read_remote_url

RULES = RemoteImages(("images.example.com", "*.cdn.example.com", "odd.example.com:8443"))


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("https://images.example.com/a.png", "images.example.com", 443),
        ("https://images.example.com", "images.example.com", 443),
        ("HTTPS://Images.Example.COM:443/a%20b.png?x=1&y=[2]", "images.example.com", 443),
        ("https://a.cdn.example.com/", "a.cdn.example.com", 443),
        ("https://a.b.cdn.example.com?x", "a.b.cdn.example.com", 443),
        ("https://odd.example.com:8443/x", "odd.example.com", 8443),
    ],
)
def test_a_listed_host_may_be_asked(url: str, host: str, port: int) -> None:
    found = read_remote_url(url, RULES)
    assert (found.host, found.port, found.url) == (host, port, url)
    assert "example" not in repr(found)


@pytest.mark.parametrize(
    "url",
    [
        *(
            "https://evil.example/a.png",
            "https://example.com/",
            "https://cdn.example.com/",
            "https://xcdn.example.com/",
        ),
        *("https://images.example.com.evil.example/", "https://evilimages.example.com/"),
        *("https://images.example.com:8443/", "https://odd.example.com/", "https://odd.example.com:443/"),
    ],
)
def test_a_host_that_is_not_listed_may_not(url: str) -> None:
    with pytest.raises(ImageError, match="host is not listed"):
        read_remote_url(url, RULES)


@pytest.mark.parametrize(
    "url",
    [
        *(
            "https://user@images.example.com/",
            "https://images.example.com@evil.example/",
            "https://a:b@images.example.com",
        ),
        *("https://images.example.com\\@evil.example/", "https:\\\\images.example.com/", "https:/images.example.com/"),
        *("https://images.example.com#@evil.example/", "https://images.example.com/a#b", "//images.example.com/"),
        *("https://images.example.com /", " https://images.example.com/", "https://images.example.com/a b"),
        *("https://images.example.com./a", "https://images.example.com\n/a", "https://images.example.com/a\n"),
        *("https://images%2eexample.com/", "https://images。example.com/", "https://ımages.example.com/"),
        *("https://127.0.0.1/", "https://[::1]/", "https://2130706433/", "https://0x7f.1/", "https://localhost/"),
        *("ftp://images.example.com/", "file:///etc/passwd", "https://", "", "https://images.example.com:/"),
        "https://images.example.com/" + "a" * 9_000,
    ],
)
def test_what_parsers_read_differently_may_not(url: str) -> None:
    with pytest.raises(ImageError, match="URL is not plain"):
        read_remote_url(url, RULES)


def test_http_is_for_who_lists_it() -> None:
    url = "http://images.example.com/a"
    with pytest.raises(ImageError, match="scheme is not listed"):
        read_remote_url(url, RULES)
    both = RemoteImages(("images.example.com",), ("https", "http"))
    assert read_remote_url(url, both).port == 80
    with pytest.raises(ImageError, match="host is not listed"):
        read_remote_url("http://images.example.com:443/a", both)


@given(st.text(alphabet="https:/@\\#?.%[]:;&=eximagslcdn-0127 \t\x00é", max_size=60))
def test_parsers_agree_about_every_url_that_may_be_fetched(rest: str) -> None:
    for url in (rest, "https://" + rest, "https://images.example.com" + rest):
        try:
            found = read_remote_url(url, RULES)
        except ImageError:
            continue
        assert urlsplit(url).hostname == found.host
        assert (urlsplit(url).port or 443) == found.port
        assert URL(url, encoded=True).host == found.host
        assert URL(url, encoded=True).port == found.port
        assert urlsplit(url).username is None


@pytest.mark.parametrize("entry", ["a.b", "images.example.com", "*.a.b", "a-1.b-2.xn--p1ai", "a.b:8443", "*.a.b:1"])
def test_what_the_policy_may_list(entry: str) -> None:
    assert is_host_entry(entry)


@pytest.mark.parametrize(
    "entry",
    [
        *("", "*", "*.", "*.com", "com", "localhost", "A.b", "a..b", ".a.b", "a.b.", "-a.b", "a-.b", "a.b/", "a.*.b"),
        *(
            "1.2.3.4",
            "a.0x7f",
            "[::1]",
            "::1",
            "a.b:",
            "a.b:0",
            "a.b:65536",
            "a.b:443:1",
            "https://a.b",
            "a b.c",
            "a.b\n",
        ),
        "a." * 130 + "b",
    ],
)
def test_what_the_policy_may_not_list(entry: str) -> None:
    assert not is_host_entry(entry)
