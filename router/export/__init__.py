"""Makes model packs out of published checkpoints: fetch, recognise, export to ONNX, quantise, hold against PyTorch.

Needs the extra `export`. Nothing that serves imports it; `errors`, `kinds`, `images` and `golden` can be imported
without the extra.
"""
