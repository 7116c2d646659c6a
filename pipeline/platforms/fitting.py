"""Fits texts to a platform by declared steps, each of which the receipt names.

`FITTING_SETTINGS` are a person's choices for an outlet: whether a text that is too long is refused or shortened
at a sentence, and whether the link is added. All functions are pure: the same payload and settings give the same
text.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import regex

from pipeline.platforms.base import Setting
from pipeline.platforms.payload_types import AdaptationStep, Adapted, Payload
from pipeline.platforms.rules import unshown_files
from pipeline.text.links import find_links, is_same_address
from pipeline.text.plain_text import plain_text
from pipeline.text.prose.sentences import sentence_ends

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pipeline.platforms.rules import BucketRule
    from pipeline.text.links import Link

ELLIPSIS: Final = "…"
PART_SEPARATOR: Final = "\n\n"

FITTING_SETTINGS: Final = (
    Setting(
        "too_long",
        "When a text is too long",
        "What happens to a text that is too long for this platform.",
        kind="choice",
        choices=(("refuse", "Stop and wait for a person"), ("shorten", "Shorten it at a sentence")),
        default="refuse",
        is_required=False,
    ),
    Setting(
        "link",
        "Link to the source",
        "Where the source's address goes if the text doesn't contain it.",
        kind="choice",
        choices=(("none", "Leave it out"), ("end", "Add it at the end")),
        default="none",
        is_required=False,
    ),
)

_DANGLING_CHARACTERS: Final = " \t\r\n\u00a0\u3000,;:.–—-([{、，；："
"""The characters that may not precede the "…"."""
# Besides CJK also Thai and its neighbours: their words are not separated by spaces.
_UNSPACED: Final = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー々〆]"
_CUT_PATTERN: Final = rf"(?<=\S)(?=\s)|(?<={_UNSPACED})(?={_UNSPACED})"
"""Matches where a text may be cut: at the end of a word, or between two characters of such a script."""
_FIRST_SIZE_CHARACTERS: Final = 512


def fit_text(payload: Payload, rule: BucketRule, config: Mapping[str, Any]) -> Adapted:
    """Return the payload as plain text, fitted to the rule as far as the outlet's settings allow.

    `validate` reports what still doesn't fit. Files that aren't shown stay in the payload, but are named as a
    step.
    """
    steps: list[AdaptationStep] = []
    parts = _plain_parts(payload, rule, steps)
    _add_link(parts, payload, config, steps)
    if config.get("too_long") == "shorten":
        parts = [_shorten_part(part, rule, payload.link, steps) for part in parts]
    files = len(unshown_files(rule, payload.assets))
    if files:
        subject = "1 file was" if files == 1 else f"{files} files were"
        steps.append(
            AdaptationStep(
                "files_left_out",
                f"{subject} left out, because posts of this kind here show none of that type.",
            )
        )
    body = PART_SEPARATOR.join(parts)
    return Adapted(replace(payload, body=body, body_format="text"), tuple(parts), tuple(steps))


def _plain_parts(payload: Payload, rule: BucketRule, steps: list[AdaptationStep]) -> list[str]:
    """Return the posts of a thread as plain text, or one post if there is no thread or the platform has none."""
    body_format = payload.body_format
    if body_format != "text":
        steps.append(AdaptationStep("plain_text", f"The {body_format} became plain words."))
    parts = payload.content.get("parts") if payload.bucket == "text" else None
    if not isinstance(parts, list) or len(parts) < 2 or PART_SEPARATOR.join(map(str, parts)) != payload.body:
        return [_to_plain_text(payload.body, body_format)]
    if rule.parts_most > 1:
        return [_to_plain_text(str(part), body_format) for part in parts]
    steps.append(AdaptationStep("joined", f"The {len(parts)} parts became one post."))
    return [_to_plain_text(payload.body, body_format)]


def _to_plain_text(text: str, body_format: str) -> str:
    """Return a text of this format as plain text."""
    return (text if body_format == "text" else plain_text(text, body_format)).strip()


def _add_link(
    parts: list[str], payload: Payload, config: Mapping[str, Any], steps: list[AdaptationStep]
) -> None:
    """Add the source's address at the end, if the settings want it and no part has it."""
    link = payload.link
    if not link or config.get("link") != "end":
        return
    if any(_leads_to(existing, link) for part in parts for existing in find_links(part)):
        return
    steps.append(AdaptationStep("link_added", "The source's address was added at the end."))
    parts[-1] = f"{parts[-1]}\n\n{link}".strip()


