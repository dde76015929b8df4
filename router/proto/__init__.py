"""Modules that the build generates from `proto/*.proto`; see `hatch_build.py`."""
