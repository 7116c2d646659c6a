"""What a file is by its bytes, and each sentence by which one is refused."""

from __future__ import annotations

import io
import os
import re
import struct
import sys
import tempfile
from pathlib import Path
from time import monotonic

import pytest

from pipeline import limits
from pipeline.plugins import Refused, TryLater
from pipeline.render import child_program, probe_child
from pipeline.render import probe as module
from pipeline.render.probe import AudioStream, Probed, VideoStream, demuxer_of, probe
from tests.render.media_files import audio, picture, video


def looked_at(data):
    return probe(io.BytesIO(data))


def code_of(data):
    with pytest.raises(Refused) as refused:
        looked_at(data)
    assert refused.value.field == "file"
    assert "?" not in refused.value.message
    return refused.value.code


def test_a_video_is_described():
    data = video(seconds=2, size=(320, 240))
    assert looked_at(data) == Probed(
        kind="video",
        container="mp4",
        bytes=len(data),
        seconds=pytest.approx(2.0, abs=0.05),
        width=320,
        height=240,
        video=VideoStream("h264", 320, 240, pytest.approx(30.0), 60, 0, "yuv420p"),
        audio=AudioStream("aac", 48000, 2),
    )


@pytest.mark.parametrize(
    ("form", "codec", "sound", "told"),
    [
        ("mov", "libx264", "aac", ("mp4", "h264", "aac")),
        ("webm", "libvpx", "libopus", ("matroska", "vp8", "opus")),
        ("matroska", "mpeg4", "libmp3lame", ("matroska", "mpeg4", "mp3")),
        ("mp4", "libx264", None, ("mp4", "h264", None)),
    ],
)
def test_containers_and_codecs_are_told(form, codec, sound, told):
    found = looked_at(video(form, codec=codec, sound=sound))
    assert (found.container, found.video.codec, found.audio and found.audio.codec) == told
    assert (found.kind, found.video.frames) == ("video", 30)


@pytest.mark.parametrize(
    ("form", "codec", "container"),
    [
        ("wav", "pcm_s16le", "wav"),
        ("mp3", "libmp3lame", "mp3"),
        ("flac", "flac", "flac"),
        ("ogg", "libopus", "ogg"),
        ("ipod", "aac", "mp4"),
    ],
)
def test_sounds_are_described(form, codec, container):
    found = looked_at(audio(form, codec))
    assert (found.kind, found.container, found.width) == ("audio", container, None)
    assert found.seconds == pytest.approx(1.0, abs=0.1)
    assert found.audio.channels == 2


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "GIF"])
def test_pictures_are_described(form):
    data = picture(form)
    assert looked_at(data) == Probed("image", form.lower(), len(data), width=64, height=48)


def test_a_picture_is_told_as_it_is_shown():
    from PIL import Image

    exif = Image.Exif()
    exif[0x0112] = 6
    found = looked_at(picture("JPEG", exif=exif))
    assert (found.width, found.height) == (48, 64)


def test_nothing_that_the_file_says_of_itself_is_kept():
    data = audio("mp3", "libmp3lame")
    tagged = (
        b"ID3\x03\x00\x00\x00\x00\x00\x1fTIT2\x00\x00\x00\x15\x00\x00\x00Secret place of it"
        + b"\0" * 20
        + data
    )
    assert "Secret" not in repr(looked_at(tagged))


def test_files_on_disk_and_in_memory_are_the_same(tmp_path):
    data = video()
    path = tmp_path / "a film with any name.m3u8"
    path.write_bytes(data)
    assert probe(path) == looked_at(data)
    with path.open("rb") as opened:
        opened.seek(100)
        assert probe(opened) == looked_at(data)
        assert opened.tell() == 100
        assert opened.read(50) == data[100:150]
    assert path.read_bytes() == data


def test_a_file_that_is_still_being_written_is_seen_whole():
    data = video()
    with tempfile.TemporaryFile() as file:
        file.write(data)
        assert probe(file).bytes == len(data)
        assert file.tell() == len(data)


def test_the_file_is_left_as_it_was_and_nothing_beside_it(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    looked_at(picture("PNG"))
    code_of(b"nothing at all")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "empty"),
        (b"hello", "not_media"),
        (b"%PDF-1.7\n", "not_media"),
        (b"#EXTM3U\nhttp://127.0.0.1/a.ts\n", "playlist"),
        (b"\xef\xbb\xbf\n  #extm3u\n", "playlist"),
        (b"ffconcat version 1.0\nfile '/etc/passwd'\n", "playlist"),
        (b'<?xml version="1.0"?>\n<MPD xmlns="urn:mpeg:dash:schema:mpd:2011">', "playlist"),
        (b'<svg xmlns="http://www.w3.org/2000/svg"/>', "vector_graphics"),
        (b"\0\0\0\x18ftypheic" + bytes(50), "still"),
        (b"\0\0\0\x18ftypisom" + bytes(50), "damaged"),
        (b"\x89PNG\r\n\x1a\n" + bytes(50), "damaged"),
    ],
)
def test_what_is_no_media_is_refused(data, code):
    assert code_of(data) == code


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: video("mov", codec="mjpeg", pixels="yuvj420p"), "Its video is in a format that isn't taken (mjpeg); save it as H.264 and AAC."),
        (lambda: audio("matroska", "ac3"), "Its sound is in a format that isn't taken (ac3); save it as H.264 and AAC."),
        (lambda: audio("matroska", "flac", streams=17, seconds=0.05), "There are 17 streams in the file; the maximum is 16."),
        (lambda: video(size=(4112, 16), seconds=0.1), "It is 4112 × 16 pixels large. Videos may have 3840 × 2160, pictures 40 million."),
        (lambda: video(fps=120, seconds=2, sound=None), "It has 120.0 frames a second; the maximum is 60."),
        (lambda: video("matroska", sound=None, times=[0, 30 * 7300]), "It lasts 7,300.0 seconds; the maximum is 2 hours."),
        (lambda: png(50_000, 50_000), "It is 50000 × 50000 pixels large. Videos may have 3840 × 2160, pictures 40 million."),
    ],
)  # fmt: skip
def test_what_is_too_much_is_refused_in_words(made, message):
    with pytest.raises(Refused, match=re.escape(message)):
        looked_at(made())


