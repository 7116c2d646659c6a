"""Hundreds of broken and hostile files: each refused in a sentence or described within the limits, and no trace left."""

from __future__ import annotations

import io
import socket
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain
from pathlib import Path
from time import monotonic, sleep

import av
import pytest

from pipeline import limits
from pipeline.plugins import Refused
from pipeline.render import probe as module
from pipeline.render.probe import Probed, probe
from tests.render import hostile_media

FAST = {
    "truncated": "truncated-mp4-0.6",
    "damaged": "damaged-mp4-3",
    "playlist": "playlist-hls-concat",
    "wrapped": "wrapped-id3",
    "svg": "svg-declared",
    "reference": "reference-mp4-flag",
    "lie": "lie-mp4-mvhd-hours",
    "boxes": "boxes-many",
}


class Listener:
    """Counts who connects; answers nobody."""

    def __init__(self):
        self.calls = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self):
        while True:
            try:
                called, _ = self._socket.accept()
            except OSError:
                return
            self.calls += 1
            called.close()

    def close(self):
        # Closing alone doesn't wake who waits in accept.
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(10)


@pytest.fixture
def listener():
    made = Listener()
    yield made
    made.close()


def resident_bytes():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    raise AssertionError


def children():
    there = set()
    for task in Path("/proc/self/task").iterdir():
        # A thread of another test may end at this moment.
        with suppress(FileNotFoundError, ProcessLookupError):
            there |= set((task / "children").read_text().split())
    return there


def left_over(look, before):
    """What stays that wasn't there before: servers of other tests open and close their own meanwhile."""
    until = monotonic() + 20
    while (more := look() - before) and monotonic() < until:
        sleep(0.05)
    return more


def open_files():
    """What each is, by its number: a number alone may be another file by now."""
    there = set()
    for one in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            there.add((one.name, str(one.readlink())))
    return there


def judged(name, data, kinds):
    """What is wrong with the answer, None where nothing is; the code or the kind; and the seconds that it took."""
    started = monotonic()
    try:
        found = probe(io.BytesIO(data))
    except Refused as refused:
        is_said = (
            refused.code in module._MESSAGES and "?" not in refused.message and refused.message.endswith(".")
        )
        fault = None if is_said else f"{name}: {refused.message}"
        return fault, refused.code, monotonic() - started
    fault = None if found.kind in kinds and is_within(found) else f"{name}: {found}"
    return fault, found.kind, monotonic() - started


def is_within(found: Probed):
    if found.kind == "image":
        return 0 < found.width * found.height <= limits.UPLOAD_PIXELS
    video = found.video
    return 0 < found.seconds <= limits.MEDIA_SECONDS and (
        video is None
        or (
            0 < video.width * video.height <= limits.MEDIA_FRAME_PIXELS
            and max(video.width, video.height) <= limits.MEDIA_FRAME_SIDE
        )
    )


def look_at(files, monkeypatch, folder):
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    probe(io.BytesIO(hostile_media.wholes()["mp4"]))
    before, descriptors, processes = resident_bytes(), open_files(), children()
    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(lambda one: judged(*one), files))
    assert [fault for fault, _, _ in answers if fault] == []
    assert list(folder.iterdir()) == []
    # Tests before this one may have left a server running, which is no child of these files.
    assert left_over(children, processes) == set()
    assert left_over(open_files, descriptors) == set()
    return answers, resident_bytes() - before


def test_one_of_each_sort_does_no_harm(listener, tmp_path, monkeypatch):
    found = hostile_media.sorts(listener.address)
    files = [next(one for one in found[sort] if one[0] == name) for sort, name in FAST.items()]
    look_at(files, monkeypatch, tmp_path)
    assert listener.calls == 0


@pytest.mark.slow
def test_no_file_does_harm(listener, tmp_path, monkeypatch, record_property):
    files = list(chain.from_iterable(hostile_media.sorts(listener.address).values()))
    assert len(files) >= 200
    assert len({name for name, _, _ in files}) == len(files)
    answers, grown = look_at(files, monkeypatch, tmp_path)
    assert listener.calls == 0
    assert grown < 48 << 20
    taken = sum(code in hostile_media.MEDIA for _, code, _ in answers)
    # Not everything is refused: what is whole enough is described.
    assert 20 < taken < len(files) / 2
    slowest, name = max((seconds, one[0]) for (_, _, seconds), one in zip(answers, files, strict=True))
    assert slowest < limits.MEDIA_PROBE_SECONDS
    record_property(
        "told",
        f"{len(files)} files, {taken} described, slowest {slowest:.2f} s ({name}), memory {grown / 2**20:+.1f} MiB",
    )


def test_the_playlist_would_fetch_if_it_were_opened(listener, tmp_path):
    name, data, _ = next(hostile_media.sorts(listener.address)["playlist"])
    (tmp_path / "a.m3u8").write_bytes(data)
    with pytest.raises(av.FFmpegError):
        av.open(str(tmp_path / "a.m3u8"), options={"protocol_whitelist": "file,http,tcp"})
    assert (name, listener.calls > 0) == ("playlist-hls", True)


def test_the_listener_hears_who_calls(listener):
    host, port = listener.address.removeprefix("http://").split(":")
    socket.create_connection((host, int(port))).close()
    until = monotonic() + 20
    while not listener.calls and monotonic() < until:
        threading.Event().wait(0.01)
    assert listener.calls == 1
