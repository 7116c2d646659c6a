"""Finds the questions and answers of an interview, and the sentences of the answers that can stand alone."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.text.language_detection import guess_language
from pipeline.text.late_pattern import late_pattern
from pipeline.text.prose.verbatim_edits import count_words, is_question, leans_back

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Span = tuple[int, int]

# Labels of speakers in an interview or a conversation: "Q:", "Antwort:", "Ida Berg:".
SPEAKER: Final = late_pattern(
    r"[^\S\n]*+[*_>]{0,3}(?P<label>(?P<usual>(?:Q|A|F|Frage|Antwort|Question|Answer|Réponse|R|P|D|Pregunta|Respuesta|Domanda|Risposta|Pergunta|Resposta"
    r"|Vraag|Antwoord|Fråga|Svar|Spørgsmål|Spørsmål|Pytanie|Odpowiedź|Otázka|Odpověď|Вопрос|Ответ|В|О|Питання|Відповідь|Kérdés|Válasz|Soru|Cevap|Ερώτηση|Απάντηση|問|答|问|Q[.]|A[.])\d{0,2})"
    r"|[^\W\d_a-z][^\s:.!?]*(?:\s(?:[^\W\d_a-z][^\s:.!?]*|van|von|de|der|den|del|di|da|la|le|al|bin)){0,3})[*_]{0,3}\s?(?::[*_]{0,3}\s+|\uff1a[*_]{0,3}\s*)(?=\S)"
)
_MIN_LABELLED_LINES: Final = 2
"""The least lines with a label that names a speaker, unlike "Place: Brackwater"."""
_MIN_QUESTIONS: Final = 2
_MIN_QUESTION_SHARE: Final = 0.2
"""The least share of questions among the paragraphs from the first one on; fewer are asked of the reader."""
_MAX_QUESTION_CHARACTERS: Final = 300
_MIN_ANSWER_WORDS: Final = 5
"""A shorter sentence of an answer is understood only with the question."""
# The title in a question to a person: "Frau Halm, warum …?"
_ADDRESSES: Final = late_pattern(
    r"(?<![^\W_])(?:Frau|Herrn?|Mr|Mrs|Ms|Dr|Mme|Madame|Monsieur|Señora?|Doña|Don|Signora?|Dottor(?:essa)?|Pani|Panie|Mevrouw|Meneer|Senhora?)\b"
)
# "Yes, …", "Because …": understood only after a question.
_LEANING_OPENINGS: Final = late_pattern(
    r"(?:yes|no|yeah|nope|sure|right|exactly|absolutely|definitely|certainly|of course|never|not|well|oh|look|because|between|good question|it|that|then|both|neither|maybe|perhaps"
    r"|ja|nein|doch|klar|natürlich|selbstverständlich|genau|stimmt|sicher|gewiss|nie|niemals|nicht|weil|zwischen|gute frage|das|es|dann|vielleicht|früher"
    r"|oui|non|si|bien sûr|exactement|absolument|tout à fait|jamais|pas|parce que?|parce qu|entre|c['’]est|ça|cela|peut-être|avant"
    r"|sí|claro|por supuesto|desde luego|exacto|nunca|porque|eso|es|son|fue|quizás?|antes"
    r"|sì|certo|certamente|esatto|mai|perché|assolutamente|tra|fra|è|non|prima|forse"
    r"|tak|nie|oczywiście|jasne|dokładnie|nigdy|bo|ponieważ|dlatego|między|to|może|wcześniej"
    r"|sim|não|exato|sem dúvida|talvez|nee|natuurlijk|zeker|precies|omdat|tussen|dat|misschien|jo|nej|nei|självklart|fordi|för att|да|нет|конечно|потому|так|ні|звичайно)(?![^\W_])",
    re.IGNORECASE,
)
_FIRST_PERSON_SINGULAR: Final = {
    "en": r"I|[Mm]e|[Mm]y|[Mm]ine|[Mm]yself",
    "de": r"[Ii]ch|[Mm]ich|[Mm]ir|[Mm]ein(?:e[mnrs]?)?",
    "fr": r"[Jj]e|[Jj]['’]\w+|[Mm]oi|[Mm]e|[Mm]['’]\w+|[Mm]on|[Mm]a|[Mm]es",
    "es": r"[Yy]o|[Mm]is?|[Mm]e|[Mm]ío|[Mm]ía|[Ss]oy|[Tt]engo|[Hh]e|[Ee]stoy",
    "it": r"[Ii]o|[Mm]i|[Mm]e|(?:[Ii]l |[Ll]a )?[Mm]i[oa]|[Mm]iei|[Mm]ie|[Hh]o|[Ss]ono nat[oa]",
    "pl": r"[Jj]a|[Mm]nie|[Mm]i|[Mm]ój|[Mm]oj\w+|[Jj]estem|[Mm]am|\w+ł[ae]m",
    "pt": r"[Ee]u|[Mm]e|[Mm]eus?|[Mm]inhas?|[Ss]ou|[Tt]enho|[Ee]stou",
    "nl": r"[Ii]k|[Mm]ij|[Mm]ijn|[Mm]e",
}
"""The words by which a person speaks of themselves, by language."""
_FIRST_PERSON_PLURAL: Final = {
    "en": r"[Ww]e|[Uu]s|[Oo]urs?|[Oo]urselves",
    "de": r"[Ww]ir|[Uu]ns|[Uu]nser(?:e[mnrs]?)?",
    "fr": r"[Nn]ous|[Nn]otre|[Nn]os|[Oo]n",
    "es": r"[Nn]osotr[oa]s|[Nn]os|[Nn]uestr[oa]s?|\w{2,}[aei]mos",
    "it": r"[Nn]oi|[Cc]i|[Nn]ostr[oaie]|\w{2,}iamo",
    "pl": r"[Mm]y|[Nn]am|[Nn]ami|[Nn]as|[Nn]asz\w*|\w+(?:liśmy|łyśmy|emy|imy|amy)",
    "pt": r"[Nn]ós|[Nn]oss[oa]s?|\w{2,}[aei]mos",
    "nl": r"[Ww]ij|[Ww]e|[Oo]ns|[Oo]nze",
}
# A first verb with the ending of the first person: "Costruisco violini".
_BEGINS_WITH_I: Final = {
    "it": late_pattern(
        r"(?!Quando|Quanto|Tanto|Dopo|Secondo|Solo|Contro|Verso|Dentro|Sotto|Presto)[^\W\d_]{3,}o\s"
    ),
    "es": late_pattern(r"(?!Cuando|Cuanto|Tanto|Solo|Sólo|Dentro|Luego|Pero|Cada año)[^\W\d_]{3,}o\s"),
    "pt": late_pattern(r"(?!Quando|Quanto|Tanto|Dentro|Logo)[^\W\d_]{3,}o\s"),
    "pl": late_pattern(r"[^\W\d_]{2,}(?:ę|am|em)\s"),
}

# Sentences about the interview itself: "We spoke to her about debts.", "Ein Gespräch über Steine."
_ANNOUNCES: Final = late_pattern(
    r"(?:we (?:spoke|talked|met|asked|sat down)|an? (?:interview|conversation|talk)|(?:ein|das) (?:gespräch|interview)|wir (?:sprachen|haben|trafen)"
    r"|(?:un |l['’])?entretien|rencontre|elles? (?:raconte|répond|explique)|ils? (?:raconte|répond|explique)|nous l['’]avons|una? (?:entrevista|conversación|charla|conversa|intervista)"
    r"|(?:hemos|habl)amos|un dialogo|abbiamo|l['’]abbiamo|rozmowa|rozmawia(?:my|liśmy|łyśmy)?|z (?:nim|nią) rozmawia\w*|een gesprek|wij? spraken)(?![^\W_])",
    re.IGNORECASE,
)


_MAX_SHORT_ANSWER_WORDS: Final = 4
"""The most words, up to a comma or the end, of an answer that has no verb or needs the question for it."""
_CLAUSE_EDGE: Final = late_pattern(r"\s?[,;:\u060c](?=\s)|\s[\u2013\u2014-]\s|\s\(")
# Words that qualify the statement of the question: "Mostly …", "Because of …".
_QUALIFYING_OPENINGS: Final = late_pattern(
    r"(?:mostly|mainly|partly|largely|hardly|barely|almost|nearly|roughly|up to|at least|at most|only|probably|possibly|until|because of|thanks to|by \w+ing|with|without|from|to"
    r"|vor allem|größtenteils|teilweise|kaum|fast|etwa|rund|höchstens|mindestens|nur|wahrscheinlich|bis|wegen|mit|ohne|durch|von|surtout|presque|environ|seulement|probablement|grâce à"
    r"|à cause|jusqu['’]|avec|sans|sobre todo|casi|apenas|solo|sólo|hasta|gracias|con|sin|soprattutto|quasi|circa|soltanto|grazie|fino|senza|sobretudo|quase|apenas|graças|até|com|sem"
    r"|vooral|bijna|ongeveer|alleen|waarschijnlijk|dankzij|tot|met|zonder)\s",
    re.IGNORECASE,
)

# The closing of a letter, before the writer's name: "Yours sincerely,".
_CLOSES_LETTER: Final = late_pattern(
    r"^[^\S\n]*(?:yours(?: (?:faithfully|sincerely|truly))?|sincerely(?: yours)?|(?:kind|best|warm) regards|regards|mit freundlichen grüßen|hochachtungsvoll|viele grüße"
    r"|cordialement|bien à vous|salutations distinguées|atentamente|un (?:cordial )?saludo|cordiali saluti|distinti saluti|z poważaniem|met vriendelijke groet(?:en)?|hoogachtend"
    r"|atenciosamente|med vänlig hälsning),?[^\S\n]*\n\s*(?-i:[^\W\d_a-z])",
    re.IGNORECASE | re.MULTILINE,
)
# Only a noun with its attributes: "A chart of the estuary from 1791.", "In May 1998, with two people."
_PREPOSITION: Final = (
    r"(?:of|from|in|at|on|by|for|with|to|and|since|until|after|before|von|vom|aus|im|am|mit|für|um|bis|seit|ab|nach|vor|zum|zur|und|de|du|des|à|au|aux|en|avec|pour|depuis|et|del|con|para|por"
    r"|desde|hasta|y|di|della?|dal|nel|da|per|e|van|uit|met|voor|op|do|no|na|em|com|w|od|z|dla|i|в|во|с|на|до|для|и|у|з)"
)
_ARTICLE: Final = r"(?:an?|the|some|eine?[nmr]?|der|die|das|dem|den|une?|la|les?|el|los|las|un[oa]?|il|lo|gli|i|het|de|een|uma?|o|a|os|as)"
_NOUN_ALONE: Final = late_pattern(
    rf"(?:{_ARTICLE}\s[^\s,.;:]+(?:,?\s{_PREPOSITION}\s(?:{_ARTICLE}\s)?[^\s,.;:]+)*"
    r"|(?:in|im|on|at|since|until|from|am|seit|ab|bis|en|au|à|depuis|desde|hasta|nel|dal|op|sinds|em|w|od|do|в|с|до|з|у)"
    rf"\s(?:{_ARTICLE}\s)?[^\s,.;:]+(?:\s\d{{1,4}})?(?:,?\s{_PREPOSITION}\s(?:{_ARTICLE}\s)?[^\s,.;:]+(?:\s[^\s,.;:]+)?)*)[.!…]?$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Turn:
    """The words of one speaker until another speaks."""

    start: int
    end: int
    words_start: int
    """The offset at which the words begin, after the label."""
    asks: bool
    name: str = ""
    """The speaker's name in the label, or "" if the source names none."""


