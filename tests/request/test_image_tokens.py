from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from router.request.errors import ImageError
from router.request.image_tokens import ImageRule, declared_size, image_tokens, read_rule
from router.request.view import ImagePart

EVERY = [
    "none",
    "fixed:576",
    "patches:14",
    "openai_tiles",
    "openai_tiles:70+140",
    "openai_patches",
    "openai_patches:2.46",
    "anthropic",
    "gemini_tiles",
    "qwen2_vl",
    "qwen2_vl:1280",
    "qwen3_vl",
]


@pytest.mark.parametrize(
    ("rule", "size", "tokens"),
    [
        ("none", (4000, 3000), 0),
        ("fixed:576", (4000, 3000), 576),
        ("patches:14", (224, 224), 256),
        ("patches:14", (225, 1), 17),
        # OpenAI's own examples.
        ("openai_tiles", (1024, 1024), 765),
        ("openai_tiles", (2048, 4096), 1105),
        ("openai_tiles", (512, 512), 255),
        ("openai_tiles", (1, 1), 255),
        ("openai_tiles:2833+5667", (1024, 1024), 2833 + 4 * 5667),
        ("openai_patches", (1024, 1024), 1024),
        ("openai_patches", (1800, 2400), 1452),
        ("openai_patches:1.62", (1024, 1024), 1659),
        # The table on Anthropic's page, for images that need no resizing.
        ("anthropic", (200, 200), 54),
        ("anthropic", (1000, 1000), 1334),
        ("anthropic", (1092, 1092), 1590),
        ("anthropic", (4000, 4000), 1600),
        ("anthropic", (15_680, 10), 3),
        ("gemini_tiles", (384, 384), 258),
        ("gemini_tiles", (385, 384), 258),
        ("gemini_tiles", (960, 540), 516),
        ("qwen2_vl", (280, 280), 102),
        ("qwen2_vl", (1, 1), 6),
        ("qwen2_vl:1280", (2800, 2800), 35 * 35 + 2),
        ("qwen3_vl", (320, 320), 102),
    ],
)
def test_each_rule_counts_as_its_upstream_says(rule: str, size: tuple[int, int], tokens: int) -> None:
    assert image_tokens(read_rule(rule), *size) == tokens


@given(st.sampled_from(EVERY), st.integers(1, 100_000), st.integers(1, 100_000))
def test_turning_an_image_changes_nothing_and_no_image_is_free_or_boundless(rule: str, width: int, height: int) -> None:
    tokens = image_tokens(read_rule(rule), width, height)
    assert tokens == image_tokens(read_rule(rule), height, width)
    assert (tokens == 0) == (rule == "none")
    most = {
        "openai_tiles": 85 + 170 * 8,
        "openai_patches": 1536,
        "anthropic": 1600,
        "qwen2_vl": 16_386,
        "qwen2_vl:1280": 1282,
    }
    assert tokens <= most.get(rule, tokens)


@pytest.mark.parametrize(
    "rule",
    [
        "",
        "tiles",
        "fixed",
        "fixed:x",
        "fixed:-1",
        "patches:0",
        "openai_tiles:85",
        "anthropic:2",
        "qwen2_vl:3",
        "none\n",
    ],
)
def test_what_is_no_rule_is_refused(rule: str) -> None:
    with pytest.raises(ValueError, match=r"no rule|at least"):
        read_rule(rule)


def test_an_image_has_a_pixel() -> None:
    with pytest.raises(ValueError, match="pixel"):
        image_tokens(ImageRule("anthropic"), 0, 5)


def encoded(form: str, size: tuple[int, int] = (37, 21)) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", size, "red").save(stream, form)
    return stream.getvalue()


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP", "BMP"])
def test_the_size_is_what_the_file_declares(form: str) -> None:
    assert declared_size(ImagePart("/i", "inline", encoded(form))) == (37, 21)


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        (ImagePart("/i", "not_fetched", url="http://x/y.png"), "not fetched"),
        (ImagePart("/i", "malformed", reason="PDF"), "PDF"),
        (ImagePart("/i", "inline", b""), "empty"),
        (ImagePart("/i", "inline", b"hello"), "unknown format"),
        (ImagePart("/i", "inline", encoded("PNG")[:30]), "truncated"),
    ],
)
def test_an_image_without_a_readable_size_says_why(image: ImagePart, reason: str) -> None:
    with pytest.raises(ImageError, match=reason):
        declared_size(image)
