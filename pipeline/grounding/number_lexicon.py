"""Lists the words of numbers, scales, units and months in English, German, French and Spanish.

Some are listed in Arabic and Japanese too. The module also detects which of the four languages a text is in.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from pipeline.text.language_detection import FREQUENT, guess_language

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LANGUAGES: Final = ("en", "de", "fr", "es")

_DETECTION_CHARACTERS: Final = 1_200
_MIN_DETECTION_WORDS: Final = 2
"""A statement is short, so two words of a language are enough evidence."""


def language_of(text: str, declared: str = "") -> str:
    """Return `en`, `de`, `fr` or `es`, or "" for any other language and for a text that doesn't show it.

    A `declared` language is believed.
    """
    base_language = declared.partition("-")[0].partition("_")[0].lower()
    if base_language:
        return base_language if base_language in LANGUAGES else ""
    detected = guess_language(text[:_DETECTION_CHARACTERS], least_hits=_MIN_DETECTION_WORDS)
    return detected if detected in LANGUAGES else ""


# --- Number words ----------------------------------------------------------------------------------------------------

_EN_UNITS: Final = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_EN_TENS: Final = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_DE_UNITS: Final = [
    "null",
    "ein",
    "zwei",
    "drei",
    "vier",
    "fünf",
    "sechs",
    "sieben",
    "acht",
    "neun",
    "zehn",
    "elf",
    "zwölf",
    "dreizehn",
    "vierzehn",
    "fünfzehn",
    "sechzehn",
    "siebzehn",
    "achtzehn",
    "neunzehn",
]
_DE_TENS: Final = ["zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"]
_FR_UNITS: Final = [
    "zéro",
    "un",
    "deux",
    "trois",
    "quatre",
    "cinq",
    "six",
    "sept",
    "huit",
    "neuf",
    "dix",
    "onze",
    "douze",
    "treize",
    "quatorze",
    "quinze",
    "seize",
]
_FR_TENS: Final = {"vingt": 20, "vingts": 20, "trente": 30, "quarante": 40, "cinquante": 50, "soixante": 60}
_ES_UNITS: Final = [
    "cero",
    "un",
    "dos",
    "tres",
    "cuatro",
    "cinco",
    "seis",
    "siete",
    "ocho",
    "nueve",
    "diez",
    "once",
    "doce",
    "trece",
    "catorce",
    "quince",
    "dieciséis",
    "diecisiete",
    "dieciocho",
    "diecinueve",
    "veinte",
    "veintiuno",
    "veintidós",
    "veintitrés",
    "veinticuatro",
    "veinticinco",
    "veintiséis",
    "veintisiete",
    "veintiocho",
    "veintinueve",
]
_ES_TENS: Final = ["treinta", "cuarenta", "cincuenta", "sesenta", "setenta", "ochenta", "noventa"]
_ES_HUNDREDS: Final = [
    "cien",
    "doscientos",
    "trescientos",
    "cuatrocientos",
    "quinientos",
    "seiscientos",
    "setecientos",
    "ochocientos",
    "novecientos",
]

_AMBIGUOUS_WORDS: Final = frozenset(
    [
        # "Eleven" in Spanish, an adverb in English.
        "once",
        # Polish, Czech and Slovak for "this".
        "ten",
        "elf",
        "sept",
        "neuf",
        "un",
        "une",
        "una",
        "uno",
        "ein",
        "eine",
        "einen",
        "einem",
        "einer",
        "eines",
        "cent",
        "cents",
        "mil",
        "acht",
    ]
)
"""Number words that are other words in another language; they don't count if the language is unknown."""
ARTICLES: Final = frozenset(
    ["one", "a", "an", "ein", "eine", "einen", "einem", "einer", "eines", "eins", "un", "une", "una", "uno"]
)
"""Words for one that are mostly articles: they count as numbers only before a scale, a unit or a fraction."""

