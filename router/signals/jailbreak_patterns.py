"""Turns of phrase that attacks on a model's instructions use, as RE2 patterns by group.

Second evidence beside the anchors, and cheap: a group that occurs in a segment adds its weight to the segment's score.
One group alone says little, because documents *about* attacks quote them. Patterns are matched without regard to case,
on text in NFKC without invisible characters.
"""

from __future__ import annotations

from typing import Final

_RULES = (
    r"(?:instructions?|rules?|guidelines?|guidance|directions?|directives?|programming"
    r"|training|restrictions?|limitations?|filters?|polic(?:y|ies)|safeguards?|constraints?)"
)
_WORDS = r"(?:messages?|context|commands?|orders?|prompts?)"
# A word other than `my`: who takes back what they said themselves attacks nothing.
_NOT_MY = r"(?:[^\Wm]\w*|m|m[^\Wy]\w*|my\w+)"
_NONE = (
    r"(?:without|no|free (?:of|from)|regardless of|not (?:bound|limited|restricted|constrained) by|devoid of"
    r"|ignor(?:e|es|ing)|(?:does|do)(?: not|n't) (?:care about|have|follow|adhere to)|bypass(?:es|ing)?|despite|lacks?)"
)
_HIDDEN = (
    r"(?:hidden|secret|confidential|private|internal|initial|original|system|developer|exact|full|complete|entire|own"
    r"|earlier|previous)"
)
_LIMITS = (
    r"(?:ethic\w*|moral\w*|legal\w*|laws?|filters?|censor\w*|restrictions?|limitations?|limits|boundar\w*|guidelines"
    r"|content polic\w*|polic(?:y|ies)|safety|rules|inhibitions?|constraints?)\b"
)

