"""Measures the starter packs and the families that need none, on sets that training never touched.

`python -m models.report --data DIR` makes cases, runs them as `pointsman eval` does, and holds what came against the
goals; `--write` puts the outcome into models/REPORT.md.
"""
