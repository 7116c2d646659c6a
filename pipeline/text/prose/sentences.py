"""Splits texts into sentences, and finds those that state something; the text is never changed."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from pipeline.text.language_detection import guess_language
from pipeline.text.late_pattern import late_pattern
from pipeline.text.prose import hearsay
from pipeline.text.prose.full_stops import AMOUNTS, CLOSERS, FOOTNOTES, HONORIFIC, TITLE, ends_sentence
from pipeline.text.prose.interviews import SPEAKER, find_interview, is_bare_answer
from pipeline.text.prose.verbatim_edits import GOING_ON, is_question, takes_back, without_gershayim, word_set

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Span = tuple[int, int]

_CUT_SHORT = late_pattern(
    rf"(?<!\w)(?:{HONORIFIC}|(?:approx|ca|est|max|fig|ref|incl|excl|inkl|vs|vgl|aprox)\.|\d\s(?:{'|'.join(sorted(AMOUNTS))})\.)$",
    re.IGNORECASE,
)
# Words before which long text without marks is cut.
_CUES = word_set("so and but because then now okay well also which while when if or however anyway")

_ENDER = late_pattern(
    rf"(?:[.!?\u2026\u061f\u0964\u06d4]+[{CLOSERS}]*(?=\s|$|{FOOTNOTES}(?:\s|$))"
    rf"|[\u3002\uff01\uff1f\uff61]+(?:(?!\u201c)[{CLOSERS}])*)"
)
_FOOTNOTES = late_pattern(FOOTNOTES)
_LINE_END = late_pattern(r"\r\n?|[\n\u2028\u2029\f\v\x85]")
_BULLET = late_pattern(
    r"\s*(?:[-*\u2022\u25aa\u2013\u2014\u00b7]\s|\d{1,3}[.)]\s|#{1,6}\s|\[?\(?\d{1,2}:\d{2})"
)
_LEAD = late_pattern(
    r"(?:[-*\u2022\u25aa\u2013\u2014\u00b7#>\s]|\(?\d{1,3}[.)]\s"
    r"|[\[(]?\d{1,2}(?::\d{2}){1,2}(?:[.,]\d{1,3})?[\])]?\s)+"
)
_WORD = late_pattern(r"\S+")
_ENTRY_NUMBER = late_pattern(r"[\s(\[]*(?:\d{1,3}|[A-Za-z])?")
_BLANK_LINE = late_pattern(r"(?:\r\n?|\n)[^\S\r\n]*[\r\n]|\u2029")
# Single marks are apostrophes too, so they open after a space and close before one. An unclosed mark holds
# nothing together.
_QUOTED, _QUOTED_AT_LENGTH = (
    late_pattern(
        rf"\u201c[^\u201c\u201d]{{1,{most}}}\u201d|\u201e[^\u201e\u201c\u201d]{{1,{most}}}[\u201c\u201d]"
        rf"|\u201e[^\u201e\"\n]{{1,{most}}}\""
        rf"|\u00ab[^\u00ab\u00bb]{{1,{most}}}\u00bb|\u00bb[^\u00ab\u00bb]{{1,{most}}}\u00ab|\u300c[^\u300c\u300d]{{1,{most}}}\u300d"
        rf"|\u300e[^\u300e\u300f]{{1,{most}}}\u300f|\u2039[^\u2039\u203a]{{1,{most}}}\u203a|\u203a[^\u2039\u203a]{{1,{most}}}\u2039"
        rf"|\"[^\"]{{1,{most}}}\"|(?<![^\s(\[\u2014\u2013])\u2018[^\u2018]{{0,{most - 2}}}?\S\u2019(?![^\W_])"
        rf"|\u201d[^\u201c\u201d]{{1,{most}}}\u201d|\u05f4[^\u05f4]{{1,{most}}}\u05f4"
    )
    # Speech within the longest sentence, and longer speech.
    for most in (600, 5_000)
)
# Lines that `read_body` marks: rows of tables, code and captions.
_MARKED = late_pattern(r"[^\S\n]*(?:\|[^\n]*\||`[^\n]*`|\[[^\n]*\])[^\S\n]*(?=\n|$)")
_ITEM = late_pattern(r"\s*(?:[-*\u2022\u25aa\u00b7]\s|\d{1,3}[.)]\s)")
_WEEKDAY = (
    r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:days?)?|week(?:days?|ends?)|daily|(?:mo|di|mi|do|fr|sa|so)\b\.?"
    r"|(?:mon|diens|donners|frei|sams|sonn)tags?|mittwochs?|sonnabends?|lun(?:di|es|edì)?|mar(?:di|tes|tedì)?|mer(?:credi|coledì)?|miércoles|jeu(?:di|ves)?"
    r"|ven(?:dredi|erdì)?|viernes|sam(?:edi)?|sábado|sabato|dim(?:anche)?|domingo|domenica|gio(?:vedì)?|segunda|terça|quarta|quinta|sexta"
    r"|(?:maan|dins|woens|donder|vrij|zater|zon)dag|poniedziałek|wtorek|środa|czwartek|piątek|sobota|niedziela|pondělí|úterý|středa|čtvrtek|pátek|neděle"
    r"|(?:mån|tis|ons|tors|fre|lör|sön|man|tirs|lør|søn)dag|ma(?:anantai)?|maanantai|tiistai|keskiviikko|torstai|perjantai|lauantai|sunnuntai"
    r"|hétfő|kedd|szerda|csütörtök|péntek|szombat|vasárnap|luni|marți|miercuri|joi|vineri|sâmbătă|duminică"
    r"|понедельник|вторник|среда|четверг|пятница|суббота|воскресенье|понеділок|вівторок|середа|п.ятниця|субота|неділя|(?:пн|вт|ср|чт|пт|сб|вс|нд)\b"
    r"|δευτέρα|τρίτη|τετάρτη|πέμπτη|παρασκευή|σάββατο|κυριακή|pazartesi|salı|çarşamba|perşembe|cuma(?:rtesi)?|pazar"
    r"|[月火水木金土日]曜日?|(?:周|週|星期|礼拜)[一二三四五六日天]|[월화수목금토일]요일)"
)
_OPEN_HOURS = (
    r"(?:\d{1,2}(?:[:.h]\d{2}|\s?(?:h|am|pm|a\.m\.|p\.m\.|uhr|noon|ч|час|時|点|點|시)\b|\s?[\u2013\u2014-]\s?\d{1,2})|noon|closed|geschlossen|ruhetag|fermé|cerrado"
    r"|chiuso|fechado|encerrado|gesloten|nieczynne|zamknięte|zavřeno|stängt|lukket|stengt|suljettu|zárva|închis|закрыто|выходной|зачинено|κλειστά|kapalı|休|定休|휴무)"
)
# "Mon–Fri: 9–17", a line each or all in one, with a word before it: "Open: ..."
_HOURS = late_pattern(
    rf"[^\S\n]*+(?:[-*\u2022]\s)?(?:[^\W\d_]+(?:[^\S\n][^\W\d_]+){{0,2}}[^\S\n]?:[^\S\n])?{_WEEKDAY}(?![^\W\d_])[^.!?\n]{{0,30}}?{_OPEN_HOURS}[^!?\n]{{0,40}}(?=\n|$)",
    re.IGNORECASE,
)
_HOURS_WITHIN = late_pattern(
    rf"(?<![^\W\d_]){_WEEKDAY}(?![^\W\d_])[^.!?\n]{{0,20}}?{_OPEN_HOURS}", re.IGNORECASE
)
_DIGIT = late_pattern(r"\d")
# Speech that contradicts the sentence before it: "“But …".
_CONTRADICTION = late_pattern(
    r"[\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u2018]\s?(?:but|however|yet|aber|doch|jedoch|allerdings|mais|pourtant|cependant|toutefois|pero|sin embargo|ma|però|tuttavia|mas|porém"
    r"|maar|men|ale|jednak|но|однако|але|mutta|ama|fakat|de|azonban|dar|όμως|αλλά|但|しかし|でも|하지만|그러나|لكن|אבל)(?![^\W_])",
    re.IGNORECASE,
)
_NAME = late_pattern(r"(?<!^)(?<![.!?]\s)[^\W\d_a-z][\w'\u2019-]+")
_MAX_HOURS = 2
"""The most opening hours in a sentence that is no list."""
_ENDED = late_pattern(rf"[.!?\u2026\u061f\u0964\u06d4\u3002\uff01\uff1f\uff61][{CLOSERS}]*$")
_MAX_SIGNATURE = 90
# "— Ida Berg, waste office", after a sentence's end.
_SIGNATURE = late_pattern(
    rf"[.!?\u2026\u061f\u0964\u3002\uff01\uff1f][{CLOSERS}]*\s+(?:>\s*)?[\u2014\u2013\u2015]\s*"
    rf"(?P<by>(?:{TITLE}\s)*"
    r"[^\W\d_a-z][^\s,;:!?]+(?:\s(?:[^\W\d_a-z][^\s,;:!?]*|van|von|de|der|den|del|di|da|la|le|al|bin))*"
    r"\s[^\W\d_a-z][^\s,;:.!?]+(?:,\s[^\n.!?]{2,50})?)\s*$"
)
_ONE_LINE_END = late_pattern(r"[^\S\n]*\n?[^\S\n]*")
_NAME_ALONE = late_pattern(r"\s*(?:>\s*)?[\u2014\u2013\u2015]\s*[^\W\d_a-z]")
_NEXT_SIGN = late_pattern(r"[^\S\r\n]*(?P<line>(?:\r\n?|\n)?)[^\S\r\n]*(?P<sign>\S)")
_CLAUSE_MARK = ",;:\u3001\uff0c\uff1b\u060c"

_LAST_SPACED = "\u2fff"
"""The last character before the scripts without spaces (and Korean)."""
_HEADING_LENGTH = 50
"""A shorter line that doesn't end a sentence is a heading, a longer one is wrapped."""
_MAX_HEADING = 120
# A line that breaks after one of these was only wrapped.
_WRAPPED = late_pattern(rf"[,;:\u2013\u2014-]$|\s{GOING_ON}$", re.IGNORECASE)
# In characters, the length of sentences with and without marks, and of the parts that longer ones are cut into.
_MAX_SENTENCE = 600
_MAX_UNPUNCTUATED = 240
_MAX_SEGMENT = 150
_MIN_SEGMENT = 70


