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
    r"|\u00ab(?P<angled>[^\u00ab\u00bb]+)\u00bb|\"(?P<straight>[^\"]+)\""
)
_SAYS: Final = (
    r"said|says|told|tells|added|adds|explained|explains|wrote|writes|warned|warns|argued|argues|noted|notes|recalled"
    r"|sagte|sagt|erkl\u00e4rte|erkl\u00e4rt|meinte|meint|schrieb|so|dit|a dit|a d\u00e9clar\u00e9|d\u00e9clare|affirme"
    r"|explique|dijo|dice|afirm\u00f3|explic\u00f3|disse|dichiara|powiedzia\u0142a?|zei|zegt"
)
_VERB_THEN_NAME: Final = re.compile(rf"\s*,?\s*(?:{_SAYS})\s+(?P<name>\S.*)$", re.DOTALL)
_NAME_THEN_VERB: Final = re.compile(rf"\s*,?\s*(?P<name>\S.*?)\s+(?:{_SAYS})\b")
_BEFORE_SPEECH: Final = re.compile(
    rf"^(?P<name>\S.*?)\s+(?:{_SAYS})\b[^\u201c\u201e\u00ab\"]{{0,40}}$", re.DOTALL
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
        if name:
            return name
    return ""


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
