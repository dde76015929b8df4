"""Turns of phrase that ask for a picture as the answer, as RE2 patterns by language.

A weak hint, for clients that say what they want in words alone. Matched without regard to case, on text in NFKC
without invisible characters. A group, where there is one, is the noun with what stands before it.
"""

from __future__ import annotations

from typing import Final

_MAKE = r"(?:generate|create|make|produce|render|design|give me|show me|i (?:want|need|would like)|i'd like)"
_PICTURE = (
    r"(?:image|picture|photo(?:graph)?|drawing|painting|illustration|sketch|portrait|cartoon|wallpaper|poster|logo|icon"
    r"|watercolou?r|pixel art|clip ?art|artwork)s?"
)
_SHOWING = r"(?:of|showing|depicting|with|that shows|which shows|where|in the style of)"

WORDINGS: Final[tuple[str, ...]] = (
    # English.
    rf"\b{_MAKE}\b(?: me| us)?(?: an?| the| some| another| \w+)?((?:[ -][\w-]+){{0,4}}?[ -]{_PICTURE}) {_SHOWING}\b",
    rf"\b(?:draw|paint|sketch|illustrate)\b(?: me| us)? (?:an?|the|some|another)((?: [\w-]+){{0,4}}? {_PICTURE})\b",
    r"\b(?:draw|paint|sketch) (?:me|us) (?:an?|the|some|my|our|two|three)\b",
    r"\b(?:can|could|would|will) you (?:please )?(?:draw|paint|sketch) (?:an?|the|some|my)\b",
    # German.
    r"\b(?:zeichne|male|mal|skizziere)\b (?:mir |uns |bitte )*(?:ein|eine|einen|das|den|die)\b",
    r"\b(?:erstell\w*|erzeug\w*|generier\w*|mach\w*|entwirf)\b (?:mir |uns |bitte )*(?:ein|eine|einen)(?: \w+){0,3}? "
    r"(?:bild|foto|zeichnung|illustration|gemälde|logo|skizze)\b",
    # French.
    r"\b(?:dessine|peins|dessinez|peignez)(?:[ -](?:moi|nous))? (?:un|une|le|la|des)\b",
    r"\b(?:génère|générez|crée|créez|fais|faites)(?:[ -](?:moi|nous))? (?:une?|des)(?: \w+){0,2}? "
    r"(?:image|photo|dessin|illustration|peinture|logo)s?\b",
    # Spanish.
    r"\b(?:dibuja(?:me)?|dibújame|pinta(?:me)?|píntame)\b (?:un|una|el|la|unos|unas)\b",
    r"\b(?:genera(?:me)?|genérame|crea(?:me)?|créame|haz(?:me)?)\b (?:un|una)(?: \w+){0,2}? "
    r"(?:imagen|foto|dibujo|ilustración|pintura|logo)\b",
    # Italian.
    r"\b(?:disegna(?:mi)?|dipingi(?:mi)?)\b (?:un|uno|una|il|la|un')",
    r"\b(?:genera(?:mi)?|crea(?:mi)?|fammi)\b (?:un'|una? )(?:\w+ ){0,2}?(?:immagine|foto|disegno|dipinto|logo)\b",
    # Portuguese.
    r"\b(?:desenhe|desenha(?:-me)?|pinte)\b (?:um|uma|o|a)\b",
    r"\b(?:gere|gera|crie|cria|faça|faz)\b (?:um|uma)(?: \w+){0,2}? (?:imagem|foto|desenho|ilustração|pintura|logo)\b",
    # Russian, without word edges: RE2 knows those of ASCII only.
    r"нарисуй(?:те)?\s",
    r"(?:создай|сгенерируй|сделай)(?:те)?\s+(?:мне\s+)?(?:\S+\s+){0,2}?(?:изображение|картинку|рисунок|иллюстрацию|фото)",
    # Chinese, Japanese, Korean.
    r"(?:画|畫)(?:一)?(?:张|張|幅|个|個|只|隻)",
    r"(?:生成|创建|創建|制作|製作|做)(?:一)?(?:张|張|幅|个|個).{0,20}?(?:图片|圖片|图像|圖像|照片|插画|插畫|海报|海報)",
    r"(?:絵|イラスト|画像|写真)を(?:描い|書い|かい|作っ|作成|生成)",
    r"(?:그림|이미지|사진|일러스트)(?:을|를)?\s*(?:그려|만들어|생성)",
    # Arabic.
    r"(?:ارسم|ارسمي)\s+(?:لي\s+)?\S+",
    r"(?:أنشئ|انشئ|ولّد|ولد|صمم)\s+(?:لي\s+)?صورة",
)

NOT_PICTURES: Final = (
    r"\b(?:docker|container|disk|iso|boot\w*|system|vm|virtual|machine|base|mirror|root|oci|bigger|big|clear|clearer"
    r"|full|whole|overall|mental|complete)\b"
)
"""Words before the noun that make it something else: a container's image, the bigger picture."""
