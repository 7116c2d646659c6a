"""Chooses which parts of videos and which pictures of a raw item a Composite Short shows, and in which order.

If what is told was said in a video, that moment of it is shown; else parts from all over the videos, and a
picture now and then. Nothing is shown twice.
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

MIN_VISUALS: Final = 3
"""Fewer parts and pictures make no film."""
MAX_VISUALS: Final = 20
MAX_PART_SECONDS: Final = 10.0
"""Of one part, which is searched for shots before it is shown."""
_MIN_EDGE_PIXELS: Final = 400
"""Of a picture's shorter edge."""
_TAIL_SECONDS: Final = 0.1
"""At a video's end these aren't shown: its last frame may freeze there."""
_LEAD_SECONDS: Final = 0.3
"""Shown of a video before the words for which it is shown."""
_PICTURE_INTERVAL: Final = 3
"""Every third visual is a picture, if there are so many."""


def count_things(material: FilmMaterial) -> int:
    """Return how many parts and pictures there are to show."""
    return len(_stills(material)) + sum(len(_parts(clip)) for clip in material.clips)


def find_moments(
    outline: Outline, script: NarrationScript, claims: Sequence[Claim], material: FilmMaterial
) -> list[float | None]:
    """Return when the spoken video says each piece's words, in seconds of that video; None if unknown."""
    words = outline.heard.words
    claim_by_word = list(_claims_by_word(script, claims))
    moments: list[float | None] = []
    for piece in cut_pieces(words, outline.card, [PIECE_SECONDS[1]] * MAX_VISUALS):
        middle = (piece.start + piece.end) / 2
        word_index = bisect_right([word.start for word in words], middle) - 1
        claim = claim_by_word[word_index] if 0 <= word_index < len(claim_by_word) else None
        moments.append(_second_in_video(claim, material) if claim is not None else None)
    return moments


def choose_clips(
    material: FilmMaterial, wanted: Sequence[float | None], turn: int = 0
) -> list[dict[str, Any]]:
    """Return as many clips as are wanted, if there are so many, as `content.clips` names them.

    Each variant has its own `turn`: where nothing says which moment to show, they show other parts, as far as
    there are.
    """
    clips = _choose(material, wanted, turn)
    if len(clips) == min(len(wanted), count_things(material)):
        return clips
    # Moments may lie so that fewer parts fit between them.
    clips_without_moments = _choose(material, [None] * len(wanted), turn)
    return clips_without_moments if len(clips_without_moments) > len(clips) else clips