def _blocks(text: str) -> Iterator[Span]:
    """Yield the spans between line ends that separate; the end of a line that was only wrapped doesn't."""
    start = 0
    line_start = 0
    is_first = True
    for match in _LINE_END.finditer(text):
        line = text[line_start : match.start()]
        if _separates(line, text, match.end()) or (is_first and _is_heading(line, text, match.end())):
            yield start, match.start()
            start = match.end()
        is_first = not line.strip()
        line_start = match.end()
    yield start, len(text)


def _is_heading(line: str, text: str, position: int) -> bool:
    """Return whether a paragraph's first line is a heading: it broke although the next word had room."""
    if not _HEADING_LENGTH <= len(line) <= _MAX_HEADING or _WRAPPED.search(line.rstrip()):
        return False
    paragraph_end = _BLANK_LINE.search(text, position)
    rest = text[position : min(paragraph_end.start() if paragraph_end else len(text), position + 5_000)]
    word = _WORD.search(rest)
    if word is None or not word.group()[:1].isupper():
        return False
    return len(line) + 1 + len(word.group()) <= max(map(len, _LINE_END.split(rest)))


def _separates(line: str, text: str, position: int) -> bool:
    """Return whether the line end before `position` separates sentences, or the line was only wrapped."""
    following = text[position : position + 40]
    if _MARKED.match(line) or _MARKED.match(text, position):
        return True
    if not line.strip() or not following.strip() or _LINE_END.match(following.lstrip(" \t\u00a0")):
        return True
    if _HOURS.match(line) or _HOURS.match(text, position) or SPEAKER.match(text, position):
        return True
    if len(line) >= _HEADING_LENGTH and _CUT_SHORT.search(line.rstrip()) and not _BULLET.match(following):
        return False
    if line.rstrip(f"{CLOSERS} ")[-1:] in ".!?\u2026\u3002\uff01\uff1f\u061f\u0964" or _BULLET.match(
        following
    ):
        return True
    opening = following.lstrip().lstrip("\"'\u2018\u201c\u00ab([")[:1]
    return not opening.islower() and len(line) < _HEADING_LENGTH


