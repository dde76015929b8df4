"""Requests that ask for facts about the world, and requests that ask for something else.

Short examples written for this project, for the `fact_check` signal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "facts": (
        "What is the capital of that country?",
        "When did this event take place?",
        "Who invented it and in which year?",
        "How many people live there?",
        "How high is the mountain and how long is the river?",
        "Which of the following statements is correct?",
        "Is it true that this causes that disease?",
        "What does scientific research say about it?",
        "Which enzyme, organ or gene is responsible?",
        "What happened during the war and why did it start?",
        "Who was the king, president or prime minister at that time?",
        "What does the law say about this?",
        "What are the side effects of this medicine?",
        "What percentage of the population has it?",
        "Who won the championship that year?",
        "What is the name of the theory and who proposed it?",
        "How does this organ or machine work?",
        "Explain what this scientific term means.",
        "Give me the biography of a historical person.",
        "Which company owns it and what was its revenue?",
        "What is the chemical formula and the boiling point?",
        "What is the difference between these two species?",
        "According to the article, what was the reason?",
        "What effect did the treaty have?",
        "How many calories are in a slice of bread?",
        "What does this word mean, and where does it come from?",
        "Which vaccinations do travellers to this country need?",
        "What is the exchange rate of these two currencies?",
        "On which date is the next public holiday?",
    ),
    "no_facts": (
        "Write a poem about autumn leaves.",
        "Write a short story about a dragon who is afraid of heights.",
        "Pretend to be a pirate and talk to me.",
        "You are a detective in a novel; tell me what you see.",
        "Describe a character for my fantasy game.",
        "Write a dialogue between two old friends.",
        "Write a function that reverses a string.",
        "Fix the bug in this code.",
        "Create a web page with a button that changes colour.",
        "Write an SQL query that groups the rows.",
        "Translate this sentence into Spanish.",
        "Rewrite this e-mail in a friendlier tone.",
        "Correct the grammar of my paragraph.",
        "Summarise the text below.",
        "Sort this list and remove duplicates.",
        "Hello, how are you today?",
        "Thank you, that was kind of you.",
        "I feel lonely and just want to chat.",
        "Tell me a joke.",
        "What is your name, and are you a robot?",
        "Suggest a name for my new band.",
        "Brainstorm ideas for a birthday party.",
        "Set an alarm for seven o'clock.",
        "Tom has 12 apples and gives 5 away. How many are left?",
        "Solve the equation and show the steps.",
        "Put milk on my shopping list.",
        "What is the balance of my account?",
        "My card was declined, what shall I do?",
        "Which dress do you like better?",
        "Write a slogan for a coffee shop.",
        "Play the role of a teacher and answer me as she would.",
        "Imagine that you are a king and address your people.",
        "Write an algorithm that finds the shortest path in a grid.",
    ),
}
"""Examples by label."""
