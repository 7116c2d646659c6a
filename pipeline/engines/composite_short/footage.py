"""Which parts of the videos and which pictures of a raw item a Composite Short shows, and in which order.

Where what is told was said in a video, that moment of it is shown; else parts from all over the videos, and a picture
now and then. Nothing is shown twice.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate, zip_longest
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pipeline.engines.shared.film_checks import is_span
from pipeline.render.audio.word_timing import written_words
from pipeline.render.video.material import VideoSpan
from pipeline.render.video.templates.composite import MIN_VIDEO_SECONDS, PIECE_SECONDS, cut_pieces
from pipeline.text.prose.verbatim_edits import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pipeline.engines.base import Claim
    from pipeline.render.audio.narration import NarrationScript
    from pipeline.render.video.material import Clip, FilmMaterial, StillImage
    from pipeline.render.video.templates.composite import Outline

Thing = TypeVar("Thing")

LEAST: Final = 3
"""Things to show; of fewer there is no film to speak of."""
MOST: Final = 20
LONGEST: Final = 10.0
"""Seconds of one part, which is looked at before it is shown."""
_SMALLEST: Final = 400
"""Pixels of a picture's shorter edge."""
_EDGE: Final = 0.1
"""Seconds at a video's end that aren't shown: its last frame may stand there."""
_BEFORE: Final = 0.3
"""Seconds of a video before the words for which it is shown."""
_PICTURES: Final = 3
"""Every third thing is a picture, where there are so many."""


def count_things(material: FilmMaterial) -> int:
    """How many there are to show."""
    return len(_stills(material)) + sum(len(_parts(clip)) for clip in material.clips)


def find_moments(
    outline: Outline, script: NarrationScript, claims: Sequence[Claim], material: FilmMaterial
) -> list[float | None]:
    """For each piece of the film the second of the spoken video at which is said what is told then."""
    words = outline.heard.words
    told = list(_told(script, claims))
    found: list[float | None] = []
    for piece in cut_pieces(words, outline.card, [PIECE_SECONDS[1]] * MOST):
        middle = (piece.start + piece.end) / 2
        place = bisect_right([word.start for word in words], middle) - 1
        claim = told[place] if 0 <= place < len(told) else None
        found.append(_second_of(claim, material) if claim is not None else None)
    return found


def choose_clips(
    material: FilmMaterial, wanted: Sequence[float | None], turn: int = 0
) -> list[dict[str, Any]]:
    """As `content.clips` names them, as many as are wanted where there are so many.

    Variants have another `turn` each: where nothing says which moment to show, they show other parts, as far as there are.
    """
    shown = _chosen(material, wanted, turn)
    if len(shown) == min(len(wanted), count_things(material)):
        return shown
    # Moments may lie so that less has room between them.
    plain = _chosen(material, [None] * len(wanted), turn)
    return plain if len(plain) > len(shown) else shown


