"""Texts as a first user pushes them: all ordinary shapes, twelve languages. Places and people are invented."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import cycle, islice
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent / "texts"
_FORMATS: Final = {".md": "markdown", ".html": "html", ".txt": "text"}


@dataclass(frozen=True)
class Text:
    name: str
    title: str
    language: str
    body: str
    body_format: str


@cache
def texts() -> tuple[Text, ...]:
    """All of them, ordered by name; the longest has 5,400 words."""
    found = [_read(path) for path in FOLDER.iterdir()]
    return tuple(sorted([*found, _report()], key=lambda one: one.name))


def _read(path: Path) -> Text:
    head, _, body = path.read_text(encoding="utf-8").partition("\n\n")
    about = dict(line.split(": ", 1) for line in head.splitlines())
    return Text(path.stem, about["title"], about["language"], body, _FORMATS[path.suffix])


def _report() -> Text:
    """The yearly report of an association: a section for each of its places."""
    places = (
        "Tarn Hill", "Oldhaven", "Penbrook", "Marlow Quay", "Brackwater", "Skerry Island", "Lower Ash", "Wester Moss",
        "Holm Cross", "Fallow End", "Gannet Bay", "Upper Thorne", "Millrace", "Cold Ferry", "Saint Ebba", "Larkstead",
    )  # fmt: skip
    people = (
        "Nora Lindqvist", "Edwin Marsh", "Hanne Vik", "Tom Ashby", "Greta Halloran", "Ruth Okafor", "Ines Torvald",
        "Joao Pires", "Leila Brandt", "Mira Holm", "Owen Strand",
    )  # fmt: skip
    works = (
        ("planted", "hedges along the old railway", "hazel and blackthorn"),
        ("cleaned", "ditches between the fields", "reed and bramble"),
        ("repaired", "footbridges over the brook", "oak and larch"),
        ("counted", "nests on the roofs of the school", "straw and mud"),
        ("marked", "paths through the wet meadows", "stone and turf"),
    )
    lines: list[str] = []
    row = zip(cycle(places), cycle(people), cycle(works), cycle((3, 11, 7, 24, 16, 9, 31)), strict=False)
    for count, (place, person, (did, what, stuff), number) in enumerate(islice(row, 60), start=1):
        season = ("spring", "summer", "autumn", "winter")[count % 4]
        lines.append(f"## {count}. {place} in {season}")
        lines.append(
            f"In {place} our members {did} {number + count} {what} between March and the end of {season}. They worked "
            f"with {stuff}, and the parish lent a trailer for {number % 5 + 2} days. {number * 40 + count} pounds came "
            f"from the village fair, which is {number % 9 + 3} per cent more than in the year before."
        )
        lines.append(
            f"{person} led the group of {number + 4} helpers from {place} and kept the diary. \u201cWe began with {number} "
            f"tools and a flask of tea. Nobody had done it before. By the evening of day {count} we had finished,\u201d said "
            f"{person}. The next work day is held {('before', 'after')[count % 2]} the harvest, and boots are needed."
        )
    body = "\n\n".join(["# Yearly report of the Field and Brook Association", *lines])
    return Text("en_report", "Yearly report of the Field and Brook Association", "en", body, "markdown")


def count_signs(text: str) -> int:
    """Words as white space parts them."""
    return len(re.findall(r"\S+", text))
