"""A persona's sections drafted from what it has said so far: the material, the draft, and the draft without AI."""

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
"""Three to five reference posts do most of it; more only fill every prompt."""
LONGEST_POST: Final = 1_500
"""Characters; what is longer is an article, and shows no post's voice."""

_BETWEEN_POSTS: Final = re.compile(r"^\s*-{3,}\s*$", re.MULTILINE)
_HASHTAG: Final = re.compile(r"[#\uff03]\w+")
_BLANK_LINES: Final = re.compile(r"\n\s*\n")


@dataclass(frozen=True)
class PersonaMaterial:
    """What a draft rests on: `posts` are whole past posts, `texts` longer pages; all of it was written by strangers."""

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
    """Five sections and what a new persona is called; empty where the material says nothing of it."""

    name: str = ""
    language: str = ""
    who_you_are: str = ""
    voice: str = ""
    banned_words: tuple[str, ...] = ()
    required_structures: tuple[dict[str, Any], ...] = field(default=())
    reference_posts: tuple[str, ...] = ()


def posts_in(pasted: str) -> list[str]:
    """Posts as people paste them: parted by lines of dashes or, where there are none, by blank lines."""
    text = strip_invisible(pasted.replace("\r\n", "\n"))
    pieces = (_BETWEEN_POSTS if _BETWEEN_POSTS.search(text) else _BLANK_LINES).split(text)
    return list(dict.fromkeys(piece.strip() for piece in pieces if piece.strip()))


def draft_without_ai(material: PersonaMaterial) -> DraftedPersona:
    """Words of the source as they stand there, and what can be counted; nothing is concluded from it."""
    # A persona stands in the system prompt of every draft, whoever wrote its words.
    about = (material.site, material.description)
    said = dict.fromkeys(words for words in about if words and not gives_instructions(words))
    posts = (post for post in material.posts if len(post) <= LONGEST_POST and not gives_instructions(post))
    return DraftedPersona(
        name=material.site[: core_limits.NAME_CHARACTERS],
        language=material.language,
        who_you_are="\n".join(said)[: limits.PERSONA_TEXT_CHARACTERS],
        voice=_measured(material),
        reference_posts=tuple(posts)[:POSTS_SHOWN],
    )


def _measured(material: PersonaMaterial) -> str:
    """Typical length, sentences, hashtags and emoji of the posts; of the pages only where there are no posts."""
    if not material.posts and not material.texts:
        return ""
    samples = material.posts or material.texts
    what = "posts" if material.posts else "pages"
    lengths = [count_words(one) for one in samples]
    facts = [f"Measured on {len(samples)} {what if len(samples) > 1 else what[:-1]}."]
    spread = f", from {min(lengths)} to {max(lengths)}" if len(set(lengths)) > 1 else ""
    facts.append(f"Typical length: {counted(round(median(lengths)), 'word')}{spread}.")
    sentences = [
        words
        for one in samples
        for start, end in split_sentences(one)
        if (words := count_words(_HASHTAG.sub("", one[start:end])))
    ]
    if sentences:
        facts.append(f"Typical sentence: {counted(round(median(sentences)), 'word')}.")
    facts.append(_share("Hashtags", count_hashtags, samples))
    facts.append(_share("Emoji", count_emoji, samples))
    return " ".join(facts)


def _share(name: str, count: Callable[[str], int], samples: Sequence[str]) -> str:
    counts = [count(one) for one in samples]
    having = sum(one > 0 for one in counts)
    if not having:
        return f"{name}: none."
    return f"{name}: in {having} of {len(samples)}, at most {max(counts)} in one."
