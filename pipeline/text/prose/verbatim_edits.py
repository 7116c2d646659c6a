"""Makes the edits that a verbatim sentence may undergo, and checks whether it can stand alone."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final
from unicodedata import east_asian_width

from pipeline.text.late_pattern import late_pattern
from pipeline.text.prose.anaphora import lacks_antecedent, leaves_speaker_open, patterns_for, points_back

if TYPE_CHECKING:
    from collections.abc import Iterable


def word_set(words: str) -> frozenset[str]:
    """Return the words of a space-separated list as a set."""
    return frozenset(words.split())


# Spaces that hold a number together ("10 000") are kept.
_SPACE = late_pattern(r"[^\S\u00a0\u202f\u2009]+")
_LOOSE_MARK = late_pattern(r" (?=[,.;:!?\u2026](?:\s|$))")
_WHOLLY_QUOTED = late_pattern(
    r"[\"\u201c\u201d\u00ab\u00bb\u201e\u300c\u05f4][^\"\u201c\u201d\u00ab\u00bb\u300d\u05f4]*[\"\u201c\u201d\u00ab\u00bb\u300d\u05f4][.!?]?$"
)
_OPENING = "\"'\u2018\u201c\u00ab\u201e\u05f4([ "
_FIRST_WORD = late_pattern(r"[^\W_]+(?:['\u2019][^\W_]+)?")
_DANGLING = word_set(
    "he she it they him her them his hers its their theirs this that these those such he's she's it's "
    "they're that's he'd she'd they'd he'll she'll it'll they'll they've"
)
# Before a capital letter these are names ("Han Kang"). English pronouns are looked up as words.
_NO_NAME = r"\s(?![A-ZÀ-ÖØ-ÞА-ЯЄІЇ])"
_PRONOUNS = {
    **dict.fromkeys(("en", "it", "pl", "cs", "sk", "hu", "ro", "tr", "el"), r"(?!)"),
    "de": r"er|ihm|ihn",
    "fr": r"elles?|ils|celui|celles?|ceux|cela|il(?!\s(?:y|faut|s['\u2019]agit|existe|reste|est|pleut|suffit)\b)",
    "es": r"él|ell[oa]s",
    "pt": r"el[ea]s?|isso",
    "nl": r"hij|zij",
    "sv": r"han|hon",
    **dict.fromkeys(("da", "no", "nb", "nn"), r"han|hun"),
    "fi": r"hän",
    "ru": r"он|она|они|оно",
    "uk": r"він|вона|вони",
    "he": r"הוא|היא",
    "ar": r"هو|هي",
}
_DANGLING_ELSEWHERE = {name: late_pattern(f"(?i:{words}){_NO_NAME}") for name, words in _PRONOUNS.items()}
_DANGLING_ANYWHERE = late_pattern(f"(?i:{'|'.join(dict.fromkeys(_PRONOUNS.values()))}){_NO_NAME}")
_SO = late_pattern(r"(?i:so|also)\s")
_CONNECTIVE = word_set(
    "but and so yet or nor also however then thus hence therefore still meanwhile moreover furthermore "
    "otherwise instead nevertheless nonetheless besides additionally similarly likewise consequently"
)
# Cut only if a whole sentence is left: not "But for", "So far", "However hard", nor words that other
# languages have too ("Or blanc", "So kostet"). Never after a quotation mark: those words are somebody's.
_LEADING_CONJUNCTION = late_pattern(
    r"(?:(?:But|And|Yet),?\s+(?!(?i:for|not|only|just|so|that|which|who|whom|whose|than|how|why|what|where|nor|or|yet|of|to|de|du|des|med|pour|contre)\b)"
    r"|(?:However|Moreover|Furthermore|Meanwhile|Therefore|Also|So),\s+"
    r"|(?:Meanwhile|Therefore)\s+(?!(?i:and|or|but)\b)"
    r"|So\s+(?=(?i:the|an?|we|you|they|i|he|she|it|there|this|these|those|our|my|his|her|their|your|its|nobody|everybody|everyone)(?:['\u2019]\w+)?\s))"
    r"(?=\w)"
)
# Openings with a word that is a connective elsewhere; these don't refer to another sentence.
_NO_CONNECTIVE = late_pattern(
    r"(?i:so (?:far|many|much|few|little|long as)\b|so [a-z]+ (?:is|are|was|were|did|do|does|has|had)\b(?=.*\bthat\b)"
    r"|so (?:viele?[mnrs]?|wenige?[mnrs]?|manche[mnrs]?)\b|so [a-z\u00e4\u00f6\u00fc\u00df]+ (?:ist|sind|war|waren|wurden?)\b(?=.*\bdass\b)"
    r"|but for\b(?=[^.!?]*\b(?:would|could|might|have|['\u2019]d)\b)|besides (?!\w+,)[^,]+,|instead of\b)"
)
_LEAD_WORDS = 3
"""The number of first words by which a sentence is recognised."""
_ASIDE = late_pattern(r"\s*(?:\([^()]*\)|\[[^\[\]]*\]|\uff08[^\uff08\uff09]*\uff09)")
# Without its aside "at 7:30 p.m. (doors at 7)." would end in two full stops.
_SECOND_STOP = late_pattern(r"(?<=\w\.) \.(?=\s|$)")
_CLAUSE_EDGE = late_pattern(r"[,;:](?=\s)|\s[\u2013\u2014-](?=\s)|[\u2014\u3001\uff0c\uff1b\u060c]")
# "By the time she retired in 2004", "Kiel, 14 February 2027": the statement itself comes after it.
_SAYS_LITTLE = late_pattern(
    r"(?i:by the time|when|while|if|as soon as|although|though|because|unless|wenn|als|während|obwohl|weil|bevor|nachdem|sobald|falls"
    r"|quand|lorsque?|si|bien que|parce que|dès que|cuando|mientras|aunque|porque|quando|mentre|sebbene|perché|enquanto|embora"
    r"|toen|terwijl|hoewel|omdat|voordat|nadat|gdy|kiedy|jeśli|chociaż|ponieważ|zanim|när|medan|innan)\s[^,;:]*$"
    r"|(?:[^\W\d_a-z][\w.'’-]*\s){0,3}[^\W\d_a-z][\w.'’-]*(?:(?:,|\s\()[^!?]{0,20}\d[^!?]{0,20})?$"
)
# "The mayor said, “…": the speech comes after it.
_OPENS_SPEECH: Final = late_pattern(r"\s*[\"\u201c\u201e\u00ab\u300c\u300e\u2018\u201a\u2039]")
# Three words or more in quotation marks, with no further opening mark after them.
_SPEECH = late_pattern(
    r"[\"\u201c\u201e\u00ab\u00bb](?:[^\s\"\u201c\u201d\u201e\u00ab\u00bb]+\s){2,}[^\"\u201c\u201d\u201e\u00ab\u00bb]*[\"\u201c\u201d\u00ab\u00bb](?=[^\"\u201c\u201e\u00ab]*$)"
)
# The first two letters of a capitalised word.
_CAPITAL = late_pattern(r"(?<!\w)[^\W\d_a-z\u00df-\u00ff]\w")
# Before one of these a cut would change the statement.
_QUALIFIERS = word_set(
    "but unless except not if only without although though however until nor while whereas provided "
    "despite rather which that who and or"
)
GOING_ON = (
    r"(?:the|an?|of|in|on|at|to|by|for|with|and|or|but|that|which|who|from|as|is|are|was|were|der|die|das|den|dem|des|ein|eine[mnrs]?|und|oder"
    r"|aber|dass|mit|von|im|am|zu|für|auf|bei|nach|ist|sind|le|la|les|un|une|de|du|des|et|ou|à|au|aux|en|dans|sur|pour|que|qui|est|el|los|las|una|del|y|o|con|por|para"
    r"|il|lo|gli|di|del|della|e|che|per|os?|as?|do|da|dos|das|em|um|uma|het|een|van|i|w|z|na|do|och|att|av|og|at|af|и|в|на|с|что|по)"
)
"""A pattern of words that end no phrase: articles, prepositions, conjunctions."""
_LEFT_OPEN = late_pattern(
    # "has been asked for" without its "for" would say another thing.
    rf"(?:\s+(?:(?:ask|call|look|wait|search)(?:s|ed|ing)?\sfor|{GOING_ON}|(?-i:has|have|had|be|been|will|would|can|could|may|must)"
    r"|if|when|while|because|wenn|weil|als|wie|quand|cuando|quando|perché|porque|dat|omdat|gdy|kiedy|że|når|если|когда|into|over|under|about|after|before|than|its|their|his|her|our|your|my|zum|zur|vom|beim|über|unter|durch|gegen|ohne"
    r"|avec|sans|chez|sous|entre|sobre|sin|desde|hasta|nel|nella|dal|dalla|sul|sulla|no|nos|nas|pelo|pela|com|sem|voor|met|op|te|aan|om|ze|się|dla|od|po|oraz"
    r"|pro|při|nebo|på|för|till|med|och|eller|til|fra|ved|для|от|из|и|или))+$",
    re.IGNORECASE,
)
# A number with at most one word after it at the end, or marks alone: "for $12.4 million", " –".
_ENDS_COUNTING = late_pattern(r"\s+\S*[\d\u00bc-\u00be\u2150-\u215f]\S*(?:\s+\S+)?$|\s+[^\w\s]+$")
# Control characters, overrides of the writing direction, halves of characters, lost ones, invisible tags.
_UNSAFE = late_pattern(
    r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff"
    r"\ufff0-\uffff\U000e0000-\U000e007f]"
)
_QUESTION_END = late_pattern(r"[?\uff1f\u061f\u037e][\"'\u2019\u201d\u00bb)\u300d]*$")
# Before the last letter, or after two or more: after one a name in quotation marks begins ("ב״הארץ״").
_GERSHAYIM = late_pattern(
    '(?<=[\u05d0-\u05ea])["\u05f4](?=[\u05d0-\u05ea](?![\u05d0-\u05ea]))|(?<=[\u05d0-\u05ea]{2})["\u05f4](?=[\u05d0-\u05ea])'
)
# "ABGESAGT!", "The concert has been postponed to 3 May.": with it the sentence before is no longer true.
_MAX_TAKING_BACK: Final = 90
_TAKES_BACK: Final = late_pattern(
    r"[\W_]*(?:(?:update|note|notice|now|sorry|unfortunately|achtung|wichtig|neu|jetzt|leider|attention|atención|aviso|avviso|uwaga)[\s:!,\u2013-]+)*"
    r"(?:(?:[^\s.!?]+\s){0,3}?(?:is|are|was|were|(?:has|have) been|ist|sind|war|wurden?|wird|est|sont|(?:a|ont) été|está|están|h?an? sido"
    r"|es|è|sono|(?:è|sono) stat[oaie]|foi|foram|zijn|werd|został[aoy]?|zostały|c['\u2019]est|jest|są|är|er|blir|bliver)\s(?:[^\s.!?]+\s){0,2}?)?"
    r"(?:cancel?led|called off|postponed|sold out|rescheduled|abgesagt|verschoben|ausverkauft|ausgebucht|vergriffen"
    r"|(?:(?:\S+\s){0,2}(?:fällt|fallen)\s(?:\S+\s)?aus)|(?:\S+\s){0,2}entf(?:ällt|allen)|(?:\S+\s){0,2}findet\s(?:\S+\s)?nicht statt"
    r"|annulé(?:e?s?)|reportée?s?|complet|ajournée?s?|cancelad[oa]s?|aplazad[oa]s?|pospuest[oa]s?|agotad[oa]s?|suspendid[oa]s?|anulad[oa]s?"
    r"|adiad[oa]s?|esgotad[oa]s?|annullat[oaie]|rinviat[oaie]|rimandat[oaie]|esaurit[oaie]|geannuleerd|afgelast|uitgesteld|uitverkocht"
    r"|(?:\S+\s){0,2}gaat niet door|odwołan[eyaio]|przełożon[eyaio]|wyprzedan[eyaio]|zrušen[oaýéy]?|odložen[oaýéy]?|vyprodán[oaý]?"
    r"|[iİ]ptal(?: edildi)?|ertelendi|tükendi|inställ[tda]+|slutsål[tda]+|aflyst|udsat|udsolgt|avlyst|utsatt|utsolgt"
    r"|elmarad|törölve|elhalasztva|anulat[ăe]?|amânat[ăe]?|отмен[её]н[оаы]?|перенес[её]н[оаы]?|распродан[оаы]?|скасован[оаі]|перенесен[оаі]"
    r"|ακυρώθηκε|ακυρώνεται|ματαιώνεται|αναβάλλεται|εξαντλήθηκε)"
    r"(?:\s(?:to|until|till|due|because|for|by|on|auf|bis|wegen|au|à|hasta|al|por|per|a|tot|naar|wegens|na|do|z|до|на|из-за)\s[^.!?]{1,50})?"
    r"(?:\sworden)?[^\w]*|\W*[^\s.!?]{0,10}?(?:中止|延期|完売|取消|售罄|售完|취소|연기|매진)[^\s.!?]{0,8}\W*",
    re.IGNORECASE,
)
# Opening marks with the marks that close them: “…”, „…“, ”…” as in Swedish, «…», »…« and »…».
_CLOSED_BY: Final = {
    "\u201c": "\u201d",
    "\u201e": "\u201c\u201d",
    "\u201d": "\u201d",
    "\u00ab": "\u00bb",
    "\u00bb": "\u00ab\u00bb",
    "(": ")",
    "[": "]",
    "\u300c": "\u300d",
    "\uff08": "\uff09",
}
_PAIRED: Final = late_pattern(f"[{re.escape(''.join(_CLOSED_BY) + ''.join(_CLOSED_BY.values()))}]")


_WORD: Final = late_pattern(r"[^\W_]+(?:['\u2019\-][^\W_]+)*")
# Chinese and Japanese words have about two characters; those of Thai, Lao, Burmese and Khmer about four with
# their vowels, of which those above and below a letter are no word characters to a pattern.
_SPACELESS: Final = (
    (late_pattern(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"), 2),
    (late_pattern(r"[\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff]"), 4),
)
# A wide full stop with its closing mark, before a space.
_WIDE_END: Final = late_pattern("([\u3002\uff01\uff1f][\u300d\u300f\u201d\uff09]?) ")


def count_words(text: str) -> int:
    """Return the number of words, in every script.

    Scripts without spaces are estimated from their characters.
    """
    words = 0
    if not text.isascii():
        for characters, characters_per_word in _SPACELESS:
            text, count = characters.subn(" ", text)
            words += math.ceil(count / characters_per_word)
    return words + len(_WORD.findall(text))


def counted(count: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun, "1 word" or "2 words"; `plural` is an irregular plural."""
    return f"{count} {singular if count == 1 else plural or singular + 's'}"


