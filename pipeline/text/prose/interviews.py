"""Finds who asks and who answers in an interview, and which sentences of the answers say something by themselves."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.text.language_detection import guess_language
from pipeline.text.prose.verbatim_edits import count_words, is_question, leans_back

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Span = tuple[int, int]

# Who speaks in an interview or a talk that is written as one: "Q:", "Antwort:", "Ida Berg:".
SPEAKER: Final = re.compile(
    r"[^\S\n]*+[*_>]{0,3}(?P<label>(?P<usual>(?:Q|A|F|Frage|Antwort|Question|Answer|Réponse|R|P|D|Pregunta|Respuesta|Domanda|Risposta|Pergunta|Resposta"
    r"|Vraag|Antwoord|Fråga|Svar|Spørgsmål|Spørsmål|Pytanie|Odpowiedź|Otázka|Odpověď|Вопрос|Ответ|В|О|Питання|Відповідь|Kérdés|Válasz|Soru|Cevap|Ερώτηση|Απάντηση|問|答|问|Q[.]|A[.])\d{0,2})"
    r"|[^\W\d_a-z][^\s:.!?]*(?:\s(?:[^\W\d_a-z][^\s:.!?]*|van|von|de|der|den|del|di|da|la|le|al|bin)){0,3})[*_]{0,3}\s?(?::[*_]{0,3}\s+|\uff1a[*_]{0,3}\s*)(?=\S)"
)
_LABELLED_LEAST: Final = 2
"""Lines of one speaker; a name that stands before one alone is a label as others are: "Place: Brackwater"."""
_QUESTIONS_LEAST: Final = 2
_QUESTION_SHARE: Final = 0.2
"""Of the paragraphs from the first question on; fewer are asked of the reader, not of somebody who answers."""
_LONGEST_QUESTION: Final = 300
_LEAST_WORDS: Final = 5
"""Of an answer's sentence; fewer are understood with the question alone."""
# A question to somebody: "Frau Halm, warum …?"
_ADDRESSES: Final = re.compile(
    r"(?<![^\W_])(?:Frau|Herrn?|Mr|Mrs|Ms|Dr|Mme|Madame|Monsieur|Señora?|Doña|Don|Signora?|Dottor(?:essa)?|Pani|Panie|Mevrouw|Meneer|Senhora?)\b"
)
_LEANS: Final = re.compile(
    r"(?:yes|no|yeah|nope|sure|right|exactly|absolutely|definitely|certainly|of course|never|not|well|oh|look|because|between|good question|it|that|then|both|neither|maybe|perhaps"
    r"|ja|nein|doch|klar|natürlich|selbstverständlich|genau|stimmt|sicher|gewiss|nie|niemals|nicht|weil|zwischen|gute frage|das|es|dann|vielleicht|früher"
    r"|oui|non|si|bien sûr|exactement|absolument|tout à fait|jamais|pas|parce que?|parce qu|entre|c['’]est|ça|cela|peut-être|avant"
    r"|sí|claro|por supuesto|desde luego|exacto|nunca|porque|eso|es|son|fue|quizás?|antes"
    r"|sì|certo|certamente|esatto|mai|perché|assolutamente|tra|fra|è|non|prima|forse"
    r"|tak|nie|oczywiście|jasne|dokładnie|nigdy|bo|ponieważ|dlatego|między|to|może|wcześniej"
    r"|sim|não|exato|sem dúvida|talvez|nee|natuurlijk|zeker|precies|omdat|tussen|dat|misschien|jo|nej|nei|självklart|fordi|för att|да|нет|конечно|потому|так|ні|звичайно)(?![^\W_])",
    re.IGNORECASE,
)
_I: Final = {
    "en": r"I|[Mm]e|[Mm]y|[Mm]ine|[Mm]yself",
    "de": r"[Ii]ch|[Mm]ich|[Mm]ir|[Mm]ein(?:e[mnrs]?)?",
    "fr": r"[Jj]e|[Jj]['’]\w+|[Mm]oi|[Mm]e|[Mm]['’]\w+|[Mm]on|[Mm]a|[Mm]es",
    "es": r"[Yy]o|[Mm]is?|[Mm]e|[Mm]ío|[Mm]ía|[Ss]oy|[Tt]engo|[Hh]e|[Ee]stoy",
    "it": r"[Ii]o|[Mm]i|[Mm]e|(?:[Ii]l |[Ll]a )?[Mm]i[oa]|[Mm]iei|[Mm]ie|[Hh]o|[Ss]ono nat[oa]",
    "pl": r"[Jj]a|[Mm]nie|[Mm]i|[Mm]ój|[Mm]oj\w+|[Jj]estem|[Mm]am|\w+ł[ae]m",
    "pt": r"[Ee]u|[Mm]e|[Mm]eus?|[Mm]inhas?|[Ss]ou|[Tt]enho|[Ee]stou",
    "nl": r"[Ii]k|[Mm]ij|[Mm]ijn|[Mm]e",
}
"""What somebody says of themselves, by language."""
_WE: Final = {
    "en": r"[Ww]e|[Uu]s|[Oo]urs?|[Oo]urselves",
    "de": r"[Ww]ir|[Uu]ns|[Uu]nser(?:e[mnrs]?)?",
    "fr": r"[Nn]ous|[Nn]otre|[Nn]os|[Oo]n",
    "es": r"[Nn]osotr[oa]s|[Nn]os|[Nn]uestr[oa]s?|\w{2,}[aei]mos",
    "it": r"[Nn]oi|[Cc]i|[Nn]ostr[oaie]|\w{2,}iamo",
    "pl": r"[Mm]y|[Nn]am|[Nn]ami|[Nn]as|[Nn]asz\w*|\w+(?:liśmy|łyśmy|emy|imy|amy)",
    "pt": r"[Nn]ós|[Nn]oss[oa]s?|\w{2,}[aei]mos",
    "nl": r"[Ww]ij|[Ww]e|[Oo]ns|[Oo]nze",
}
# A verb that begins a sentence and says "I" by its ending alone: "Costruisco violini".
_BEGINS_WITH_I: Final = {
    "it": re.compile(
        r"(?!Quando|Quanto|Tanto|Dopo|Secondo|Solo|Contro|Verso|Dentro|Sotto|Presto)[^\W\d_]{3,}o\s"
    ),
    "es": re.compile(r"(?!Cuando|Cuanto|Tanto|Solo|Sólo|Dentro|Luego|Pero|Cada año)[^\W\d_]{3,}o\s"),
    "pt": re.compile(r"(?!Quando|Quanto|Tanto|Dentro|Logo)[^\W\d_]{3,}o\s"),
    "pl": re.compile(r"[^\W\d_]{2,}(?:ę|am|em)\s"),
}

