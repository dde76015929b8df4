"""Made-up people, places, goods and sentences in several languages. Nobody in here exists."""

from __future__ import annotations

from .art import Art

SURNAMES = [
    "Okafor",
    "Lindqvist",
    "Moreau",
    "Tanaka",
    "Almeida",
    "Kowalski",
    "Haddad",
    "Nguyen",
    "Petrov",
    "Schneider",
    "Rossi",
    "Garcia",
    "Andersson",
    "Novak",
    "Silva",
    "Khan",
    "Murphy",
    "Dubois",
    "Kim",
    "Fischer",
    "Martin",
    "Jansen",
    "Popescu",
    "Horvath",
    "Costa",
    "Eriksen",
    "Yilmaz",
    "Mensah",
    "Chen",
    "Specimen",
    "Mustermann",
    "Sample",
    "Larsen",
    "Brown",
    "Weber",
    "Ivanova",
    "Bakker",
]
GIVEN = [
    "Amara",
    "Johan",
    "Claire",
    "Yuki",
    "Pedro",
    "Ania",
    "Layla",
    "Minh",
    "Sergei",
    "Anna",
    "Marco",
    "Lucia",
    "Erik",
    "Jana",
    "Bruno",
    "Aisha",
    "Liam",
    "Sophie",
    "Jiwoo",
    "Max",
    "Erika",
    "Marie",
    "Daan",
    "Ioana",
    "Peter",
    "Carla",
    "Nora",
    "Emre",
    "Kofi",
    "Mei",
    "Olga",
    "Tom",
    "Ingrid",
    "Noah",
    "Emma",
    "Samuel",
    "Maria",
    "Ben",
    "Lena",
    "Oscar",
]
CITIES = [
    "Norhaven",
    "Velmora",
    "Castelbruck",
    "Santa",
    "Irena",
    "Port",
    "Alder",
    "Kvistdal",
    "Oranburg",
    "Lowmere",
    "Tarnow",
    "Field",
    "Montclair",
    "Zelena",
    "Gora",
    "Riverton",
    "Eastwick",
    "Bad",
    "Lauter",
    "Vila",
    "Nova",
    "Kessel",
    "Marlow",
    "Upton",
    "Greenford",
    "Halden",
    "Arden",
    "Brixholm",
]
# Code, name in its own language, word for "passport", and for the cards.
COUNTRIES = (
    ("UTO", "UTOPIA", "PASSPORT", "IDENTITY CARD", "DRIVING LICENCE", "RESIDENCE PERMIT"),
    (
        "VLM",
        "REPUBLIC OF VELMORA",
        "PASSPORT / PASSEPORT",
        "NATIONAL IDENTITY CARD",
        "DRIVER LICENSE",
        "RESIDENCE PERMIT",
    ),
    (
        "FRL",
        "RÉPUBLIQUE FRÉLANDAISE",
        "PASSEPORT",
        "CARTE NATIONALE D'IDENTITÉ",
        "PERMIS DE CONDUIRE",
        "TITRE DE SÉJOUR",
    ),
    ("DEK", "BUNDESREPUBLIK DEKLAND", "REISEPASS", "PERSONALAUSWEIS", "FÜHRERSCHEIN", "AUFENTHALTSTITEL"),
    (
        "ESN",
        "REINO DE ESNIA",
        "PASAPORTE",
        "DOCUMENTO NACIONAL DE IDENTIDAD",
        "PERMISO DE CONDUCCIÓN",
        "PERMISO DE RESIDENCIA",
    ),
    (
        "PTV",
        "REPÚBLICA PORTOVENSE",
        "PASSAPORTE",
        "CARTÃO DE CIDADÃO",
        "CARTA DE CONDUÇÃO",
        "AUTORIZAÇÃO DE RESIDÊNCIA",
    ),
    ("ITR", "REPUBBLICA ITERANA", "PASSAPORTO", "CARTA DI IDENTITÀ", "PATENTE DI GUIDA", "PERMESSO DI SOGGIORNO"),
    ("NLW", "KONINKRIJK NEDERWAARD", "PASPOORT", "IDENTITEITSKAART", "RIJBEWIJS", "VERBLIJFSTITEL"),
    ("POL", "RZECZPOSPOLITA POLNA", "PASZPORT", "DOWOD OSOBISTY", "PRAWO JAZDY", "KARTA POBYTU"),
    ("SVD", "KONUNGARIKET SVEDA", "PASS", "IDENTITETSKORT", "KÖRKORT", "UPPEHÅLLSTILLSTÅND"),
    ("USX", "UNITED STATES OF NOWHERE", "PASSPORT", "IDENTIFICATION CARD", "DRIVER LICENSE", "PERMANENT RESIDENT"),
    ("MYA", "MALAYANIA", "PASPORT", "KAD PENGENALAN", "LESEN MEMANDU", "PERMIT"),
    ("TRK", "TÜRKELI CUMHURIYETI", "PASAPORT", "KIMLIK KARTI", "SÜRÜCÜ BELGESI", "IKAMET IZNI"),
    ("IND", "REPUBLIC OF INDORA", "PASSPORT", "IDENTITY CARD", "DRIVING LICENCE", "REGISTRATION CERTIFICATE"),
)
STATES = [
    "NORTHFIELD",
    "CALDERA",
    "WASHBURN",
    "NEW",
    "ALBION",
    "MONTARA",
    "OLYMPIA",
    "TEXANA",
    "DAKOTA",
    "SUR",
    "FLORINA",
    "MAINLAND",
]
MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]