def display_width(text: str) -> int:
    """Return the width in average characters; a Chinese, Japanese or Korean character counts as two."""
    if text.isascii():
        return len(text)
    return len(text) + sum(east_asian_width(character) in "WF" for character in text)


def is_wide(text: str) -> bool:
    """Return whether the text is mostly Chinese, Japanese or Korean."""
    return display_width(text) > 1.5 * len(text)


def width_fault(called: str, text: str, most: int) -> str | None:
    """Return a message if the text is wider than `most` average characters, or `None` if it fits."""
    if display_width(text) <= most:
        return None
    return f"{called} has {len(text)} characters; the maximum is {most // 2 if is_wide(text) else most}."


def collapse(text: str) -> str:
    """Return the text with single spaces, and none at the ends."""
    return _SPACE.sub(" ", text).strip()


def paragraph_of(sentences: Iterable[str]) -> str:
    """Return the sentences joined with spaces, without one after a wide full stop of Chinese or Japanese."""
    return _WIDE_END.sub(r"\1", " ".join(sentences))


def is_clean(text: str) -> bool:
    """Return whether no character in the text reorders, hides or breaks its words."""
    return _UNSAFE.search(text) is None


def opens_dangling(sentence: str, language: str = "") -> bool:
    """Return whether the first word refers to an earlier sentence; an opening quotation mark is ignored.

    If the text's language is known, only its pronouns count: "Il museo" begins with none.
    """
    unquoted = sentence.lstrip(_OPENING)
    first = _FIRST_WORD.match(unquoted)
    if first is None or _NO_CONNECTIVE.match(unquoted):
        return False
    patterns = patterns_for(_DANGLING_ELSEWHERE, sentence, language)
    if any(pattern.match(unquoted) for pattern in patterns or (_DANGLING_ANYWHERE,)):
        return True
    if patterns and _DANGLING_ELSEWHERE["en"] not in patterns:
        return _DANGLING_ELSEWHERE["de"] in patterns and _SO.match(unquoted) is not None
    word = first.group().lower().replace("\u2019", "'")
    return word in _DANGLING or word in _CONNECTIVE


