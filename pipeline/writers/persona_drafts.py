"""Defines the material and the draft of a persona, and drafts one without AI from its published posts."""

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

MAX_REFERENCE_POSTS: Final = 5
"""The most reference posts of a draft: three to five have most of the effect, and more only fill every prompt."""
MAX_POST_CHARACTERS: Final = 1_500
"""A longer text counts as an article, and doesn't show the voice of posts."""

# A line such as "---".
_BETWEEN_POSTS: Final = re.compile(r"^\s*-{3,}\s*$", re.MULTILINE)
_HASHTAG: Final = re.compile(r"[#\uff03]\w+")
_BLANK_LINES: Final = re.compile(r"\n\s*\n")


@dataclass(frozen=True)
class PersonaMaterial:
    """The untrusted material for a persona: `posts` are whole past posts, `texts` longer pages."""

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
    """A persona's five sections, its name and its language; sections without material are empty."""

    name: str = ""
    language: str = ""
    who_you_are: str = ""
    voice: str = ""
    banned_words: tuple[str, ...] = ()
    required_structures: tuple[dict[str, Any], ...] = field(default=())
    reference_posts: tuple[str, ...] = ()


def posts_in(pasted: str) -> list[str]:
    """Return the different pasted posts, separated by lines of dashes or, if there are none, by blank lines."""
    text = strip_invisible(pasted.replace("\r\n", "\n"))
    pieces = (_BETWEEN_POSTS if _BETWEEN_POSTS.search(text) else _BLANK_LINES).split(text)
    return list(dict.fromkeys(piece.strip() for piece in pieces if piece.strip()))


def draft_without_ai(material: PersonaMaterial) -> DraftedPersona:
    """Return a draft of the site's own words and of measurements; nothing is inferred."""
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
        reference_posts=tuple(posts)[:MAX_REFERENCE_POSTS],
    )


def _describe_measurements(material: PersonaMaterial) -> str:
    """Return sentences on the typical length, sentences, hashtags and emoji of the posts.

    Without posts the pages are measured. Without either return "".
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
