"""Guesses the language of a text from its script and its most frequent words."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

_Value = TypeVar("_Value")
MAX_DETECTION_CHARACTERS: Final = 4_000
"""The most characters of a text that are read: it shows its language within them, or not at all."""
_WORD: Final = re.compile(r"[^\W\d_]+")
_MIN_SHARE: Final = 0.08
"""The least share of frequent words, which are a third of a usual text; below it the language isn't listed."""

# Words that are frequent in one language and rare in others tell most; shared words count for each of their
# languages.
_LISTS: Final = {
    "cs": "a se na je že v z do to s pro jako by ale jsou který která které od po při také nebo podle už byl bylo jsem není",
    "da": "og i at det er en af til på for med den der som ikke de et har fra var men om kan blev også efter sig ved hun bliver når mere siger hvor mange være",
    "de": "der die das und ist ein eine den dem des im mit auf für von zu nicht sich auch als an wird nach bei dass sie wurde",
    "en": "the of and to in is a that for it was on with as by at from are be this have has had or not its which will they said more",
    "es": "el la los las y es una un del de en que por con para se su más al como lo fue no sus pero ha esta entre",
    "fi": "ja on ei se että oli ovat mutta kun myös tai hän sen ovat kuin jotka joka ole jo vain mukaan hänen niin nyt",
    "fr": "le la les des et est une un du de dans que qui pour sur pas au aux par ont plus ce sont avec il elle cette",
    "hu": "a az és hogy nem is egy van volt meg ez már csak de ki mint vagy azt szerint ha el kell még után ezt lesz",
    "it": "il la di che e un una è per in con del della dei delle gli non sono da si al alla anche come più nel nella ha lo",
    "nl": "de het een en van is in op te dat die voor met zijn niet aan er om ook als maar bij naar wordt uit werd door",
    "no": "og i at det er en av til på for med den som ikke de et har fra var men om kan ble også etter seg ved hun blir når mer sier hvor mange være",
    "pl": "w i na z się do nie jest że to o jak po od przez dla są oraz który która które przy jego za będzie może był czy",
    "pt": "o a os as e de do da dos das que em um uma para com não por se no na mais ao foi como são pelo pela à é",
    "ro": "și în de la cu o un pe că nu este din care pentru sunt a al ai ale fi mai după prin sau fost se dar au",
    "sv": "och i att det är en av till på för med den som inte de ett har från var men om kan blev också efter sig vid hon",
    "tr": "ve bir bu da de için ile olarak çok daha olan ne gibi kadar sonra var en değil ya her ama olduğu göre",
}
FREQUENT: Final = {name: frozenset(words.split()) for name, words in _LISTS.items()}
_LANGUAGES_BY_WORD: Final = {
    word: tuple(name for name, frequent in FREQUENT.items() if word in frequent)
    for word in frozenset[str]().union(*FREQUENT.values())
}
# Words that also show the language of a few sentences: "jusqu" and "qu" stand before an apostrophe.
_MORE_LISTS: Final = {
    "cs": "nás nám než když jen ještě bez velmi říká tak této této tento má mají",
    "da": "vi os noget uden får inden før skriv mange tak hos været deres eller kun",
    "de": "wir ihr uns euch unser unsere kein keine noch nur schon wieder aber oder wenn bis seit sagt sagte gibt es hat haben werden bitte am zum zur vom beim "
    "ohne über unter mehr hier sind war ich man kann",
    "en": "we you our your he she they their there been were would can could no only also but if when who what please us before after until about into says "
    "one some out still i",
    "es": "nos muy hay antes desde hasta sin sobre también porque cuando está están son fue ya todo todos este dice todavía donde le les",
    "fi": "jos sekä asti tämä ne meillä sanoo saa ilman mitä joka sitä",
    "fr": "nous vous je tu mais où leur leurs notre votre jusqu lorsqu qu l d n c j s lors chez depuis avant après sans sous entre aussi très fait dit être été "
    "était ces cet ses son sa on y a il ils elles chaque",
    "hu": "nincs volt mert lehet minden kell nélkül alatt mondta márc",
    "it": "ci fino ogni questo questa quando dove ancora molto solo siamo stato chi dal dalla dai sul sulla tra fra dice perché senza dell nell all sull "
    "dall c l d ad ed entro grazie mille",
    "nl": "wij we ons onze jullie geen nog maar heeft hebben tot onder zonder weer gaat zegt deze dit over tussen blijft alvast bedankt voor",
    "no": "vi oss noe uten får før skriv mange takk hos vært deres eller bare",
    "pl": "tak tym tego bez bardzo tylko już jeszcze ale gdy kiedy nas nam mówi prosimy",
    "pt": "até também muito já está ser há quando onde nós nos você disse diz ele ela depois antes sem sobre seu sua obrigado obrigada ainda só fica",
    "ro": "avem până fără spune ne este sunt lui noi",
    "sv": "vi oss något utan får eller när där detta säger mycket så före mot alla tack skriv blir",
    "tr": "yok dedi olmaz hem ancak göre olmadan",
}
_TELLING: Final = {name: FREQUENT[name] | frozenset(words.split()) for name, words in _MORE_LISTS.items()}
_SHARED_BY: Final = Counter(word for words in _TELLING.values() for word in words)
_FEW_WORDS: Final = 60
"""The most words that count as a few sentences."""
_MIN_WEIGHT: Final = 2.0
"""The least weight of the frequent words of a few sentences."""
_MIN_LEAD: Final = 1.5
"""The least ratio of that weight to the next language's."""
_ENDS_SENTENCE: Final = re.compile(r"[.!?\u2026](?!\w)")
_OWN_LETTERS: Final = {
    "az": frozenset("ə"),
    "tr": frozenset("ğış"),
    "vi": frozenset("ơưạảấầậắặẹếềệịọốồộớờợụủứừựỷ"),
}
"""Letters that only one language uses that often. Turkish has few frequent words, as it joins them to others."""
_MIN_OWN_LETTERS: Final = 0.03
"""The least share of such letters; a name or two in another language stay below it."""
# Letters, and for Bulgarian words, that tell the languages of one script apart.
_RUSSIAN: Final = frozenset("ыэё")
_UKRAINIAN: Final = frozenset("іїєґ")
_BULGARIAN: Final = frozenset(["е", "и", "на", "да", "се", "за", "от", "в", "са", "с", "като", "по", "не"])
_SERBIAN: Final = frozenset("јљњћђџ")
_PERSIAN: Final = frozenset("پچژگ")
_URDU: Final = frozenset("ٹڈڑےں")
_TRADITIONAL_TAGS: Final = frozenset({"hant", "tw", "hk", "mo"})
_TRADITIONAL: Final = frozenset("這個們說時會來國對學為與過還發後長東車點門無開關們橋書樂當從應實現經議讓請")
_SIMPLIFIED: Final = frozenset("这个们说时会来国对学为与过还发后长东车点门无开关们桥书乐当从应实现经议让请")
_MIN_OTHER_WORDS: Final = 40
"""The least words of a text that shows another language than was stated."""
_MIN_OTHER_LETTERS: Final = 120
"""The least letters of another script in such a text."""
_PLAIN_SHARE: Final = 0.2
"""The least share of frequent words in a text that is plainly in a language."""
_PLAIN_LEAD: Final = 2
"""The least ratio of these words to the frequent words of each other language."""
_PARTS: Final = 4
"""The number of parts that must not be in another language."""
# Languages of one line are mistaken for each other, or for a third one that has no list here.
_RELATED: Final = tuple(
    frozenset(names.split())
    for names in (
        "da nb nn no sv fo is",
        "cs sk hsb dsb hr sr bs sh sl cnr",
        "pl sk csb szl hsb dsb hr sr bs sh sl cnr",
        "es pt gl ca ast an ext mwl lad oc ia pap kea la eo",
        "fr ca oc pms wa ht la eo",
        "it ca co sc scn vec lmo pms fur rm ro mo oc ia la eo",
        "ro mo it fur",
        "de nds lb gsw bar yi fy",
        "nl af fy li nds",
        "en sco pcm tpi bi jam",
        "fi et krl",
        "tr az tk uz crh gag",
        "ru uk be bg mk sr rue kk ky tg mn tt ba cv",
        "ar fa ur ckb ku ps sd ug ms pa",
        "hi mr ne sa bho mai kok",
        "zh yue wuu ja ko",
        "el grc",
        "he yi",
        "bn as",
    )
)
_LATIN: Final = frozenset((*_LISTS, "vi"))
_BY_SCRIPT: Final = {
    "HANGUL": "ko",
    "THAI": "th",
    "GREEK": "el",
    "HEBREW": "he",
    "DEVANAGARI": "hi",
    "BENGALI": "bn",
    "TAMIL": "ta",
    "GEORGIAN": "ka",
    "ARMENIAN": "hy",
}


