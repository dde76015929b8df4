"""Generated from `proto/pointsman/v1/`: the decision record, and the services that explain and inspect."""
