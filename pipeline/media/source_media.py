"""The videos and pictures that came with a raw item, as engines and films take them; and what is said in a video.

A transcript is a text that is uploaded and named in the media beside its video. Its words are the item's text, so that
whatever is made of the item can point at them.
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


_VIDEO: Final = "video/"
_TEXT: Final = "text/"
_STILLS: Final = frozenset({"image/jpeg", "image/png", "image/webp"})
"""What films draw; a GIF is neither a still nor a video to them."""
_LEAST_WORDS: Final = 3


def body_with_words(
    workspace_id: UUID, media: Sequence[Mapping[str, str]], body: str, body_format: str
) -> str | None:
    """What is said in a video that came with its transcript, as plain text after the body where there is one.

    None where nothing is to be added. Raises `Invalid` where that is more than a body may have.
    """
    pair = _pair(media)
    if pair is None:
        return None
    transcript, _ = _read(workspace_id, pair[1])
    if transcript is None:
        return None
    said = text_of(transcript.words)
    before = seen_text(body, body_format or "markdown").strip() if body else ""
    if said in before:
        return None
    body = f"{before}\n\n{said}" if before else said
    if len(body) > limits.BODY_CHARACTERS:
        place = next(index for index, one in enumerate(media) if one.get("upload") == pair[1])
        message = (
            f"With what is said in the video the body has {len(body)} characters; {limits.BODY_CHARACTERS} are the most. "
            "Send the transcript of a part of the video."
        )
        field = f"media[{place}].upload"
        raise Invalid.one(field, "too_long", message)
    return body


def material_of(raw: RawItem) -> FilmMaterial:
    """The media of a raw item; nothing of a video is looked into."""
    keys = uploads.ids_in(raw.media)
    found = {
        row.pk: row
        for row in Upload.everywhere.filter(workspace_id=raw.workspace_id, pk__in=keys).only(
            "id", "kind", "mime_type", "width", "height", "seconds"
        )
    }
    pair = _pair(raw.media)
    transcript, why = _read(raw.workspace_id, pair[1]) if pair is not None else (None, "")
    clips: list[Clip] = []
    stills: list[StillImage] = []
    for one in raw.media:
        row = found.get(key) if (key := decode("upl", one.get("upload", ""))) else None
        if row is None:
            continue
        told = {"name": one["upload"], "author": one.get("author", ""), "licence": one.get("licence", "")}
        if row.kind == "video":
            is_spoken = transcript is not None and pair is not None and one["upload"] == pair[0]
            words: dict[str, Any] = (
                {"words": transcript.words, "is_word_timed": transcript.is_word_timed}
                if is_spoken and transcript is not None
                else {}
            )
            clips.append(Clip(**told, **words, seconds=row.seconds or 0.0))
        elif row.mime_type in _STILLS:
            stills.append(StillImage(**told, width=row.width or 0, height=row.height or 0))
    return FilmMaterial(tuple(clips), tuple(stills), why, _credit(raw))


def paths_of(workspace_id: UUID, names: Sequence[str]) -> dict[str, Path]:
    """Where the files lie that a storyboard names; those that are gone are left out."""
    keys = {key: name for name in names if (key := decode("upl", name)) is not None}
    rows = Upload.everywhere.filter(workspace_id=workspace_id, pk__in=list(keys)).values_list("pk", "path")
    return {keys[key]: files.path_of(path) for key, path in rows}


def detect_shown_shots(
    workspace_id: UUID,
    material: FilmMaterial,
    engine: Engine,
    draft: Draft,
    *,
    look: Callable[[Path, VideoSpan], tuple[Shot, ...]],
) -> FilmMaterial:
    """With the shots of what the draft shows of each video; that takes a process and some seconds.

    Raises what `look` raises. No transaction may be open.
    """
    spans: dict[str, list[VideoSpan]] = {}
    for span in engine.spans(draft):
        spans.setdefault(span.name, []).append(span)
    there = paths_of(workspace_id, list(spans))
    clips = []
    for clip in material.clips:
        if clip.name not in there:
            clips.append(clip)
            continue
        shots = [shot for span in spans[clip.name] for shot in look(there[clip.name], span)]
        clips.append(replace(clip, shots=tuple(sorted(shots, key=lambda shot: shot.start))))
    return replace(material, clips=tuple(clips))


def _pair(media: Sequence[Mapping[str, Any]]) -> tuple[str, str] | None:
    """The video with words, and the text that holds them: the first text after a video."""
    video = ""
    for one in media:
        kind = str(one.get("type") or "")
        if one.get("upload") and kind.startswith(_VIDEO) and not video:
            video = one["upload"]
        elif one.get("upload") and kind.startswith(_TEXT) and video:
            return video, one["upload"]
    return None


def _read(workspace_id: UUID, name: str) -> tuple[TimedTranscript | None, str]:
    """The transcript, each word without a blank in it; or why there is none."""
    row = Upload.everywhere.filter(workspace_id=workspace_id, pk=decode("upl", name), kind="text").first()
    try:
        if row is None:
            return None, "The video's transcript is no longer there."
        found = read_transcript(uploads.text_of(row))
    except OSError:
        return None, "The video's transcript is no longer there."
    except Refused as refused:
        return None, refused.message
    words = tuple(piece for word in found.words for piece in _pieces(word))
    if len(words) < _LEAST_WORDS:
        return None, "There are hardly any words in the transcript."
    return replace(found, words=words), ""


def _pieces(word: Word) -> Iterator[Word]:
    """Time by letters, where a tool put several words into one."""
    said = strip_invisible(word.t).split()
    total, place = sum(map(len, said)), 0
    for piece in said:
        start = word.start + (word.end - word.start) * place / total
        place += len(piece)
        yield Word(piece, round(start, 3), round(word.start + (word.end - word.start) * place / total, 3))


def _credit(raw: RawItem) -> str:
    """Whose it is: the author, else the site."""
    host = (urlsplit(ascii_url(raw.url)).hostname or "").removeprefix("www.") if raw.url else ""
    return raw.author.strip() or host