def takes_back(sentence: str) -> bool:
    """Return whether the sentence is short and says that the subject before it is cancelled, sold out or the like."""
    return len(sentence) <= _MAX_TAKING_BACK and _TAKES_BACK.fullmatch(sentence) is not None


def is_question(text: str) -> bool:
    """Return whether the text ends with a question mark of any script; closing marks after it are ignored."""
    return _QUESTION_END.search(text) is not None


def without_gershayim(text: str) -> str:
    """Return the text with apostrophes for the marks inside Hebrew abbreviations, which look like quotation marks."""
    return text if text.isascii() else _GERSHAYIM.sub("'", text)


def is_balanced(sentence: str) -> bool:
    """Return whether each quotation mark and bracket that is opened is closed."""
    without_abbreviations = without_gershayim(sentence)
    if without_abbreviations.count('"') % 2 or without_abbreviations.count("\u05f4") % 2:
        return False
    is_open: list[str] = []
    for mark in _PAIRED.findall(sentence):
        if is_open and mark in _CLOSED_BY[is_open[-1]]:
            is_open.pop()
        elif mark in _CLOSED_BY:
            is_open.append(mark)
        else:
            return False
    return not is_open


def is_wholly_quoted(sentence: str) -> bool:
    """Return whether the sentence is a quotation from end to end, without its speaker."""
    return _WHOLLY_QUOTED.match(without_gershayim(sentence)) is not None


