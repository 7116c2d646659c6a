"""Fits words to a platform by declared steps, each of which the receipt names.

What a person may choose for an outlet stands in `FITTING`: whether a text that is too long is refused or shortened at
a sentence, and where the link goes. Everything here is pure: the same payload and settings give the same words.
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
PARTS_BETWEEN: Final = "\n\n"

FITTING: Final = (
    Setting(
        "too_long",
        "When a text is too long",
        "What happens to words that this platform would refuse for their length.",
        kind="choice",
        choices=(("refuse", "Say so and wait for a person"), ("shorten", "Shorten it at a sentence")),
        default="refuse",
        is_required=False,
    ),
    Setting(
        "link",
        "Link to the source",
        "Where the source's address goes when the words don't hold it.",
        kind="choice",
        choices=(("none", "Leave it out"), ("end", "Add it at the end")),
        default="none",
        is_required=False,
    ),
)

_DANGLING: Final = " \t\r\n\u00a0\u3000,;:.–—-([{、，；："
"""What may not stand before the "…"."""
# Thai and its neighbours too: their words are not parted by spaces.
_UNSPACED: Final = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー々〆]"
_CUT: Final = rf"(?<=\S)(?=\s)|(?<={_UNSPACED})(?={_UNSPACED})"
_FIRST_LOOK: Final = 512


def fit_text(payload: Payload, rule: BucketRule, config: Mapping[str, Any]) -> Adapted:
    """Plain words that fit the rule, as far as the outlet's settings allow; what still doesn't is `validate`'s to say."""
    steps: list[AdaptationStep] = []
    parts = _parts(payload, rule, steps)
    _link(parts, payload, config, steps)
    if config.get("too_long") == "shorten":
        parts = [_shortened(part, rule, payload.link, steps) for part in parts]
    files = len(unshown_files(rule, payload.assets))
    if files:
        said = "1 file was" if files == 1 else f"{files} files were"
        steps.append(
            AdaptationStep(
                "files_left_out", f"{said} left out, because posts of this kind here show none of that type."
            )
        )
    body = PARTS_BETWEEN.join(parts)
    return Adapted(replace(payload, body=body, body_format="text"), tuple(parts), tuple(steps))


def _parts(payload: Payload, rule: BucketRule, steps: list[AdaptationStep]) -> list[str]:
    form = payload.body_format
    if form != "text":
        steps.append(AdaptationStep("plain_text", f"The {form} became plain words."))
    parts = payload.content.get("parts") if payload.bucket == "text" else None
    if not isinstance(parts, list) or len(parts) < 2 or PARTS_BETWEEN.join(map(str, parts)) != payload.body:
        return [_plain(payload.body, form)]
    if rule.parts_most > 1:
        return [_plain(str(part), form) for part in parts]
    steps.append(AdaptationStep("joined", f"The {len(parts)} parts became one post."))
    return [_plain(payload.body, form)]


def _plain(text: str, form: str) -> str:
    return (text if form == "text" else plain_text(text, form)).strip()


def _link(parts: list[str], payload: Payload, config: Mapping[str, Any], steps: list[AdaptationStep]) -> None:
    link = payload.link
    if not link or config.get("link") != "end":
        return
    if any(_is_to(one, link) for part in parts for one in find_links(part)):
        return
    steps.append(AdaptationStep("link_added", "The source's address was added at the end."))
    parts[-1] = f"{parts[-1]}\n\n{link}".strip()


def _is_to(one: Link, address: str) -> bool:
    return one.url == address or is_same_address(one.url, address)


def _shortened(text: str, rule: BucketRule, link: str, steps: list[AdaptationStep]) -> str:
    def fits(words: str) -> bool:
        is_short = rule.text_max is None or rule.count(words) <= rule.text_max
        return is_short and (
            rule.text_max_bytes is None or len(words.encode("utf-8", "surrogatepass")) <= rule.text_max_bytes
        )

    if fits(text):
        return text
    words, tail = _with_link_apart(text, link)
    short = shorten_text(words, lambda beginning: fits(beginning + tail))
    if not short:
        return text
    steps.append(
        AdaptationStep("shortened", f"{rule.count(text)} {rule.unit} became {rule.count(short + tail)}.")
    )
    return short + tail


def _with_link_apart(text: str, link: str) -> tuple[str, str]:
    """The words, and the source's address behind them: it is what people came for, so the words give way."""
    last = next(reversed(find_links(text)), None) if link else None
    if last is None or text[last.end :].strip() or not _is_to(last, link):
        return text, ""
    return text[: last.start].rstrip(), f"{PARTS_BETWEEN}{text[last.start :]}"


def shorten_text(text: str, fits: Callable[[str], bool]) -> str:
    """The longest beginning that fits and ends with a sentence; empty where nothing fits.

    Where the sentences fill less than half of what fits, it ends with a word (or, in scripts without spaces, between
    two signs) and "…". No address is cut in two.
    """
    text = _within_reach(text, fits)
    if fits(text):
        return text
    links = find_links(text)
    # Binary search, because a longer beginning never counts less.
    cut = _last_that_fits(text, list(_cuts(text, links)), fits)
    sentences = _last_that_fits(text, [(end, "") for end in _outside(sentence_ends(text), links)], fits)
    return sentences if len(sentences) * 2 >= len(cut) else cut


def _within_reach(text: str, fits: Callable[[str], bool]) -> str:
    """No more of a long text than is needed to see where it has to end, and what follows there."""
    size = _FIRST_LOOK
    while size < len(text) and fits(text[:size]):
        size *= 2
    return text[: size * 2]


def _cuts(text: str, links: Sequence[Link]) -> Iterator[tuple[int, str]]:
    """Where words end, and what goes behind them: a "…" that touches an address would become a part of it."""
    following = iter(links)
    link = next(following, None)
    behind_link = last = 0
    signs = {match.end() for match in _pattern(r"\X").finditer(text)}
    for match in _pattern(_CUT).finditer(text):
        at = match.start()
        while link is not None and link.end <= at:
            behind_link, link = link.end, next(following, None)
        if at not in signs or (link is not None and link.start < at):
            continue
        end = max(_without_dangling(text, at), behind_link)
        if end > last:
            last = end
            yield end, f" {ELLIPSIS}" if end == behind_link else ELLIPSIS


def _without_dangling(text: str, end: int) -> int:
    while end and text[end - 1] in _DANGLING:
        end -= 1
    return end


def _outside(ends: Iterable[int], links: Sequence[Link]) -> Iterator[int]:
    """Those that are not in the middle of an address."""
    following = iter(links)
    link = next(following, None)
    for end in ends:
        while link is not None and link.end < end:
            link = next(following, None)
        if link is None or not link.start < end < link.end:
            yield end


@cache
def _pattern(pattern: str) -> regex.Pattern[str]:
    return regex.compile(pattern)


def _last_that_fits(text: str, cuts: Sequence[tuple[int, str]], fits: Callable[[str], bool]) -> str:
    low, high, best = 0, len(cuts) - 1, ""
    while low <= high:
        middle = (low + high) // 2
        end, mark = cuts[middle]
        if fits(text[:end] + mark):
            best, low = text[:end] + mark, middle + 1
        else:
            high = middle - 1
    return best
