"""Makes the image corpus that packs are verified and probed with; see `corpus.py`. Not needed to use it."""
