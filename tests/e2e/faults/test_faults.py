"""The table of docs/faults.md held against itself. Its rows are in two files, so that they may run side by side."""

from __future__ import annotations

from tests.e2e.faults.faults import ALONE, FAULTS, LONG, PATIENT
from tests.e2e.faults.table import read_table


def test_the_table_has_a_row_for_every_fault_and_no_other() -> None:
    assert set(read_table()) == {*FAULTS, *PATIENT, *ALONE, *LONG}


def test_no_row_lets_a_guarded_request_pass_unjudged_where_failures_are_closed() -> None:
    for name, row in read_table().items():
        assert row.cells["closed", "guarded"] <= {"refused", "not_judged", "closed"}, name