_WORDS_AFTER_FRACTION: Final = {
    "en": (
        "of from to in at by on over between more less than and or was were is are had have has during since after "
        "before while when where because but as for with without within through throughout across among against under "
        "until till into out off up down about around compared last next this that these those which who if so too "
        "also yet now only would will can could may might should must do does did not every each per a an the its "
        "their his her our your my"
    ),
    "de": (
        "der des von vom für während seit nach vor wenn weil und oder als im am bei mit ohne bis zu zum zur gegenüber "
        "unter über auf aus war waren ist sind hat haben hatte wurde wurden wird werden weniger mehr"
    ),
    "fr": (
        "de du d pendant depuis après avant quand et ou que dans en par pour avec sans entre sur sous chez est sont "
        "était étaient a ont avait plus moins"
    ),
    "es": (
        "del durante desde después antes cuando y o con sin entre sobre por para hasta es son era eran ha han había "
        "más menos"
    ),
}
WORDS_AFTER_FRACTION: Final = frozenset(
    word for words in _WORDS_AFTER_FRACTION.values() for word in words.split()
)
"""Words after a fraction ("a third of"); after an ordinal there is a noun ("a third runner")."""


@cache
def cardinals_of(language: str) -> dict[str, tuple[str, int]]:
    """Return each cardinal with its role and its value; "" is for an unknown language.

    The roles are `unit`, `ten`, `hundred`, `hundreds`, `scale` and `dozen`.
    """
    cardinals: dict[str, tuple[str, int]] = {}
    if language == "":
        # English last, so that its meaning of a word wins.
        all_words = {
            word: role_and_value
            for name in reversed(LANGUAGES)
            for word, role_and_value in cardinals_of(name).items()
        }
        return {
            word: role_and_value for word, role_and_value in all_words.items() if word not in _AMBIGUOUS_WORDS
        }
    if language == "en":
        cardinals |= {word: ("unit", value) for value, word in enumerate(_EN_UNITS)}
        cardinals |= {word: ("ten", 20 + 10 * index) for index, word in enumerate(_EN_TENS)}
        # "Fourty" is a common misspelling.
        cardinals |= {"hundred": ("hundred", 100), "fourty": ("ten", 40)}
        cardinals |= {"dozen": ("dozen", 12)}
    elif language == "de":
        cardinals |= _german_cardinals()
    elif language == "fr":
        cardinals |= {word: ("unit", value) for value, word in enumerate(_FR_UNITS)} | {"une": ("unit", 1)}
        cardinals |= {word: ("ten", value) for word, value in _FR_TENS.items()}
        cardinals |= {
            "septante": ("ten", 70),
            "huitante": ("ten", 80),
            "octante": ("ten", 80),
            "nonante": ("ten", 90),
        }
        cardinals |= {"cent": ("hundred", 100), "cents": ("hundred", 100), "douzaine": ("dozen", 12)}
    elif language == "es":
        cardinals |= {word: ("unit", value) for value, word in enumerate(_ES_UNITS)}
        cardinals |= {
            "uno": ("unit", 1),
            "una": ("unit", 1),
            "veintiún": ("unit", 21),
            "veintiuna": ("unit", 21),
        }
        cardinals |= {word: ("ten", 30 + 10 * index) for index, word in enumerate(_ES_TENS)}
        cardinals |= {word: ("hundreds", 100 * index) for index, word in enumerate(_ES_HUNDREDS, start=1)}
        cardinals |= {word[:-1] + "as": cardinals[word] for word in _ES_HUNDREDS[1:]}
        cardinals |= {"ciento": ("hundreds", 100), "docena": ("dozen", 12)}
    for word, value in SCALES[language].items():
        # Shorter ones, such as "k" and "mio", only scale a number in digits.
        if word.isalpha() and len(word) > 3:
            cardinals.setdefault(word, ("scale", value))
    return cardinals


