from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.records.sealing import ID_BYTES, Keys, SealError, key_id, read_keys

KEYS = st.binary(min_size=32, max_size=32)
RECORDS = st.uuids().map(str)


@given(KEYS, RECORDS, st.binary(max_size=200))
def test_what_was_sealed_is_opened_again(key: bytes, record: str, content: bytes) -> None:
    assert Keys([key]).open(record, Keys([key]).seal(record, content)) == content


@given(KEYS, KEYS, RECORDS, st.binary(max_size=200))
def test_another_key_opens_nothing(one: bytes, other: bytes, record: str, content: bytes) -> None:
    sealed = Keys([one]).seal(record, content)
    if one != other:
        with pytest.raises(SealError, match=key_id(one).hex()):
            Keys([other]).open(record, sealed)
        # Also where it claims to be that one.
        claimed = sealed[:1] + key_id(other) + sealed[1 + ID_BYTES :]
        with pytest.raises(SealError):
            Keys([other]).open(record, claimed)


@given(KEYS, RECORDS, RECORDS, st.binary(max_size=200))
def test_content_of_one_record_is_not_that_of_another(key: bytes, one: str, other: str, content: bytes) -> None:
    keys = Keys([key])
    if one != other:
        with pytest.raises(SealError):
            keys.open(other, keys.seal(one, content))


@given(KEYS, RECORDS, st.binary(max_size=50), st.data())
def test_a_changed_byte_opens_nothing(key: bytes, record: str, content: bytes, data: st.DataObject) -> None:
    sealed = bytearray(Keys([key]).seal(record, content))
    place = data.draw(st.integers(1, len(sealed) - 1))
    sealed[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(SealError):
        Keys([key]).open(record, bytes(sealed))


@given(KEYS, st.binary(max_size=60))
def test_garbage_is_no_content(key: bytes, garbage: bytes) -> None:
    if garbage[:1] != b"\x00":
        with pytest.raises(SealError):
            Keys([key]).open("record", garbage)


@given(st.lists(KEYS, min_size=1, max_size=4, unique=True), RECORDS, st.binary(max_size=50))
def test_the_first_key_encrypts_and_all_decrypt(keys: list[bytes], record: str, content: bytes) -> None:
    for key in keys:
        assert Keys(keys).open(record, Keys([key]).seal(record, content)) == content
    assert Keys([keys[0]]).open(record, Keys(keys).seal(record, content)) == content


@given(st.lists(KEYS, min_size=1, max_size=3, unique=True), st.sampled_from("\n ,"))
def test_keys_are_read_in_base64_and_hex(keys: list[bytes], between: str) -> None:
    written = [
        base64.b64encode(keys[0]).decode(),
        *(key.hex() for key in keys[1:2]),
        *(base64.urlsafe_b64encode(key).decode().rstrip("=") for key in keys[2:]),
    ]
    sealed = [Keys([key]).seal("r", b"x") for key in keys]
    assert [read_keys(between.join(written)).open("r", one) for one in sealed] == [b"x"] * len(keys)


@pytest.mark.parametrize("text", ["", " , ", "short", "ab" * 31, "!" * 44])
def test_what_is_no_key_is_told_without_quoting_it(text: str) -> None:
    with pytest.raises(SealError) as told:
        read_keys(text)
    assert not text.strip(" ,") or text not in str(told.value)


def test_keys_are_not_shown() -> None:
    assert "cafe" * 16 not in repr(read_keys("cafe" * 16))


def test_plain_content_is_not_taken_for_what_a_key_has_sealed() -> None:
    with pytest.raises(SealError, match="is plain"):
        Keys([b"k" * 32]).open("r", Keys().seal("r", b"forged"))


def test_without_a_key_content_is_plain_and_says_so() -> None:
    assert Keys().open("r", Keys().seal("r", b"plain")) == b"plain"
    with pytest.raises(SealError):
        Keys().open("r", Keys([b"k" * 32]).seal("r", b"x"))
