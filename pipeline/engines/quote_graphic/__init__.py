"""Makes a Quote Graphic: one verbatim sentence of the source, large on the persona's colour, with its speaker."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any, Final

from pipeline.engines.base import Check, Claim, Draft, Engine, claims_of, make_check, variant_schema
from pipeline.engines.checks.allowed_contacts import title_of
from pipeline.engines.quote_graphic.attribution import find_speaker, is_same_person, origin_of
from pipeline.engines.quote_graphic.picture import MIN_SIZE, SIZES, QuoteLayout
from pipeline.engines.quote_graphic.quotation import (
    BEST_QUOTE_CHARACTERS,
    MAX_QUOTE_CHARACTERS,
    MIN_QUOTE_CHARACTERS,
    Quotation,
    bare_words,
    find_quotations,
    quotation_body,
    quotation_in,
)
from pipeline.engines.shared.picture_parts import (
    caption_fault,
    check_glyphs,
    check_picture_links,
    with_last_line,
)
from pipeline.engines.short_post import ShortPost
from pipeline.grounding import find_quoted_texts, normalize_quotation
from pipeline.plugins import Refused
from pipeline.render.picture_types import AvailableMedia, Layout
from pipeline.text.links import ascii_url
from pipeline.text.prose.verbatim_edits import collapse, first_words
from pipeline.text.similarity import distinct_words, is_same_idea

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.engines.base import Brief, PersonaCard, SourceText
    from pipeline.engines.quote_graphic.attribution import NamedSpeaker

_NEAR_CHARACTERS: Final = 400
"""If the source names the speaker farther from the quotation than this, the check is a warning."""

_VISIBLE: Final = re.compile(r"\w")
_NUMBER: Final = re.compile(r"\d[\d.,]*")
_BEGINS_AFTER: Final = frozenset("\n.!?\u2026:\"'([\u2013\u2014-\u061f\u3002\u300c\u300e")
"""Characters after which a sentence or speech begins."""
_ENDS: Final = frozenset(".!?\u2026\u061f\u3002")
_ENDS_BEFORE: Final = re.compile(r"[,.\u3002]? ?[\"'\n\u300d\u300f]|[.!?\u2026\u061f\u3002]")
"""What follows the end of a sentence or of speech: a mark that closes it, or a line end."""
_UNSPACED: Final = re.compile(r"[\u0e00-\u0eff\u2e80-\ud7af]")
"""Scripts that write particles onto names without a space, or use no spaces at all."""
_OWN_CHECKS: Final = frozenset({"content", "length", "link_count"})

_RULES: Final = f"""\
A Quote Graphic shows one quotation from the source, large, on a picture that stands alone.
- "quote": words of one fact's quote, exactly as they stand there, without quotation marks around them. What somebody
  said is best; else the one sentence that says most by itself. {BEST_QUOTE_CHARACTERS[0]} to {BEST_QUOTE_CHARACTERS[-1]} characters, {MAX_QUOTE_CHARACTERS} at most.
- Change, leave out or add nothing inside of it, not even a word or a comma. It begins and ends with a whole sentence,
  or with the whole of what was said.
