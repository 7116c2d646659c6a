"""Broken and hostile files, each with a name and what it may be taken for."""

from __future__ import annotations

import gzip
import random
import struct
import zlib
from functools import cache
from typing import TYPE_CHECKING

from tests.render.media_files import audio, picture, video

if TYPE_CHECKING:
    from collections.abc import Iterator

MEDIA = frozenset({"image", "audio", "video"})
REFUSED = frozenset()
"""No answer but a refusal."""
CUTS = (1, 9, 40, 0.1, 0.35, 0.6, 0.85, -1)
DAMAGES = 6


@cache
def wholes():
    """Good files, by name."""
    return {
        "mp4": video(seconds=2),
        "mov": video("mov", seconds=2),
        "fragments": video(seconds=2, options={"movflags": "frag_keyframe+empty_moov"}),
        "webm": video("webm", seconds=2, codec="libvpx", sound="libopus"),
        "mkv": video("matroska", seconds=2),
        "wav": audio("wav", "pcm_s16le", seconds=2),
        "mp3": audio("mp3", "libmp3lame", seconds=2),
        "flac": audio("flac", "flac", seconds=2),
        "ogg": audio("ogg", "libopus", seconds=2),
        "jpg": picture("JPEG", (400, 300)),
        "png": picture("PNG", (200, 100)),
        "gif": picture("GIF", (200, 100)),
        "webp": picture("WEBP", (200, 100)),
    }


def sorts(address: str) -> dict[str, Iterator[tuple[str, bytes, frozenset[str]]]]:
    """Name, bytes, and as which kinds it may pass, by sort; `address` is where a listener waits for whoever fetches."""
    whole = wholes()
    return {
        "truncated": _truncated(whole),
        "damaged": _damaged(whole),
        "playlist": _playlists(address),
        "wrapped": _wrapped_playlists(whole, address),
        "svg": _drawings(address),
        "others": _others(),
        "reference": _references(whole, address),
        "bomb": _bombs(),
        "lie": _lies(whole),
        "boxes": _structures(whole),
    }


def _truncated(whole):
    for name, data in whole.items():
        for cut in CUTS:
            end = round(len(data) * cut) if isinstance(cut, float) else cut
            yield f"truncated-{name}-{cut}", data[:end], MEDIA