def is_self_contained(sentence: str, language: str = "") -> bool:
    """Return whether the sentence is understood without its neighbours, with a speaker for each quotation."""
    return is_balanced(sentence) and not leans_back(sentence, language) and not is_wholly_quoted(sentence)


def leans_back(sentence: str, language: str = "") -> bool:
    """Return whether the sentence can be understood only after another one."""
    return (
        opens_dangling(sentence, language)
        or points_back(sentence, language)
        or leaves_speaker_open(sentence)
        or lacks_antecedent(sentence)
    )


def trim_conjunction(sentence: str) -> str:
    """Return the sentence, capitalised, without a leading "And", "But" or the like if a whole sentence is left."""
    match = _LEADING_CONJUNCTION.match(sentence)
    if match is None:
        first = sentence.split(" ", 1)[0]
        return sentence[0].upper() + sentence[1:] if first.isalpha() and first.islower() else sentence
    rest = sentence[match.end() :]
    return rest[:1].upper() + rest[1:]


def begins_whole(words: str, quote: str) -> bool:
    """Return whether the words begin like the quote, perhaps without a connective or aside that may be cut."""
    sentence, lead = collapse(quote), _lead_words(words)
    trimmed = trim_conjunction(sentence)
    return any(_lead_words(form)[: len(lead)] == lead for form in (sentence, trimmed, drop_asides(trimmed)))


