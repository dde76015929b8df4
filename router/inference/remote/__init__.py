"""Encoders whose forward pass another server does, over the Open Inference Protocol; the rest of their work stays here.

What signals ask, what is cached and what the parity gate holds is the same as with a graph of our own.
"""