def _damaged(whole):
    chance = random.Random(7)
    for name, data in whole.items():
        for number in range(DAMAGES):
            made = bytearray(data)
            for _ in range(1 + len(made) // (4000 >> number)):
                # The first bytes stay, so that it is opened at all.
                made[chance.randrange(12, len(made))] = chance.randrange(256)
            yield f"damaged-{name}-{number}", bytes(made), MEDIA


def _playlists(address):
    lists = {
        "hls": f"#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:5,\n{address}/a.ts\n#EXT-X-ENDLIST\n",
        "hls-master": f"#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n{address}/b.m3u8\n",
        "hls-file": "#EXTM3U\n#EXTINF:5,\nfile:///etc/passwd\n",
        "hls-key": f'#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI="{address}/key"\n#EXTINF:5,\na.ts\n',
        "hls-concat": f"#EXTM3U\n#EXTINF:5,\nconcat:{address}/head|file:///etc/passwd\n",
        "hls-mark": f"\ufeff#EXTM3U\n#EXTINF:5,\n{address}/a.ts\n",
        "hls-blank": f"\n\n  #EXTM3U\n{address}/a.ts\n",
        "m3u": f"{address}/a.mp4\n{address}/b.mp4\n",
        "concat": f"ffconcat version 1.0\nfile {address}/a.mp4\n",
        "concat-plain": f"file '{address}/a.mp4'\n",
        "asx": f'<asx version="3.0"><entry><ref href="{address}/a.wmv"/></entry></asx>',
        "asx-reference": f"[Reference]\nRef1={address}/a.asf\n",
        "dash": f'<MPD xmlns="urn:mpeg:dash:schema:mpd:2011"><BaseURL>{address}/</BaseURL></MPD>',
        "dash-xml": f'<?xml version="1.0"?><!-- x --><MPD><BaseURL>{address}/</BaseURL></MPD>',
        "dash-entity": f'<?xml version="1.0"?><!DOCTYPE MPD [<!ENTITY x SYSTEM "{address}/x">]><MPD>&x;</MPD>',
        "smooth": f'<SmoothStreamingMedia><StreamIndex Url="{address}/q"/></SmoothStreamingMedia>',
        "smil": f'<smil><body><video src="{address}/a.mp4"/></body></smil>',
        "pls": f"[playlist]\nFile1={address}/a.mp3\nNumberOfEntries=1\n",
        "xspf": f'<?xml version="1.0"?><playlist><trackList><track><location>{address}/a</location></track></trackList></playlist>',
        "sdp": "v=0\no=- 0 0 IN IP4 127.0.0.1\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5004 RTP/AVP 96\n",
        "rtsptext": f"RTSPtext\nrtsp://{address.removeprefix('http://')}/a\n",
        "imf": f'<?xml version="1.0"?><CompositionPlaylist><Id>{address}</Id></CompositionPlaylist>',
    }
    for name, text in lists.items():
        yield f"playlist-{name}", text.encode(), REFUSED


def _wrapped_playlists(whole, address):
    """Playlists behind the first bytes of something else."""
    text = f"#EXTM3U\n#EXTINF:5,\n{address}/a.ts\n#EXT-X-ENDLIST\n".encode()
    heads = {
        "mp4": b"\0\0\0\x18ftypisom\0\0\2\0isomiso2",
        "id3": b"ID3\3\0\0\0\0\0\0",
        "ogg": b"OggS",
        "flac": b"fLaC",
        "webm": b"\x1a\x45\xdf\xa3",
        "wav": b"RIFF\xff\xff\0\0WAVE",
        "png": b"\x89PNG\r\n\x1a\n",
        "gif": b"GIF89a",
        "jpg": b"\xff\xd8\xff",
    }
    for name, head in heads.items():
        yield f"wrapped-{name}", head + text * 20, REFUSED
    yield "wrapped-after-mp4", whole["mp4"] + text * 20, MEDIA


def _drawings(address):
    svg = f'<svg xmlns="http://www.w3.org/2000/svg"><image href="{address}/a.png"/><script>fetch("{address}")</script></svg>'
    yield "svg", svg.encode(), REFUSED
    yield "svg-declared", f'<?xml version="1.0"?>\n{svg}'.encode(), REFUSED
    yield "svg-doctype", f'<!DOCTYPE svg PUBLIC "x" "{address}/x.dtd">{svg}'.encode(), REFUSED
    yield "svg-mark", f"\ufeff{svg}".encode(), REFUSED
    yield "svg-packed", gzip.compress(svg.encode()), REFUSED
    yield "svg-wide", svg.encode("utf-16"), REFUSED
    yield "svg-behind-png", b"\x89PNG\r\n\x1a\n" + svg.encode(), REFUSED
    yield "svg-use", f'<svg><use href="{address}/a.svg#x"/></svg>'.encode(), REFUSED


def _others():
    chance = random.Random(11)
    yield "empty", b"", REFUSED
    yield "one-byte", b"\0", REFUSED
    yield "zeros", bytes(5_000_000), REFUSED
    yield "noise", chance.randbytes(200_000), REFUSED
    yield "text", b"This is a film, believe me.\n" * 50, REFUSED
    yield "pdf", b"%PDF-1.7\n1 0 obj\n", REFUSED
    yield "zip", b"PK\3\4" + bytes(100), REFUSED
    yield "program", b"\x7fELF" + bytes(100), REFUSED
    yield "html", b'<html><video src="x.mp4"></video></html>', REFUSED
    yield "avi", b"RIFF\0\1\0\0AVI LIST" + bytes(200), REFUSED
    yield "tiff", b"II*\0" + bytes(100), REFUSED
    yield "bmp", b"BM" + bytes(100), REFUSED
    yield "postscript", b"%!PS-Adobe-3.0 EPSF-3.0\n(/etc/passwd) (r) file\n", REFUSED
    yield "mvg", b"push graphic-context\nfill 'url(http://127.0.0.1/x)'\npop graphic-context\n", REFUSED
    yield "heic", b"\0\0\0\x18ftypheic" + bytes(100), REFUSED
    for name, codec, form in (
        ("mjpeg", "mjpeg", "mov"),
        ("raw", "rawvideo", "matroska"),
        ("wmv", "wmv2", "asf"),
        ("mpeg2", "mpeg2video", "matroska"),
        ("ffv1", "ffv1", "matroska"),
        ("prores", "prores_ks", "mov"),
    ):
        pixels = {"mjpeg": "yuvj420p", "prores": "yuv422p10le"}.get(name, "yuv420p")
        yield f"codec-{name}", video(form, codec=codec, pixels=pixels, seconds=0.3), REFUSED
    yield "codec-ac3", audio("matroska", "ac3", seconds=0.3), REFUSED
    yield "codec-mp2", audio("matroska", "mp2", seconds=0.3), REFUSED


def box(kind: bytes, data: bytes = b"") -> bytes:
    return struct.pack(">I", 8 + len(data)) + kind + data


def _references(whole, address):
    """Films whose data is said to lie elsewhere."""
    own = b"\0\0\0\x0curl \0\0\0\1"
    assert own in whole["mov"] or own in whole["mp4"]
    for name in ("mp4", "mov"):
        # Same length: the flag for "in this file" is taken away.
        yield f"reference-{name}-flag", whole[name].replace(own, b"\0\0\0\x0curl \0\0\0\0"), MEDIA
        yield f"reference-{name}-alias", whole[name].replace(own, b"\0\0\0\x0calis\0\0\0\0"), MEDIA
    place = address.encode() + b"/data.mp4\0"
    link = box(b"rdrf", b"\0\0\0\0url " + struct.pack(">I", len(place)) + place)
    yield (
        "reference-movie",
        box(b"ftyp", b"qt  \0\0\0\0qt  ") + box(b"moov", box(b"rmra", box(b"rmda", link))),
        REFUSED,
    )
    yield (
        "reference-before",
        box(b"ftyp", b"qt  \0\0\0\0qt  ")
        + box(b"moov", box(b"rmra", box(b"rmda", link)))
        + whole["mov"][20:],
        MEDIA,
    )
    tag = b"ID3\3\0\0\0\0\x01\0" + b"WXXX\0\0\0\x50\0\0\0" + place + bytes(160)
    yield "reference-id3", tag + whole["mp3"], MEDIA


def _chunked(width, height, depth, colour, body):
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    for kind, data in ((b"IHDR", head), *body, (b"IEND", b"")):
        yield struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, depth=8, colour=2, body=()):
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunked(width, height, depth, colour, body))