def is_beheaded(words: str, quote: str) -> bool:
    """Return whether the words begin like the quote, but without a connective that may not be cut."""
    first, *rest = _lead_words(quote, _LEAD_WORDS + 1) or [""]
    is_cut = first in _CONNECTIVE and len(rest) == _LEAD_WORDS and rest == _lead_words(words)
    return is_cut and not begins_whole(words, quote)


def _lead_words(text: str, most: int = _LEAD_WORDS) -> list[str]:
    return _WORD.findall(text.casefold().replace("\u2019", "'"))[:most]


def drop_asides(sentence: str) -> str:
    """Return the sentence without brackets and the text in them."""
    return _LOOSE_MARK.sub("", _SECOND_STOP.sub("", collapse(_ASIDE.sub(_replace_aside, sentence))))


def _replace_aside(aside: re.Match[str]) -> str:
    """Return the replacement for an aside: "" next to Chinese or Japanese characters, else a space."""
    neighbours = (aside.string[: aside.start()][-1:], aside.string[aside.end() :][:1])
    # Numbers on both sides must not grow together.
    is_one_word = any(map(_SPACELESS[0][0].match, neighbours)) and not all(map(str.isnumeric, neighbours))
    return "" if is_one_word else " "


def clause_cuts(sentence: str) -> tuple[str, ...]:
    """Return the sentence cut at each clause edge, with an ellipsis, the longest first.

    An edge is skipped if a quotation or bracket would stay open, if speech or a qualification follows, if speech
    would lose its speaker, or if the head alone says little. A sentence whose end takes it back has no cuts.
    """
    cuts: list[str] = []
    for match in _CLAUSE_EDGE.finditer(sentence):
        head = sentence[: match.start()].rstrip()
        following = _FIRST_WORD.match(sentence[match.end() : match.end() + 40].lstrip(_OPENING))
        word = following.group().lower() if following else ""
        says_little = _SAYS_LITTLE.match(head) is not None
        if (
            head
            and word not in _QUALIFIERS
            and is_balanced(head)
            and not _leaves_out_speaker(head, sentence[match.end() :])
            and not _OPENS_SPEECH.match(sentence, match.end())
            and not (says_little or _ends_taken_back(sentence))
        ):
            cuts.append(f"{head}\u2026")
    return tuple(reversed(cuts))