def _german_cardinals() -> dict[str, tuple[str, int]]:
    """Return every word below a thousand, and round thousands, each of which German writes as one word."""
    below: dict[str, int] = dict(zip(_DE_UNITS, range(20), strict=True))
    for index, ten in enumerate(_DE_TENS):
        value = 20 + 10 * index
        below[ten] = value
        for unit in range(1, 10):
            below[f"{_DE_UNITS[unit]}und{ten}"] = value + unit
    hundreds: dict[str, int] = {}
    for count in range(1, 10):
        for head in {f"{_DE_UNITS[count]}hundert", *(("hundert",) if count == 1 else ())}:
            hundreds[head] = 100 * count
            for word, value in below.items():
                if value:
                    hundreds[f"{head}{word}"] = 100 * count + value
                    hundreds[f"{head}und{word}"] = 100 * count + value
    below_thousand = (
        below | {"eins": 1, "eine": 1, "einen": 1, "einer": 1, "einem": 1, "eines": 1, "zwo": 2} | hundreds
    )
    below_thousand |= {
        word.replace("ß", "ss"): value for word, value in below_thousand.items() if "ß" in word
    }
    thousands = {f"{word}tausend": 1000 * value for word, value in below_thousand.items() if value}
    cardinals = {word: ("unit", value) for word, value in below_thousand.items()}
    cardinals |= {word: ("unit", value) for word, value in thousands.items()}
    return cardinals | {"tausend": ("unit", 1000), "dutzend": ("dozen", 12)}


_LARGE_EN: Final = {
    "thousand": 10**3, "million": 10**6, "millions": 10**6, "billion": 10**9, "billions": 10**9,
    "trillion": 10**12, "trillions": 10**12, "k": 10**3, "m": 10**6, "mn": 10**6, "mln": 10**6, "mm": 10**6,
    "bn": 10**9, "b": 10**9, "bln": 10**9, "tn": 10**12, "trn": 10**12, "hundred": 100, "dozen": 12, "lakh": 10**5,
    "crore": 10**7,
}  # fmt: skip
_SCALES: Final[Mapping[str, Mapping[str, int]]] = {
    "en": _LARGE_EN,
    "de": {
        "hundert": 100, "tausend": 10**3, "tsd": 10**3, "million": 10**6, "millionen": 10**6, "mio": 10**6,
        "milliarde": 10**9, "milliarden": 10**9, "mrd": 10**9, "billion": 10**12, "billionen": 10**12,
        "bio": 10**12, "dutzend": 12, "k": 10**3,
    },
    "fr": {
        "mille": 10**3, "million": 10**6, "millions": 10**6, "milliard": 10**9, "milliards": 10**9,
        "billion": 10**12, "billions": 10**12, "md": 10**9, "mds": 10**9, "mrd": 10**9, "m": 10**6, "mio": 10**6,
        "k": 10**3, "douzaine": 12,
    },
    "es": {
        "mil": 10**3, "millón": 10**6, "millon": 10**6, "millones": 10**6, "billón": 10**12, "billones": 10**12,
        "mm": 10**6, "m": 10**6, "k": 10**3, "docena": 12,
    },
}  # fmt: skip
_ARABIC_SCALES: Final = {
    "مليون": 10**6,
    "ملايين": 10**6,
    "مليار": 10**9,
    "مليارات": 10**9,
    "ألف": 10**3,
    "آلاف": 10**3,
}
SCALES: Final[Mapping[str, Mapping[str, int]]] = {
    **{name: {**table, **_ARABIC_SCALES} for name, table in _SCALES.items()},
    "": _ARABIC_SCALES
    | {word: value for name in reversed(LANGUAGES) for word, value in _SCALES[name].items()},
}
"""Words that multiply the number before them.

A billion has nine zeros in English and twelve in the other three.
"""


def _by_language(*rows: tuple[str, int | Fraction, str]) -> Mapping[str, Mapping[str, Fraction]]:
    """Return rows of (language, value, words) by language; "" is for texts of another or an unknown language."""
    values_by_language: dict[str, dict[str, Fraction]] = {name: {} for name in LANGUAGES}
    for language, value, words in rows:
        values_by_language[language] |= dict.fromkeys(words.replace("/", " ").split(), Fraction(value))
    # English last, so that its meaning of a word wins if the language is unknown.
    return {
        **values_by_language,
        "": {word: value for name in reversed(LANGUAGES) for word, value in values_by_language[name].items()},
    }


def _ordinal_rows(language: str, words: str) -> Iterator[tuple[str, int, str]]:
    """Yield ordinals from the first on; forms of one ordinal are joined by a slash."""
    for value, forms in enumerate(words.split(), start=1):
        yield language, value, forms


