"""The documents as text: tables, embedded examples, and where they stand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
EXAMPLES = DOCS / "examples"
AT_THE_ROOT = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
APPS = ("config", "accounts", "pipeline", "webhooks", "analytics")
BESIDE_CODE = tuple(sorted(path for app in APPS for path in (ROOT / app).rglob("README.md")))
API_PAGES = tuple(f"api/{path.name}" for path in sorted((DOCS / "api").glob("*.md")))
DOCS_PAGES = (*sorted(DOCS.glob("*.md")), *sorted((DOCS / "api").glob("*.md")))
DOCUMENTS = (*(ROOT / name for name in AT_THE_ROOT), *DOCS_PAGES, *BESIDE_CODE)
EMBEDDED = re.compile(r"<!-- example: ([a-z0-9._-]+) -->\n```json\n(.*?)```\n", re.DOTALL)


def path_of(name: str) -> Path:
    """Of a document in `docs`, at the root, or beside code, which is named by its whole path."""
    return (ROOT if name in AT_THE_ROOT or name.startswith(tuple(f"{app}/" for app in APPS)) else DOCS) / name


def name_of(path: Path) -> str:
    """What `path_of` finds it by."""
    return str(path.relative_to(DOCS if path.is_relative_to(DOCS) else ROOT))


def read(name: str) -> str:
    return path_of(name).read_text()


def rows(text: str) -> list[list[str]]:
    """The cells of every row of every Markdown table, without the headings and the rulers."""
    found = []
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if not line.startswith("|") or set(line) <= set("|-: "):
            continue
        is_heading = (
            number + 1 < len(lines)
            and lines[number + 1].startswith("|")
            and set(lines[number + 1]) <= set("|-: ")
        )
        if not is_heading:
            found.append([cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return found


def section(text: str, heading: str) -> str:
    """From a heading to the next one of its level or above."""
    level = len(heading) - len(heading.lstrip("#"))
    start = text.index(f"{heading}\n")
    end = re.compile(rf"^#{{1,{level}}} ", re.MULTILINE).search(text, start + len(heading))
    return text[start : end.start() if end else len(text)]


def as_block(value: Any) -> str:
    """An example as it stands in its file and in the text."""
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def between(text: str, name: str) -> str:
    """What stands between `<!-- name -->` and `<!-- end name -->`: written by a test, not by hand."""
    return text.partition(f"<!-- {name} -->\n")[2].partition(f"<!-- end {name} -->")[0]


def replace_between(document: str, name: str, written: str) -> None:
    text = read(document)
    head, mark, rest = text.partition(f"<!-- {name} -->\n")
    _, end, tail = rest.partition(f"<!-- end {name} -->")
    assert mark, f"{document} has no place for {name}"
    assert end, f"{document} has no end for {name}"
    path_of(document).write_text(head + mark + written + end + tail)
