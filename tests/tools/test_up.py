"""What `make up` and `make install` do before anything is installed, and what `make up` tells of a running service."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from tests.documents.text import ROOT

RECORDS = """
import logging, structlog
from config.core import logs
logs.configure(level="INFO", as_json={as_json})
log = structlog.get_logger("config.embedded")
log.info("said", error="nothing")
log.warning("doubted [error] x")
try:
    1 / 0
except ZeroDivisionError:
    log.exception("engine_part_failed", part="_run_beat")
logging.getLogger("gunicorn.error").error("Worker (pid:%s) was sent SIGKILL!", 12)
log.error("engine_part_failed", part="_run_worker", error="gone")
"""


@pytest.fixture
def up(tmp_path, monkeypatch):
    return load_up(tmp_path, monkeypatch)


def load_up(root, monkeypatch, data_dir=""):
    """tools/up.py as it stands in another checkout."""
    monkeypatch.setenv("DATA_DIR", str(data_dir))
    spec = importlib.util.spec_from_file_location("up", ROOT / "tools/up.py")
    up = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(up)
    monkeypatch.setattr(up, "ROOT", root)
    monkeypatch.setattr(up, "ENV_FILE", root / ".env")
    monkeypatch.setattr(up, "VENV", root / ".venv")
    return up


def read_pairs(path):
    return dict(line.split("=", 1) for line in path.read_text().splitlines() if not line.startswith("#"))


def test_install_writes_settings_with_keys_of_their_own_once(tmp_path, monkeypatch):
    up = load_up(tmp_path, monkeypatch)
    up.write_settings()
    first = (tmp_path / ".env").read_text()
    up.write_settings()
    assert (tmp_path / ".env").read_text() == first
    assert (tmp_path / ".env").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [".env"]
    pairs = read_pairs(tmp_path / ".env")
    assert pairs["MODE"] == "development"
    (tmp_path / ".env").unlink()
    up.write_settings()
    other = read_pairs(tmp_path / ".env")
    assert [other[name] == pairs[name] for name in ("SECRET_KEY", "FIELD_KEYS")] == [False, False]


def test_keys_of_an_earlier_start_move_into_the_settings(tmp_path, monkeypatch):
    up = load_up(tmp_path, monkeypatch, tmp_path / "data")
    (tmp_path / "data").mkdir()
    earlier = tmp_path / "data/development-keys.json"
    earlier.write_text('{"secret_key": "s-of-before", "field_keys": "dev:k-of-before="}')
    up.write_settings()
    pairs = read_pairs(tmp_path / ".env")
    assert (pairs["SECRET_KEY"], pairs["FIELD_KEYS"]) == ("s-of-before", "dev:k-of-before=")
    assert not earlier.exists()


def test_up_reads_settings_as_the_service_does(tmp_path, monkeypatch):
    up = load_up(tmp_path, monkeypatch)
    (tmp_path / ".env").write_text("# PORT=1\nexport PORT='8123'\nDATA_DIR=data\n")
    assert (up.setting("PORT", "8000"), up.setting("MODE", "development")) == ("8123", "development")
    monkeypatch.delenv("DATA_DIR")
    assert up.data_dir() == tmp_path / "data"
    monkeypatch.setenv("PORT", "8124")
    assert up.setting("PORT", "8000") == "8124"


@pytest.fixture
def install_extras(up, tmp_path, monkeypatch):
    """With a program in the place of pip."""
    (tmp_path / ".venv").mkdir()
    (tmp_path / "requirements-extras.lock").write_text("yt-dlp==1\nespeakng-loader==1\n")
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(up, "PROGRESS_SECONDS", 0.1)
    monkeypatch.setattr(up, "EXTRAS_SECONDS", 0.3)

    def call(program):
        monkeypatch.setattr(up, "installer", lambda: [sys.executable, "-c", program])
        up.install_extras()

    return call


@pytest.mark.parametrize("program", ["import sys; sys.exit('No network.')", "import time; time.sleep(60)"])
def test_what_cannot_be_installed_and_is_not_needed_costs_one_sentence(
    install_extras, capsys, tmp_path, program
):
    install_extras(program)
    head, *waits, sentence = capsys.readouterr().out.splitlines()
    assert head == "Installing the system voice and yt-dlp …"
    assert [line for line in waits if "still at it" not in line] == []
    log = tmp_path / "data/log/install-extras.log"
    assert sentence.startswith(
        "  Not installed, so films are silent with captions, and neither the videos of a TikTok"
    )
    assert sentence.endswith(f"; the next `make up` tries again, and {log} says why.")
    assert "$ " in log.read_text()


def test_extras_are_installed_with_their_hashes_once(install_extras, capsys, tmp_path):
    program = f"import sys; open({str(tmp_path / 'called')!r}, 'a').write(' '.join(sys.argv[1:]) + chr(10))"
    for _ in range(2):
        install_extras(program)
    lock = tmp_path / "requirements-extras.lock"
    assert (tmp_path / "called").read_text() == f"--only-binary :all: -r {lock}\n"
    head, *waits, done = capsys.readouterr().out.splitlines()
    assert (head, done[:10]) == ("Installing the system voice and yt-dlp …", "  done in ")
    assert [line for line in waits if "still at it" not in line] == []
    lock.write_text("yt-dlp==2\n")
    install_extras(program)
    assert len((tmp_path / "called").read_text().splitlines()) == 2


@pytest.mark.parametrize("has_uv", [False, True])
def test_nothing_is_installed_without_its_hash(up, monkeypatch, has_uv):
    monkeypatch.setattr(up.shutil, "which", lambda name: f"/usr/bin/{name}" if has_uv else None)
    assert {"--require-hashes", "--no-deps"} <= set(up.installer())


@pytest.mark.parametrize("as_json", [False, True])
def test_each_failure_is_one_line_and_told_once_in_a_while(up, tmp_path, as_json):
    command = [sys.executable, "-c", RECORDS.format(as_json=as_json)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    log = tmp_path / "service.log"
    told = {}
    lines = up.find_new_failures(done.stderr.splitlines(), log, told)
    details = "" if as_json else " part=_run_beat"
    assert lines == [
        f"Failed: engine_part_failed [config.embedded]{details}. More in {log}",
        f"Failed: Worker (pid:12) was sent SIGKILL! [gunicorn.error]. More in {log}",
    ]
    assert up.find_new_failures(done.stderr.splitlines(), log, told) == []
    told["engine_part_failed [config.embedded]"] -= up.REPEAT_SECONDS
    assert len(up.find_new_failures(done.stderr.splitlines(), log, told)) == 1


def test_a_log_of_the_last_start_stays_and_none_before(up, tmp_path, monkeypatch):
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    for number in range(3):
        log = up.rotate_log("service")
        assert not log.exists()
        log.write_text(f"start {number}")
    assert {path.name: path.read_text() for path in log.parent.iterdir()} == {
        "service.log": "start 2",
        "service.log.1": "start 1",
    }


def test_a_service_that_ends_by_itself_is_a_failure_with_the_end_of_its_log(up, tmp_path, monkeypatch):
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(up, "WATCH_SECONDS", 0.01)
    program = tmp_path / "manage.py"
    program.write_text("import sys; sys.exit('It is broken.' if sys.argv[1] == 'serve' else 'No demo.')")
    with pytest.raises(up.Failed) as failed:
        up.run([sys.executable, str(program)], {"MODE": "development"})
    log = tmp_path / "data/log/service.log"
    expected = f"The service ended by itself, with code 1. The end of {log}:\n\nIt is broken."
    assert str(failed.value) == expected
