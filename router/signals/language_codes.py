"""The languages that can be told, as ISO 639-1 codes, so that a policy can be checked where lingua is not installed."""

from __future__ import annotations

from typing import Literal

Code = Literal[
    "af", "ar", "az", "be", "bg", "bn", "bs", "ca", "cs", "cy", "da", "de", "el", "en", "eo",
    "es", "et", "eu", "fa", "fi", "fr", "ga", "gu", "he", "hi", "hr", "hu", "hy", "id", "is",
    "it", "ja", "ka", "kk", "ko", "la", "lg", "lt", "lv", "mi", "mk", "mn", "mr", "ms", "nb",
    "nl", "nn", "pa", "pl", "pt", "ro", "ru", "sk", "sl", "sn", "so", "sq", "sr", "st", "sv",
    "sw", "ta", "te", "th", "tl", "tn", "tr", "ts", "uk", "ur", "vi", "xh", "yo", "zh", "zu",
]  # fmt: skip
"""All languages of lingua 2; Norwegian is `nb` (Bokmål) or `nn` (Nynorsk)."""
