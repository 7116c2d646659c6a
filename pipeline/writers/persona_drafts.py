"""Drafts a persona's sections from what it has published so far: the material, the draft, and the draft
without AI.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from config.core import limits as core_limits
from pipeline import limits
from pipeline.engines.checks.persona_rules import count_emoji, count_hashtags
from pipeline.text.html_text import strip_invisible
from pipeline.text.prompt_injection import gives_instructions
from pipeline.text.prose.sentences import split_sentences
from pipeline.text.prose.verbatim_edits import count_words, counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

POSTS_SHOWN: Final = 5
"""Three to five reference posts have most of the effect; more only fill every prompt."""
MAX_POST_CHARACTERS: Final = 1_500
"""A longer text counts as an article, and doesn't show the voice of posts."""

_BETWEEN_POSTS: Final = re.compile(r"^\s*-{3,}\s*$", re.MULTILINE)
_HASHTAG: Final = re.compile(r"[#\uff03]\w+")
_BLANK_LINES: Final = re.compile(r"\n\s*\n")


@dataclass(frozen=True)
class PersonaMaterial:
    """What a persona is drafted from: `posts` are whole past posts, `texts` longer pages.

    All of it is untrusted.
    """

    site: str = ""
    description: str = ""
    language: str = ""
    posts: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.description or self.posts or self.texts)


@dataclass(frozen=True)
class DraftedPersona:
    """A persona's five sections and a new persona's name.

    Sections that the material says nothing of are empty.
    """

    name: str = ""
    language: str = ""
    who_you_are: str = ""
    voice: str = ""
    banned_words: tuple[str, ...] = ()
    required_structures: tuple[dict[str, Any], ...] = field(default=())
    reference_posts: tuple[str, ...] = ()


def posts_in(pasted: str) -> list[str]:
    """Return pasted posts, which are separated by lines of dashes or, if there are none, by blank lines."""
    text = strip_invisible(pasted.replace("\r\n", "\n"))
    pieces = (_BETWEEN_POSTS if _BETWEEN_POSTS.search(text) else _BLANK_LINES).split(text)
    return list(dict.fromkeys(piece.strip() for piece in pieces if piece.strip()))


def draft_without_ai(material: PersonaMaterial) -> DraftedPersona:
    """Draft a persona from words of the site as they stand there, and from what can be counted.

    It infers nothing.
    """
    # A persona stands in the system prompt of every draft, so texts that give orders are left out.
    site_texts = (material.site, material.description)
    own_words = dict.fromkeys(text for text in site_texts if text and not gives_instructions(text))
    posts = (
        post for post in material.posts if len(post) <= MAX_POST_CHARACTERS and not gives_instructions(post)
    )
    return DraftedPersona(
        name=material.site[: core_limits.NAME_CHARACTERS],
        language=material.language,
        who_you_are="\n".join(own_words)[: limits.PERSONA_TEXT_CHARACTERS],
        voice=_describe_measurements(material),
        reference_posts=tuple(posts)[:POSTS_SHOWN],
    )


def _describe_measurements(material: PersonaMaterial) -> str:
    """Return sentences on the typical length, sentences, hashtags and emoji of the posts, or of the pages
    without posts.
    """
    if not material.posts and not material.texts:
        return ""
    samples = material.posts or material.texts
    plural_noun = "posts" if material.posts else "pages"
    lengths = [count_words(sample) for sample in samples]
    measurements = [f"Measured on {len(samples)} {plural_noun if len(samples) > 1 else plural_noun[:-1]}."]
    length_range = f", from {min(lengths)} to {max(lengths)}" if len(set(lengths)) > 1 else ""
    measurements.append(f"Typical length: {counted(round(median(lengths)), 'word')}{length_range}.")
    sentence_lengths = [
        words
        for sample in samples
        for start, end in split_sentences(sample)
        if (words := count_words(_HASHTAG.sub("", sample[start:end])))
    ]
    if sentence_lengths:
        measurements.append(f"Typical sentence: {counted(round(median(sentence_lengths)), 'word')}.")
    measurements.append(_describe_share("Hashtags", count_hashtags, samples))
    measurements.append(_describe_share("Emoji", count_emoji, samples))
    return " ".join(measurements)


def _describe_share(name: str, count: Callable[[str], int], samples: Sequence[str]) -> str:
    counts = [count(sample) for sample in samples]
    samples_with_any = sum(number > 0 for number in counts)
    if not samples_with_any:
        return f"{name}: none."
    return f"{name}: in {samples_with_any} of {len(samples)}, at most {max(counts)} in one."