def _chosen(material: FilmMaterial, wanted: Sequence[float | None], turn: int) -> list[dict[str, Any]]:
    parts, stills = _turned([_parts(clip) for clip in material.clips], turn), _turned(_stills(material), turn)
    of_videos = sum(map(len, parts))
    count = min(len(wanted), of_videos + len(stills))
    pictures = min(len(stills), max(count - of_videos, count // _PICTURES))
    of_pictures = {(2 * number + 1) * count // (2 * pictures) for number in range(pictures)}
    of_moments: dict[int, VideoSpan] = {}
    for place in range(count):
        span = _around(wanted[place], material, of_moments.values()) if place not in of_pictures else None
        if span is not None:
            of_moments[place] = span
    # Of the rest only what is shown nowhere else.
    queue = iter(
        part
        for part in _spread(parts, count - pictures, turn)
        if not any(_overlap(part, other) for other in of_moments.values())
    )
    shown: list[dict[str, Any]] = []
    for place in range(count):
        if place in of_pictures:
            still = stills.pop(0)
            shown.append({"upload": still.name, **_whose(still, material)})
        elif (span := of_moments.get(place) or next(queue, None)) is not None:
            times = {"start": span.start, "end": span.end}
            shown.append({"upload": span.name, **times, **_whose_clip(span, material)})
    return shown


def spans_in(shown: Sequence[Any]) -> tuple[VideoSpan, ...]:
    """The parts of videos among what is shown; whatever can't be one is left out."""
    found = (
        VideoSpan(one["upload"], float(one["start"]), float(one["end"]))
        for one in shown[:MOST]
        if is_span(one)
    )
    return tuple(span for span in found if span.end - span.start <= LONGEST)


def fault_in(shown: Sequence[Any], material: FilmMaterial | None) -> str | None:
    """The sentence for what can't be shown, None where all can; without material nothing is asked of it."""
    if not LEAST <= len(shown) <= MOST:
        return f"The content names {counted(len(shown), 'clip or picture', 'clips and pictures')}; {LEAST} to {MOST} can be shown."
    known = {clip.name: clip for clip in material.clips} if material is not None else {}
    stills = {still.name for still in material.stills} if material is not None else set()
    before: list[VideoSpan] = []
    for one in shown:
        name = one.get("upload") if isinstance(one, dict) else None
        if not isinstance(name, str):
            return "Each clip names an upload, and of a video its start and end in seconds."
        span = _span_of(one, name)
        if span is None:
            return f"The part of {name} has a start and an end, {PIECE_SECONDS[0]:.0f} to {LONGEST:.0f} seconds apart."
        if any(_overlap(span, other) for other in before):
            return f"The film would show the same of {name} twice."
        before.append(span)
        if material is not None and (fault := _gone(span, known.get(name), stills)):
            return fault
    return None


def _span_of(one: Mapping[str, Any], name: str) -> VideoSpan | None:
    """A still has no length; None for what is neither."""
    if "start" not in one and "end" not in one:
        return VideoSpan(name, 0.0, 0.0)
    if not is_span(one) or not PIECE_SECONDS[0] <= one["end"] - one["start"] <= LONGEST:
        return None
    return VideoSpan(name, float(one["start"]), float(one["end"]))


def _gone(span: VideoSpan, clip: Clip | None, stills: set[str]) -> str | None:
    if not span.end:
        return None if span.name in stills else f"The picture {span.name} isn't among the item's media."
    if clip is None:
        return f"The video {span.name} isn't among the item's media."
    seconds = _seconds(clip)
    if span.end > seconds + _EDGE:
        return f"{span.name} is {seconds:.1f} seconds long; second {span.end:g} isn't in it."
    return None


def _overlap(one: VideoSpan, other: VideoSpan) -> bool:
    """A still overlaps with itself alone."""
    if one.name != other.name:
        return False
    return one == other or (one.start < other.end and other.start < one.end)


def _seconds(clip: Clip) -> float:
    return clip.seconds or (clip.words[-1].end if clip.words else 0.0)


def _parts(clip: Clip) -> list[VideoSpan]:
    """From all over it, in order, each as long as any piece of a film takes."""
    seconds = _seconds(clip) - _EDGE
    if seconds < PIECE_SECONDS[0]:
        return []
    number = max(1, min(MOST, int(seconds / MIN_VIDEO_SECONDS)))
    each = seconds / number
    length = min(each, MIN_VIDEO_SECONDS)
    starts = (place * each + (each - length) / 2 for place in range(number))
    return [VideoSpan(clip.name, round(start, 2), round(start + length, 2)) for start in starts]


def _stills(material: FilmMaterial) -> list[StillImage]:
    """A size that isn't known is no reason against one."""
    return [
        one for one in material.stills if min(one.width or _SMALLEST, one.height or _SMALLEST) >= _SMALLEST
    ]


def _in_turn(parts: Sequence[Sequence[VideoSpan]]) -> list[VideoSpan]:
    """One of each video, then the next of each."""
    return [span for row in zip_longest(*parts) for span in row if span is not None]


def _turned(things: Sequence[Thing], turn: int) -> list[Thing]:
    """Another of them first."""
    first = turn % len(things) if things else 0
    return [*things[first:], *things[:first]]


def _spread(parts: Sequence[Sequence[VideoSpan]], count: int, turn: int) -> list[VideoSpan]:
    """So many, of every video some, from all over each and in its order; behind them those between."""
    shares = [0] * len(parts)
    while sum(shares) < count:
        # `count` is no more than there are.
        fewest = min(
            (place for place in range(len(parts)) if shares[place] < len(parts[place])),
            key=shares.__getitem__,
        )
        shares[fewest] += 1
    first = [
        [part[number * len(part) // share + turn % (len(part) // share)] for number in range(share)]
        for part, share in zip(parts, shares, strict=True)
    ]
    taken = _in_turn(first)
    return [*taken, *(span for span in _in_turn(parts) if span not in taken)]


def _around(second: float | None, material: FilmMaterial, taken: Iterable[VideoSpan]) -> VideoSpan | None:
    clip = material.spoken
    if second is None or clip is None:
        return None
    start = round(min(max(second - _BEFORE, 0.0), _seconds(clip) - _EDGE - MIN_VIDEO_SECONDS), 2)
    span = VideoSpan(clip.name, start, round(start + MIN_VIDEO_SECONDS, 2))
    return span if start >= 0 and not any(_overlap(span, other) for other in taken) else None


def _whose(asset: Clip | StillImage, material: FilmMaterial) -> dict[str, str]:
    return {"author": asset.author or material.credit, "licence": asset.licence}


def _whose_clip(span: VideoSpan, material: FilmMaterial) -> dict[str, str]:
    return _whose(next(clip for clip in material.clips if clip.name == span.name), material)


def _told(script: NarrationScript, claims: Sequence[Claim]) -> Iterator[Claim | None]:
    """For each word of the script the claim that it is part of."""
    for passage in script.passages:
        places = [
            (start, start + len(claim.text), claim)
            for claim in claims
            if (start := passage.find(claim.text)) >= 0
        ]
        for token in written_words(passage):
            yield next((claim for start, end, claim in places if start <= token.start < end), None)


def _second_of(claim: Claim, material: FilmMaterial) -> float | None:
    clip = material.spoken
    at = claim.start - material.words_at
    if clip is None or material.words_at < 0 or at < 0:
        return None
    starts = [0, *accumulate(len(word.t) + 1 for word in clip.words)]
    return clip.words[bisect_right(starts, at) - 1].start if at < starts[-1] else None
