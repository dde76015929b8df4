"""A request that is not remembered any more, from where the policy keeps records; and what was captured of one."""

from __future__ import annotations

import logging
from typing import Any

from router.config.handling import CaptureSettings
from router.config.load import LoadedPolicy, parse_policy
from router.config.problems import PolicyError
from router.extproc.inspection.remembering import moment
from router.policy.model import Policy
from router.records.basis import StoredBasis
from router.records.capture import captured, keys_of
from router.records.opening import open_reader
from router.records.record_id import time_of
from router.records.sealing import SealError
from router.records.store import Reader, StoreError
from router.records.stored import RecordFormatError, StoredRecord, to_record

logger = logging.getLogger(__name__)

Document = dict[str, Any]


def kept_document(loaded: LoadedPolicy, identifier: str) -> Document | None:
    """The record of this whole identifier as a document; None where there is none, or no store that can be read."""
    if loaded.records is None:
        return None
    settings = loaded.records.placed(loaded.base)
    try:
        with open_reader(settings) as reader:
            found = next((one for one in reader.find(identifier) if one[0].record == identifier), None)
            if found is None:
                return None
            stored, digest = found
            document = _document(stored, reader.basis(digest), loaded)
            return {**document, "captured": _captured(reader, identifier, settings.capture)}
    except (StoreError, RecordFormatError) as error:
        logger.warning("record not looked up", extra={"fields": {"why": str(error)}})
        return None


def _captured(reader: Reader, identifier: str, settings: CaptureSettings | None) -> Document | None:
    """What was captured of the request; None for nothing, and for what the policy's keys do not open."""
    try:
        return captured(reader, identifier, keys_of(settings))
    except (StoreError, SealError) as error:
        logger.warning("keys not read", extra={"fields": {"why": str(error)}})
        return None


def _document(stored: StoredRecord, basis: StoredBasis, loaded: LoadedPolicy) -> Document:
    whole = to_record(stored, _policy_of(basis, loaded)).whole()
    for name, observation in stored.observations.items():
        # How much was left out is known only to what is stored.
        if observation.evidence_left_out:
            whole["signals"][name]["evidence_left_out"] = observation.evidence_left_out
    at = time_of(stored.record)
    return {**whole, "at": None if at is None else moment(int(at * 10**9)), "status": None, "failure": None}


def _policy_of(basis: StoredBasis, loaded: LoadedPolicy) -> Policy | None:
    """The policy that it was decided by; None where this version cannot read it any more: there are no trees then."""
    if basis.policy == loaded.policy.digest:
        return loaded.policy
    try:
        return parse_policy(basis.text, loaded.path).policy
    except PolicyError:
        return None