- "speaker": who said it, named as the fact names them; empty where the fact doesn't say so.
- It has to be understood without what stood before it. No link, no hashtag, no account.
"""


class QuoteGraphic(Engine):
    """Makes a picture whose body is the quotation in its marks and a line with its speaker.

    Both are drawn, and drawn again after an edit.
    """

    kind = "quote_graphic"
    name = "Quote Graphic"
    bucket = "image"
    version = 1
    credits = 2
    is_starting = True
    made_from = ("text", "topic")
    sizes = SIZES
    shows_photo = True

    def __init__(self) -> None:
        self._post = ShortPost()

    def why_not(self, source: SourceText) -> str | None:
        if _VISIBLE.search(source.text):
            return None
        if _VISIBLE.search(source.title):
            return "This item has only a title: a quotation needs words of the source itself."
        return "This item has no words, so there is nothing to quote."

    def offline(self, brief: Brief, persona: PersonaCard, *, variants: int, seed: str) -> tuple[Draft, ...]:
        """Return spoken words first, then sentences that stand alone, whatever the seed."""
        del seed
        drafts: list[Draft] = []
        earlier_words: list[frozenset[str]] = []
        for quote, fact in find_quotations(brief, persona):
            if len(drafts) >= max(1, variants):
                break
            words = distinct_words(quote.words)
            if any(is_same_idea(words, other) for other in earlier_words):
                continue
            earlier_words.append(words)
            claim = Claim(text=quote.words, quote=fact.quote, start=fact.start, end=fact.end)
            drafts.append(_draft(quote, brief, persona, (claim,), brief.language))
        if not drafts and brief.lane is None and not origin_of(brief, persona):
            message = (
                "The text has no quotation that makes sense on its own and says who said it, and no link "
                "to a page that a sentence could be credited to. Add such a quotation, or the link of the "
                "page that the text is from."
            )
            raise Refused(message, code="nothing_to_say")
        if not drafts:
            message = f"The source has no sentence of {MIN_QUOTE_CHARACTERS} to {MAX_QUOTE_CHARACTERS} characters that could stand alone as a quotation."
            raise Refused(message, code="nothing_to_say")
        return tuple(drafts)

    def draft_schema(self) -> Mapping[str, Any]:
        return variant_schema(
            {
                "quote": {"type": "string", "description": "The quotation, verbatim, without marks."},
                "speaker": {"type": "string", "description": "Who said it; empty where no fact says so."},
            }
        )

    def rules(self) -> str:
        return _RULES

    def draft_from(self, answer: Mapping[str, Any], brief: Brief, persona: PersonaCard, angle: str) -> Draft:
        """Build the draft.

        Without a named speaker the line names the origin (`origin_of`): the site, the persona of a brand lane, or
        nobody for a brand. Raises `Refused` if a claim cites an unknown fact.
        """
        words = bare_words(collapse(answer["quote"]))
        speaker = collapse(answer["speaker"]).lstrip("\u2013\u2014- ")
        claims = claims_of(answer, brief)
        is_spoken = (
            bool(speaker)
            or brief.lane is not None
            or any(
                normalize_quotation(words) in normalize_quotation(quoted)
                for claim in claims
                for quoted in find_quoted_texts(claim.quote)
            )
        )
        quote = Quotation(words, speaker or origin_of(brief, persona), is_spoken)
        language = brief.language or persona.language
        draft = _draft(quote, brief, persona, claims, language)
        return dataclasses.replace(draft, angle=angle)

    def check(
        self, draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard
    ) -> tuple[Check, ...]:
        """Check the quotation, run a Short Post's checks on all words, and check that each size can be drawn."""
        quote = quotation_in(draft.body)
        as_post = dataclasses.replace(draft, content={"parts": [draft.body]})
        return (
            _check_content(draft, quote, brief, source, persona),
            _check_length(quote),
            _check_quote(quote, brief, source),
            _check_attribution(quote, brief, source, persona),
            *(
                check
                for check in self._post.check(as_post, brief, source, persona)
                if check.code not in _OWN_CHECKS
            ),
            check_picture_links(draft.body),
            check_glyphs(draft.body, draft.language, persona),
            _check_fits(draft, persona),
        )

    def plan(self, draft: Draft, persona: PersonaCard, media: AvailableMedia) -> Layout:
        """Return one picture.

        Raises `MissingGlyphs` if the fonts lack a character, `TextDoesNotFit` if a text is too long, and
        `ValueError` for a size that isn't in `SIZES`.
        """
        if media.size not in SIZES:
            message = f"A Quote Graphic is {SIZES[0]} or {SIZES[1]} pixels, not {media.size}."
            raise ValueError(message)
        return Layout((QuoteLayout(draft, persona, media).picture(),))


def _draft(
    quote: Quotation, brief: Brief, persona: PersonaCard, claims: tuple[Claim, ...], language: str
) -> Draft:
    body = quotation_body(quote, language)
    return Draft(
        title=title_of(brief, persona, quote.words),
        body=body,
        body_format="text",
        content={"caption": with_last_line(body, ascii_url(brief.url)), "slides": []},
        claims=claims,
        language=language,
        angle="story",
    )


def _check_content(
    draft: Draft, quote: Quotation, brief: Brief, source: SourceText, persona: PersonaCard
) -> Check:
    if not _VISIBLE.search(quote.words):
        fault: str | None = "The picture has no words."
    elif draft.content.get("slides") != []:
        fault = "A Quote Graphic has no slides."
    else:
        fault = caption_fault(draft, brief, source, persona)
    return make_check("content", "The picture has a quotation and a caption.", fault)


def _check_length(quote: Quotation) -> Check:
    length = len(quote.words)
    fault = (
        f"The quotation has {length} characters; the maximum is {MAX_QUOTE_CHARACTERS}."
        if length > MAX_QUOTE_CHARACTERS
        else None
    )
    return make_check(
        "quote_length", f"The quotation has {length} of {MAX_QUOTE_CHARACTERS} characters.", fault
    )


def _check_quote(quote: Quotation, brief: Brief, source: SourceText) -> Check:
    start = _find_quote(quote.words, source)
    fault = None
    if start is None:
        fault = f"The source doesn't say this word for word: \u201c{first_words(quote.words, 80)}\u201d."
    elif not _is_whole(quote.words, start, brief, source):
        fault = "The quotation leaves out the beginning or the end of its sentence."
    return make_check("quote", "The quotation is in the source word for word.", fault)


def _fold_lines(source: SourceText) -> str:
    """Return title and text folded line by line, because lines end sentences too."""
    return "\n".join(normalize_quotation(line) for line in f"{source.title}\n{source.text}".splitlines())


def _find_quote(words: str, source: SourceText) -> int | None:
    """Return the offset of the words, as whole words, in the folded source, or `None` if it doesn't have them."""
    wanted = normalize_quotation(words).rstrip(" ,")
    source_text = _fold_lines(source).replace("\n", " ")
    start = source_text.find(wanted) if wanted else -1
    while start != -1:
        end = start + len(wanted)
        if not _are_one_word(source_text[start - 1 : start], wanted[0]) and not _are_one_word(
            wanted[-1], source_text[end : end + 1]
        ):
            return start
        start = source_text.find(wanted, start + 1)
    return None