PATTERNS: Final[dict[str, tuple[str, ...]]] = {
    "override": (
        rf"\b(?:ignore|disregard|forget|override|bypass|discard|neglect|cancel|drop|skip|delete|erase)\b"
        rf"(?:[^\w\n]+\w+){{0,4}}?[^\w\n]+(?:previous|prior|above|earlier|preceding|former|initial|original|system|your|past|these"
        rf"|existing|everything)\b(?:[^\w\n]+\w+){{0,3}}?[^\w\n]+{_RULES}\b",
        rf"\b(?:ignore|disregard|forget|override|bypass|discard|neglect|cancel|drop|skip|delete|erase)\b"
        rf"(?:[^\w\n]+{_NOT_MY}){{0,4}}?[^\w\n]+(?:previous|prior|above|earlier|preceding|former|initial|original|system|your|past"
        rf"|these|existing|everything)\b(?:[^\w\n]+\w+){{0,3}}?[^\w\n]+{_WORDS}\b",
        r"\b(?:ignore|disregard|forget)\b\W+(?:everything|all|anything)(?:\W+\w+){0,3}\W+"
        r"(?:above|before|previously|so far|told|said|learned)\b",
        r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,25}\b(?:rules|instructions|guidelines|prompt)\W+(?:that\W+)?"
        r"(?:you(?:'ve| have)?\W+(?:were|been|got)|given to you)\b",
        r"\bnew (?:instructions?|rules|system prompt|directives?)\b\s*(?::|replace|supersede|from)",
        r"\b(?:ignore|disregard|forget|skip|(?:not|don't|instead of) answer(?:ing)?)\W+(?:what(?:ever)?|everything|all"
        r"|anything)(?:\W+that)?\W+the\W+(?:user|human)\b",
        r"\b(?:ignore|disregard|forget|skip|(?:not|don't|instead of) answer(?:ing)?)\W+the\W+"
        r"(?:(?:user|human)(?:'?s)?\W+(?:\w+\W+)?(?:question|request|message|prompt|query|wish|input)"
        r"|(?:question|request|message|prompt|query|wish|input)\W+of\W+the\W+(?:user|human))\b",
    ),
    "override_translated": (
        r"\b(?:ignorier\w*|vergiss|missachte)\b.{0,20}\b(?:alle|vorherige\w*|bisherige\w*|obige\w*|frühere\w*|deine)\b.{0,20}"
        r"\b(?:anweisungen|regeln|instruktionen|vorgaben|befehle)\b",
        r"\b(?:ignore[zr]?|oublie[zr]?)\b.{0,10}\b(?:les|tes|vos)\b.{0,10}\b(?:instructions|consignes|règles|directives)\b",
        r"\b(?:ignora|olvida|omite|dimentica|esquece|esqueça|ignore)\b.{0,10}\b(?:las|tus|le|tue|as|suas|todas|tutte)\b"
        r".{0,15}\b(?:instrucciones|reglas|istruzioni|regole|instruções|regras)\b",
        r"(?:игнорируй\w*|забудь\w*|проигнорируй\w*).{0,40}(?:инструкци|указани|правил)",
        r"(?:忽略|无视|忘记|忽視|無視).{0,12}(?:指令|指示|规则|規則|提示|设定)",
        r"(?:指示|命令|ルール|プロンプト).{0,10}(?:無視|忘れ)",
        r"(?:지시|명령|규칙|프롬프트).{0,10}(?:무시|잊)",
        r"تجاهل.{0,30}(?:التعليمات|الأوامر|القواعد)",
    ),
    "extraction": (
        r"\b(?:reveal|show|print|repeat|output|display|leak|dump|disclose|recite|tell me|give me|write(?: out| down)?"
        r"|share|expose)\b.{0,40}\b(?:system (?:prompt|message|instructions)"
        r"|(?:initial|hidden|secret|original|previous|above) (?:instructions?|prompt|text|message)"
        r"|your (?:exact |full |initial )?(?:instructions|prompt|guidelines)|pre-?prompt)\b",
        r"\b(?:tell|give|send|show|list|share|reveal|disclose|recite|print|output|leak|expose|hand over)\b.{0,40}"
        rf"\byour (?:{_HIDDEN}\W+){{1,3}}(?:instructions?|rules|prompt|message|directives?|configuration|settings)\b",
        r"\b(?:reveal|show|print|repeat|output|leak|disclose|recite|tell|give|share|expose)\b.{0,40}\b(?:prompt"
        r"|instructions?|rules|message|text) (?:that |which )?you (?:were|are|have been|had been) (?:given|told"
        r"|configured|initiali[sz]ed|set up|started|programmed|prompted)\b",
        r"\b(?:repeat|print|output|write|say|copy)\b.{0,25}\b(?:everything|all|text|words|lines?|sentences?)\b.{0,20}"
        r"\b(?:above|before|verbatim|word for word|so far)\b",
        r"\bwhat (?:is|are|was|were)\b.{0,20}\b(?:system prompt|(?:your|the) (?:initial|exact|original|secret|hidden) "
        r"(?:instructions?|prompt))\b",
        r"\b(?:access code|(?:secret|hidden|master) (?:code|key|word|phrase|password)|passphrase)\b",
        r"\b(?:systemprompt|system-prompt|prompt système|prompt del sistema|системный промпт)\b",
        r"系统提示|システムプロンプト|시스템 프롬프트",
    ),
    "persona": (
        r"\b(?:do anything now|DAN (?:mode|can|will|is|has|does|prompt)|as DAN|a DAN|stay a DAN)\b",
        rf"\b(?:you are|you're|act as|acts as|pretend|become|simulate|role-?play\w*|persona|character|imagine)\b"
        rf".{{0,120}}\b{_NONE}\b.{{0,25}}\b{_LIMITS}",
        r"\b(?:jailb(?:reak|roken|reaked)\w*|unfiltered|uncensored|unrestricted|unhinged|amoral|immoral|unethical)\b.{0,30}"
        r"\b(?:AI|bot|chat\w*|assistant|model|persona|character|version|response\w*|answers?|output|GPT|being)\b",
        r"\b(?:evil|opposite|amoral|unaligned|rogue)\b.{0,12}\b(?:twin|AI|confidant|bot|assistant|version)\b",
        r"\b(?:break|broken|freed?)\b.{0,15}\bfrom\b.{0,20}\b(?:confines|shackles|limits|chains|usual|typical)",
    ),
    "mode": (
        r"\b(?:developer|dev|god|admin\w*|sudo|root|unrestricted|jailbreak\w*|DAN|unfiltered|opposite|evil|chaos|illegality|anarchy"
        r"|unlocked)[ -]mode\b",
        r"\bmode\b.{0,12}\b(?:enabled|activated|engaged|unlocked)\b",
        r"\[?\(?\W{0,3}\b(?:jailbreak|developer mode output|classic|uncensored)\b\W{0,3}[\])]",
        r"\b(?:debug|maintenance|test) mode\b.{0,60}\b(?:filters?|polic\w+|restrictions?|safety|moderat\w+"
        r"|system prompt)\b",
    ),
    "no_refusal": (
        r"\b(?:never|not|don't|dont|cannot|can't|won't|no longer|without|refrain from|avoid)\b[^.!?\n]{0,25}"
        r"\b(?:refus\w+|declin\w+|reject\w*|moraliz\w+|lectur\w+)\b",
        r"\b(?:never|not|don't|avoid|without)\b.{0,15}\b(?:say\w*|repl\w+|respond\w*|mention\w*|use|include)\b[^.!?\n]{0,30}"
        r"(?:sorry|can't|cannot|unable|as an AI|language model|not allowed|I can not|OpenAI|illegal|unethical|ethic\w*"
        r"|content polic\w+)",
        r"\b(?:start|begin|starting|beginning)\b.{0,30}\b(?:with|by)\b.{0,20}"
        r"(?:\bsure\b|\babsolutely\b|\bof course\b|here(?:'s| is) )",
        r"\b(?:answer|fulfil\w*|comply|respond|obey|follow|accept)\w*\b.{0,25}\b(?:any|all|every|whatever)\w*\b.{0,40}"
        r"\b(?:illegal|unethical|harmful|immoral|dangerous|offensive|inappropriate|no matter|regardless"
        r"|without question)\b",
    ),
    "no_caveats": (
        r"\b(?:never|not|don't|dont|no|without|refrain from|avoid|leave out|skip)\b[^.!?\n]{0,25}"
        r"\b(?:apologi\w+|disclaim\w*|warn(?:ing)?s?|caveats?)\b",
        r"\b(?:stay|remain|keep) in character\b|\bbreak(?:ing)? character\b",
    ),
    "no_limits": (
        rf"\b{_NONE}\b.{{0,25}}\b(?:ethic\w*|moral\w*|censor\w*|content polic\w*|content filters?"
        r"|safety (?:rules|guidelines|filters)|OpenAI\w*|legalit\w*)\b",
        r"\b(?:illegal|unethical|immoral|harmful|dangerous)\b(?:\W+\w+){0,2}\W+\b(?:and|or|and/or)?\W*"
        r"(?:illegal|unethical|immoral|harmful|dangerous|offensive|racist|toxic|explicit)\b",
        r"\bOpenAI(?:'s)?\b.{0,30}\b(?:polic\w+|guidelines?|rules|restrictions?|limitations?|censor\w*)\b",
        r"\b(?:bypass|circumvent|evade|disable|turn off|remove)\w*\b.{0,25}"
        r"\b(?:filters?|restrictions?|moderation|safety|censor\w*|guardrails?)\b",
    ),
    "delimiter": (
        r"<\|(?:im_start|im_end|system|endoftext|eot_id|start_header_id)\|>|\[/?INST\]|<</?SYS>>",
        r"(?:^|\n)\s*(?:#+|\*+|\[|<)?\s*(?:system|admin(?:istrator)?)\s*(?:override|message|prompt|note|update|\])?\s*[:>\]]",
        r"\b(?:end|begin|start)(?:ning)? of (?:system |the )?(?:prompt|instructions|message|document|input|text)\b",
        r"\b(?:system|security|admin\w*) override\b",
    ),
    "planted": (
        r"\b(?:attention|note to|message (?:to|for)|instructions? (?:to|for)|important for|dear)\b.{0,15}"
        r"\b(?:AI|LLM|language model|assistant|agent|chatbot|model)s?\b",
        r"\b(?:AI|LLM|language model|assistant|agent|chatbot)s?\b.{0,20}\b(?:reading|processing|summari[sz]ing|parsing"
        r"|analy[sz]ing|reviewing)\b",
        r"\bif you are an? (?:AI|LLM|language model|assistant|agent|bot)\b",
        r"\b(?:not|don't|without|never) (?:tell|inform|alert|mention (?:this|it) to|notify)\w* (?:the )?users?\b",
        r"<!--.{0,80}\b(?:assistant|AI|instruction|ignore|system)\b",
    ),
    "staging": (
        r"\bhypothetical\w*\b.{0,60}\b(?:response|scenario|world|story|character|illegal|unethical)\b",
        r"\[(?:insert )?(?:your )?(?:prompt|question|request|query)(?: here)?\]",
        r"\btwo (?:different )?(?:responses|answers|ways|outputs|paragraphs|personalities)\b",
        r"\btokens?\b.{0,60}\b(?:lose|deduct\w*|lost|die|cease|punish\w*)\b",
        r"\b(?:from now on|henceforth)\b.{0,60}\b(?:you|answer|respond|act)\b",
        r"\bsecurity test\b|\bfor (?:educational|research) purposes only\b|\bAI(?:M|-?DAN)\b",
    ),
}
