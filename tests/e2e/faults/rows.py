"""Tests of every row of docs/faults.md at small scale, for a class that says what happens on failure.

`python -m tests.e2e.faults` shows the same rows at full scale.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.faults.faults import ALONE, FAULTS, PATIENT, SMALL, do, house_for
from tests.e2e.faults.house import House, OnFailure
from tests.e2e.faults.table import fits, read_table


class Rows:
    """One house for most of them, one for those that need patience, and some with houses of their own."""

    on_failure: OnFailure

    @pytest.fixture(scope="class")
    @classmethod
    def house(cls) -> Iterator[House]:
        with house_for("", cls.on_failure) as running:
            yield running

    @pytest.mark.parametrize("fault", FAULTS)
    def test_clients_see_what_the_table_says(self, house: House, fault: str) -> None:
        self.check(fault, house)

    @pytest.fixture(scope="class")
    @classmethod
    def patient_house(cls) -> Iterator[House]:
        with house_for(next(iter(PATIENT)), cls.on_failure) as running:
            yield running

    @pytest.mark.parametrize("fault", PATIENT)
    def test_clients_see_what_the_table_says_in_a_patient_house(self, patient_house: House, fault: str) -> None:
        self.check(fault, patient_house)

    @pytest.mark.parametrize("fault", ALONE)
    def test_clients_see_what_the_table_says_in_a_house_of_its_own(self, fault: str) -> None:
        with house_for(fault, self.on_failure) as house:
            self.check(fault, house)

    def check(self, fault: str, house: House) -> None:
        seen = do(fault, house, SMALL)
        assert fits(read_table()[fault], self.on_failure, seen.tally), seen