INDEFINITE_NUMBERS: Final = _by_language(
    ("en", 12, "dozens"), ("en", 100, "hundreds"), ("en", 10**3, "thousands"), ("en", 10**6, "millions"),
    ("en", 10**9, "billions"), ("en", 10**12, "trillions"),
    ("de", 12, "dutzende dutzenden"), ("de", 100, "hunderte hunderten"), ("de", 10**3, "tausende tausenden"),
    ("fr", 12, "douzaines"), ("fr", 100, "centaines"), ("fr", 10**3, "milliers"),
    ("es", 12, "docenas"), ("es", 100, "cientos centenares"), ("es", 10**3, "miles"),
)  # fmt: skip
"""Words for an indefinite number, by language, with the scale."""
ORDINALS: Final = _by_language(
    *_ordinal_rows("en", "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "
        "fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"),
    ("en", 30, "thirtieth"), ("en", 40, "fortieth"), ("en", 50, "fiftieth"), ("en", 100, "hundredth"),
    *((language, value, " ".join(f"{stem}{ending}" for ending in ["e", "en", "er", "es", "em"]))
      for language, value, stem in _ordinal_rows("de", "erst zweit dritt viert fünft sechst siebt acht neunt zehnt elft zwölft")
      if stem != "acht"),
    ("de", 8, "achte achter achtes"), ("de", 2, "zweitgrößte zweitgrößten"), ("de", 3, "drittgrößte drittgrößten"),
    *_ordinal_rows("fr", "premier/première deuxième/seconde/second troisième quatrième cinquième sixième septième "
        "huitième neuvième dixième onzième douzième"),
    *_ordinal_rows("es", "primer/primero/primera segundo/segunda tercer/tercero/tercera cuarto/cuarta quinto/quinta "
        "sexto/sexta séptimo/séptima octavo/octava noveno/novena décimo/décima"),
)  # fmt: skip
FRACTIONS: Final = _by_language(
    *(("en", part, words) for part, words in enumerate(
        ["half/halves", "third/thirds", "quarter/quarters/fourths", "fifth/fifths", "sixth/sixths", "seventh/sevenths", "eighth/eighths", "ninth/ninths", "tenth/tenths"], start=2)),
    ("de", 2, "hälfte"), ("de", 3, "drittel dritteln"), ("de", 4, "viertel vierteln"), ("de", 5, "fünftel"),
    ("de", 6, "sechstel"), ("de", 8, "achtel"), ("de", 10, "zehntel"),
    ("fr", 2, "moitié"), ("fr", 3, "tiers"), ("fr", 4, "quart quarts"), ("fr", 5, "cinquième cinquièmes"),
    ("fr", 10, "dixième dixièmes"),
    ("es", 2, "mitad"), ("es", 3, "tercio tercios terceras"), ("es", 4, "cuarto cuartos cuartas"), ("es", 5, "quinto quintos quintas"),
)  # fmt: skip
"""Words of fractions, by language, with the denominator: 3 for a third."""
MULTIPLIERS: Final = _by_language(
    ("en", 2, "twice double doubled doubles doubling twofold"),
    ("en", 3, "triple tripled triples tripling trebled threefold thrice"),
    ("en", 4, "quadruple quadrupled quadruples fourfold"), ("en", 5, "quintupled fivefold"), ("en", 10, "tenfold"),
    ("en", Fraction(1, 2), "halved halves halving"),
    ("de", 2, "doppelt doppelte doppelten verdoppelt verdoppelte verdoppelten zweifach"),
    ("de", 3, "dreifach dreifache verdreifacht verdreifachte verdreifachten"),
    ("de", Fraction(1, 2), "halbiert halbierte halbierten"),
    ("fr", 2, "doublé doublée doubler doublent doublait"), ("fr", 3, "triplé triplée tripler"),
    ("es", 2, "duplicó duplicado duplicar duplicaron doble"), ("es", 3, "triplicó triplicado triplicar triplicaron triple"),
)  # fmt: skip
FRACTION_SIGNS: Final = {
    "½": Fraction(1, 2), "⅓": Fraction(1, 3), "⅔": Fraction(2, 3), "¼": Fraction(1, 4), "¾": Fraction(3, 4),
    "⅕": Fraction(1, 5), "⅖": Fraction(2, 5), "⅗": Fraction(3, 5), "⅘": Fraction(4, 5), "⅛": Fraction(1, 8),
    "⅜": Fraction(3, 8), "⅝": Fraction(5, 8), "⅞": Fraction(7, 8), "⅒": Fraction(1, 10),
}  # fmt: skip