PROSE = {
    "en": (
        "the of and a to in is that it was for on are as with they at be this from have or by one had not "
        "but what all were when we there can an your which their said if do will each about how up out them "
        "then she many some so these would other into has more her two like him see time could no make than "
        "first been its who now people my made over did down only way find use may water long little very "
        "after words called just where most know report measure result system analysis section table figure "
        "method value policy agreement party service"
    ),
    "fr": (
        "le la les de des et un une à dans que est il pour sur pas qui au par avec son plus ce cette nous "
        "vous mais comme tout été faire être deux même aussi entre après sans peut temps où très bien encore "
        "travail société résultat méthode service contrat données"
    ),
    "de": (
        "der die das und in zu den von mit ist im für auf nicht sich des dem ein eine als auch es an werden "
        "aus er hat dass sie nach wird bei einer um am sind noch wie einem über so zum war haben nur oder "
        "aber vor zur bis mehr durch Vertrag Ergebnis Verfahren Leistung Prüfung"
    ),
    "es": (
        "el la de que y a en un ser se no haber por con su para como estar tener le lo todo pero más hacer o "
        "poder decir este ir otro ese si me ya ver porque dar cuando muy sin vez mucho saber qué sobre mi "
        "alguno mismo resultado informe contrato servicio"
    ),
}
CYRILLIC = [
    "и",
    "в",
    "не",
    "на",
    "я",
    "быть",
    "он",
    "с",
    "что",
    "а",
    "по",
    "это",
    "она",
    "этот",
    "к",
    "но",
    "они",
    "мы",
    "весь",
    "который",
    "из",
    "у",
    "то",
    "за",
    "свой",
    "весь",
    "год",
    "от",
    "так",
    "для",
    "ты",
    "же",
    "все",
    "тот",
    "мочь",
    "вы",
    "человек",
]
GREEK = [
    "και",
    "το",
    "να",
    "του",
    "η",
    "της",
    "με",
    "που",
    "την",
    "από",
    "για",
    "τα",
    "είναι",
    "των",
    "σε",
    "ο",
    "οι",
    "στο",
    "θα",
    "τη",
    "στην",
    "τον",
    "δεν",
    "τους",
    "ένα",
    "μια",
]

GOODS = [
    "Milk",
    "Bread",
    "Eggs",
    "Butter",
    "Apples",
    "Bananas",
    "Coffee",
    "Tea",
    "Sugar",
    "Rice",
    "Pasta",
    "Tomatoes",
    "Cheese",
    "Yoghurt",
    "Chicken",
    "Salmon",
    "Water",
    "Juice",
    "Soap",
    "Batteries",
    "Notebook",
    "Pen",
    "Cable",
    "Lamp",
    "Screws",
    "Paint",
    "Socks",
    "T-shirt",
    "Chocolate",
    "Onions",
    "Potatoes",
    "Flour",
    "Oil",
    "Salt",
    "Honey",
    "Cereal",
    "Espresso",
    "Sandwich",
    "Soup",
    "Salad",
    "Dessert",
    "Beer",
    "Wine",
]
SERVICES = [
    "Consulting hours",
    "Hosting, monthly",
    "Licence renewal",
    "Design work",
    "Travel expenses",
    "Support plan",
    "Spare parts",
    "Installation",
    "Transport",
    "Training day",
    "Maintenance contract",
    "Steel bracket 40 mm",
    "Office chair",
    "Printer toner",
    "Translation",
    "Cleaning service",
    "Software subscription",
    "Laboratory test",
]
COMPANIES = [
    "Brightwell Ltd",
    "Nordvik AS",
    "Castellan GmbH",
    "Maison Verte",
    "Delta Freight",
    "Orchard & Sons",
    "Quantica SA",
    "Hillside Foods",
    "Blue Harbour Inc.",
    "Talvi Oy",
    "Kestrel Systems",
    "Moreno Hermanos",
    "Atelier Sud",
    "Greenline Energy",
    "Polaris Instruments",
    "Fjord Coffee",
    "Corner Market",
    "Sunrise Bakery",
]


def surname(art: Art) -> str:
    """A surname."""
    return art.pick(SURNAMES)


def given(art: Art) -> str:
    """One or two given names."""
    first = art.pick(GIVEN)
    return f"{first} {art.pick(GIVEN)}" if art.chance(0.35) else first


def city(art: Art) -> str:
    """A town that is on no map."""
    return art.pick(CITIES)


def sentence(art: Art, words: int, language: str = "en") -> str:
    """Words of the language in no order, with a capital and a full stop."""
    if language == "ru":
        stock = CYRILLIC
    elif language == "el":
        stock = GREEK
    else:
        stock = PROSE[language].split()
    drawn = [art.pick(stock) for _ in range(max(1, words))]
    text = " ".join(drawn)
    return text[:1].upper() + text[1:] + "."


def paragraph(art: Art, sentences: int, language: str = "en") -> str:
    """So many sentences."""
    return " ".join(sentence(art, art.whole(5, 16), language) for _ in range(sentences))


def title(art: Art, words: int, language: str = "en") -> str:
    """Capitalised words without a full stop."""
    return sentence(art, words, language).rstrip(".").title()


def language(art: Art, wide: bool) -> str:
    """A language that the face can draw."""
    return art.pick(("en", "en", "en", "fr", "de", "es", "ru", "el") if wide else ("en", "en", "en", "fr", "de", "es"))


def price(art: Art, high: float = 90.0) -> float:
    """An amount with two decimals."""
    return round(art.between(0.5, high), 2)


def money(value: float, symbol: str = "") -> str:
    """As printed, with thousands apart."""
    return f"{symbol}{value:,.2f}"
