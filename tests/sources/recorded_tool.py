"""A stand-in for yt-dlp: prints what is recorded, and notes how it was called."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class RecordedTool:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "yt-dlp"

    def says(self, text: str = "", *, words: str = "", status: int = 0) -> str:
        """The path of a program that prints `text`, and `words` where errors go."""
        (self.folder / "out").write_text(text)
        (self.folder / "err").write_text(words)
        self.path.write_text(
            f"#!{sys.executable} -I\n"
            "import pathlib, sys\n"
            f"here = pathlib.Path({str(self.folder)!r})\n"
            "(here / 'arguments').write_text('\\n'.join(sys.argv[1:]))\n"
            "sys.stdout.write((here / 'out').read_text())\n"
            "sys.stderr.write((here / 'err').read_text())\n"
            f"sys.exit({status})\n"
        )
        self.path.chmod(0o755)
        return str(self.path)

    @property
    def arguments(self) -> list[str]:
        return (self.folder / "arguments").read_text().splitlines()
