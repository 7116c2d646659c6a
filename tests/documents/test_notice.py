"""NOTICE names each package that the service runs with, its licence, and the libraries that its wheel carries."""

from __future__ import annotations

import os
import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution

import pytest

from tests.documents.tables import table
from tests.documents.text import ROOT, between, rows
from tools.lock import pinned_versions

LOCKS = ("requirements.lock", "requirements-extras.lock")
# What their metadata leave open, read in their licence files.
READ_BY_HAND = {
    "async-timeout": "Apache-2.0",
    "colorama": "BSD-3-Clause",
    "django-ratelimit": "Apache-2.0",
    "dkimpy": "Zlib",
    "espeakng-loader": "MIT; its library GPL-3.0-or-later",
    "fido2": "BSD-2-Clause; parts Apache-2.0 and MPL-2.0",
    "httpx2-jsfetch": "BSD-3-Clause",
    "python-dateutil": "Apache-2.0 OR BSD-3-Clause",
}
OF_CLASSIFIERS = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD",
    "MIT License": "MIT",
    "Python Software Foundation License": "PSF-2.0",
}


def pinned():
    return sorted({name for lock in LOCKS for name in pinned_versions((ROOT / lock).read_text())})


def installed(name) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        # Only needed with another Python or on another system.
        return None


def licence_of(name, known):
    """As the installed package says; of one that isn't here, what the table has."""
    found = installed(name)
    if name in READ_BY_HAND:
        return READ_BY_HAND[name]
    if found is None:
        return known.get(name, "")
    said = found.metadata.get("License-Expression") or found.metadata.get("License") or ""
    classifiers = [
        one.rpartition(" :: ")[2]
        for one in found.metadata.get_all("Classifier", [])
        if one.startswith("License")
    ]
    short = said.strip() if len(said) <= 80 and "\n" not in said.strip() else ""
    return short or " OR ".join(OF_CLASSIFIERS[one] for one in classifiers)


def libraries_of(name):
    """Those beside the package, as wheels for Linux carry them: `libx264` of `av.libs/libx264-d6533a8d.so.165`."""
    files = (installed(name).files or ()) if installed(name) else ()
    carried = [one.name for one in files if ".libs" in one.parts[0] and ".so" in one.name]
    return sorted({re.sub(r"(?:-[0-9a-f]{6,}|-r0|\.so|-$).*", "", one).rstrip("-") for one in carried})


def test_each_package_stands_in_the_table_with_its_licence():
    path = ROOT / "NOTICE"
    text = path.read_text()
    known = {cells[0]: cells[1] for cells in rows(between(text, "packages"))}
    wanted = table("Package", "Licence", rows=[(name, licence_of(name, known)) for name in pinned()])
    if os.environ.get("UPDATE_EXAMPLES"):
        before, mark, rest = text.partition("<!-- packages -->\n")
        path.write_text(before + mark + wanted + rest[len(between(text, "packages")) :])
        return
    assert between(text, "packages") == wanted
    assert [cells for cells in rows(wanted) if not cells[1]] == []


@pytest.mark.parametrize("name", [one for one in pinned() if libraries_of(one)])
def test_each_library_in_a_wheel_is_named(name):
    told = {cells[0]: set(re.findall(r"[\w+-]+", cells[1])) for cells in rows(between_libraries())}
    assert [one for one in libraries_of(name) if one not in told.get(name, set())] == []


def between_libraries():
    return between((ROOT / "NOTICE").read_text(), "libraries")


def test_what_is_under_the_gpl_is_said_where_operators_read():
    telling = [(ROOT / name).read_text() for name in ("NOTICE", "README.md", "docs/running.md")]
    assert [[word in text for word in ("x264", "espeak-ng", "GPL")] for text in telling] == [[True] * 3] * 3