def png(width, height):
    import zlib

    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(bytes(64))),
    )
    written = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(written)


def test_a_film_that_is_cut_off_says_where():
    data = video(seconds=8, options={"movflags": "faststart+frag_keyframe+empty_moov"})
    whole = video("matroska", seconds=8)
    with pytest.raises(
        Refused, match=r"The file is cut off: \d\.\d of its 8\.\d seconds are there\. Send it again\."
    ):
        looked_at(whole[: len(whole) // 2])
    # A stream of fragments has no table that says how long it was to be.
    assert looked_at(data).seconds == pytest.approx(8.0, abs=0.1)


def test_a_size_is_refused_before_the_file_is_opened(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_run_child", None)
    for name, head, most in (
        ("a.mp4", b"\0\0\0\x18ftypisom", limits.MEDIA_VIDEO_BYTES),
        ("a.png", b"\x89PNG\r\n\x1a\n", limits.UPLOAD_IMAGE_BYTES),
    ):
        path = tmp_path / name
        with path.open("wb") as file:
            file.write(head)
            file.truncate(most + 1)
        with pytest.raises(
            Refused, match=rf"The file has {most // 2**20:,} MiB; the maximum is {most // 2**20:,} MiB\."
        ):
            probe(path)


def test_too_long_a_look_is_ended(monkeypatch):
    monkeypatch.setattr(limits, "MEDIA_PROBE_SECONDS", 0.01)
    with pytest.raises(Refused, match=r"Looking at the file took too long or too much memory"):
        looked_at(video())


def test_too_little_memory_is_told_in_words(monkeypatch):
    monkeypatch.setattr(limits, "MEDIA_PROBE_MEMORY", 60 << 20)
    with pytest.raises(Refused, match=r"Looking at the file took too long or too much memory"):
        looked_at(video())


def test_a_busy_machine_is_no_fault_of_the_file(monkeypatch):
    def no_process(*_, **__):
        raise child_program.ChildEnded("missing")

    monkeypatch.setattr(child_program, "run", no_process)
    with pytest.raises(TryLater, match=r"No process could be started"):
        looked_at(video())


def test_a_child_that_closes_its_outputs_has_no_second_deadline():
    program = "import os, time; time.sleep(0.4); os.close(1); os.close(2); time.sleep(30)"
    started = monotonic()
    with pytest.raises(child_program.ChildEnded, match="slow"):
        child_program.run(
            [sys.executable, "-I", "-S", "-c", program], caps=child_program.Caps(seconds=0.7, answer=100)
        )
    assert 0.7 <= monotonic() - started < 1.05


def test_a_child_gives_way_to_everybody(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys\nsys.path.insert(0, sys.argv[1])\nfrom pipeline.render.rlimits import confine\n"
        "confine(memory=1 << 30, seconds=5)\nprint(os.nice(0))\n"
    )
    answer = child_program.run(
        child_program.python_command(program), caps=child_program.Caps(seconds=10, answer=100)
    )
    assert int(answer) == min(19, os.nice(0) + 10)


def test_decoders_get_the_limits(monkeypatch):
    seen = []
    go = probe_child._PacketWalk.run

    def watched(walk, opened):
        contexts = [stream.codec_context for stream in walk._streams.values()]
        # A decoder that has begun keeps only the options that it didn't know.
        pixels = [one.options.get("max_pixels") for one in contexts]
        go(walk, opened)
        seen.extend((one.thread_count, most) for one, most in zip(contexts, pixels, strict=True))
        assert not any("max_pixels" in one.options for one in contexts)

    monkeypatch.setattr(probe_child._PacketWalk, "run", watched)
    bounds = {
        "pixels": 4000,
        "side": 4000,
        "fps": 120,
        "streams": 4,
        "seconds": 60,
        "packets": 999,
        "tries": 9,
    }
    probe_child.describe_media(io.BytesIO(video(seconds=0.3, size=(64, 48))), "mp4", bounds)
    assert seen
    assert set(seen) == {(1, "4000")}


def test_a_child_has_few_arenas(monkeypatch):
    given = []
    popen = child_program.subprocess.Popen
    monkeypatch.setattr(
        child_program.subprocess,
        "Popen",
        lambda *a, **more: given.append(more["env"]) or popen(*a, **more),
    )
    looked_at(video(seconds=0.3))
    assert given == [{"MALLOC_ARENA_MAX": "2"}]


def test_every_reason_has_a_sentence():
    there = Path(module.__file__).read_text() + Path(module._PROGRAM).read_text()
    raised = set(re.findall(r'_(?:ProbeRefused|refusal)\(\s*"([a-z_]+)"', there)) | {"too_complex"}
    assert raised == set(module._MESSAGES)


def test_demuxers_are_named_by_bytes_alone():
    assert demuxer_of(b"RIFF\0\0\0\0WAVEfmt ") == "wav"
    assert demuxer_of(b"RIFF\0\0\0\0WEBPVP8 ") == "picture"
    assert demuxer_of(b"\xff\xfb\x90\x00") == "mp3"
    with pytest.raises(Refused):
        demuxer_of(b"RIFF\0\0\0\0AVI LIST")
