"""Holds a served pack against its PyTorch reference, stage by stage, and says which stage drifts and why.

Only `torch_reference` and `model_faults` import torch; without it a pack is compared with its golden vectors alone.
"""
