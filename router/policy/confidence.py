"""How sure a condition tree is of its own value, in 0-1; what settles a tie of priority.

- A leaf that matched has its observation's score, or 1 where the family has none; a leaf that did not match has 1 minus
  its score, or 1.
- A leaf that asks for a number in a range: where the number is a count or a projection's value, it is certain. Where it
  is the score s, it is as sure as s that it lies above a bound, as 1 - s that it lies below one, and as the lesser of
  both between two; and one minus that when it does not lie there.
- A leaf that asks for a label and finds another one is as sure of that as of what it found.
- `not` has its child's confidence: to be sure that something is false is to be sure that its negation is true.
- `at_least` N of n that is true is as sure as its N-th surest true child. One that is false is so because n - N + 1
  children are false, and as sure as the least sure of the surest n - N + 1 of those. `all` is `at_least` n and `any`
  is `at_least` 1, so that De Morgan's laws hold for confidence too. Empty ones are certain.
- Unknown has 0.

Confidence never decides whether a tree matches, only who goes first among equals. Leaves are computed in
`predicate.py`; trees, also those whose signals have not all answered, in `bounds.py`.
"""
