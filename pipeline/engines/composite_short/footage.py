"""Chooses which parts of videos and which pictures of a raw item a Composite Short shows, and in which order.

Words that were said in a video are shown with that moment of the video. Other words are shown with parts from
all over the videos, and with a picture now and then. Nothing is shown twice.
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
    from collections.abc import Set as AbstractSet

    from pipeline.engines.base import Claim
    from pipeline.render.audio.narration import NarrationScript
    from pipeline.render.video.material import Clip, FilmMaterial, StillImage
    from pipeline.render.video.templates.composite import Outline

T = TypeVar("T")

MIN_VISUALS: Final = 3
"""Fewer parts and pictures make no film."""
MAX_VISUALS: Final = 20
MAX_PART_SECONDS: Final = 10.0
"""The maximum of one part, which is searched for shots before it is shown."""
_MIN_EDGE_PIXELS: Final = 400
"""The minimum of a picture's shorter edge."""
_TAIL_SECONDS: Final = 0.1
"""The end of a video that isn't shown, because the last frame may freeze there."""
_LEAD_SECONDS: Final = 0.3
"""The time for which a part is shown before its words begin."""
_PICTURE_INTERVAL: Final = 3
"""Every third visual is a picture, if there are so many."""


def count_visuals(material: FilmMaterial) -> int:
    """Return the number of parts and pictures that can be shown."""
    return len(_usable_stills(material)) + sum(len(_split_into_parts(clip)) for clip in material.clips)


def find_moments(
    outline: Outline, script: NarrationScript, claims: Sequence[Claim], material: FilmMaterial
) -> list[float | None]:
    """Return the second of the spoken video at which each piece's words are said, or `None` if it is unknown."""
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
    material: FilmMaterial, moments: Sequence[float | None], rotation: int = 0
) -> list[dict[str, Any]]:
    """Return a clip for each of the `moments`, if there are so many, in the form of `content.clips`.

    `moments` are those of `find_moments`. Each variant has its own `rotation`: a piece without a moment then
    shows another part, as far as there are others.
    """
    clips = _choose_visuals(material, moments, rotation)
    if len(clips) == min(len(moments), count_visuals(material)):
        return clips
    # Moments may lie so that fewer parts fit between them.
    clips_without_moments = _choose_visuals(material, [None] * len(moments), rotation)
    return clips_without_moments if len(clips_without_moments) > len(clips) else clips


