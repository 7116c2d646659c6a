"""test: runs pytest with all arguments and returns its exit code."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Run the tests with pytest; every argument is pytest's."

    def run_from_argv(self, argv: list[str]) -> None:
        if find_spec("pytest") is None:
            sys.exit("pytest isn't installed; `make install` installs it.")
        # pytest replaces this process, whose settings point to the development data.
        os.execv(sys.executable, [sys.executable, "-m", "pytest", *argv[2:]])  # noqa: S606  this interpreter