def _leaves_out_speaker(head: str, tail: str) -> bool:
    """Return whether speech stands before the cut, and the name of its speaker may stand after it."""
    speech = _SPEECH.search(head)
    if speech is None or not _CAPITAL.search(tail):
        return False
    return tail.lstrip()[:1].isupper() or not _CAPITAL.search(head, speech.end())


def _ends_taken_back(sentence: str) -> bool:
    """Return whether the text's last sentence takes back those before it, so that no part may stand alone."""
    last = sentence.rstrip(" .!").rpartition(". ")[2]
    return last != sentence.rstrip(" .!") and takes_back(last)


def first_words(text: str, limit: int) -> str:
    """Return as many whole words as fit into `limit` characters, with an ellipsis if some are left out.

    No cut is made next to a number, because "$12.4…" of "$12.4 million" would be another amount, nor after an
    article or the like.
    """
    collapsed = collapse(text)
    if len(collapsed) <= limit:
        return collapsed
    head = collapsed[: limit - 1]
    # Scripts without spaces are cut anywhere.
    cut = head.rpartition(" ")[0] or head
    while (
        open_end := _ENDS_COUNTING.search(cut) or _LEFT_OPEN.search(cut)
    ) is not None and open_end.start() > 0:
        cut = cut[: open_end.start()]
    return f"{cut.rstrip(' ,;:')}\u2026"