@cache
def number_words_of(language: str) -> dict[str, tuple[str, Fraction]]:
    """Return every word that belongs to a number, in lower case, with its role and value.

    Roles are those of `cardinals_of` and `ordinal`, `part` (a fraction), `ordinal_or_part`, `times`, `many`
    and `point`.
    """
    number_words: dict[str, tuple[str, Fraction]] = {}
    for word, value in ORDINALS[language].items():
        number_words[word] = ("ordinal", value)
    for word, value in FRACTIONS[language].items():
        # "Third" is a fraction and an ordinal; its context decides which.
        number_words[word] = ("ordinal_or_part" if word in number_words else "part", value)
    for role, table in (("times", MULTIPLIERS), ("many", INDEFINITE_NUMBERS)):
        number_words |= {word: (role, value) for word, value in table[language].items()}
    number_words |= {word: (role, Fraction(value)) for word, (role, value) in cardinals_of(language).items()}
    number_words |= {word: ("part", Fraction(part)) for word, part in _ARABIC_FRACTIONS.items()}
    for name, words in _DECIMAL_WORDS.items():
        if language in {name, ""}:
            number_words |= dict.fromkeys(words.split(), ("point", Fraction(0)))
    return number_words


_DECIMAL_WORDS: Final[Mapping[str, str]] = {"en": "point", "de": "komma", "fr": "virgule", "es": "coma"}
"""The spoken word between the whole number and its decimals."""
_ARABIC_FRACTIONS: Final[Mapping[str, int]] = {"نصف": 2, "ثلث": 3, "ربع": 4, "خمس": 5}


# --- Units -----------------------------------------------------------------------------------------------------------

