"""What holds for every test."""

from __future__ import annotations

import os

from hypothesis import settings

# Laws hold on a busy machine too.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

# Rich keeps the width that COLUMNS has when a console is made: whichever test imported the command first, with a width
# of its own, would give it to all others.
os.environ.pop("COLUMNS", None)
import router.cli.output  # noqa: E402, F401
