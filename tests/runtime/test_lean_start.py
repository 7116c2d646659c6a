"""What a short command never uses isn't loaded by its start."""

from __future__ import annotations

import subprocess
import sys

from tests.documents.text import ROOT

LATE = {"anthropic", "av", "celery", "cv2", "dkim", "jwt", "numpy", "playwright", "trafilatura"}


def loaded_by(program):
    lines = ("import sys, django", "django.setup()", program, "print(*sys.modules)")
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


def test_a_check_loads_nothing_that_only_workers_use():
    loaded = loaded_by("from django.core.management import call_command; call_command('check')")

    assert "pipeline.publish" in loaded
    assert loaded & LATE == set()


def test_the_first_wake_loads_celery():
    assert "config.celery" in loaded_by("from config.core import dispatcher; dispatcher.wake_now()")
