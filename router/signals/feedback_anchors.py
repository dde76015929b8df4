"""What people say about the answer that they have just got, and what they say when they simply go on.

Short examples written for this project, for the `feedback` signal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NEUTRAL: Final = "none"
"""The label of a turn that says nothing about the answer before it."""

EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "satisfied": (
        "Thanks, that is exactly what I needed.",
        "Perfect, it works now.",
        "Great answer, thank you very much.",
        "Awesome, you solved my problem.",
        "That helped a lot, thanks.",
        "Thank you.",
        "Brilliant, that is clear now.",
        "Yes, that was right. Well done.",
        "Wonderful, I appreciate your help.",
        "Good, I understand it now.",
    ),
    "dissatisfied": (
        "That is not what I asked for.",
        "This is useless, you are not helping.",
        "You did not answer my question.",
        "I already told you that, stop repeating yourself.",
        "That did not help at all, try again.",
        "I asked you this already and still have no answer.",
        "You are ignoring what I said.",
        "This answer is terrible.",
        "I am disappointed, that is far too vague.",
        "Again: please answer what I asked.",
        "No, I meant something else. Read my question again.",
        "Stop guessing. I said something different.",
    ),
    "wrong_answer": (
        "That is wrong.",
        "Your answer is incorrect, check it again.",
        "No, that is not true.",
        "You made a mistake in the calculation.",
        "The code does not work, it gives an error.",
        "This still fails with the same error.",
        "The result should be something else, you got it wrong.",
        "That fact is false, the date is wrong.",
        "There is an error in your second step.",
        "I tried it and it does not work.",
        "You contradict yourself; it can't be right.",
        "You made that up, it does not exist.",
    ),
    "needs_clarification": (
        "What do you mean by that?",
        "I don't understand, can you explain it more simply?",
        "Could you clarify the last point?",
        "Sorry, I am confused.",
        "Can you say that in other words?",
        "Please repeat that, I did not get it.",
        "What does that word in your answer mean?",
        "I am lost. Explain it step by step.",
        "Can you give an example of what you mean?",
        "Explain it as if I were five.",
        "Why is that so? I don't follow.",
        "Huh? Could you say it again?",
    ),
    NEUTRAL: (
        "Now do the same for the other file.",
        "And what about the second one?",
        "How do I do this in another language?",
        "Next, write a test for it.",
        "Can you also add a table?",
        "Make it shorter and add a title.",
        "What should I buy for the journey?",
        "How much does it cost?",
        "Book a table for two at seven.",
        "Where can I find the nearest one?",
        "What is the weather like tomorrow?",
        "Why is my payment still pending?",
        "Tell me more about its history.",
        "Which one is better for a beginner?",
        "Yes, please go on.",
        "Here is the text that you asked for.",
        "I have two children and a dog.",
        "Let's talk about something else.",
        "How does this work in winter?",
        "Can I use it without an account?",
        "Translate it into French.",
        "Hello, I have a question.",
        "Yes.",
        "No.",
        "Yes, that is correct, do it.",
        "No, I have not tried that yet.",
        "What is the definition of this word?",
        "What does this foreign word mean in English?",
        "Explain what photosynthesis is.",
        "Why does my program print an error, and how do I fix it?",
        "Which of these statements is false?",
        "Find the mistake in the following text and correct it.",
        "Write a function that checks whether the input is valid.",
        "Is it wrong to lie to a friend?",
    ),
}
"""Examples by label."""
