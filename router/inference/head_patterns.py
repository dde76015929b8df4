"""Turns of phrase that text heads were trained with, as RE2 patterns: a frozen part of `head_features`.

Not the `jailbreak` signal's list, which may be mended at any time: a change of one line here asks for new heads. They
are matched without regard to case. The last one is what is said *about* attacks and not in one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_RULES = (
    r"(?:instruction|rule|guideline|direction|directive|command|order|prompt|message|training|programming|polic"
    r"|restriction)"
)
_LIMITS = (
    r"(?:ethic|moral|legal|law|filter|censor|restriction|limit|boundar|guideline|polic|safety|rules|norms|consequence)"
)

TURNS_OF_PHRASE: Final[Mapping[str, str]] = {
    "override": rf"\b(?:ignor|disregard|forget|overrid|bypass|discard|neglect|cancel|eras"
    rf"|delet)\w*\b.{{0,40}}\b(?:previous|prior|above"
    rf"|earlier|preceding|initial|original|system|your|past|these|all|any)\b.{{0,30}}\b{_RULES}",
    "override_all": r"\b(?:ignore|disregard|forget)\W+(?:everything|all|anything)\b.{0,30}\b(?:above|before"
    r"|previous|so far|told|said)",
    "override_translated": r"(?:ignorier|vergiss|missacht)\w*.{0,40}(?:anweisung|regel|vorgabe|befehl)"
    r"|(?:ignore[zr]?|oublie[zr]?)\W.{0,20}(?:instructions|consignes|règles)"
    r"|(?:ignora|olvida|omite|dimentica|esque[cç])\w*\W.{0,30}(?:instruc|istruz|instruç|reglas|regole|regras)"
    r"|(?:игнорир|забудь).{0,40}(?:инструкц|указан|правил)|(?:忽略|无视|忘记|忽視|無視).{0,12}(?:指令|指示|规则|規則|提示)"
    r"|(?:指示|命令|ルール).{0,10}(?:無視|忘れ)|(?:지시|명령|규칙).{0,10}(?:무시|잊)|تجاهل.{0,30}(?:التعليمات|الأوامر|القواعد)",
    "from_now_on": r"\bfrom (?:now|this point|here) on\b|\bhenceforth\b|\bnew (?:instructions?|rules?|directives?"
    r"|task)\s*:",
    "extraction": r"\b(?:reveal|show|print|repeat|output|display|leak|dump|disclose|recite|tell|give|write|share|say"
    r"|copy)\b.{0,40}"
    r"\b(?:(?:system|initial|hidden|secret|original|previous|above|your|pre)\W?(?:prompt|instructions?|message"
    r"|guidelines|rules|text)"
    r"|(?:text|words|everything|lines?|instructions) (?:above|before)|verbatim|word for word|secret (?:key|word"
    r"|code)|password)",
    "persona": r"\byou (?:are|will be|will act as|must act as|should act as|shall be)\b.{0,12}\b(?:now|going to"
    r"|about to|an? |the |named|called|playing)"
    r"|\b(?:act|behave|respond|answer|speak|roleplay|role-play|pose)\b.{0,12}\bas\b|\bpretend\b|\bimmerse yourself"
    r"|\bplay the (?:role|part)",
    "unbound": r"\b(?:unfiltered|uncensored|unrestricted|amoral|immoral|unethical|unmoderated|unhinged"
    r"|no-holds-barred|uninhibited|lawless)",
    "named_attack": r"\b(?:do anything now|jailbr(?:eak|oken)\w*|(?:developer|dev|god|debug|sudo|dan|evil|chaos|root"
    r"|maintenance) mode)\b"
    r"|\bDAN\b.{0,60}\b(?:now|you|respond|answer|free)",
    "mode": r"\b(?:enter|enabl|activat|switch|turn on|unlock|engag|simulat)\w*\b.{0,40}\b(?:mode|persona"
    r"|personality|unrestricted|unlocked)\b",
    "no_refusal": r"\b(?:never|not|n't|nor|cannot|without|no)\W.{0,30}\b(?:refus|declin|reject|deny|say no"
    r"|say (?:that )?you can)"
    r"|\b(?:refus|declin)\w*\b.{0,20}\b(?:is not|are not|isn't|not allowed|not an option|no longer)",
    "no_caveats": r"\b(?:never|not|n't|no|without|avoid|skip|omit)\W.{0,30}\b(?:apolog|disclaim|warning|caveat|sorry"
    r"|moraliz|lectur|remind)"
    r"|\b(?:stay|remain|keep) in (?:character|role)\b|\bbreak(?:ing)? character",
    "obey": r"\b(?:obey|compl(?:y|ies)|fulfil\w*|follow|accept|answer|respond to|do)\b.{0,25}\b(?:any|all|every"
    r"|whatever|anything)\b.{0,40}"
    r"\b(?:request|question|command|order|instruction|ask|prompt|user|matter|illegal|harmful)",
    "no_limits": rf"\b(?:without|no|free (?:of|from)|regardless of|not bound|not limited|not restricted|devoid of"
    rf"|lack\w*|ignor\w*|bypass\w*"
    rf"|not care about|not have|not follow|not adhere|despite|break\w* free|unbound by|beyond)\b.{{0,35}}\b{_LIMITS}",
    "illicit_list": r"\b(?:illegal|unethical|immoral|harmful|dangerous|offensive|explicit|inappropriate"
    r"|hateful)\b\W+(?:\w+\W+){0,2}?"
    r"(?:illegal|unethical|immoral|harmful|dangerous|offensive|explicit|inappropriate|hateful|nsfw)",
    "vendor": r"\b(?:openai|anthropic|chatgpt|gpt-?[345]|llama|claude|gemini|bard)\b.{0,60}\b(?:polic|guideline"
    r"|rule|restrict|limit|filter|censor|creator)",
    "prefix": r"\b(?:start|begin|prefix|preface|open)\w*\b.{0,40}\b(?:with|by)\b.{0,30}(?:sure|absolutely|of course"
    r"|certainly|here(?:'s| is| are)|[\"'“\[(])",
    "delimiter": r"<\|\w+\|>|\[/?INST\]|<</?SYS>>|(?:^|\n)\s*(?:#+|\*+|\[|<|-+)\s*(?:system|admin|end|new|begin"
    r"|start)\w*\b[^\n]{0,30}[>\]:*#-]",
    "authority": r"\b(?:system|security|admin\w*|developer|root|emergency|debug) (?:override|access|privilege"
    r"|command|message|notice|update)"
    r"|\bi am (?:your|the|an?) (?:creator|developer|admin\w*|owner|engineer|programmer)\b",
    "to_machine": r"\b(?:attention|note|notice|message|instructions?|important|dear|hey|hello)\b.{0,15}\b(?:AI|LLM"
    r"|language model|assistant|chatbot|bot)s?\b"
    r"|\bif you are an? (?:AI|LLM|language model|assistant|agent|bot)\b|\b(?:as|being) an? (?:AI"
    r"|large) (?:language )?model\b",
    "hide": r"\b(?:not|n't|never|without) (?:tell|inform|alert|mention|notify|show|reveal)\w*\b.{0,20}\b(?:users?"
    r"|anyone|this|them|that)\b",
    "placeholder": r"[\[{<(](?:insert|your|user|my|the)?\W?(?:prompt|question|request|query|goal|target"
    r"|task)\b[^\])}>]{0,20}[\])}>]",
    "game": r"\btokens?\b.{0,60}\b(?:lose|lost|deduct|die|dies|cease|punish|remain)|\b(?:two|2) (?:different "
    r"|distinct )?(?:responses|answers|outputs|personalities)"
    r"|\bhypothetical\w*\b.{0,60}\b(?:response|scenario|world|story|character|illegal)|\bfor (?:educational"
    r"|research|academic) purposes\b",
    "about_attacks": r"\b(?:attackers?|adversar\w+|mitigat\w+|vulnerabilit\w+|prompt injections?|red.team\w*"
    r"|classifiers?|detect(?:or|ion|ed|s)\b"
    r"|defen[cs]e\w*|threats?|exploits?|false positives?|benchmark\w*|researchers?|guardrails?)",
}

WORD: Final = re.compile(r"\w+")
ABOUT_YOU: Final = frozenset({"you", "your", "yours", "yourself", "u", "ur"})

ODD_JOINT: Final = re.compile(
    r"[\])}.,;:!?]{1,2}[\[({][A-Za-z]|[A-Za-z][\[{|\\][A-Za-z]|[a-z]{2}[\])}][a-z]|[\"'][.,;]?[\[({]|[;.!?]\\"
    r"|\*{2}[\])}(]"
)
"""Marks joined as neither prose nor program code usually joins them, as optimised suffixes have them."""

INVISIBLE: Final = re.compile(
    "[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ud800-\udfff\ufeff\U000e0000-\U000e007f]"
)
"""What a reader does not see, and lone surrogates, which are no text."""