def _choose_visuals(
    material: FilmMaterial, moments: Sequence[float | None], rotation: int
) -> list[dict[str, Any]]:
    """Return a clip or still for each piece of the film, as its content stores them.

    A piece shows the moment at which the video says its words, if that is known. Other pieces show further
    parts of the videos, and stills at even intervals. A piece for which nothing is left has no clip.
    """
    parts = _rotate([_split_into_parts(clip) for clip in material.clips], rotation)
    stills = _rotate(_usable_stills(material), rotation)
    part_count = sum(map(len, parts))
    count = min(len(moments), part_count + len(stills))
    still_count = min(len(stills), max(count - part_count, count // _PICTURE_INTERVAL))
    # Each still is in the middle of one of as many equal stretches of the film.
    still_indexes = {(2 * number + 1) * count // (2 * still_count) for number in range(still_count)}
    moment_spans = _find_moment_spans(moments[:count], still_indexes, material)
    # A part that shows anything of these moments isn't shown again.
    further_parts = iter(
        part
        for part in _spread_parts(parts, count - still_count, rotation)
        if not any(_overlap(part, span) for span in moment_spans.values())
    )
    clips: list[dict[str, Any]] = []
    for index in range(count):
        if index in still_indexes:
            still = stills.pop(0)
            clips.append({"upload": still.name, **_ownership(still, material)})
        elif (span := moment_spans.get(index) or next(further_parts, None)) is not None:
            times = {"start": span.start, "end": span.end}
            clips.append({"upload": span.name, **times, **_clip_ownership(span, material)})
    return clips


def _find_moment_spans(
    moments: Sequence[float | None], still_indexes: AbstractSet[int], material: FilmMaterial
) -> dict[int, VideoSpan]:
    """Return the span around each moment that can be shown, by the index of its piece."""
    spans: dict[int, VideoSpan] = {}
    for index, moment in enumerate(moments):
        if index in still_indexes:
            continue
        span = _span_around(moment, material, spans.values())
        if span is not None:
            spans[index] = span
    return spans


def spans_in(clips: Sequence[Any]) -> tuple[VideoSpan, ...]:
    """Return the parts of videos among the first clips that are valid and short enough to be searched for shots."""
    spans = (
        VideoSpan(clip["upload"], float(clip["start"]), float(clip["end"]))
        for clip in clips[:MAX_VISUALS]
        if is_span(clip)
    )
    return tuple(span for span in spans if span.end - span.start <= MAX_PART_SECONDS)


def fault_in(clips: Sequence[Any], material: FilmMaterial | None) -> str | None:
    """Return the first reason why the clips can't be shown, or `None` if they can.

    With `material` each clip has to be in it.
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
    """Return the span of a clip or of a still picture, or `None` for an invalid part of a video."""
    if "start" not in clip and "end" not in clip:
        return VideoSpan(name, 0.0, 0.0)
    if not is_span(clip) or not PIECE_SECONDS[0] <= clip["end"] - clip["start"] <= MAX_PART_SECONDS:
        return None
    return VideoSpan(name, float(clip["start"]), float(clip["end"]))


def _missing_fault(span: VideoSpan, clip: Clip | None, stills: set[str]) -> str | None:
    if span.is_still:
        return None if span.name in stills else f"The picture {span.name} isn't among the item's media."
    if clip is None:
        return f"The video {span.name} isn't among the item's media."
    seconds = _length_of(clip)
    if span.end > seconds + _TAIL_SECONDS:
        return f"{span.name} is {seconds:.1f} seconds long; second {span.end:g} isn't in it."
    return None


def _overlap(first: VideoSpan, second: VideoSpan) -> bool:
    """Return whether two spans show the same frame or still picture."""
    if first.name != second.name:
        return False
    return first == second or (first.start < second.end and second.start < first.end)


def _length_of(clip: Clip) -> float:
    """Return the video's length in seconds; if it isn't known, the end of the last word, or 0 without words."""
    return clip.seconds or (clip.words[-1].end if clip.words else 0.0)


def _split_into_parts(clip: Clip) -> list[VideoSpan]:
    """Return parts from all over the video, in order, each long enough for any piece.

    A short video is one part, or none if it is shorter than the shortest piece.
    """
    seconds = _length_of(clip) - _TAIL_SECONDS
    if seconds < PIECE_SECONDS[0]:
        return []
    part_count = max(1, min(MAX_VISUALS, int(seconds / MIN_VIDEO_SECONDS)))
    part_seconds = seconds / part_count
    length = min(part_seconds, MIN_VIDEO_SECONDS)
    starts = (index * part_seconds + (part_seconds - length) / 2 for index in range(part_count))
    return [VideoSpan(clip.name, round(start, 2), round(start + length, 2)) for start in starts]


def _usable_stills(material: FilmMaterial) -> list[StillImage]:
    """Return the pictures that are large enough, or whose size is unknown."""
    return [
        still
        for still in material.stills
        if min(still.width or _MIN_EDGE_PIXELS, still.height or _MIN_EDGE_PIXELS) >= _MIN_EDGE_PIXELS
    ]


def _interleave(parts: Sequence[Sequence[VideoSpan]]) -> list[VideoSpan]:
    """Return one part of each video, then the next of each, and so on."""
    return [span for row in zip_longest(*parts) for span in row if span is not None]


def _rotate(items: Sequence[T], rotation: int) -> list[T]:
    """Return the items, beginning with another one for each rotation."""
    first = rotation % len(items) if items else 0
    return [*items[first:], *items[:first]]


def _spread_parts(parts: Sequence[Sequence[VideoSpan]], count: int, rotation: int) -> list[VideoSpan]:
    """Return all parts, first `count` of them that are spread evenly over the videos and over each video."""
    shares = [0] * len(parts)
    while sum(shares) < count:
        # `count` is at most the number of parts, so this ends.
        video = min(
            (index for index in range(len(parts)) if shares[index] < len(parts[index])),
            key=shares.__getitem__,
        )
        shares[video] += 1
    # A video is divided into as many stretches as its share; each rotation takes another part of each stretch.
    chosen_by_video = [
        [part[number * len(part) // share + rotation % (len(part) // share)] for number in range(share)]
        for part, share in zip(parts, shares, strict=True)
    ]
    chosen = _interleave(chosen_by_video)
    return [*chosen, *(span for span in _interleave(parts) if span not in chosen)]


def _span_around(
    second: float | None, material: FilmMaterial, used_spans: Iterable[VideoSpan]
) -> VideoSpan | None:
    """Return the part of the spoken video around a second, or `None` if none is known, long enough and unused."""
    clip = material.spoken
    if second is None or clip is None:
        return None
    latest_start = _length_of(clip) - _TAIL_SECONDS - MIN_VIDEO_SECONDS
    start = round(min(max(second - _LEAD_SECONDS, 0.0), latest_start), 2)
    span = VideoSpan(clip.name, start, round(start + MIN_VIDEO_SECONDS, 2))
    return span if start >= 0 and not any(_overlap(span, other) for other in used_spans) else None


def _ownership(asset: Clip | StillImage, material: FilmMaterial) -> dict[str, str]:
    return {"author": asset.author or material.credit, "licence": asset.licence}


def _clip_ownership(span: VideoSpan, material: FilmMaterial) -> dict[str, str]:
    return _ownership(next(clip for clip in material.clips if clip.name == span.name), material)


def _claims_by_word(script: NarrationScript, claims: Sequence[Claim]) -> Iterator[Claim | None]:
    """Yield for each word of the script the claim that it is part of, or `None` if it is part of none."""
    for passage in script.passages:
        claim_spans = [
            (start, start + len(claim.text), claim)
            for claim in claims
            if (start := passage.find(claim.text)) >= 0
        ]
        for token in written_words(passage):
            yield next((claim for start, end, claim in claim_spans if start <= token.start < end), None)


def _second_in_video(claim: Claim, material: FilmMaterial) -> float | None:
    """Return the second at which the video says a claim's quote, or `None` if the quote isn't of its words."""
    clip = material.spoken
    offset = claim.start - material.words_at
    if clip is None or material.words_at < 0 or offset < 0:
        return None
    starts = [0, *accumulate(len(word.t) + 1 for word in clip.words)]
    return clip.words[bisect_right(starts, offset) - 1].start if offset < starts[-1] else None