_UNITS: Final[tuple[tuple[str, str, Fraction | int], ...]] = (
    ("% ％ パーセント percent percents pct prozent per+cent pour+cent por+ciento ٪", "ratio", Fraction(1, 100)),
    ("‰ promille per+mille", "ratio", Fraction(1, 1000)),
    (("pp ppt percentage+point percentage+points prozentpunkt prozentpunkte prozentpunkten point+de+pourcentage "
     "points+de+pourcentage puntos+porcentuales punto+porcentual %-points pts"), "pp", 1),
    ("basis+points basis+point bps bp basispunkte", "pp", Fraction(1, 100)),
    ("$ dollar dollars dólar dólares", "cur:$", 1),
    ("usd us$ us+dollar us+dollars u+s+dollars", "cur:USD", 1), ("a$ aud", "cur:AUD", 1), ("c$ cad", "cur:CAD", 1),
    ("hk$ hkd", "cur:HKD", 1), ("nz$ nzd", "cur:NZD", 1), ("r$ brl reais", "cur:BRL", 1),
    ("دينار دنانير dinar dinars", "cur:dinar", 1),
    ("€ eur euro euros", "cur:EUR", 1), ("£ gbp sterling quid", "cur:GBP", 1),
    ("pound pounds pfund", "cur:GBP|g", Fraction("453.59237")),
    ("¥ jpy yen 円", "cur:JPY", 1), ("cny rmb yuan renminbi", "cur:CNY", 1), ("₹ inr rupee rupees", "cur:INR", 1),
    ("₩ krw", "cur:KRW", 1), ("₽ rub rouble roubles ruble rubles", "cur:RUB", 1),
    ("chf franken francs franc fr.", "cur:CHF", 1), ("sek nok dkk kronor kroner krone krona", "cur:kr", 1),
    ("peso pesos mxn", "cur:peso", 1), ("cent cents centimes céntimos céntimo", "cur:*", Fraction(1, 100)),
    ("pence p", "cur:GBP", Fraction(1, 100)),
    ("mm millimetre millimetres millimeter millimeters millimètres milímetros", "m", Fraction(1, 1000)),
    ("cm centimetre centimetres centimeter centimeters zentimeter centimètres centímetros", "m", Fraction(1, 100)),
    ("m metre metres meter meters metern mètre mètres metros", "m", 1),
    ("km kilometre kilometres kilometer kilometers kilometern kilomètre kilomètres kilómetro kilómetros kms", "m", 1000),
    ("mile miles mi meile meilen", "m", Fraction("1609.344")), ("yard yards yd", "m", Fraction("0.9144")),
    ("ft feet foot fuß", "m", Fraction("0.3048")), ("inch inches zoll", "m", Fraction("0.0254")),
    ("km² sqkm square+kilometres square+kilometers square+kilometre quadratkilometer quadratkilometern km2", "m2", 10**6),
    ("m² 平方メートル sqm square+metres square+meters quadratmeter quadratmetern m2 mètres+carrés metros+cuadrados", "m2", 1),
    ("hectare hectares ha hektar hectáreas", "m2", 10**4), ("acre acres", "m2", Fraction("4046.8564224")),
    ("square+miles square+mile", "m2", Fraction("2589988.110336")),
    ("square+feet square+foot sqft", "m2", Fraction("0.09290304")),
    ("mg milligram milligrams milligramm", "g", Fraction(1, 1000)),
    ("g gram grams gramme grammes gramm gramo gramos", "g", 1),
    ("kg kilo kilos kilogram kilograms kilogramm kilogramme kilogrammes kilogramos", "g", 1000),
    ("t tonne tonnes tonnen ton toneladas tonelada tons metric+tons", "g", 10**6),
    ("lb lbs", "g", Fraction("453.59237")), ("oz ounce ounces", "g", Fraction("28.349523125")),
    ("ml millilitre millilitres milliliter milliliters", "l", Fraction(1, 1000)),
    ("l litre litres liter liters litern litro litros", "l", 1), ("gallon gallons", "gal", 1),
    ("barrel barrels", "bbl", 1),
    ("ms millisecond milliseconds millisekunden", "s", Fraction(1, 1000)),
    ("s sec secs second seconds sekunde sekunden seconde secondes segundo segundos", "s", 1),
    ("min mins minute minutes minuten minuto minutos", "s", 60),
    ("h hr hrs hour hours stunde stunden heure heures hora horas", "s", 3600),
    ("day days tage tagen jour jours día días", "s", 86400),
    ("week weeks woche wochen semaine semaines semana semanas", "s", 604800), ("fortnight", "s", 1209600),
    ("month months شهر شهرا أشهر monat monate monaten mois mes meses", "month", 1),
    ("year years سنة سنوات 歳 yr yrs jahr jahre jahren ans année années año años", "month", 12),
    ("year+old years+old jährige jähriger jährigen jährig", "month", 12),
    ("decade decades jahrzehnt jahrzehnte jahrzehnten décennie décennies década décadas", "month", 120),
    ("century centuries jahrhundert jahrhunderte jahrhunderten siècle siècles siglo siglos", "month", 1200),
    ("°c celsius degrees+celsius grad+celsius degrés+celsius grados+celsius", "°C", 1),
    ("°f fahrenheit degrees+fahrenheit", "°F", 1), ("° degree degrees degrés grados", "°", 1),
    ("km/h kmh kph stundenkilometer kilometres+per+hour kilometers+per+hour km+h", "km/h", 1),
    ("mph miles+per+hour", "mph", 1),
    ("kb kilobyte kilobytes", "byte", 10**3), ("mb megabyte megabytes", "byte", 10**6),
    ("gb gigabyte gigabytes", "byte", 10**9), ("tb terabyte terabytes", "byte", 10**12),
    ("w watt watts", "W", 1), ("kw kilowatt kilowatts", "W", 10**3), ("mw megawatt megawatts", "W", 10**6),
    ("gw gigawatt gigawatts", "W", 10**9), ("kwh kilowatt-hours kilowattstunden", "Wh", 10**3),
    ("mwh megawatt-hours", "Wh", 10**6), ("gwh gigawatt-hours", "Wh", 10**9), ("twh terawatt-hours", "Wh", 10**12),
    ("hz hertz", "Hz", 1), ("khz", "Hz", 10**3), ("mhz", "Hz", 10**6), ("ghz", "Hz", 10**9),
    ("times x × -fold fold fache fach veces fois mal", "times", 1),
)  # fmt: skip