def primary_language(language: str) -> str:
    """Return the primary language of a tag, in lower case: `pt` of `pt-BR`."""
    return language.lower().replace("_", "-").partition("-")[0]


def value_for_language(table: Mapping[str, _Value], language: str) -> _Value | None:
    """Return the table's value for a language tag, or `None` if it has none.

    Traditional Chinese stands under `zh-hant`, and all of Norwegian under `nb`.
    """
    base, *rest = language.lower().replace("_", "-").split("-")
    if base == "zh" and not _TRADITIONAL_TAGS.isdisjoint(rest):
        base = "zh-hant"
    return table.get("nb" if base in {"no", "nn"} else base)


def guess_language(text: str, *, least_hits: int = 3) -> str:
    """Return a tag such as `de`, or "" if the text is too short to show its language, or the language isn't known.

    `least_hits` is the least number of the language's frequent words.
    """
    return _guess(text[:MAX_DETECTION_CHARACTERS], least_hits)


@lru_cache(maxsize=128)
def _guess(text: str, least_hits: int) -> str:
    """Guess the language; cached, as a run asks about the same sentences for each draft, check and claim."""
    scripts: Counter[str] = Counter()
    # Each character's name is looked up once, because a text repeats its characters.
    for character, count in Counter(text).items():
        if character.isalpha():
            scripts[_script_of(character)] += count
    if not scripts:
        return ""
    # Japanese mixes its own scripts with Chinese characters.
    if scripts["HIRAGANA"] + scripts["KATAKANA"] > scripts["CJK"] / 20 and scripts["HIRAGANA"]:
        scripts["JAPANESE"] = scripts.pop("HIRAGANA") + scripts.pop("KATAKANA", 0) + scripts.pop("CJK", 0)
    [(script, _)] = scripts.most_common(1)
    lower = text.lower()
    if script == "LATIN":
        guess = _guess_few_words(text)
        return _guess_latin(lower, least_hits) if guess is None else guess
    if script == "CYRILLIC":
        return _guess_cyrillic(lower, least_hits)
    if script == "ARABIC":
        characters = frozenset(lower)
        return "ur" if characters & _URDU else "fa" if characters & _PERSIAN else "ar"
    if script == "CJK":
        characters = frozenset(lower)
        return "zh-Hant" if len(characters & _TRADITIONAL) > len(characters & _SIMPLIFIED) else "zh"
    return "ja" if script == "JAPANESE" else _BY_SCRIPT.get(script, "")


