"""Who said what: direct speech in a sentence, with the speaker whom the same sentence names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.wording import collapse, word_set

if TYPE_CHECKING:
    from collections.abc import Iterator

_SPOKEN: Final = re.compile(
    r"\u201c(?P<curly>[^\u201c\u201d]+)\u201d|\u201e(?P<low>[^\u201e\u201c\u201d]+)[\u201c\u201d]"
    r"|\u00ab(?P<angled>[^\u00ab\u00bb]+)\u00bb|\"(?P<straight>[^\"]+)\"|\u300c(?P<corner>[^\u300c\u300d]+)\u300d"
)
_SAYS: Final = (
    r"said|says|told|tells|added|adds|explained|explains|wrote|writes|warned|warns|argued|argues|noted|notes|recalled"
    r"|sagte|sagt|erklärte|erklärt|meinte|meint|schrieb|schreibt|so|erzählte|erzählt|betonte|betont|ergänzte|ergänzt"
    r"|berichtete|berichtet|warnte|warnt"
    r"|dit|a dit|a déclaré|déclare|affirme|explique|raconte|assure|souligne|estime|précise|confie|ajoute|résume"
    r"|dijo|dice|afirmó|afirma|explicó|explica|cuenta|contó|asegura|aseguró|señala|señaló|añade|añadió|recuerda"
    r"|disse|dichiara|racconta|spiega|afferma|aggiunge|sostiene|ha detto|ha spiegato|diz|afirmou|explicou|conta|contou"
    r"|powiedzia\u0142a?|m\u00f3wi|dodaje|doda\u0142a?|wyja\u015bnia|t\u0142umaczy|opowiada|podkre\u015bla"
    r"|zei|zegt|vertelt|vertelde|schreef|säger|sade|berättar|siger|sagde|fortæller|sier|forteller"
    r"|сказала?|говорит|рассказала?|рассказывает|объяснила?|объясняет|заявила?|отметила?|считает|пояснила?|добавила?"
    r"|сказав|каже|розповіла?|розповів|пояснив|заявив|додала?|додав"
)
_VERB_THEN_NAME: Final = re.compile(rf"[\s,\u2013\u2014-]*(?:{_SAYS})\s+(?P<name>\S.*)$", re.DOTALL)
_NAME_THEN_VERB: Final = re.compile(rf"[\s,\u2013\u2014-]*(?P<name>\S.*?)\s+(?:{_SAYS})\b")
_BEFORE_SPEECH: Final = re.compile(
    rf"^(?P<name>\S.*?)\s+(?:{_SAYS})\b[^\u201c\u201e\u00ab\"]{{0,40}}$", re.DOTALL
)
# Scripts without capital letters say by their verbs and particles where a name ends.
_AFTER_SPEECH_ELSEWHERE: Final = re.compile(
    r"\s*[\uff0c,]?\s*(?P<zh>[^\W\d_]{2,14}?)(?:说道?|表示|告诉|介绍|指出|說道?)"
    r"|と[、\s]*(?P<ja>[^\s、。「」]{2,24}?)(?:は|が)(?:話|語|述べ|言|説明|明か)"
    r"|(?:이?라)?고\s+(?P<ko>[^.,]{2,40}?)(?:이|가|은|는)\s*(?:말|밝|전|설명|강조|덧붙)"
    r"|\s+(?P<th>[\u0e00-\u0e7f]+(?: [\u0e00-\u0e7f]+){0,3}?)\s?(?:กล่าว|บอก|เล่า)"
)
_BEFORE_SPEECH_ELSEWHERE: Final = re.compile(
    r"(?:.*[。！？])?(?P<zh>[^\W\d_]{2,14}?)(?:说道?|表示|告诉[^，：:]{1,6}|介绍|指出|說道?)[\uff0c,\uff1a:]\s*$"
    r"|و?(?:قالت?|أضافت?|صر[ّ]?حت?|أكدت?|أوضحت?|يقول|تقول)\s+(?P<ar>[^:،.]{3,60}):\s*$",
    re.DOTALL,
)
_LONGEST_SPEAKER: Final = 60
_OPENS_NO_NAME: Final = word_set(
    "he she it they we i you er sie es wir ich il elle ils elles on nous je ella él ellos yo lei lui noi io он она они мы я "
    "at on in to for with of about that this am im an auf zu zum zur bei vor nach mit dazu dass à en lors dans nel con para "
    "que che em no na w z we do в на о об при на что"
)
_PARTICLES: Final = word_set("van von de der den del della di da la le al bin ibn of y e")
_ABBREVIATED: Final = re.compile(r"(?:[^\W\d_]|Dr|Prof|Mr|Mrs|Ms|St|Rev|Gen|Col|Sgt|Sen|Gov|Jr|Sr)\.")
_NOBODY: Final = word_set(
    "he she it they we i you this that the a an his her their our my one some many er sie es wir ich il elle ils elles "
    "on nous je ella \u00e9l ellos nosotros yo lei lui noi io"
)
_LONGEST_NAME: Final = 6
"""Words, with what stands before a name: "Mayor Ellen van der Berg"."""


@dataclass(frozen=True)
class Speech:
    """`words` as the sentence has them, without its marks and the comma before the closing one."""

    words: str
    speaker: str


def speech_in(sentence: str) -> Iterator[Speech]:
    """The quoted stretches of a sentence that also names who said them, in its order."""
    for match in _SPOKEN.finditer(sentence):
        words = collapse(next(group for group in match.groups() if group is not None)).rstrip(",").rstrip()
        speaker = _speaker(sentence[: match.start()], sentence[match.end() :])
        if words and speaker:
            yield Speech(words, speaker)


def _speaker(before: str, after: str) -> str:
    for pattern, beside in ((_VERB_THEN_NAME, after), (_NAME_THEN_VERB, after), (_BEFORE_SPEECH, before)):
        match = pattern.match(beside)
        name = _name(match["name"], is_whole=pattern is not _VERB_THEN_NAME) if match else ""
        if not name and match and pattern is _VERB_THEN_NAME:
            name = _role(match["name"])
        if name:
            return name
    for pattern, beside in ((_AFTER_SPEECH_ELSEWHERE, after), (_BEFORE_SPEECH_ELSEWHERE, before)):
        match = pattern.match(beside)
        name = collapse(next(filter(None, match.groups()), "")) if match else ""
        if name and len(name) <= _LONGEST_SPEAKER:
            return name
    return ""


def _role(words: str) -> str:
    """Who speaks where the name comes after what they are: "the architect Vera Melnikova", up to the next mark."""
    phrase = re.split(r"[.,;:!?\u2026\u2013\u2014(\"]", words, maxsplit=1)[0].split()
    is_named = any(word[:1].isupper() for word in phrase)
    if not is_named or len(phrase) > _LONGEST_NAME or phrase[0].casefold() in _OPENS_NO_NAME:
        return ""
    return " ".join(phrase)


def _name(words: str, *, is_whole: bool) -> str:
    """The capitalised words at the beginning; empty where there are none, or where other words follow a whole name."""
    taken: list[str] = []
    tokens = words.split()
    for token in tokens:
        bare = token.rstrip(".,;:!?\u2026)")
        ends = bare != token and not _ABBREVIATED.fullmatch(token)
        word = bare if ends else token
        if not (word[:1].isupper() or (taken and word in _PARTICLES)):
            break
        taken.append(word)
        if ends or len(taken) == _LONGEST_NAME:
            break
    while taken and taken[-1] in _PARTICLES:
        taken.pop()
    if not taken or (len(taken) == 1 and taken[0].casefold() in _NOBODY):
        return ""
    return (
        ""
        if is_whole and len(taken) < len(tokens) and len(tokens) - len(taken) > _LONGEST_NAME
        else " ".join(taken)
    )
