"""Every row of docs/faults.md, shown at small scale; `python -m tests.e2e.faults` shows it at full scale."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.faults.faults import ALONE, FAULTS, LONG, PATIENT, SMALL, do, house_for
from tests.e2e.faults.house import House, OnFailure
from tests.e2e.faults.table import fits, read_table

slow = pytest.mark.slow


@pytest.fixture(scope="module", params=["closed", "open"])
def house(request: pytest.FixtureRequest) -> Iterator[House]:
    with house_for("", request.param) as running:
        yield running


@slow
@pytest.mark.parametrize("fault", FAULTS)
def test_clients_see_what_the_table_says(house: House, fault: str) -> None:
    seen = do(fault, house, SMALL)
    assert fits(read_table()[fault], house.on_failure, seen.tally), seen


@pytest.fixture(scope="module", params=["closed", "open"])
def patient_house(request: pytest.FixtureRequest) -> Iterator[House]:
    with house_for(next(iter(PATIENT)), request.param) as running:
        yield running


@slow
@pytest.mark.parametrize("fault", PATIENT)
def test_clients_see_what_the_table_says_in_a_patient_house(patient_house: House, fault: str) -> None:
    seen = do(fault, patient_house, SMALL)
    assert fits(read_table()[fault], patient_house.on_failure, seen.tally), seen


@slow
@pytest.mark.parametrize("on_failure", ["closed", "open"])
@pytest.mark.parametrize("fault", ALONE)
def test_clients_see_what_the_table_says_in_a_house_of_its_own(fault: str, on_failure: OnFailure) -> None:
    with house_for(fault, on_failure) as house:
        seen = do(fault, house, SMALL)
    assert fits(read_table()[fault], on_failure, seen.tally), seen


def test_the_table_has_a_row_for_every_fault_and_no_other() -> None:
    assert set(read_table()) == {*FAULTS, *PATIENT, *ALONE, *LONG}


def test_no_row_lets_a_guarded_request_pass_unjudged_where_failures_are_closed() -> None:
    for name, row in read_table().items():
        assert row.cells["closed", "guarded"] <= {"refused", "not_judged", "closed"}, name