def _leads_to(link: Link, address: str) -> bool:
    """Return whether a link leads to the address, in any spelling."""
    return link.url == address or is_same_address(link.url, address)


def _shorten_part(text: str, rule: BucketRule, link: str, steps: list[AdaptationStep]) -> str:
    """Return the part, shortened if it is too long; unchanged if nothing of it would fit."""

    def fits(body: str) -> bool:
        is_short = rule.text_max is None or rule.count(body) <= rule.text_max
        return is_short and (
            rule.text_max_bytes is None or len(body.encode("utf-8", "surrogatepass")) <= rule.text_max_bytes
        )

    if fits(text):
        return text
    body, tail = _split_off_link(text, link)
    short = shorten_text(body, lambda beginning: fits(beginning + tail))
    if not short:
        return text
    steps.append(
        AdaptationStep("shortened", f"{rule.count(text)} {rule.unit} became {rule.count(short + tail)}.")
    )
    return short + tail


def _split_off_link(text: str, link: str) -> tuple[str, str]:
    """Return the text and, if it ends with the source's address, that address with its separator.

    Readers need the address, so the text is shortened instead of it.
    """
    last = next(reversed(find_links(text)), None) if link else None
    if last is None or text[last.end :].strip() or not _leads_to(last, link):
        return text, ""
    return text[: last.start].rstrip(), f"{PART_SEPARATOR}{text[last.start :]}"


def shorten_text(text: str, fits: Callable[[str], bool]) -> str:
    """Return the longest beginning that fits and ends with a sentence, or an empty string if nothing fits.

    If the sentences fill less than half of what fits, it ends with a word (or, in scripts without spaces,
    between two characters) and "…". No address is cut in two.
    """
    text = _limit_to_reach(text, fits)
    if fits(text):
        return text
    links = find_links(text)
    # Binary search, because a longer beginning never counts less.
    words = _find_longest(text, list(_find_cuts(text, links)), fits)
    sentences = _find_longest(text, [(end, "") for end in _outside_links(sentence_ends(text), links)], fits)
    return sentences if len(sentences) * 2 >= len(words) else words


def _limit_to_reach(text: str, fits: Callable[[str], bool]) -> str:
    """Return the beginning of a long text that is needed to find where it has to end.

    It is at least twice as long as what fits, because a cut depends on what follows.
    """
    size = _FIRST_SIZE_CHARACTERS
    while size < len(text) and fits(text[:size]):
        size *= 2
    return text[: size * 2]


def _find_cuts(text: str, links: Sequence[Link]) -> Iterator[tuple[int, str]]:
    """Yield the index of each word's end outside of addresses, and the suffix to put there, in order.

    A "…" that touches an address would become a part of it, so a space goes between.
    """
    remaining_links = iter(links)
    link = next(remaining_links, None)
    last_link_end = last_end = 0
    character_ends = {match.end() for match in _compile(r"\X").finditer(text)}
    for match in _compile(_CUT_PATTERN).finditer(text):
        index = match.start()
        while link is not None and link.end <= index:
            last_link_end, link = link.end, next(remaining_links, None)
        if index not in character_ends or (link is not None and link.start < index):
            continue
        end = max(_strip_dangling(text, index), last_link_end)
        if end > last_end:
            last_end = end
            yield end, f" {ELLIPSIS}" if end == last_link_end else ELLIPSIS


def _strip_dangling(text: str, end: int) -> int:
    """Return the index where the text before `end` ends without dangling characters."""
    while end and text[end - 1] in _DANGLING_CHARACTERS:
        end -= 1
    return end


def _outside_links(ends: Iterable[int], links: Sequence[Link]) -> Iterator[int]:
    """Yield the ends that aren't inside an address."""
    remaining_links = iter(links)
    link = next(remaining_links, None)
    for end in ends:
        while link is not None and link.end < end:
            link = next(remaining_links, None)
        if link is None or not link.start < end < link.end:
            yield end


@cache
def _compile(pattern: str) -> regex.Pattern[str]:
    """Return the pattern, compiled at its first use."""
    return regex.compile(pattern)


def _find_longest(text: str, cuts: Sequence[tuple[int, str]], fits: Callable[[str], bool]) -> str:
    """Return the longest cut that fits, by binary search, or an empty string if none does."""
    low, high, best = 0, len(cuts) - 1, ""
    while low <= high:
        middle = (low + high) // 2
        end, suffix = cuts[middle]
        if fits(text[:end] + suffix):
            best, low = text[:end] + suffix, middle + 1
        else:
            high = middle - 1
    return best