@dataclass(frozen=True)
class Interview:
    """The turns of an interview, and the first person in its language; a text without turns is none."""

    turns: tuple[_Turn, ...] = ()
    unowned: re.Pattern[str] | None = None
    """The first person; without a speaker's name it would seem to be the publisher's."""
    begins_with_i: re.Pattern[str] | None = None
    """The first person as a sentence's first verb."""
    language: str = ""

    def statement(self, text: str, start: int, end: int) -> Span | None:
        """Return the span of the sentence that may be quoted, or `None` if none may.

        Outside an interview it is the whole sentence, unless it announces the interview. A usual label ("A:") is
        left out; a name stays, so of a named speaker only the first sentence may be quoted. Questions, sentences
        that need one, and those of an unnamed speaker in the first person may not.
        """
        turn = next((candidate for candidate in self.turns if candidate.start <= start < candidate.end), None)
        if turn is None:
            is_preface = bool(self.turns) and end <= self.turns[0].start
            return None if is_preface and _ANNOUNCES.match(text, start, end) else (start, end)
        words_start = max(start, turn.words_start) if start < turn.words_start < end else start
        words = text[words_start:end]
        if (
            turn.asks
            or is_question(words)
            or _needs_question(words, self.language)
            or _NOUN_ALONE.match(words)
        ):
            return None
        if count_words(words) < _MIN_ANSWER_WORDS:
            return None
        if turn.name:
            return (start, end) if words_start != start else None
        if self.unowned is not None and self.unowned.search(words):
            return None
        if self.begins_with_i is not None and self.begins_with_i.match(words):
            return None
        return words_start, end