def _choose(material: FilmMaterial, wanted: Sequence[float | None], turn: int) -> list[dict[str, Any]]:
    """Return a clip or still for each piece of the film, as its content stores them.

    A piece shows the moment of the video that says its words, where that is known. Others get further parts
    of the clips, and stills at even intervals.
    """
    parts, stills = _rotate([_parts(clip) for clip in material.clips], turn), _rotate(_stills(material), turn)
    part_count = sum(map(len, parts))
    count = min(len(wanted), part_count + len(stills))
    picture_count = min(len(stills), max(count - part_count, count // _PICTURE_INTERVAL))
    picture_places = {(2 * number + 1) * count // (2 * picture_count) for number in range(picture_count)}
    moment_spans: dict[int, VideoSpan] = {}
    for place in range(count):
        span = (
            _span_around(wanted[place], material, moment_spans.values())
            if place not in picture_places
            else None
        )
        if span is not None:
            moment_spans[place] = span
    # Of the other parts only those that show nothing of these moments.
    queue = iter(
        part
        for part in _spread_parts(parts, count - picture_count, turn)
        if not any(_overlap(part, other) for other in moment_spans.values())
    )
    clips: list[dict[str, Any]] = []
    for place in range(count):
        if place in picture_places:
            still = stills.pop(0)
            clips.append({"upload": still.name, **_ownership(still, material)})
        elif (span := moment_spans.get(place) or next(queue, None)) is not None:
            times = {"start": span.start, "end": span.end}
            clips.append({"upload": span.name, **times, **_clip_ownership(span, material)})
    return clips


def spans_in(clips: Sequence[Any]) -> tuple[VideoSpan, ...]:
    """Return the valid parts of videos among the clips."""
    spans = (
        VideoSpan(clip["upload"], float(clip["start"]), float(clip["end"]))
        for clip in clips[:MAX_VISUALS]
        if is_span(clip)
    )
    return tuple(span for span in spans if span.end - span.start <= MAX_PART_SECONDS)


def fault_in(clips: Sequence[Any], material: FilmMaterial | None) -> str | None:
    """Return the sentence for what can't be shown, None if all can.

    Without material its existence isn't checked.
    """
    if not MIN_VISUALS <= len(clips) <= MAX_VISUALS:
        return f"The content names {counted(len(clips), 'clip or picture', 'clips and pictures')}; {MIN_VISUALS} to {MAX_VISUALS} can be shown."
    clips_by_name = {clip.name: clip for clip in material.clips} if material is not None else {}
    stills = {still.name for still in material.stills} if material is not None else set()
    earlier_spans: list[VideoSpan] = []
    for clip in clips:
        name = clip.get("upload") if isinstance(clip, dict) else None
        if not isinstance(name, str):
            return "Each clip names an upload, and of a video its start and end in seconds."
        span = _span_of(clip, name)
        if span is None:
            return f"The part of {name} has a start and an end, {PIECE_SECONDS[0]:.0f} to {MAX_PART_SECONDS:.0f} seconds apart."
        if any(_overlap(span, other) for other in earlier_spans):
            return f"The film would show the same of {name} twice."
        earlier_spans.append(span)
        if material is not None and (fault := _missing_fault(span, clips_by_name.get(name), stills)):
            return fault
    return None


def _span_of(clip: Mapping[str, Any], name: str) -> VideoSpan | None:
    """Return the span of a clip; a still picture has no length. None for what is neither."""
    if "start" not in clip and "end" not in clip:
        return VideoSpan(name, 0.0, 0.0)
    if not is_span(clip) or not PIECE_SECONDS[0] <= clip["end"] - clip["start"] <= MAX_PART_SECONDS:
        return None
    return VideoSpan(name, float(clip["start"]), float(clip["end"]))


def _missing_fault(span: VideoSpan, clip: Clip | None, stills: set[str]) -> str | None:
    if not span.end:
        return None if span.name in stills else f"The picture {span.name} isn't among the item's media."
    if clip is None:
        return f"The video {span.name} isn't among the item's media."
    seconds = _seconds(clip)
    if span.end > seconds + _TAIL_SECONDS:
        return f"{span.name} is {seconds:.1f} seconds long; second {span.end:g} isn't in it."
    return None


def _overlap(first: VideoSpan, second: VideoSpan) -> bool:
    """Return whether two spans show the same; a still picture overlaps only with itself."""
    if first.name != second.name:
        return False
    return first == second or (first.start < second.end and second.start < first.end)


def _seconds(clip: Clip) -> float:
    return clip.seconds or (clip.words[-1].end if clip.words else 0.0)


def _parts(clip: Clip) -> list[VideoSpan]:
    """Return parts from all over the video, in order, each as long as any piece of a film takes."""
    seconds = _seconds(clip) - _TAIL_SECONDS
    if seconds < PIECE_SECONDS[0]:
        return []
    part_count = max(1, min(MAX_VISUALS, int(seconds / MIN_VIDEO_SECONDS)))
    part_seconds = seconds / part_count
    length = min(part_seconds, MIN_VIDEO_SECONDS)
    starts = (index * part_seconds + (part_seconds - length) / 2 for index in range(part_count))
    return [VideoSpan(clip.name, round(start, 2), round(start + length, 2)) for start in starts]


def _stills(material: FilmMaterial) -> list[StillImage]:
    """Return the pictures that are large enough, or whose size is unknown."""
    return [
        still
        for still in material.stills
        if min(still.width or _MIN_EDGE_PIXELS, still.height or _MIN_EDGE_PIXELS) >= _MIN_EDGE_PIXELS
    ]


def _interleave(parts: Sequence[Sequence[VideoSpan]]) -> list[VideoSpan]:
    """Return one part of each video, then the next of each, and so on."""
    return [span for row in zip_longest(*parts) for span in row if span is not None]


def _rotate(things: Sequence[Thing], turn: int) -> list[Thing]:
    """Return the list rotated, so that each variant begins with another."""
    first = turn % len(things) if things else 0
    return [*things[first:], *things[:first]]


def _spread_parts(parts: Sequence[Sequence[VideoSpan]], count: int, turn: int) -> list[VideoSpan]:
    """Return `count` parts, some of every video, from all over each and in its order.

    After them the parts between.
    """
    shares = [0] * len(parts)
    while sum(shares) < count:
        # `count` is at most the number of parts, so this ends.
        video = min(
            (index for index in range(len(parts)) if shares[index] < len(parts[index])),
            key=shares.__getitem__,
        )
        shares[video] += 1
    chosen_by_video = [
        [part[number * len(part) // share + turn % (len(part) // share)] for number in range(share)]
        for part, share in zip(parts, shares, strict=True)
    ]
    chosen = _interleave(chosen_by_video)
    return [*chosen, *(span for span in _interleave(parts) if span not in chosen)]


def _span_around(
    second: float | None, material: FilmMaterial, used_spans: Iterable[VideoSpan]
) -> VideoSpan | None:
    clip = material.spoken
    if second is None or clip is None:
        return None
    start = round(
        min(max(second - _LEAD_SECONDS, 0.0), _seconds(clip) - _TAIL_SECONDS - MIN_VIDEO_SECONDS), 2
    )
    span = VideoSpan(clip.name, start, round(start + MIN_VIDEO_SECONDS, 2))
    return span if start >= 0 and not any(_overlap(span, other) for other in used_spans) else None


def _ownership(asset: Clip | StillImage, material: FilmMaterial) -> dict[str, str]:
    return {"author": asset.author or material.credit, "licence": asset.licence}


def _clip_ownership(span: VideoSpan, material: FilmMaterial) -> dict[str, str]:
    return _ownership(next(clip for clip in material.clips if clip.name == span.name), material)


def _claims_by_word(script: NarrationScript, claims: Sequence[Claim]) -> Iterator[Claim | None]:
    """Yield for each word of the script the claim that it is part of, or None."""
    for passage in script.passages:
        claim_spans = [
            (start, start + len(claim.text), claim)
            for claim in claims
            if (start := passage.find(claim.text)) >= 0
        ]
        for token in written_words(passage):
            yield next((claim for start, end, claim in claim_spans if start <= token.start < end), None)


def _second_in_video(claim: Claim, material: FilmMaterial) -> float | None:
    clip = material.spoken
    offset = claim.start - material.words_at
    if clip is None or material.words_at < 0 or offset < 0:
        return None
    starts = [0, *accumulate(len(word.t) + 1 for word in clip.words)]
    return clip.words[bisect_right(starts, offset) - 1].start if offset < starts[-1] else None
