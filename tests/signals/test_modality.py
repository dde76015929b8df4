from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError
from signal_fakes import ask, image, in_tool_result, said, view

from router.request.view import AudioPart, FilePart, ImagePart, RequestView, TextPart, ToolCallPart
from router.signals.base import Evidence
from router.signals.modality import BUILTINS, SAID_AT_EDGES, ModalitySettings
from router.signals.registry import FAMILIES

EMPTY = view()
TEXT = view(("system", "Be kind."), ("user", "Hello."))
IMAGES = view(("user", image("one"), image("two")))
VOICE = view(("user", AudioPart("/messages/0/content/0", "wav")))
# What cannot be opened comes as an image that fails every question about images.
PDF = view(("user", FilePart("/f/file"), ImagePart("/f/file/file_data", "malformed", reason="unreadable file type")))
SCAN = view(("user", FilePart("/f/file"), ImagePart("/f/file/file_data", "inline", b"x")))
TEXT_FILE = view(("user", FilePart("/f/file"), TextPart("/f/file/file_data", "words")))
LINKED = view(("user", ImagePart("/i", "not_fetched", url="https://example.com/a.png")))
IN_RESULT = view(("user", "Look."), ("tool", in_tool_result(TextPart("/r/0", "seen"), image("two"))))


@pytest.mark.parametrize(
    ("request_view", "kinds"),
    [
        (EMPTY, set()),
        (view(("system", "Be kind.")), set()),
        (said("  \n"), set()),
        (TEXT, {"text"}),
        (IMAGES, {"image"}),
        (VOICE, {"audio"}),
        (PDF, {"file"}),
        (SCAN, {"file", "image"}),
        (TEXT_FILE, {"file", "text"}),
        (LINKED, {"image"}),
        (IN_RESULT, {"text", "image"}),
        (view(("assistant", ToolCallPart("/c", "1", "look", "{}"))), {"text"}),
        (view(("user", FilePart("/f/file"), image("beside"))), {"file", "image"}),
    ],
)
async def test_kinds_of_content(request_view: RequestView, kinds: set[str]) -> None:
    for kind in ("text", "image", "audio", "file"):
        assert (await ask("modality", {"any": [kind]}, request_view)).matched is (kind in kinds)
    if kinds:
        assert (await ask("modality", {"all": sorted(kinds)}, request_view)).matched is True
        assert (await ask("modality", {"only": sorted(kinds)}, request_view)).matched is True
        less = sorted(kinds)[1:]
        assert not less or (await ask("modality", {"only": less}, request_view)).matched is False
    more = sorted(kinds | {"audio", "file"})
    assert (await ask("modality", {"all": more}, request_view)).matched is (set(more) == kinds)


async def test_all_that_is_given_must_hold() -> None:
    assert (await ask("modality", {"any": ["image"], "all": ["text"]}, IMAGES)).matched is False
    assert (await ask("modality", {"any": ["image"], "output": ["image"]}, IMAGES)).matched is False
    assert (await ask("modality", {"any": ["image"], "output": ["text"]}, IMAGES)).matched is True


async def test_evidence_names_the_first_of_each_kind() -> None:
    observation = await ask("modality", {"any": ["image"]}, IN_RESULT)
    assert observation.evidence == (
        Evidence("/messages/0/content/0", label="text"),
        Evidence("/images/two", label="image"),
    )


@pytest.mark.parametrize("outputs", [("text",), ("image",), ("text", "audio"), ("image", "text")])
async def test_kinds_of_answer(outputs: tuple[Any, ...]) -> None:
    request = replace(TEXT, outputs=outputs)
    for kind in ("text", "image", "audio"):
        assert (await ask("modality", {"output": [kind]}, request)).matched is (kind in outputs)