def _needs_question(words: str, language: str) -> bool:
    return leans_back(words, language) or _LEANING_OPENINGS.match(words.lstrip('"“„«‘¿¡ ')) is not None


def is_bare_answer(words: str, language: str, *, is_same_block: bool) -> bool:
    """Return whether the words need the question before them: "Mostly the county, which has set aside £8.4m.".

    In the question's own paragraph (`is_same_block`) the words up to the first comma count. A new paragraph may
    begin with a name or a time before its first comma, so all its words count.
    """
    opening = _CLAUSE_EDGE.split(words, maxsplit=1)[0] if is_same_block else words
    return (
        count_words(opening) <= _MAX_SHORT_ANSWER_WORDS
        or _needs_question(words, language)
        or _QUALIFYING_OPENINGS.match(words) is not None
        or _NOUN_ALONE.match(words) is not None
    )


def find_interview(text: str, blocks: Iterable[Span]) -> Interview:
    """Return the interview in a text, or one without turns if there is none; `blocks` are its paragraphs.

    A letter counts as one too, as the answer of its writer up to the closing.
    """
    letter = _CLOSES_LETTER.search(text)
    if letter is None and not any(mark in text for mark in "?:\uff1a\uff1f\u061f\u037e"):
        return Interview()
    spans = [(start, end) for start, end in blocks if text[start:end].strip()]
    turns = _labelled_turns(text, spans)
    is_named = bool(turns)
    turns = turns or _question_turns(text, spans)
    if not turns and letter is not None:
        turns = (_Turn(0, letter.start(), 0, asks=False),)
    if not turns:
        return Interview()
    language = guess_language(text)
    answers = " ".join(text[turn.words_start : turn.end] for turn in turns if not turn.asks)
    singular = _whole_word_pattern(_FIRST_PERSON_SINGULAR.get(language, ""))
    # If nobody says "I", then "we" is the author of the answers: a shop, an office.
    is_person = (
        is_named
        or any(turn.asks and _ADDRESSES.search(text, turn.start, turn.end) for turn in turns)
        or (singular is not None and singular.search(answers) is not None)
    )
    first_person = (
        f"{_FIRST_PERSON_SINGULAR[language]}|{_FIRST_PERSON_PLURAL[language]}"
        if language in _FIRST_PERSON_SINGULAR
        else ""
    )
    return Interview(
        turns,
        _whole_word_pattern(first_person) if is_person else singular,
        _BEGINS_WITH_I.get(language),
        language,
    )


