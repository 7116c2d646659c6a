"""Tables of the docs agree with the code; `UPDATE_EXAMPLES=1` writes them anew."""

from __future__ import annotations

import os
import re
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from config.core.crash_points import POINTS
from config.core.errors import CODES
from pipeline import events, plugins
from tests.architecture.code import modules
from tests.documents.tables import BLOCKS, LIMITS, constants, routes, said
from tests.documents.text import (
    API_PAGES,
    APPS,
    DOCUMENTS,
    ROOT,
    between,
    name_of,
    read,
    replace_between,
    rows,
)

if TYPE_CHECKING:
    from pathlib import Path

IS_UPDATE = os.environ.get("UPDATE_EXAMPLES") == "1"


@pytest.mark.parametrize(("document", "name"), BLOCKS, ids=[" ".join(key) for key in BLOCKS])
def test_block_agrees_with_the_code(document, name):
    written = BLOCKS[document, name]()
    if IS_UPDATE:
        replace_between(document, name, written)
    assert between(read(document), name) == written


def test_every_mark_has_its_block():
    marks = re.compile(r"<!-- end ([a-z ]+) -->")
    there = {(name_of(path), name) for path in DOCUMENTS for name in marks.findall(path.read_text())}
    assert there == set(BLOCKS)


def test_every_error_code_is_in_the_api_document():
    codes = {cells[0].strip("`") for cells in rows(between(read("api/README.md"), "errors"))}
    assert codes == set(CODES)


def test_every_route_is_on_one_page_with_its_scope():
    listed = [route for page in API_PAGES for route in _listed(read(page))]
    assert sorted(listed) == sorted((method, address, scope or "any") for method, address, scope in routes())


@pytest.mark.parametrize("page", API_PAGES)
def test_a_heading_names_a_route_of_its_page(page):
    text = read(page)
    headings = re.findall(r"^#+ `([A-Z]+) (/v1/[^`]*)`$", text, re.MULTILINE)
    assert set(headings) <= {(method, address) for method, address, _ in _listed(text)}


def _listed(text: str) -> list[tuple[str, str, str]]:
    lines = re.findall(r"^- `(/v1/[^`]+)`: (.+)$", between(text, "routes"), re.MULTILINE)
    return [
        (method, address, scope)
        for address, told in lines
        for method, scope in re.findall(r"([A-Z]+) `?([a-z:]+)", told)
    ]


def test_classes_of_a_publications_error_are_those_of_the_code():
    kinds = (plugins.TryLater, plugins.Refused, plugins.NeedsReconnect, plugins.OutcomeUnknown)
    told = re.search(r"`error\.class` is (.+)\n", read("api/publishing.md"))

    assert set(re.findall(r"`(\w+)` \(", told[1])) == {kind.error_class for kind in kinds}


def test_every_event_type_is_in_the_webhooks_document():
    assert {cells[0].strip("`") for cells in rows(between(read("webhooks.md"), "events"))} == set(
        events.TYPES
    )


@pytest.mark.parametrize("family", plugins.FAMILIES)
def test_every_plugin_is_in_the_document(family):
    listed = [cells[0].strip("`") for cells in rows(between(read("plugins.md"), family))]
    assert listed == list(plugins.kinds(family))


def test_every_limit_is_in_the_document():
    listed = [cells[0].strip("`") for cells in rows(between(read("limits.md"), "limits"))]
    assert listed == [name for name, _, _ in constants()]
    assert set(listed) == {name for app in LIMITS for name in vars(app) if name.isupper()}


def test_every_limit_says_what_it_is():
    assert [name for name, _, told in constants() if not told] == []


def test_every_limit_holds_somewhere():
    named: set[str] = set()
    for module in modules():
        if module.path != "config/core/limits.py":
            named.update(re.findall(r"\w+", "\n".join(module.lines)))
    assert [name for name, _, _ in constants() if name not in named] == []


def test_every_crash_point_is_in_the_document():
    listed = re.findall(
        r"^- `([a-z_.]+)`$", between(read("config/core/README.md"), "crash points"), re.MULTILINE
    )
    assert sorted(listed) == sorted(POINTS)


def test_every_module_of_the_ground_is_in_the_layout():
    text = read("config/core/README.md")
    files = (ROOT / "config/core").glob("*.py")
    there = [path.name for path in files if path.stem != "__init__" and path.read_text()]
    assert [name for name in sorted(there) if name not in text] == []


def test_spans_are_said_as_people_say_them():
    spans = [
        timedelta(0),
        timedelta(seconds=5),
        timedelta(hours=75, minutes=35),
        timedelta(days=30),
        timedelta(hours=24),
    ]
    assert [said(span) for span in spans] == ["at once", "5 s", "75 h 35 min", "30 days", "24 h"]


def test_links_lead_somewhere():
    broken = []
    for path in DOCUMENTS:
        for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", path.read_text()):
            file, _, anchor = target.partition("#")
            there = _target(path, file)
            if not there.exists() or (anchor and anchor not in _anchors(there.read_text())):
                broken.append(f"{name_of(path)}: {target}")
    assert broken == []


def test_files_that_are_named_are_there():
    folders = (*APPS, "benchmarks", "deploy", "docs", "static", "templates", "tests", "tools")
    files = [*ROOT.glob("*"), *(file for folder in folders for file in (ROOT / folder).rglob("*"))]
    parts = [file.relative_to(ROOT).parts for file in files]
    ends = {"/".join(one[at:]) for one in parts for at in range(len(one))}
    missing = [
        f"{name_of(path)}: {named}"
        for path in DOCUMENTS
        # What was so then stays so in the log of changes.
        if path.name != "CHANGELOG.md"
        for named in re.findall(r"`([\w/.-]+\.(?:py|html|js|css|toml|conf|yaml|json))`", path.read_text())
        # Addresses, and what a voice's program writes.
        if named not in ends and not named.startswith("/") and named != "words.json"
    ]
    assert missing == []


def _target(path: Path, file: str) -> Path:
    """A name that begins with a slash is the root's, as on a forge."""
    if file.startswith("/"):
        return ROOT / file.removeprefix("/")
    return (path.parent / file).resolve() if file else path


def _anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_docs_speak_of_the_project_alone():
    strange = re.compile(r"/(?:home|root|tmp|work)/|\bLLM\b|\bassistant\b|\bprompted\b|\.\./", re.IGNORECASE)
    found = [
        f"{path.name}: {match[0]}"
        for path in DOCUMENTS
        if path.name != "CHANGELOG.md"
        # A page of docs/api links to its neighbours in docs.
        for match in strange.finditer(re.sub(r"\]\(\.\./(?=\w)", "](", path.read_text()))
    ]
    assert found == []