def _bombs():
    row = bytes(1 + 20_000 // 8)
    packer = zlib.compressobj(9)
    flood = b"".join([*(packer.compress(row) for _ in range(20_000)), packer.flush()])
    yield "bomb-png-400-million", png(20_000, 20_000, 1, 0, [(b"IDAT", flood)]), REFUSED
    yield "bomb-png-declared", png(0x7FFFFFFF, 0x7FFFFFFF, body=[(b"IDAT", flood[:999])]), REFUSED
    yield "bomb-png-thin", png(0x7FFFFFFF, 1, body=[(b"IDAT", flood[:999])]), REFUSED
    small = zlib.compress(bytes(50_000_000), 9)
    yield (
        "bomb-png-text",
        png(8, 8, 8, 0, [(b"zTXt", b"a\0\0" + small), (b"IDAT", zlib.compress(bytes(72)))]),
        MEDIA,
    )
    yield (
        "bomb-png-profile",
        png(8, 8, 8, 0, [(b"iCCP", b"a\0\0" + small), (b"IDAT", zlib.compress(bytes(72)))]),
        MEDIA,
    )
    yield "bomb-png-overfull", png(8, 8, 8, 0, [(b"IDAT", small)]), MEDIA
    yield (
        "bomb-gif",
        b"GIF89a"
        + struct.pack("<HHBBB", 65535, 65535, 0, 0, 0)
        + b"\x2c"
        + struct.pack("<HHHHB", 0, 0, 65535, 65535, 0)
        + b"\2\2\x4c\1\0;",
        REFUSED,
    )
    yield (
        "bomb-gif-frames",
        b"GIF89a"
        + struct.pack("<HHBBB", 6000, 6000, 0x80, 0, 0)
        + bytes(6)
        + (b"\x2c" + struct.pack("<HHHHB", 0, 0, 6000, 6000, 0) + b"\2\2\x4c\1\0") * 500
        + b";",
        MEDIA,
    )
    jpeg = bytearray(picture("JPEG"))
    start = jpeg.index(b"\xff\xc0")
    jpeg[start + 5 : start + 9] = struct.pack(">HH", 65_500, 65_500)
    yield "bomb-jpeg", bytes(jpeg), REFUSED
    webp = bytearray(picture("WEBP"))
    start = webp.index(b"\x9d\x01\x2a")
    webp[start + 3 : start + 7] = struct.pack("<HH", 16383, 16383)
    yield "bomb-webp", bytes(webp), REFUSED
    yield "bomb-frame-strip", video(size=(8192, 16), seconds=0.1), REFUSED
    yield (
        "bomb-frame-large",
        video(size=(4096, 2304), seconds=0.04, sound=None, options={"preset": "ultrafast"}),
        REFUSED,
    )
    yield "bomb-frames", video(fps=240, seconds=1, sound=None), REFUSED
    yield "bomb-streams-mkv", audio("matroska", "flac", streams=100, seconds=0.02), REFUSED
    yield "bomb-streams-mp4", audio("mp4", "aac", streams=40, seconds=0.05), REFUSED
    yield "bomb-streams-most", audio("matroska", "flac", streams=16, seconds=0.05), MEDIA
    yield "bomb-id3", b"ID3\4\0\0\x7f\x7f\x7f\x7f" + bytes(3000), REFUSED


def _patched(data: bytes, kind: bytes, offset: int, value: bytes) -> bytes:
    """Every box of a kind with other bytes at a place after its name."""
    made, at = bytearray(data), data.find(kind)
    while at >= 0:
        made[at + 4 + offset : at + 4 + offset + len(value)] = value
        at = data.find(kind, at + 4)
    return bytes(made)


def _lies(whole):
    for name in ("mp4", "mov"):
        data = whole[name]
        # Version and flags, two moments, the time scale, the duration (ISO/IEC 14496-12, 8.2.2 and 8.4.2).
        for boxed in (b"mvhd", b"mdhd"):
            for said, value in (("none", 0), ("hours", 0x7FFFFFFF), ("unknown", 0xFFFFFFFF)):
                yield (
                    f"lie-{name}-{boxed.decode()}-{said}",
                    _patched(data, boxed, 16, struct.pack(">I", value)),
                    MEDIA,
                )
            yield f"lie-{name}-{boxed.decode()}-no-scale", _patched(data, boxed, 12, bytes(4)), MEDIA
        yield f"lie-{name}-times", _patched(data, b"stts", 8, struct.pack(">I", 0x7FFFFFFF)), MEDIA
        yield f"lie-{name}-count", _patched(data, b"stts", 4, struct.pack(">I", 0x0FFFFFFF)), MEDIA
        yield f"lie-{name}-samples", _patched(data, b"stsz", 8, struct.pack(">I", 0xFFFFFFF0)), MEDIA
        yield f"lie-{name}-offsets", _patched(data, b"stco", 8, b"\xff" * 4), MEDIA
        yield (
            f"lie-{name}-size",
            _patched(data, b"tkhd", 76, struct.pack(">II", 0xFFFF0000, 0xFFFF0000)),
            MEDIA,
        )
        yield f"lie-{name}-codec-size", _patched(data, b"avc1", 24, struct.pack(">HH", 65535, 65535)), MEDIA
    mkv = whole["mkv"]
    # The duration of a segment: a double after its id (Matroska, 0x4489).
    at = mkv.index(b"\x44\x89\x88")
    for said, value in (
        ("hours", 1e12),
        ("none", 0.0),
        ("back", -5.0),
        ("not", float("nan")),
        ("endless", float("inf")),
    ):
        yield f"lie-mkv-{said}", mkv[: at + 3] + struct.pack(">d", value) + mkv[at + 11 :], MEDIA
    yield "lie-mkv-frames-far-apart", video("matroska", sound=None, times=[0, 30 * 9000]), REFUSED
    yield "lie-mp4-frames-far-apart", video("mp4", sound=None, times=[0, 30 * 9000]), REFUSED
    wav = whole["wav"]
    yield (
        "lie-wav-length",
        wav.replace(b"data", b"data\xff\xff\xff\xff"[:4], 1)[:40] + b"\xff\xff\xff\xff" + wav[44:],
        MEDIA,
    )
    yield "lie-wav-rate-none", wav[:24] + bytes(4) + wav[28:], MEDIA
    yield "lie-wav-rate", wav[:24] + b"\xff\xff\xff\x7f" + wav[28:], REFUSED
    yield "lie-wav-channels", wav[:22] + b"\xff\xff" + wav[24:], REFUSED
    yield "lie-wav-slow", wav[:24] + struct.pack("<II", 1, 4) + wav[32:], REFUSED


def _structures(whole):
    start = box(b"ftyp", b"isom\0\0\2\0isomiso2")
    deep = b""
    for _ in range(3000):
        deep = box(b"moov", deep)
    yield "boxes-deep", start + deep, REFUSED
    yield "boxes-many", start + box(b"free") * 100_000, REFUSED
    yield "boxes-fragments", start + box(b"moof", box(b"mfhd", bytes(8))) * 20_000, REFUSED
    yield "boxes-size-none", start + struct.pack(">I", 0) + b"moov" + bytes(500), REFUSED
    yield (
        "boxes-size-huge",
        start + struct.pack(">I", 1) + b"moov" + b"\x7f" + b"\xff" * 7 + bytes(500),
        REFUSED,
    )
    yield "boxes-size-back", start + struct.pack(">I", 4) + b"moov" + bytes(500), REFUSED
    yield (
        "boxes-tables",
        start
        + box(
            b"moov",
            box(
                b"trak",
                box(b"mdia", box(b"minf", box(b"stbl", box(b"stsz", bytes(8) + b"\x7f\xff\xff\xff")))),
            ),
        ),
        REFUSED,
    )
    yield "boxes-two-films", whole["mp4"] + whole["mp4"], MEDIA
    yield "boxes-key", _patched(whole["mp4"], b"moov", 0, b"\0\0\0\x08cmov"), MEDIA
    ebml = b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\xf7\x81\x01\x42\xf2\x81\x04\x42\xf3\x81\x08\x42\x82\x84webm\x42\x87\x81\x04\x42\x85\x81\x02"
    yield "ebml-endless", ebml + b"\x18\x53\x80\x67\x01" + b"\xff" * 7 + bytes(2000), REFUSED
    yield (
        "ebml-deep",
        ebml
        + b"\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff"
        + b"\x11\x4d\x9b\x74\x01\xff\xff\xff\xff\xff\xff\xff" * 3000,
        REFUSED,
    )
    yield "ebml-types", ebml.replace(b"webm", b"evil") + bytes(2000), REFUSED
    yield "ogg-pages", (b"OggS\0\2" + bytes(20) + b"\1\x1e" + bytes(30)) * 2000, REFUSED
    yield (
        "ogg-streams",
        b"".join(
            b"OggS\0\2" + bytes(8) + struct.pack("<I", one) + bytes(8) + b"\1\x13OpusHead\1\2" + bytes(9)
            for one in range(3000)
        ),
        REFUSED,
    )
    yield "mp3-frames-odd", b"\xff\xfb\x90\x00" * 5000, MEDIA
    yield "flac-blocks", b"fLaC" + b"\x04\xff\xff\xff" + bytes(3000), REFUSED
    yield "flac-pictures", b"fLaC" + (b"\x06\0\0\x20" + bytes(32)) * 5000, REFUSED
    yield "wav-chunks", b"RIFF\xff\xff\xff\x7fWAVE" + (b"junk\0\0\0\0" * 50_000), REFUSED
    yield "png-chunks", png(8, 8, 8, 0, [(b"tEXt", b"a\0b")] * 50_000), MEDIA
    yield (
        "gif-comments",
        b"GIF89a" + struct.pack("<HHBBB", 8, 8, 0, 0, 0) + b"\x21\xfe\1a\0" * 50_000,
        REFUSED,
    )
