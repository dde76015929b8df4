"""Generated from `proto/pointsman/`."""
