"""What a plug-in is said to be tested against is what its test runs against."""

from __future__ import annotations

import ast
import importlib
import json
import re
from functools import cache
from importlib.metadata import packages_distributions

import pytest

from pipeline import plugins
from pipeline.platforms.base import Platform
from pipeline.sources.base import Source
from tests.documents.text import ROOT

PLUGINS = {
    f"{family}/{one.kind}": one.evidence
    for family, of in (("platforms", Platform), ("sources", Source))
    for one in plugins.every(family, of)
}
LOCK = (ROOT / "requirements-dev.lock").read_text()
distributions = cache(packages_distributions)
ABOUT = {"platforms/email_newsletter": r"mailing\.", "sources/webhook": r"verification="}


def at(level):
    return {name: one for name, one in PLUGINS.items() if one.level == level}


def with_evidence(level):
    return pytest.mark.parametrize("evidence", at(level).values(), ids=at(level))


def module(evidence):
    return importlib.import_module(evidence.test.removesuffix(".py").replace("/", "."))


def test_who_asks_nothing_outside_is_listed_here():
    assert set(at("none")) == {"platforms/handoff", "platforms/simulated", "sources/brand"}


@pytest.mark.parametrize("name", sorted(set(PLUGINS) - set(at("none"))))
def test_the_test_is_one_that_is_run(name):
    evidence = PLUGINS[name]
    assert re.fullmatch(r"tests/(\w+/)+test_\w+\.py", evidence.test)
    there = [found for found in vars(module(evidence)) if found.startswith("test_")]
    assert there
    assert re.search(ABOUT.get(name, name.partition("/")[2]), (ROOT / evidence.test).read_text())


@with_evidence("server")
def test_a_real_server_has_a_test_that_runs_against_one(evidence):
    marks = module(evidence).pytestmark
    assert "real" in {mark.name for mark in marks}
    name, _, version = evidence.against.rpartition(" ")
    if name == "PDS":
        pinned = json.loads((ROOT / "tests/real/pds/package.json").read_text())["dependencies"]
        assert pinned["@atproto/pds"] == version
    else:
        # Its version is asked of the site itself: tests/platforms/test_real_wordpress.py.
        assert name == "WordPress"


@with_evidence("software")
def test_software_of_others_is_used_by_the_test_at_that_version(evidence):
    name, _, version = evidence.against.rpartition(" ")
    package = name.lower().replace(".", "-")
    (locked,) = re.findall(rf"^{re.escape(package)}==(\S+)", LOCK, re.MULTILINE)
    assert locked.split(".")[:2] == version.split(".")
    assert package in used_by(evidence.test)


def used_by(path):
    """The packages that a test imports, itself or by a module of tests that it imports."""
    own, others = imports(path)
    return {
        distribution.lower().replace(".", "-")
        for top in others.union(*(imports(one)[1] for one in own))
        for distribution in distributions().get(top, ())
    }


def imports(path):
    """Of a file: the files of tests and the top-level packages that it imports."""
    own, others = [f"{path.rpartition('/')[0]}/conftest.py"], set()
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.Import):
            others |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            others.add(node.module.partition(".")[0])
            if node.module.startswith("tests."):
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
                own += [name.replace(".", "/") + ".py" for name in names]
    return [one for one in own if (ROOT / one).exists()], others


@pytest.mark.parametrize("kind", plugins.kinds("platforms"))
def test_documents_are_those_that_were_read_last(kind):
    platform = plugins.get("platforms", kind, Platform)
    if platform.evidence.level == "documents":
        assert platform.api is not None
        assert platform.evidence.against == f"{platform.api.reviewed_on:%B %Y}"
