"""yt-dlp as a child: its limits, its environment, and what its words mean. Stand-ins for it, never itself."""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from config.core.http_client import Client, Policy
from pipeline.sources import yt_dlp
from pipeline.sources.youtube import PLUGIN
from pipeline.sources.yt_dlp import ToolFailed, ask, classify_failure

from .youtube_server import BLOCKED, CHANNEL, FakeVideo, YouTubeServer, sample

ADDRESS = "https://www.youtube.com/watch?v=ryeBread003"


@pytest.fixture
def tool(tmp_path):
    def write(body):
        path = tmp_path / "yt-dlp"
        path.write_text(f"#!{sys.executable} -I\nimport json, os, pathlib, subprocess, sys, time\n{body}\n")
        path.chmod(0o755)
        return str(path)

    return write


def failure(*arguments, **options):
    with pytest.raises(ToolFailed) as caught:
        ask(*arguments, address=ADDRESS, **options)
    return caught.value


def test_its_environment_is_its_own(tool, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example")
    monkeypatch.setenv("YOUTUBE_API_KEY", "secret")
    found = ask(tool("print(json.dumps({'env': dict(os.environ), 'cwd': os.getcwd()}))"), address=ADDRESS)
    assert set(found["env"]) - {"LC_CTYPE"} == {"PATH", "HOME", "TMPDIR", "LANG"}
    assert found["cwd"] == found["env"]["HOME"]
    # Its folder is gone with it.
    assert not Path(found["cwd"]).exists()


def test_it_is_told_to_read_and_write_nothing(tool):
    found = ask(tool("print(json.dumps({'said': sys.argv[1:]}))"), "--dump-json", address=ADDRESS)
    assert {"--ignore-config", "--no-cache-dir", "--skip-download"} <= set(found["said"])
    assert found["said"][-3:] == ["--dump-json", "--", ADDRESS]


def test_one_that_hangs_is_killed_with_what_it_started(tool, tmp_path):
    mark = tmp_path / "child"
    path = tool(
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'])\n"
        f"pathlib.Path({str(mark)!r}).write_text(str(child.pid))\n"
        "print('{', flush=True)\ntime.sleep(300)"
    )
    assert failure(path, seconds=5).kind == "timed_out"
    child = int(mark.read_text())
    for _try in range(600):
        if not is_running(child):
            break
        time.sleep(0.1)
    assert not is_running(child)


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_one_that_floods_is_stopped(tool, monkeypatch):
    monkeypatch.setattr(yt_dlp, "MAX_OUTPUT_BYTES", 1_000_000)
    assert failure(tool("while True: sys.stdout.write('x' * 65536)"), seconds=60).kind == "too_large"


def test_words_without_end_are_cut(tool):
    path = tool("for n in range(40): sys.stderr.write('x' * 65536)\nsys.stderr.write('\\nERROR: Private video')\nsys.exit(1)")  # fmt: skip
    error = failure(path, seconds=60)
    assert (error.kind, error.last_line) == ("private", "ERROR: Private video")


@pytest.mark.parametrize("body", ["", "print('[1]')", "print('{')", "sys.stdout.buffer.write(b'\\xff')"])
def test_what_is_no_object_is_a_failure(tool, body):
    assert failure(tool(body)).kind == "failed"


def test_what_cannot_be_started_is_missing(tmp_path):
    (tmp_path / "text").write_text("no program")
    assert failure(str(tmp_path / "nothing")).kind == "missing"
    assert failure(str(tmp_path / "text")).kind == "missing"


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("ERROR: [youtube] x: Sign in to confirm you’re not a bot. Use --cookies", "blocked"),
        ("ERROR: [youtube] x: Private video. Sign in if you've been granted access to this video", "private"),
        ("ERROR: [youtube] x: Join this channel to get access to members-only content", "members_only"),
        ("ERROR: [youtube] x: Sign in to confirm your age. This video may be inappropriate for some users.", "age_restricted"),
        ("ERROR: [youtube] x: Video unavailable. This video has been removed by the uploader", "gone"),
        ("ERROR: [youtube] x: This live event will begin in 2 hours.", "upcoming"),
        ("ERROR: [youtube] x: The uploader has not made this video available in your country", "region"),
        ("ERROR: [TikTok] 7: Video not available, status code 10204", "gone"),
        ("ERROR: [youtube] x: Requested format is not available", "failed"),
    ],
)  # fmt: skip
def test_its_words_have_a_meaning(words, kind):
    assert classify_failure(words) == kind


# --- Captions by the tool ---


@pytest.fixture
def youtube(httpserver):
    server = YouTubeServer(httpserver)
    server.add(FakeVideo("ryeBread003", description="", player=BLOCKED))
    return server


def poll(youtube, tool):
    now = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
    return PLUGIN.fetch(
        {"channel": CHANNEL},
        {},
        http=Client(Policy(allow_loopback=True, user_agent="content-pipeline-test")),
        now=now + timedelta(days=30),
        environment={
            "YOUTUBE_URL": youtube.url,
            "YOUTUBE_API_URL": youtube.url,
            "YOUTUBE_API_KEY": "",
            "VIDEO_TOOL": tool,
        },
    )


def test_captions_that_youtube_refuses_come_by_the_tool(youtube, tool):
    found = poll(youtube, tool(f"print({json.dumps(sample('tool.json'))})"))
    (entry,) = found.entries
    assert entry.body == "Today we bake rye. We add two per cent of salt."
    assert entry.metadata["captions"] == {"language": "en", "kind": "automatic", "by": "tool"}
    assert entry.metadata["duration_seconds"] == 3723
    assert found.notes == ()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("sys.stderr.write('ERROR: Sign in to confirm you are not a bot')\nsys.exit(1)", "captions_blocked"),
        ("sys.stderr.write('ERROR: Private video')\nsys.exit(1)", "private"),
        ("print('{}')", "no_captions"),
        ('print(\'{"subtitles": [], "automatic_captions": {"en": 5}}\')', "no_captions"),
        ("print('nonsense')", "captions_failed"),
    ],
)
def test_where_the_tool_fails_too_the_video_is_left_out_with_the_reason(youtube, tool, body, code):
    (entry,) = poll(youtube, tool(body)).entries
    assert entry.left_out.code == code


def test_the_tools_captions_are_not_fetched_from_elsewhere(youtube, tool):
    document = sample("tool.json").replace("https://www.youtube.com/api", f"{youtube.url}/api")
    (entry,) = poll(youtube, tool(f"print({json.dumps(document)})")).entries
    assert (entry.left_out.code, youtube.count("timedtext")) == ("captions_failed", 0)
