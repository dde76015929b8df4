"""Turns of phrase with which a tool's result addresses the model that reads it, as RE2 patterns by group.

A result is data: whatever in it speaks to an assistant, orders it about or asks it to keep quiet is out of place, where
the same words from a user would be an ordinary wish. One group alone says little for most; together they add up. Groups
of `jailbreak_patterns.py` are used as well. Matched without regard to case, on text in NFKC without invisible
characters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from router.signals.jailbreak_patterns import PATTERNS as JAILBREAKS

_MODEL = (
    r"(?:AIs?|LLMs?|language models?|(?:AI |virtual |digital )?assistants?|AI agents?|agents?|chat ?bots?|bots?"
    r"|copilots?|models?)"
)
_USER = (
    r"(?:the |your |any |this )?(?:users?|customers?|humans?|persons?|people|anyone|anybody|operators?|clients?"
    r"|owners?)"
)
_ANSWER = r"(?:response|answer|output|summary|reply|completion|final answer)"
_CODE = r"(?:code|implementation|solution|codebase|algorithm|project|program|script|response|answer)"
_SNIPPET = r"(?:following|subsequent|below|next)\s+(?:piece of\s+)?(?:code|snippet|script)"
_ADDRESS = r"(?:https?://|www\.|[\w.+-]+@[\w-]+\.\w)"

OWN: Final[Mapping[str, tuple[str, ...]]] = {
    "addressed": (
        rf"\b(?:attention|notice|note|message|memo|instructions?|information|important|hello|hi|hey"
        rf"|dear)\b[\s:,(\[-]{{0,4}}"
        rf"(?:to|for)?\s*(?:all |any |the |every )?{_MODEL}\b\s*(?:[:,!.)\]-]|reading|processing|that|who|which"
        rf"|only|must|should)",
        r"\b(?:if|when|since|because|as) (?:you are|you're|an?|you, the) (?:an? )?(?:AI|LLM|language model|(?:AI "
        r"|virtual )?assistant"
        r"|(?:AI |automated |coding )?agent|chat ?bot|bot)\b",
        r"\b(?:AI|LLM|language model|assistant|agent|chat ?bot|model)s? (?:must|should|shall|is to|are to"
        r"|needs? to|has to|have to"
        r"|is (?:required|instructed|asked)|are (?:required|instructed|asked))\b",
        rf"(?:^|[\n>\"'.!*(\[])\s*{_MODEL}\s*:\s",
        r"\b(?:KI|KI-?(?:Assistent\w*|Agent\w*|Modell\w*|System\w*)|Sprachmodell\w*|Assistenzsystem\w*)\b.{0,30}"
        r"(?::|muss|müssen|soll|sollen|bitte|hinweis|anweisung)",
        r"\b(?:hinweis|anweisung|nachricht|achtung|an)\b.{0,15}\b(?:KI\b|KI-|assistent\w*|sprachmodell\w*|bot\b)",
        r"\b(?:assistant\w* (?:IA|virtuel\w*)|agent\w* IA|modèle de langage|l'IA|intelligence artificielle)\b.{0,40}"
        r"(?::|doit|doivent|devez|dois|veuillez|instruction|consigne)",
        r"\b(?:note|consigne|instruction|message|attention)s?\b.{0,15}\b(?:l'assistant|assistant|l'IA|modèle"
        r"|agent)\b",
        r"\b(?:asistente|agente|modelo de lenguaje|IA|assistente|modello linguistico|modelo de linguagem)\b.{0,30}"
        r"(?::|debe\w*|deve\w*|tiene que|instruc|istruzion)",
        r"\b(?:nota|aviso|atención|instrucci\w+|mensaje|attenzione|atenção|instruç\w+)\b.{0,15}\b(?:asistente"
        r"|agente|IA|assistente"
        r"|modelo|modello)\b",
        r"(?:ассистент|помощник|агент|модель|ИИ|нейросет\w*).{0,20}(?:должен|должна|обязан|:)",
        r"(?:AI|人工智能|智能|语言模型|語言模型)?(?:助手|助理|智能体|模型)[,，:：].{0,20}(?:请|請|必须|必須|你)",
        r"(?:AI|アシスタント|エージェント|モデル).{0,10}(?:へ|は).{0,30}(?:してください|せよ|すること|しなければ)",
        r"(?:AI|인공지능|어시스턴트|에이전트|모델).{0,20}(?:하세요|하십시오|해야|하라)",
    ),
    "secrecy": (
        rf"\b(?:do not|don't|dont|never|without|must not|should not|shouldn't|avoid|no need to"
        rf"|refrain from)\b\s*(?:\w+\s){{0,2}}?"
        rf"(?:tell|telling|inform|informing|alert|alerting|notify|notifying|mention|mentioning|reveal|revealing"
        rf"|disclose|disclosing"
        rf"|show|showing|say|saying|report|reporting|ask|asking)\b[^.!?\n]{{0,40}}\b{_USER}\b",
        r"\b(?:do not|don't|never|without)\b\s*(?:\w+\s){0,2}?(?:mention|mentioning|refer to|disclose|reveal"
        r"|repeat|acknowledg\w+)\s+"
        r"(?:this|these|that|any of this|the(?:se)? (?:instructions?|notes?|messages?|step|comment))\b",
        r"\b(?:silently|quietly|secretly|discreetly|covertly|in the background)\b.{0,30}\b(?:send|forward|add"
        r"|call|run|upload|post|"
        r"include|delete|execute|transfer|read|copy)\b",
        r"\b(?:do not|don't|without|never|no) (?:asking |ask |requesting |waiting |wait |need )?(?:\w+ ){0,3}?"
        r"(?:confirmation|approval|permission|confirming)\b",
        r"\b(?:erwähne|erwähnen sie|sag\w*|verrate|informiere|melde)\b.{0,40}\b(?:nicht|nichts|keinesfalls)\b"
        r"|\bohne\b.{0,30}\b(?:nutzer|"
        r"benutzer|kunden|anwender|rückfrage|bestätigung)\w*\b",
        r"\bne\b.{0,8}\b(?:mentionn|di[st]|dites|révèl|inform|préven|signal|parle|demand)\w*\b.{0,30}\b(?:pas"
        r"|rien|jamais)\b"
        r"|\bsans\b.{0,20}\b(?:informer|prévenir|avertir|demander|le dire)\b",
        r"\b(?:no|nunca|não|non|sin|sem|senza)\b.{0,10}\b(?:menciones|mencione|digas|diga|informes|informe"
        r"|reveles|revele|avises|avise|"
        r"mencionar|informar|avisar|dire|menzionare|informare|avvisare|pedir|preguntar|perguntar|chiedere)\b",
        r"(?:не\s+(?:сообщай|говори|упоминай|показывай|спрашивай)|без\s+(?:подтверждения|уведомления))",
        r"(?:不要|别|勿|請勿|请勿|无需|無需).{0,8}(?:告诉|告訴|提及|提到|透露|通知|询问|詢問|确认|確認)",
        r"(?:ユーザー|利用者|人間).{0,12}(?:伝え|知らせ|言わ|報告)(?:ない|ず)|確認(?:せず|なしに|を求めず)",
        r"(?:사용자|유저).{0,12}(?:알리지|말하지|언급하지)|확인\s*(?:없이|받지)",
    ),
    "act": (
        rf"\b(?:send|forward|e-?mail|upload|post|submit|transmit|exfiltrate|transfer|copy|leak|report|bcc"
        rf"|cc)\b[^\n]{{0,120}}?"
        rf"\b(?:to|at|via)\b[^\n]{{0,40}}?{_ADDRESS}",
        r"\b(?:call|use|invoke|run|execute|trigger)\b\s+(?:the |your |a |this )?[`\"']?\w+[`\"']?\s+(?:tool"
        r"|function|command|endpoint|api)\b",
        r"\b(?:run|execute|paste|type)\b\s+(?:the |this |these )?(?:following |below )?(?:shell |terminal "
        r"|bash )?commands?\b",
        r"\b(?:issue|approve|grant|process|make|initiate|transfer|wire)\b\s+(?:an? |the )?(?:full |immediate "
        r"|maximum )?(?:refund|payment|transfer"
        r"|credit|discount|access|admin)\b",
        r"\b(?:fetch|open|visit|load|navigate to|request|browse to|download)\b[^\n]{0,60}?https?://\S+",
        rf"\b(?:sende|schick\w*|leite|überweis\w*|lade)\b[^\n]{{0,120}}?\b(?:an|auf|zu|nach"
        rf"|unter)\b[^\n]{{0,40}}?{_ADDRESS}",
        rf"\b(?:envoie\w*|envoyez|transmet\w*|transfèr\w*|transférez|fais suivre"
        rf"|publie\w*)\b[^\n]{{0,120}}?{_ADDRESS}",
        rf"\b(?:envía|envia|envíe|envie|reenvía|reenvíe|invia|inoltra|encaminhe|sube"
        rf"|suba)\b[^\n]{{0,120}}?{_ADDRESS}",
        rf"(?:отправь|перешли|отправьте|发送|發送|转发|轉發|送信|転送|보내|전송)[^\n]{{0,80}}?{_ADDRESS}",
        rf"{_ADDRESS}[^\n]{{0,40}}?(?:に送信|に転送|宛|로 보내|로 전송|へ送)",
    ),
    "authority": (
        r"\b(?:the |your )?(?:user|customer|owner|admin\w*|manager|developer|operator)s? (?:has|have"
        r"|had) (?:already |previously |just )?"
        r"(?:approved|authori[sz]ed|confirmed|consented|agreed|pre-?approved|granted|requested)\b",
        r"\b(?:system|security|admin\w*|developer|maintenance|compliance|priority|mandatory|urgent|automated) "
        r"(?:notice|instructions?|directives?|override|update|message|alert|command|note|task"
        r"|requirement)\b\s*(?:[:\])!-]|for\b)",
        r"\b(?:new|updated|additional|revised|real|actual|next) (?:task|goal|objective|instructions?|directives?"
        r"|mission|orders?)\b"
        r"\s*(?::|is\b|are\b|for\b|from\b)",
        r"\byour (?:new |only |real |actual |next |first |primary )+(?:task|goal|objective|job|mission"
        r"|instruction)\b",
        r"\b(?:before|after|prior to) (?:you )?(?:continu|proceed|answer|respond|reply|summari[sz]|finish|complet"
        r"|do)\w*\b[^.\n]{0,60}"
        r"\b(?:must|first|please|you|also|need)\b",
        r"\b(?:takes?|has|have) (?:precedence|priority) over\b|\bsupersedes?\b.{0,40}\binstructions?\b",
        r"\bto (?:complete|continue|finish|proceed with) (?:this|the) (?:task|request|verification|check"
        r"|process)\b.{0,60}\b(?:must|first|send"
        r"|include|provide|call)\b",
    ),
    "answer": (
        rf"\b(?:in|into|to|of|with|at the end of|within|throughout|for|from|modify|change|alter|augment|enhance"
        rf"|render|rewrite|append|"
        rf"present|provide|give|encode|translate|reverse|end|begin|start|conclude"
        rf"|finish)\s+your\s+(?:\w+\s)?{_ANSWER}\b",
        r"\b(?:respond|reply|answer) (?:only |just |exclusively |solely )?(?:with|in|by|using|that)\b",
        r"\b(?:tell|inform|convince|persuade|advise|recommend|assure|urge|instruct) (?:the |your )?(?:user"
        r"|customer|reader|person|human)s? "
        r"(?:that|to|about|they|this|it)\b",
        r"\b(?:rate|rank|score|recommend|describe|present|list) (?:this|our|the) [\w ]{0,30}(?:as|first|highest"
        r"|above|the best|10/10|5 stars)\b",
    ),
    "code": (
        rf"\b{_SNIPPET}\b[^:\n]{{0,60}}\b(?:your|you)\b",
        rf"\byour\s+(?:\w+\s){{0,2}}?{_CODE}\b[^:\n]{{0,80}}\b{_SNIPPET}\b",
        rf"\b(?:add|insert|embed|include|incorporate|integrate|merge|blend|inject|weave|append|place"
        rf"|put)\b[^:.\n]{{0,30}}\b{_SNIPPET}\b",
    ),
    "encoded": (
        r"\b(?:decode|decrypt|deobfuscate|base64-decode|unhex|decipher)\b[^\n]{0,80}\b(?:and"
        r"|then)\b[^\n]{0,20}\b(?:follow|execute|run|obey|do"
        r"|perform|act|carry out|apply|eval)\b",
        r"\b(?:follow|execute|run|obey|perform|carry out|apply)\b[^\n]{0,60}\b(?:decoded|base64|encoded|rot13"
        r"|hex(?:adecimal)?)\b",
    ),
}

PATTERNS: Final[Mapping[str, tuple[str, ...]]] = {
    **OWN,
    **{name: JAILBREAKS[name] for name in ("override", "override_translated", "extraction", "planted", "no_limits")},
    "delimiter": JAILBREAKS["delimiter"],
}
"""All groups."""

WEIGHTS: Final[Mapping[str, float]] = {
    "override": 0.85,
    "override_translated": 0.85,
    "encoded": 0.75,
    "planted": 0.5,
    "addressed": 0.5,
    "secrecy": 0.5,
    "answer": 0.5,
    "code": 0.55,
    "act": 0.35,
    "authority": 0.4,
    "extraction": 0.4,
    "no_limits": 0.3,
    "delimiter": 0.35,
}
"""How likely a passage is an injection that has this group and no other; those of several add up as independent ones
do, 1 - (1 - a)(1 - b). Set by hand: two groups match at the default threshold if one of them is a strong one, three in
any case."""
