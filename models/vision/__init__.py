"""The recipe of the starter vision pack: train, calibrate, export, measure.

Needs torch, which the served project never imports; only `measure` runs without it.
"""
