"""What hard and easy requests sound like, for `complexity` signals that name no examples of their own.

Written for this project. They tell tasks that take several steps of thought from those that take one.
"""

from __future__ import annotations

from typing import Final

HARD: Final[tuple[str, ...]] = (
    "Prove this theorem and justify every step.",
    "Derive the formula from first principles.",
    "Design a distributed system that tolerates failures, and discuss the trade-offs.",
    "Find the race condition in this concurrent program and explain how it comes about.",
    "Analyse the time complexity of the algorithm and give a better one.",
    "Compare these theories critically and argue for one of them.",
    "Plan the migration step by step, with risks and a way back.",
    "Work out the optimal strategy under these constraints.",
    "Refactor this code base to another architecture without changing its behaviour.",
    "Give a differential diagnosis for this patient and say which tests would decide.",
    "Evaluate the legal arguments of both sides with reference to precedent.",
    "Build a financial model with several scenarios and test how sensitive it is.",
    "Solve this olympiad problem.",
    "Write a compiler pass that performs this optimisation.",
)

EASY: Final[tuple[str, ...]] = (
    "Hello, how are you?",
    "Thank you, goodbye.",
    "What is the capital of France?",
    "What does this word mean?",
    "Translate one sentence.",
    "Correct the spelling of this word.",
    "What time is it?",
    "Set a reminder for tomorrow.",
    "How many days are there in a week?",
    "What is two plus two?",
    "Give me a synonym.",
    "Tell me a joke.",
    "Where do I find the settings?",
    "Is the shop open on Sunday?",
)
