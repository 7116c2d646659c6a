"""Each lock file pins what pyproject.toml declares, with hashes, and all of them the same versions."""

from __future__ import annotations

import pytest

from tests.documents.text import ROOT
from tools import lock


@pytest.fixture
def copied(tmp_path, monkeypatch):
    for name in (*lock.LOCK_FILES, "pyproject.toml"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    monkeypatch.setattr(lock, "ROOT", tmp_path)
    return tmp_path


def test_extras_are_pinned_by_themselves():
    assert set(lock.pinned_versions((ROOT / "requirements-extras.lock").read_text())) == {
        "espeakng-loader",
        "yt-dlp",
    }


@pytest.mark.parametrize(
    ("name", "old", "new", "fault"),
    [
        (
            "pyproject.toml",
            "yt-dlp>=",
            "yt-dlp>=2",
            "requirements-extras.lock: yt-dlp>=22026.10 is not what it pins",
        ),
        (
            "requirements-extras.lock",
            "espeakng-loader==0",
            "espeakng-loader==1",
            "requirements-extras.lock: espeakng-loader differs from requirements-dev.lock",
        ),
        (
            "requirements-extras.lock",
            "--hash=sha256:",
            "--hash=md5:",
            "requirements-extras.lock: yt-dlp==2026.10.26 has no hash",
        ),
        (
            "requirements-dev.lock",
            "django==",
            "django-none==",
            "requirements-dev.lock: django of requirements.lock is missing",
        ),
    ],
)
def test_a_fault_of_the_lock_files_is_told(copied, capsys, name, old, new, fault):
    path = copied / name
    path.write_text(path.read_text().replace(old, new))
    assert lock.check() == 1
    assert fault in capsys.readouterr().out


def test_the_lock_files_belong_to_the_project(copied):
    assert lock.check() == 0


def test_an_upgrade_asks_for_the_newest_and_says_what_moved(copied, capsys, monkeypatch):
    asked = []

    def compile_(command, **_):
        asked.append(command)
        path = copied / command[-1]
        path.write_text(path.read_text().replace("nh3==", "nh3==9."))

    monkeypatch.setattr(lock, "find_uv", lambda: "uv")
    monkeypatch.setattr(lock.subprocess, "run", compile_)
    assert (lock.write(upgrade=True), ["--upgrade" in one for one in asked]) == (0, [True] * 3)
    (version,) = lock.pinned_versions((ROOT / "requirements.lock").read_text())["nh3"]
    assert capsys.readouterr().out.splitlines()[:2] == [
        f"requirements.lock: nh3 {version} -> 9.{version}",
        f"requirements-dev.lock: nh3 {version} -> 9.{version}",
    ]
    lock.write()
    assert ["--upgrade" in one for one in asked] == [True] * 3 + [False] * 3