@pytest.mark.parametrize(
    ("name", "yes", "no"),
    [
        ("image_input", IMAGES, TEXT),
        ("audio_input", VOICE, TEXT),
        ("file_input", PDF, TEXT),
        ("text_only", TEXT, IN_RESULT),
        ("image_output", replace(TEXT, outputs=("image",)), IMAGES),
        ("audio_output", replace(TEXT, outputs=("text", "audio")), VOICE),
    ],
)
async def test_builtin_names(name: str, yes: RequestView, no: RequestView) -> None:
    settings = FAMILIES["modality"].builtins[name].model_dump(exclude_none=True)
    assert (await ask("modality", settings, yes)).matched is True
    assert (await ask("modality", settings, no)).matched is False


def test_every_builtin_is_tested_here() -> None:
    kinds = {"image_input", "audio_input", "file_input", "text_only", "image_output", "audio_output"}
    assert set(BUILTINS) == kinds


async def wished(text: str) -> bool | None:
    return (await ask("modality", {"output": ["image"], "wording": True}, said(text))).matched


@pytest.mark.parametrize(
    "text",
    [
        "Generate an image of a lighthouse at dusk",
        "please create a small watercolor picture showing two cats",
        "Draw me a sheep.",
        "Can you paint a picture of my grandmother's house?",
        "I want a photo-realistic image of a red bicycle",
        "Zeichne mir bitte einen Drachen",
        "Erstelle ein Bild von einem Leuchtturm",
        "Dessine-moi un mouton",
        "Génère une image d'un chat",
        "Dibuja un perro con sombrero",
        "Créame una imagen de una playa",
        "Disegnami un gatto",
        "Crea un'immagine di un faro",
        "Desenhe um barco",
        "Gere uma imagem de um farol",
        "Нарисуй кота в шляпе",
        "Сгенерируй изображение маяка",
        "画一只猫",
        "请生成一张海边日落的图片",
        "猫の絵を描いてください",
        "고양이 그림을 그려 줘",
        "ارسم لي قطة",
        "ｄｒａｗ me a sheep",
    ],
)
async def test_a_wish_for_a_picture_in_words(text: str) -> None:
    assert await wished(text) is True
    assert (await ask("modality", {"output": ["image"]}, said(text))).matched is False


@pytest.mark.parametrize(
    "text",
    [
        "",
        "What conclusion can we draw from the data?",
        "Draw a conclusion from this table.",
        "Create a docker image with Python 3.12",
        "Make a disk image of the partition",
        "Give me the bigger picture of the market",
        "Describe the image of the company in the press",
        "Generate a summary of the report",
        "How do I draw attention to my shop?",
        "The painter made an image in 1503.",
        "Mal sehen, was das Wetter macht",
        "ich mache morgen Sport",
    ],
)
async def test_what_is_no_wish_for_a_picture(text: str) -> None:
    assert await wished(text) is False


async def test_a_wish_counts_at_the_edges_of_a_long_text_and_in_the_last_user_turn_alone() -> None:
    filler = "word " * SAID_AT_EDGES
    assert await wished(f"Draw me a sheep. {filler}") is True
    assert await wished(f"{filler} Draw me a sheep.") is True
    assert await wished(f"{filler} Draw me a sheep. {filler}") is False
    settings = {"output": ["image"], "wording": True}
    assert (await ask("modality", settings, said("Draw me a sheep.", "Thanks."))).matched is False
    assert (await ask("modality", settings, view(("assistant", "Draw me a sheep.")))).matched is False
    observation = await ask("modality", settings, said("Thanks.", "Draw me a sheep."))
    assert observation.evidence[-1] == Evidence("/messages/1/content/0", label="image wanted", detail="wording")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "at least one of any"),
        ({"any": []}, "at least 1 item"),
        ({"any": ["video"]}, "'text', 'image', 'audio' or 'file'"),
        ({"output": ["file"]}, "'text', 'image' or 'audio'"),
        ({"any": ["text"], "wording": True}, "`wording` needs `image`"),
        ({"output": ["audio"], "wording": True}, "`wording` needs `image`"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ModalitySettings.model_validate(settings)
