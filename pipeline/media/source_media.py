"""Reads the videos, pictures and transcripts that came with a raw item, as engines and films use them.

A transcript is a text that is uploaded and named in the media after its video. Its words become the item's text, so
that everything made of the item can point at them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from config.core.errors import Invalid
from config.core.ids import decode
from pipeline import limits
from pipeline.media import files, uploads
from pipeline.models import Upload
from pipeline.plugins import Refused
from pipeline.render.audio.transcript_formats import TimedTranscript, read_transcript
from pipeline.render.audio.transcript_sentences import text_of
from pipeline.render.video.material import Clip, FilmMaterial, StillImage
from pipeline.render.video.storyboard import Word
from pipeline.text.html_text import strip_invisible
from pipeline.text.links import ascii_url
from pipeline.text.plain_text import seen_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from uuid import UUID

    from pipeline.engines.base import Draft, Engine
    from pipeline.models import RawItem
    from pipeline.render.video.material import Shot, VideoSpan


_VIDEO_PREFIX: Final = "video/"
_TEXT_PREFIX: Final = "text/"
_STILL_TYPES: Final = frozenset({"image/jpeg", "image/png", "image/webp"})
"""The types that films draw as stills; a GIF is neither a still nor a video to them."""
_MIN_TRANSCRIPT_WORDS: Final = 3
"""The number of words below which a transcript is refused."""


def body_with_transcript(
    workspace_id: UUID, media: Sequence[Mapping[str, str]], body: str, body_format: str
) -> str | None:
    """Return the body with the transcript of the item's video after it, as plain text.

    Return `None` if there is no usable transcript, or the body holds its words already. Raises `Invalid` if the
    result is longer than a body may be.
    """
    pair = _video_and_transcript(media)
    if pair is None:
        return None
    transcript, _ = _read_transcript(workspace_id, pair[1])
    if transcript is None:
        return None
    spoken_text = text_of(transcript.words)
    body_text = seen_text(body, body_format or "markdown").strip() if body else ""
    if spoken_text in body_text:
        return None
    body = f"{body_text}\n\n{spoken_text}" if body_text else spoken_text
    if len(body) > limits.BODY_CHARACTERS:
        position = next(index for index, medium in enumerate(media) if medium.get("upload") == pair[1])
        message = (
            f"With what is said in the video the body has {len(body)} characters; the maximum is "
            f"{limits.BODY_CHARACTERS}. Send the transcript of a part of the video."
        )
        field = f"media[{position}].upload"
        raise Invalid.one(field, "too_long", message)
    return body


def material_of(raw: RawItem) -> FilmMaterial:
    """Return the videos and stills of a raw item, with the words of its transcript. No video is opened."""
    keys = uploads.upload_ids_in(raw.media)
    uploads_by_id = {
        row.pk: row
        for row in Upload.everywhere.filter(workspace_id=raw.workspace_id, pk__in=keys).only(
            "id", "kind", "mime_type", "width", "height", "seconds"
        )
    }
    pair = _video_and_transcript(raw.media)
    transcript, why_no_words = _read_transcript(raw.workspace_id, pair[1]) if pair is not None else (None, "")
    clips: list[Clip] = []
    stills: list[StillImage] = []
    for medium in raw.media:
        row = uploads_by_id.get(key) if (key := decode("upl", medium.get("upload", ""))) else None
        if row is None:
            continue
        common = {
            "name": medium["upload"],
            "author": medium.get("author", ""),
            "licence": medium.get("licence", ""),
        }
        if row.kind == "video":
            is_spoken = transcript is not None and pair is not None and medium["upload"] == pair[0]
            words: dict[str, Any] = {}
            if is_spoken and transcript is not None:
                words = {"words": transcript.words, "is_word_timed": transcript.is_word_timed}
            clips.append(Clip(**common, **words, seconds=row.seconds or 0.0))
        elif row.mime_type in _STILL_TYPES:
            stills.append(StillImage(**common, width=row.width or 0, height=row.height or 0))
    return FilmMaterial(tuple(clips), tuple(stills), why_no_words, _credit(raw))


def paths_of(workspace_id: UUID, names: Sequence[str]) -> dict[str, Path]:
    """Return the paths of the uploads that a storyboard names, by name; uploads that are gone are left out."""
    keys = {key: name for name in names if (key := decode("upl", name)) is not None}
    rows = Upload.everywhere.filter(workspace_id=workspace_id, pk__in=list(keys)).values_list("pk", "path")
    return {keys[key]: files.path_of(path) for key, path in rows}


def detect_shown_shots(
    workspace_id: UUID,
    material: FilmMaterial,
    engine: Engine,
    draft: Draft,
    *,
    find_shots: Callable[[Path, VideoSpan], tuple[Shot, ...]],
) -> FilmMaterial:
    """Return the material with the shots of the spans that the draft shows of each video.

    `find_shots` finds the shots of a span, in a process that takes some seconds, so no transaction may be open. Its
    errors pass through.
    """
    spans: dict[str, list[VideoSpan]] = {}
    for span in engine.spans(draft):
        spans.setdefault(span.name, []).append(span)
    paths = paths_of(workspace_id, list(spans))
    clips = []
    for clip in material.clips:
        if clip.name not in paths:
            clips.append(clip)
            continue
        shots = [shot for span in spans[clip.name] for shot in find_shots(paths[clip.name], span)]
        clips.append(replace(clip, shots=tuple(sorted(shots, key=lambda shot: shot.start))))
    return replace(material, clips=tuple(clips))


def _video_and_transcript(media: Sequence[Mapping[str, Any]]) -> tuple[str, str] | None:
    """Return the ids of the first video and of the first text after it, or `None` if one of them is missing."""
    video = ""
    for medium in media:
        kind = str(medium.get("type") or "")
        if medium.get("upload") and kind.startswith(_VIDEO_PREFIX) and not video:
            video = medium["upload"]
        elif medium.get("upload") and kind.startswith(_TEXT_PREFIX) and video:
            return video, medium["upload"]
    return None


def _read_transcript(workspace_id: UUID, name: str) -> tuple[TimedTranscript | None, str]:
    """Return the transcript, its words split at blanks, or `None` and the reason for people."""
    row = Upload.everywhere.filter(workspace_id=workspace_id, pk=decode("upl", name), kind="text").first()
    try:
        if row is None:
            return None, "The video's transcript is no longer there."
        transcript = read_transcript(uploads.read_stored_text(row))
    except OSError:
        return None, "The video's transcript is no longer there."
    except Refused as refused:
        return None, refused.message
    words = tuple(part for word in transcript.words for part in _split_word(word))
    if len(words) < _MIN_TRANSCRIPT_WORDS:
        return None, "There are hardly any words in the transcript."
    return replace(transcript, words=words), ""


def _split_word(word: Word) -> Iterator[Word]:
    """Yield the words of an entry into which a tool may have put several, with its time shared by letters."""
    parts = strip_invisible(word.t).split()
    total, letters = sum(map(len, parts)), 0
    for part in parts:
        start = word.start + (word.end - word.start) * letters / total
        letters += len(part)
        yield Word(part, round(start, 3), round(word.start + (word.end - word.start) * letters / total, 3))


def _credit(raw: RawItem) -> str:
    """Return the owner of the material: the author, else the site."""
    host = (urlsplit(ascii_url(raw.url)).hostname or "").removeprefix("www.") if raw.url else ""
    return raw.author.strip() or host
