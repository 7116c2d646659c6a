"""A child for hostile input: it answers, or it is ended and the next question gets another one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pipeline.sources import isolated_child
from pipeline.sources.isolated_child import ChildFailed, IsolatedChild, NoProcess

PROGRAM = """
import json, os, sys, time
while line := sys.stdin.buffer.readline():
    question = json.loads(line)
    if question["do"] == "ignore":
        time.sleep(1000)
    document = sys.stdin.buffer.read(question["length"])
    if question["do"] == "sleep":
        time.sleep(1000)
    if question["do"] == "die":
        os._exit(3)
    if question["do"] == "flood":
        while True:
            sys.stdout.write("x" * 100_000)
    told = {"pid": os.getpid(), "length": len(document), "environment": sorted(os.environ), "folder": os.getcwd()}
    sys.stdout.write(json.dumps(told) + "\\n")
    sys.stdout.flush()
"""


@pytest.fixture
def child(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    with IsolatedChild(program, library="lxml") as made:
        yield made


def ask(child, do, document=b"", seconds=60.0):
    return child.ask({"do": do}, document, seconds=seconds)


def test_one_child_answers_one_question_after_another(child):
    first = ask(child, "answer", b"x" * 5_000_000)
    second = ask(child, "answer")
    assert (first["length"], second["length"], first["pid"] == second["pid"]) == (5_000_000, 0, True)


def test_child_knows_nothing_of_the_service(child, monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "x")
    told = ask(child, "answer")
    assert (set(told["environment"]) <= {"LC_CTYPE"}, told["folder"]) == (True, "/")


@pytest.mark.parametrize(
    ("do", "document", "is_slow"),
    [("sleep", b"", True), ("ignore", b"x" * 5_000_000, True), ("die", b"", False), ("flood", b"", False)],
)
def test_child_that_gives_no_answer_is_ended_and_replaced(child, do, document, is_slow):
    before = ask(child, "answer")["pid"]
    with pytest.raises(ChildFailed) as caught:
        ask(child, do, document, seconds=1 if is_slow else 60)
    assert caught.value.is_slow is is_slow
    assert not Path(f"/proc/{before}").exists()
    assert ask(child, "answer")["pid"] != before


def test_child_ends_with_its_user(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    with IsolatedChild(program, library="lxml") as child:
        pid = ask(child, "answer")["pid"]
        open_before = len(list(Path("/proc/self/fd").iterdir()))
    assert not Path(f"/proc/{pid}").exists()
    assert len(list(Path("/proc/self/fd").iterdir())) == open_before - 2


def test_machine_that_starts_no_process_says_so(child, monkeypatch):
    def fail(*_, **__):
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(isolated_child.subprocess, "Popen", fail)
    with pytest.raises(NoProcess):
        ask(child, "answer")
    assert subprocess.Popen is fail


def test_library_that_is_missing_is_our_own_fault(tmp_path):
    with pytest.raises(RuntimeError):
        IsolatedChild(tmp_path / "program.py", library="not_there")