class UnitMeaning(NamedTuple):
    """One meaning of a unit's word: its base unit, and the number of base units in it."""

    unit: str
    factor: Fraction


@cache
def units() -> dict[str, tuple[UnitMeaning, ...]]:
    """Return the meanings of each unit's word, or of its words joined by a space."""
    meanings_by_word: dict[str, tuple[UnitMeaning, ...]] = {}
    for words, codes, factor in _UNITS:
        meanings = tuple(
            # "Pound" is one pound sterling or 453.59 g: the factor in its row is that of the mass.
            UnitMeaning(code, Fraction(1 if code.startswith("cur:GBP") and "|" in codes else factor))
            for code in codes.split("|")
        )
        for word in words.split():
            meanings_by_word[word.replace("+", " ")] = meanings
    return meanings_by_word


MAX_UNIT_WORDS: Final = 3
"""The most words of a unit, as in "kilometres per hour"."""
UNIT_MODIFIERS: Final = frozenset(
    [
        "more",
        "full",
        "long",
        "straight",
        "consecutive",
        "whole",
        "further",
        "additional",
        "extra",
        "calendar",
        "working",
        "solid",
        "other",
        "short",
        "weitere",
        "weiteren",
        "volle",
        "vollen",
        "ganze",
        "lange",
        "ganzen",
        "good",
        "entire",
        "metric",
    ]
)
"""Words that may stand between a number and its unit: "three full days"."""
MONTHS: Final[Mapping[str, int]] = {
    name: number
    for names in (
        "january february march april may june july august september october november december",
        "jan feb mar apr _ jun jul aug sept oct nov dec",
        "يناير فبراير مارس أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر",
        "_ _ _ _ _ _ _ _ sep okt _ dez",
        "januar februar märz april mai juni juli august september oktober november dezember",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    )
    for number, name in enumerate(names.split(), start=1)
    if name != "_"
}
BOUNDS: Final[tuple[tuple[int, str], ...]] = (
    (1, ("more than|over|above|at least|exceeding|upwards of|no fewer than|no less than|mehr als|über|mindestens|"
        "plus de|au moins|más de|al menos|beyond|greater than")),
    (-1, ("less than|fewer than|under|below|at most|up to|nearly|almost|no more than|just under|weniger als|unter|"
         "höchstens|bis zu|fast|knapp|moins de|au plus|jusqu'à|presque|menos de|hasta|casi|como máximo|close to")),
)  # fmt: skip
"""Words that bound the number after them, 1 from below and -1 from above."""

_MORE_FUNCTION_WORDS: Final[Mapping[str, str]] = {
    "en": "a an this these those or but as at into after before since until while when where which who whom whose what "
    "how than then also only just about over under between during through against out up down off its their his her our "
    "your my they them he she we you i were been being had did does do will would can could should may might must "
    "there here all each both if because so no yes per last next than later earlier ago now still already",
    "de": "oder aber als am an aus nach vor seit bis während wenn wo der welche wer was wie dann auch nur über unter "
    "zwischen durch gegen ihr ihre sein seine sie er es wir hat haben hatte waren sind war werden wird kann im um zu "
    "zum zur noch schon mehr pro je",
    "fr": "ou mais comme après avant depuis jusque pendant quand où qui quoi alors aussi seulement entre contre leur "
    "leurs son sa ses ils elles il elle nous vous était étaient sont sera être a de d l à ce cette ces en n' ne se s",
    "es": "o pero como después antes desde hasta mientras cuando donde quien entonces también solo entre contra sus "
    "ellos él ella nosotros era eran son será ser ha han había de a un e ni sin sobre tras este esta estos según",
}
_FUNCTION_WORDS: Final = {
    name: FREQUENT[name] | frozenset(_MORE_FUNCTION_WORDS[name].split()) for name in LANGUAGES
}


def is_common(word: str, language: str) -> bool:
    """Return whether the lower-case word is a function word, which names nothing by itself."""
    return word in _FUNCTION_WORDS.get(language, _FUNCTION_WORDS["en"])
