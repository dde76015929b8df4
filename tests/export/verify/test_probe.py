"""Ranks and inversions of the concept probe, and the probe that comes with the project."""

from __future__ import annotations

import numpy as np
import pytest

from router.export.probe import SHIPPED, Probed, ProbeImage, rank, read_probe

LABELS = [("a", "a1"), ("a", "a2"), ("b", "b1"), ("c", "c1")]


def ranked(*cosines: float) -> Probed:
    return Probed((rank(ProbeImage(file="i.png", field="a"), LABELS, np.array(cosines, dtype=np.float32)),))


@pytest.mark.parametrize(
    ("cosines", "right", "inversions"),
    [
        ((0.9, 0.1, 0.3, 0.2), True, 0),
        ((0.1, 0.9, 0.3, 0.2), True, 0),
        ((0.1, 0.2, 0.3, 0.15), False, 1),
        ((0.1, 0.2, 0.3, 0.4), False, 2),
    ],
)
def test_labels_of_other_fields_above_the_best_own_label_are_inversions(
    cosines: tuple[float, ...], right: bool, inversions: int
) -> None:
    probed = ranked(*cosines)
    assert probed.right is right
    assert probed.images[0].inversions == inversions
    assert probed.inversion_rate == inversions / 2


def test_the_projects_probe_has_eleven_images_three_fields_and_twenty_one_labels() -> None:
    probe = read_probe(SHIPPED)
    assert len(probe.images) == 11
    assert len(probe.fields) == 3
    assert sum(len(labels) for labels in probe.fields.values()) == 21
    assert all((SHIPPED.parent / image.file).is_file() for image in probe.images)