def other_language(stated: str, text: str) -> str:
    """Return the language of a text that is plainly not in the stated one, or "" if it may be.

    A text that is short, partly in the stated language, or in a related one proves nothing. Its beginning and its
    end are read.
    """
    sample = (
        f"{text[:MAX_DETECTION_CHARACTERS]}\n{text[MAX_DETECTION_CHARACTERS:][-MAX_DETECTION_CHARACTERS:]}"
    )
    guessed = guess_language(text)
    stated_language = primary_language(stated)
    guessed_language = guessed.partition("-")[0]
    if (
        not stated_language
        or not guessed
        or guessed_language == stated_language
        or any({stated_language, guessed_language} <= names for names in _RELATED)
    ):
        return ""
    lower = sample.lower()
    if guessed_language not in FREQUENT:
        letters = Counter(_script_of(sign) == "LATIN" for sign in lower if sign.isalpha())
        is_plain = (
            stated_language in _LATIN
            and guessed_language not in _OWN_LETTERS
            and letters[False] >= _MIN_OTHER_LETTERS
        )
        return guessed if is_plain and letters[False] > _PLAIN_LEAD * letters[True] else ""
    words = _WORD.findall(lower)
    hits = _count_hits(words)
    related_languages = frozenset[str]().union(*(names for names in _RELATED if guessed_language in names))
    most_unrelated_hits = max(count for name, count in hits.items() if name not in related_languages)
    is_plain = len(words) >= _MIN_OTHER_WORDS and hits[guessed_language] >= _PLAIN_SHARE * len(words)
    if not is_plain or hits[guessed_language] < _PLAIN_LEAD * max(
        most_unrelated_hits, hits.get(stated_language, 0)
    ):
        return ""
    # A text in two languages may be in the stated one, too.
    step = len(sample) // _PARTS + 1
    parts = {guess_language(sample[start : start + step]) for start in range(0, len(sample), step)}
    return guessed if parts <= {guessed, ""} else ""