# "We spoke to her about debts.", "Ein Gespräch über Steine.": of the interview, not of what is said in it.
_ANNOUNCES: Final = re.compile(
    r"(?:we (?:spoke|talked|met|asked|sat down)|an? (?:interview|conversation|talk)|(?:ein|das) (?:gespräch|interview)|wir (?:sprachen|haben|trafen)"
    r"|(?:un |l['’])?entretien|rencontre|elles? (?:raconte|répond|explique)|ils? (?:raconte|répond|explique)|nous l['’]avons|una? (?:entrevista|conversación|charla|conversa|intervista)"
    r"|(?:hemos|habl)amos|un dialogo|abbiamo|l['’]abbiamo|rozmowa|rozmawia(?:my|liśmy|łyśmy)?|z (?:nim|nią) rozmawia\w*|een gesprek|wij? spraken)(?![^\W_])",
    re.IGNORECASE,
)


_SHORT_ANSWER: Final = 4
"""Words up to a comma or the end; fewer have no verb of their own, or one that the question has to explain."""
_CLAUSE_EDGE: Final = re.compile(r"\s?[,;:\u060c](?=\s)|\s[\u2013\u2014-]\s|\s\(")
# Words that say how much or how sure of what the question says.
_ANSWERS: Final = re.compile(
    r"(?:mostly|mainly|partly|largely|hardly|barely|almost|nearly|roughly|up to|at least|at most|only|probably|possibly|until|because of|thanks to|by \w+ing|with|without|from|to"
    r"|vor allem|größtenteils|teilweise|kaum|fast|etwa|rund|höchstens|mindestens|nur|wahrscheinlich|bis|wegen|mit|ohne|durch|von|surtout|presque|environ|seulement|probablement|grâce à"
    r"|à cause|jusqu['’]|avec|sans|sobre todo|casi|apenas|solo|sólo|hasta|gracias|con|sin|soprattutto|quasi|circa|soltanto|grazie|fino|senza|sobretudo|quase|apenas|graças|até|com|sem"
    r"|vooral|bijna|ongeveer|alleen|waarschijnlijk|dankzij|tot|met|zonder)\s",
    re.IGNORECASE,
)