def _whole_word_pattern(pattern: str) -> re.Pattern[str] | None:
    return re.compile(rf"(?<![^\W_])(?:{pattern})(?![^\W_])") if pattern else None


def _labelled_turns(text: str, blocks: Sequence[Span]) -> tuple[_Turn, ...]:
    """Return the turns of a conversation with the speakers' labels, or () if fewer than two speakers are found."""
    labelled: list[tuple[str, re.Match[str], Span]] = []
    for start, end in blocks:
        match = SPEAKER.match(text, start, end)
        if match is not None:
            labelled.append((re.sub(r"[\d.]+$", "", match["label"]).casefold(), match, (start, end)))
    counts = Counter(label for label, _, _ in labelled)
    usual = {label for label, match, _ in labelled if match["usual"] is not None}
    speakers = {label for label, count in counts.items() if count >= _MIN_LABELLED_LINES}
    speakers |= usual if len(usual) > 1 else set()
    if len(speakers) < 2:
        return ()
    speaker_lines = [line for line in labelled if line[0] in speakers]
    asked = Counter(label for label, _, (start, end) in speaker_lines if is_question(text[start:end].strip()))
    askers = {label for label in asked if 2 * asked[label] >= counts[label]}
    turns = []
    for index, (label, match, (start, end)) in enumerate(speaker_lines):
        turn_end = speaker_lines[index + 1][2][0] if index + 1 < len(speaker_lines) else end
        # A conversation in which nobody asks is fiction, and states nothing as a fact.
        asks = not askers or label in askers
        name = "" if match["usual"] is not None else match["label"]
        turns.append(_Turn(start, turn_end, match.end(), asks, name))
    return tuple(turns)


def _question_turns(text: str, blocks: Sequence[Span]) -> tuple[_Turn, ...]:
    """Return a turn for each paragraph from the first question on, or () if there are too few questions."""
    is_question_block = [
        end - start <= _MAX_QUESTION_CHARACTERS and is_question(text[start:end].rstrip("*_ \n"))
        for start, end in blocks
    ]
    if sum(is_question_block) < _MIN_QUESTIONS:
        return ()
    first_question = is_question_block.index(True)
    if sum(is_question_block) < _MIN_QUESTION_SHARE * (len(blocks) - first_question):
        return ()
    return tuple(
        _Turn(start, end, start, asks)
        for (start, end), asks in zip(
            blocks[first_question:], is_question_block[first_question:], strict=True
        )
    )