def _script_of(character: str) -> str:
    """Return the script of a character, such as `LATIN`: the first word of its Unicode name."""
    if character.isascii():
        return "LATIN"
    return unicodedata.name(character, "").partition(" ")[0].partition("-")[0]


def _count_hits(words: list[str]) -> dict[str, int]:
    """Return how many of the words are frequent in each language."""
    hits = dict.fromkeys(FREQUENT, 0)
    for word in words:
        for name in _LANGUAGES_BY_WORD.get(word, ()):
            hits[name] += 1
    return hits


def _guess_latin(text: str, least_hits: int) -> str:
    """Guess by frequent words, else by the letters of a single language; return "" if neither is clear."""
    words = _WORD.findall(text)
    hits = _count_hits(words)
    (name, best), (_, next_best) = sorted(hits.items(), key=lambda pair: -pair[1])[:2]
    if best < max(least_hits, _MIN_SHARE * len(words)) or best == next_best:
        return _guess_by_letters(words, least_hits)
    return name


def _guess_few_words(text: str) -> str | None:
    """Guess the language of a few sentences.

    Return "" if all lower-case words may be parts of names, such as "La Paz" and "Maria da Silva", and `None` if
    the language isn't clear or the text is longer. A word weighs less the more languages have it.
    """
    words = _WORD.findall(text if not text.isupper() else text.lower())
    if len(words) > _FEW_WORDS:
        return None
    lower_words = [word for word in words if word.islower()]
    has_ended = _ENDS_SENTENCE.search(text) is not None
    if not has_ended and all(word in _SHARED_BY for word in lower_words):
        return ""
    weights = {
        name: sum(1 / _SHARED_BY[word] for word in lower_words if word in telling_words)
        for name, telling_words in _TELLING.items()
    }
    (name, best), (_, next_best) = sorted(weights.items(), key=lambda pair: -pair[1])[:2]
    distinct = {word for word in lower_words if word in _TELLING[name]}
    is_clear = best >= max(_MIN_WEIGHT, _MIN_SHARE * len(words)) and best >= _MIN_LEAD * next_best
    return name if has_ended and is_clear and len(distinct) > 1 else None


def _guess_by_letters(words: list[str], least_hits: int) -> str:
    letters = Counter(character for word in words for character in word)
    minimum = max(_MIN_OWN_LETTERS * letters.total(), least_hits)
    return next(
        (
            name
            for name, own_letters in _OWN_LETTERS.items()
            if sum(letters[letter] for letter in own_letters) > minimum
        ),
        "",
    )


def _guess_cyrillic(text: str, least_hits: int) -> str:
    letters = frozenset(text)
    if letters & _SERBIAN:
        return "sr"
    if letters & _UKRAINIAN:
        return "uk"
    if letters & _RUSSIAN:
        return "ru"
    words = _WORD.findall(text)
    return "bg" if sum(word in _BULGARIAN for word in words) >= least_hits else ""