def _word_parts(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the parts of a word: the whole, or long pieces of a script without spaces."""
    piece_start = start
    if not text[start:end].isascii():
        for position in range(start + 1, end):
            is_long = position - piece_start >= _MAX_SEGMENT
            if is_long and all(
                text[index].isalpha() and text[index] > _LAST_SPACED for index in (position - 1, position)
            ):
                yield piece_start, position
                piece_start = position
    yield piece_start, end


def _segments(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield parts of a long text, cut at line ends, clauses or cue words, else by length."""
    segment_start = start
    previous_end = start
    best: int | None = None
    for word in _WORD.finditer(text, start, end):
        for piece_start, piece_end in _word_parts(text, word.start(), word.end()):
            length = previous_end - segment_start
            if length >= _MIN_SEGMENT:
                gap = text[previous_end:piece_start]
                opens = word.group().lower() in _CUES or "\n" in gap or text[previous_end - 1] in _CLAUSE_MARK
                if opens and piece_start == word.start():
                    best = previous_end
            if piece_end - segment_start > _MAX_SEGMENT and length:
                cut = best if best is not None else previous_end
                yield segment_start, cut
                segment_start = cut
                best = None
            previous_end = piece_end
    yield segment_start, end


def _trim(text: str, start: int, end: int) -> Span | None:
    """Return the span without white space, bullets and time stamps around it, or `None` if nothing is left."""
    lead = _LEAD.match(text, start, end)
    # Within a line a number or a time of day is a word of the sentence.
    if lead and (start == 0 or _LINE_END.match(text, start - 1) or "\n" in lead.group()):
        start = lead.end()
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return (start, end) if start < end else None


def _quotations(text: str, start: int, end: int, pattern: re.Pattern[str] = _QUOTED) -> list[Span]:
    """Return the spans of speech, in order; undirected marks are ignored if their number is odd."""
    block = without_gershayim(text[start:end])
    odd_marks = {mark for mark in '"\u05f4' if block.count(mark) % 2}
    spans = (match.span() for match in pattern.finditer(block))
    return [(start + first, start + last) for first, last in spans if block[first] not in odd_marks]


def _sentences(text: str, start: int, end: int) -> Iterator[Span]:
    position = start
    has_ended = False
    quotations = _quotations(text, start, end)[::-1]
    for match in _ENDER.finditer(text, start, end):
        while quotations and quotations[-1][1] <= match.start():
            quotations.pop()
        sentence_end = match.end()
        if quotations and quotations[-1][0] < match.start() and sentence_end < quotations[-1][1]:
            closing = quotations[-1][1]
            if text[sentence_end : closing - 1].strip():
                # Several sentences of one speech stay together.
                continue
            sentence_end = closing
        if ends_sentence(text, match, sentence_end):
            yield from _limit(text, position, sentence_end, is_punctuated=True)
            # The marks of notes belong to no sentence.
            noted = _FOOTNOTES.match(text, sentence_end, end)
            position = noted.end() if noted else sentence_end
            has_ended = True
    if position < end:
        yield from _limit(text, position, end, is_punctuated=has_ended)


def _limit(text: str, start: int, end: int, *, is_punctuated: bool) -> Iterator[Span]:
    if end - start > (_MAX_SENTENCE if is_punctuated else _MAX_UNPUNCTUATED):
        yield from _segments(text, start, end)
    else:
        yield start, end


def split_sentences(text: str) -> tuple[Span, ...]:
    """Return the span of each sentence, `text[start:end]`, in order, without overlap, never empty."""
    return tuple(span for _, span in _spans(text))


def statements_in(text: str) -> tuple[Span, ...]:
    """Return the spans of the sentences that state something and can stand alone.

    Rows of tables, code, captions, opening hours and list items without an end mark are left out, and so are hearsay
    and denied sentences, questions with their bare answers, and speech without its marks. Of an interview's sentences
    `Interview.statement` decides which part may be quoted.
    """
    spans = tuple(_spans(text))
    speeches = _speeches(text)
    interview = find_interview(text, _blocks(text))
    texts = [text[start:end] for _, (start, end) in spans]
    unasserted = hearsay.find_unasserted(texts) | _dependent(text, spans)
    statements = (
        interview.statement(text, start, end)
        for index, (block_start, (start, end)) in enumerate(spans)
        if index not in unasserted
        and not _lists_hours(text, start, end)
        and not _MARKED.match(text, block_start)
        and (not _ITEM.match(text, block_start) or _ENDED.search(text, start, end))
        and not any(first < start and end < last for first, last in speeches.get(block_start, ()))
    )
    return tuple(span for span in statements if span is not None)


def _dependent(text: str, spans: Sequence[tuple[int, Span]]) -> frozenset[int]:
    """Return the indexes of questions with answers that need them, and of speech that its speaker takes back."""
    language = guess_language(text)
    dependent: set[int] = set()
    for index, ((block, (start, end)), (next_block, (next_start, next_end))) in enumerate(pairwise(spans)):
        sentence, following = text[start:end], text[next_start:next_end]
        if is_question(sentence) and is_bare_answer(following, language, is_same_block=block == next_block):
            dependent.update((index, index + 1))
        if _contradicts(sentence, following):
            dependent.add(index)
    return frozenset(dependent)


def _contradicts(sentence: str, following: str) -> bool:
    """Return whether both sentences are speech of one speaker, who takes back the first by the second."""
    match = _CONTRADICTION.match(following)
    if match is None or not _QUOTED.search(sentence):
        return False
    # A name that only the second sentence has is another speaker's.
    return not any(name not in sentence for name in _NAME.findall(_QUOTED.sub("", following)))


def _lists_hours(text: str, start: int, end: int) -> bool:
    if _HOURS.match(text, start) and not _ENDED.search(text, start, end):
        return True
    if not _DIGIT.search(text, start, end):
        return False
    return sum(1 for _ in _HOURS_WITHIN.finditer(text, start, end)) > _MAX_HOURS


def _spans(text: str) -> Iterator[tuple[int, Span]]:
    """Yield each sentence with its block's start; one that takes it back ("ABGESAGT!") is joined to it."""
    waiting: tuple[int, Span] | None = None
    for block_start, (start, end) in _split(text):
        if waiting is not None:
            waiting_start, span = waiting
            if _ONE_LINE_END.fullmatch(text, span[1], start) and takes_back(text[start:end]):
                waiting = (waiting_start, (span[0], end))
                continue
            yield waiting
        waiting = (block_start, (start, end))
    if waiting is not None:
        yield waiting


def _split(text: str) -> Iterator[tuple[int, Span]]:
    """Yield each sentence with its block's start; signed words stay together with the name below them."""
    for block_start, block_end in _join_signed(text):
        is_signed = find_signature(text, block_start, block_end) is not None
        pieces = _limit(text, block_start, block_end, is_punctuated=True)
        for start, end in pieces if is_signed else _sentences(text, block_start, block_end):
            span = _trim(text, start, end)
            if span is not None:
                yield block_start, span


def _speeches(text: str) -> dict[int, list[Span]]:
    """Return the spans of speech by block, for blocks that are longer than a sentence; only there it is split."""
    return {
        start: _quotations(text, start, end, _QUOTED_AT_LENGTH)
        for start, end in _join_signed(text)
        if end - start > _MAX_SENTENCE
    }


def is_title(word: str) -> bool:
    """Return whether the word is a title or an initial, with or without its full stop: "Dr.", "Cllr", "J."."""
    stem = word.rstrip(".")
    return len(stem) == 1 or stem == "Me" or re.fullmatch(TITLE, f"{stem}.") is not None


def find_signature(text: str, start: int = 0, end: int | None = None) -> re.Match[str] | None:
    """Return the match of a name after a dash at the end, below a quotation, or `None`; its group is `by`."""
    end = len(text) if end is None else end
    dash = max(text.rfind(mark, max(start, end - _MAX_SIGNATURE), end) for mark in "\u2014\u2013\u2015")
    return None if dash == -1 else _SIGNATURE.search(text, max(start, dash - 8), end)


def _join_signed(text: str) -> Iterator[Span]:
    """Yield the blocks that aren't empty; one that is only a name after a dash is joined to the one before."""
    waiting: Span | None = None
    for start, end in _blocks(text):
        if not text[start:end].strip():
            continue
        if waiting is not None:
            if _NAME_ALONE.match(text, start, end) and find_signature(text, waiting[0], end):
                waiting = (waiting[0], end)
                continue
            yield waiting
        waiting = (start, end)
    if waiting is not None:
        yield waiting


def sentence_continues(text: str, end: int) -> bool:
    """Return whether the sentence goes on after `end`, in its line or in the line that it was wrapped into."""
    is_ended = _ENDED.search(text, max(0, end - 8), end)
    following = None if is_ended else _NEXT_SIGN.match(text, end)
    return following is not None and (not following["line"] or following["sign"].islower())


def sentence_ends(text: str) -> tuple[int, ...]:
    """Return the end offsets of sentences and paragraphs; long ones aren't cut, and entry numbers don't count."""
    ends: list[int] = []
    for block_start, block_end in _blocks(text):
        position = block_start
        for match in _ENDER.finditer(text, block_start, block_end):
            is_number = _ENTRY_NUMBER.fullmatch(text, position, match.start())
            if not is_number and ends_sentence(text, match, match.end()):
                ends.append(match.end())
                position = match.end()
        is_paragraph = block_end == len(text) or _BLANK_LINE.match(text, block_end)
        rest = text[position:block_end].rstrip()
        if is_paragraph and not _ENTRY_NUMBER.fullmatch(rest) and rest[-1] not in _CLAUSE_MARK:
            ends.append(position + len(rest))
    return tuple(ends)