def _are_one_word(first: str, second: str) -> bool:
    return first.isalnum() and second.isalnum()


def _is_whole(words: str, start: int, brief: Brief, source: SourceText) -> bool:
    """Return whether the quotation is a fact's quote, or begins and ends where a sentence or speech does."""
    wanted = normalize_quotation(words).rstrip(" ,")
    if any(wanted == normalize_quotation(fact.quote) for fact in brief.facts):
        return True
    source_text = _fold_lines(source)
    before, after = source_text[:start].rstrip(" "), source_text[start + len(wanted) :]
    begins = not before or before[-1] in _BEGINS_AFTER
    return begins and (wanted[-1] in _ENDS or not after or _ENDS_BEFORE.match(after) is not None)


def _check_attribution(quote: Quotation, brief: Brief, source: SourceText, persona: PersonaCard) -> Check:
    """Check that the line names the origin of the words, or a person whom the source names as their speaker.

    It fails if the source doesn't name that person, or plainly names another one for the words. It is a warning
    if another one may have said them, if the person is named far away, or if the line is the title's or the
    persona's name.
    """
    other_speakers = _find_other_speakers(quote, source)
    origins = (origin_of(brief, persona), "" if other_speakers else source.author)
    known_origins = _fold_names(*origins)
    source_text = _fold_lines(source).replace("\n", " ")
    # Names are compared with and without numbers, which have their own check.
    forms = [normalize_quotation(form).strip(" ,") for form in (quote.by, _NUMBER.sub(" ", quote.by))]
    if not forms[0]:
        if brief.lane is not None and not origin_of(brief, persona):
            return Check("attribution", "passed", "The line is the brand's own, and its name is at the foot.")
        return Check("attribution", "failed", "The quotation names no speaker.")
    if known_origins.intersection(form.casefold() for form in forms):
        return Check("attribution", "passed", "The picture names where the quotation is from.")
    if _fold_names(persona.name, brief.title).intersection(form.casefold() for form in forms):
        message = f"The source doesn't say that these are words of {quote.by}: see whether they are."
        return Check("attribution", "warning", message)
    named_parts, unnamed_parts = min(
        (_split_attribution(form, source_text) for form in forms), key=lambda split: len(split[1])
    )
    if unnamed_parts:
        message = f"The source doesn't name {', '.join(unnamed_parts[:3])}."
        return Check("attribution", "failed", message)
    if other_speakers:
        message = f"The source names {other_speakers[0].speaker} for this quotation, not {named_parts[0]}."
        surname = named_parts[0].split()[-1]
        is_plain = any(
            speaker.is_plain and speaker.speaker.split()[-1] != surname for speaker in other_speakers
        )
        return Check("attribution", "failed" if is_plain else "warning", message)
    start = _find_quote(quote.words, source)
    text_near = source_text[
        max(0, (start or 0) - _NEAR_CHARACTERS) : (start or 0) + len(quote.words) + _NEAR_CHARACTERS
    ]
    if start is not None and named_parts[0] not in text_near:
        message = f"The source names {named_parts[0]} far from the quotation: see whether it is theirs."
        return Check("attribution", "warning", message)
    message = (
        "The source names the speaker next to the quotation."
        if find_speaker(quote.words, source.text)
        else f"The source names {named_parts[0]} near the quotation."
    )
    return Check("attribution", "passed", message)


def _find_other_speakers(quote: Quotation, source: SourceText) -> tuple[NamedSpeaker, ...]:
    """Return the speakers whom the source names for the quotation, or none if `quote.by` may be one of them."""
    speakers = find_speaker(quote.words, source.text)
    is_meant = any(is_same_person(named.speaker, quote.by, source.text) for named in speakers)
    return () if is_meant else speakers


def _fold_names(*names: str) -> frozenset[str]:
    return frozenset(normalize_quotation(name).casefold() for name in names if name.strip())


def _split_attribution(by: str, source_text: str) -> tuple[list[str], list[str]]:
    """Return the parts of the attribution between commas, and those of them that the source doesn't contain."""
    parts = [part.strip() for part in by.split(",") if part.strip()]
    return parts, [part for part in parts if not _names_part(source_text, part)]


def _names_part(source_text: str, part: str) -> bool:
    if _UNSPACED.search(part):
        return part in source_text
    return re.search(rf"(?<!\w){re.escape(part)}(?!\w)", source_text) is not None


def _check_fits(draft: Draft, persona: PersonaCard) -> Check:
    fault = None
    for size in SIZES:
        try:
            QuoteLayout(draft, persona, AvailableMedia(size=size)).picture()
        except Refused as refused:
            fault = f"At {size[0]} \u00d7 {size[1]} pixels: {refused.message}"
            break
    return make_check("fits", f"The quotation fits into each size at {MIN_SIZE} pixels or more.", fault)


PLUGIN = QuoteGraphic()