# Under a letter, before the name of who wrote it.
_CLOSES_LETTER: Final = re.compile(
    r"^[^\S\n]*(?:yours(?: (?:faithfully|sincerely|truly))?|sincerely(?: yours)?|(?:kind|best|warm) regards|regards|mit freundlichen grüßen|hochachtungsvoll|viele grüße"
    r"|cordialement|bien à vous|salutations distinguées|atentamente|un (?:cordial )?saludo|cordiali saluti|distinti saluti|z poważaniem|met vriendelijke groet(?:en)?|hoogachtend"
    r"|atenciosamente|med vänlig hälsning),?[^\S\n]*\n\s*(?-i:[^\W\d_a-z])",
    re.IGNORECASE | re.MULTILINE,
)
# "A chart of the estuary from 1791.", "In May 1998, with two people.": no more than a noun and what belongs to it.
_PREPOSITION: Final = (
    r"(?:of|from|in|at|on|by|for|with|to|and|since|until|after|before|von|vom|aus|im|am|mit|für|um|bis|seit|ab|nach|vor|zum|zur|und|de|du|des|à|au|aux|en|avec|pour|depuis|et|del|con|para|por"
    r"|desde|hasta|y|di|della?|dal|nel|da|per|e|van|uit|met|voor|op|do|no|na|em|com|w|od|z|dla|i|в|во|с|на|до|для|и|у|з)"
)
_ARTICLE: Final = r"(?:an?|the|some|eine?[nmr]?|der|die|das|dem|den|une?|la|les?|el|los|las|un[oa]?|il|lo|gli|i|het|de|een|uma?|o|a|os|as)"
_NOUN_ALONE: Final = re.compile(
    rf"(?:{_ARTICLE}\s[^\s,.;:]+(?:,?\s{_PREPOSITION}\s(?:{_ARTICLE}\s)?[^\s,.;:]+)*"
    r"|(?:in|im|on|at|since|until|from|am|seit|ab|bis|en|au|à|depuis|desde|hasta|nel|dal|op|sinds|em|w|od|do|в|с|до|з|у)"
    rf"\s(?:{_ARTICLE}\s)?[^\s,.;:]+(?:\s\d{{1,4}})?(?:,?\s{_PREPOSITION}\s(?:{_ARTICLE}\s)?[^\s,.;:]+(?:\s[^\s,.;:]+)?)*)[.!…]?$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Turn:
    """What one says until another speaks; `said` begins behind the label. With a `name` the source says whose words these are."""

    start: int
    end: int
    said: int
    asks: bool
    name: str = ""


@dataclass(frozen=True)
class Interview:
    turns: tuple[_Turn, ...] = ()
    unowned: re.Pattern[str] | None = None
    """Words by which somebody speaks of themselves; without a name beside them they would be the publisher's."""
    begins_with_i: re.Pattern[str] | None = None
    language: str = ""

    def statement(self, text: str, start: int, end: int) -> Span | None:
        """The sentence as it may be repeated: whole where nobody is interviewed, a named one's first with the name.

        None for a question, for what leans on one, and for what somebody unnamed says of themselves.
        """
        turn = next((one for one in self.turns if one.start <= start < one.end), None)
        if turn is None:
            is_preface = bool(self.turns) and end <= self.turns[0].start
            return None if is_preface and _ANNOUNCES.match(text, start, end) else (start, end)
        begun = max(start, turn.said) if start < turn.said < end else start
        words = text[begun:end]
        if turn.asks or is_question(words) or _leans(words, self.language) or _NOUN_ALONE.match(words):
            return None
        if count_words(words) < _LEAST_WORDS:
            return None
        if turn.name:
            return (start, end) if begun != start else None
        if self.unowned is not None and self.unowned.search(words):
            return None
        if self.begins_with_i is not None and self.begins_with_i.match(words):
            return None
        return begun, end


def _leans(words: str, language: str) -> bool:
    return leans_back(words, language) or _LEANS.match(words.lstrip('"“„«‘¿¡ ')) is not None


def is_bare_answer(words: str, language: str, *, is_beside: bool) -> bool:
    """Whether it is understood with the question before it alone: "Mostly the county, which has set aside £8.4m.".

    A new paragraph (not `is_beside`) may begin with a name or a time before its first comma.
    """
    begun = _CLAUSE_EDGE.split(words, maxsplit=1)[0] if is_beside else words
    return (
        count_words(begun) <= _SHORT_ANSWER
        or _leans(words, language)
        or _ANSWERS.match(words) is not None
        or _NOUN_ALONE.match(words) is not None
    )


def interview_in(text: str, blocks: Iterable[Span]) -> Interview:
    """The interview that a text is or holds; one without turns where it is none. `blocks` are its paragraphs."""
    letter = _CLOSES_LETTER.search(text)
    if letter is None and not any(mark in text for mark in "?:\uff1a\uff1f\u061f\u037e"):
        return Interview()
    spans = [(start, end) for start, end in blocks if text[start:end].strip()]
    turns = _labelled(text, spans)
    is_named = bool(turns)
    turns = turns or _asked(text, spans)
    if not turns and letter is not None:
        turns = (_Turn(0, letter.start(), 0, asks=False),)
    if not turns:
        return Interview()
    language = guess_language(text)
    answers = " ".join(text[one.said : one.end] for one in turns if not one.asks)
    singular = _words(_I.get(language, ""))
    # Where nobody says "I", "we" is whoever wrote the answers: a shop, an office.
    is_person = (
        is_named
        or any(turn.asks and _ADDRESSES.search(text, turn.start, turn.end) for turn in turns)
        or (singular is not None and singular.search(answers) is not None)
    )
    both = f"{_I[language]}|{_WE[language]}" if language in _I else ""
    return Interview(turns, _words(both) if is_person else singular, _BEGINS_WITH_I.get(language), language)


def _words(pattern: str) -> re.Pattern[str] | None:
    return re.compile(rf"(?<![^\W_])(?:{pattern})(?![^\W_])") if pattern else None


def _labelled(text: str, blocks: Sequence[Span]) -> tuple[_Turn, ...]:
    """The turns of a talk that names its speakers before their words, from its first line to its last."""
    labelled: list[tuple[str, re.Match[str], Span]] = []
    for start, end in blocks:
        match = SPEAKER.match(text, start, end)
        if match is not None:
            labelled.append((re.sub(r"[\d.]+$", "", match["label"]).casefold(), match, (start, end)))
    counts = Counter(label for label, _, _ in labelled)
    usual = {label for label, match, _ in labelled if match["usual"] is not None}
    speakers = {label for label, count in counts.items() if count >= _LABELLED_LEAST}
    speakers |= usual if len(usual) > 1 else set()
    if len(speakers) < 2:
        return ()
    lines = [one for one in labelled if one[0] in speakers]
    asked = Counter(label for label, _, (start, end) in lines if is_question(text[start:end].strip()))
    askers = {label for label in asked if 2 * asked[label] >= counts[label]}
    turns = []
    for place, (label, match, (start, end)) in enumerate(lines):
        until = lines[place + 1][2][0] if place + 1 < len(lines) else end
        # A talk in which nobody asks is a scene, and nothing in it is said of the world.
        asks = not askers or label in askers
        name = "" if match["usual"] is not None else match["label"]
        turns.append(_Turn(start, until, match.end(), asks, name))
    return tuple(turns)


def _asked(text: str, blocks: Sequence[Span]) -> tuple[_Turn, ...]:
    """Turns of paragraphs that are questions and of those under them, to the end."""
    asks = [
        end - start <= _LONGEST_QUESTION and is_question(text[start:end].rstrip("*_ \n"))
        for start, end in blocks
    ]
    if sum(asks) < _QUESTIONS_LEAST:
        return ()
    first = asks.index(True)
    if sum(asks) < _QUESTION_SHARE * (len(blocks) - first):
        return ()
    return tuple(
        _Turn(start, end, start, is_asking)
        for (start, end), is_asking in zip(blocks[first:], asks[first:], strict=True)
    )
