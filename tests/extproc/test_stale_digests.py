"""Headers that say what a body's bytes add up to, once the bytes are others."""

from __future__ import annotations

from router.actions.edits import Edits
from router.extproc.head import RequestHead
from router.extproc.mutations import DIGESTS, decided

HEAD = RequestHead("POST", "/v1/chat/completions", {**dict.fromkeys(DIGESTS, "x"), "accept": "*/*"})


def test_digests_go_with_the_body_that_they_were_of() -> None:
    changes = decided("request_body", Edits((("x-pointsman-cluster", "a"),), body=b"{}"), HEAD).request_body.response
    assert list(changes.header_mutation.remove_headers) == sorted(DIGESTS)
    changes = decided("stream", Edits((), body=b"{}"), HEAD).request_headers.response
    assert list(changes.header_mutation.remove_headers) == sorted(DIGESTS)


def test_digests_of_a_body_that_goes_on_as_it_came_stay() -> None:
    changes = decided("request_body", Edits((("x-pointsman-cluster", "a"),)), HEAD).request_body.response
    assert list(changes.header_mutation.remove_headers) == []


def test_a_digest_that_is_set_is_not_removed() -> None:
    changes = decided("request_body", Edits((("digest", "y"),), body=b"{}"), HEAD).request_body.response
    assert "digest" not in changes.header_mutation.remove_headers
