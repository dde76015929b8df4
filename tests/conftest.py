"""What holds for every test."""

from __future__ import annotations

from hypothesis import settings

# Laws hold on a busy machine too.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
