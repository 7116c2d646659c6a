"""Every example of the guides is run, in the order of the page, against the service itself."""

from __future__ import annotations

import json
import os
import re
import subprocess
from datetime import UTC, datetime

import pytest

from accounts import workspaces
from accounts.access import tokens
from config.api_docs import guides
from config.core import task_runner
from config.core.ids import encode, uuid7
from pipeline.ingest import collect
from tests.documents.text import DOCS
from webhooks import signing

BLOCK = re.compile(r"(?:<!-- (keep|status|run): (.*?) -->\n)?```(sh|python)\n(.*?)```\n", re.DOTALL)
SOURCES = 101
"""One more than a page holds."""
JSON = """-H 'Content-Type: application/json' -d '{"title": "The bridge opens"}'"""
FILES = sorted(path.name for path in (DOCS / "guides").glob("*.md"))


@pytest.fixture
def service(live_server, transactional_db, settings, quick_workspaces):
    # In it stand the addresses that a guide goes on with.
    settings.PUBLIC_URL = live_server.url
    workspace = workspaces.create("Newsroom")
    workspaces.whitelist(workspace, "operator@example.test")
    workspace.active_sources_most = 2 * SOURCES
    workspaces.change(workspace, ["active_sources_most"], "operator@example.test")
    for number in range(SOURCES):
        given = collect.SourceSettings(
            type="webhook", name=f"Bridge {number}", config={}, poll_interval_minutes=None
        )
        collect.register(workspace, given)
    minted = tokens.issue(workspace, name="Guide", actor="test")
    return {"API": f"{live_server.url}/v1", "API_KEY": minted.secret}


def picked(answer, path):
    value = answer
    for part in path.split("."):
        value = value[int(part) if part.isdigit() else part]
    return value


def run_shell(script, environment):
    """What curl printed; an answer of 400 or more ends it with an error where the block asks curl to."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        env={"PATH": os.environ["PATH"], "no_proxy": "*", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, (script, done.stdout, done.stderr)
    return done.stdout


@pytest.mark.parametrize("name", FILES)
def test_every_example_runs_as_it_stands(name, service, monkeypatch):
    environment = dict(service)
    for mark, argument, language, script in BLOCK.findall((DOCS / "guides" / name).read_text()):
        if language == "python":
            there = {}
            for key, value in environment.items():
                monkeypatch.setenv(key, value)
            exec(script, there)
            assert mark == "run", "A Python example says which function it defines."
            CHECKS[argument](there[argument])
            continue
        if "export API=" in script:
            # Where readers put their own values.
            continue
        if "/events" in script:
            # Something has happened in the workspace that a reader has.
            push = f'curl -sS --fail-with-body "$API/raw" -H "Authorization: Bearer $API_KEY" {JSON}'
            run_shell(push, environment)
            task_runner.work_all_due()
        said = run_shell(script, environment)
        if mark == "keep":
            variable, path = argument.split()
            environment[variable] = picked(json.loads(said), path)
        if mark == "status":
            assert json.loads(said)["error"] == "invalid_request"
        task_runner.work_all_due()


def check_verify(verify):
    secret, now, event_id, body = (
        signing.make_secret(),
        datetime.now(UTC),
        encode("evt", uuid7()),
        b'{"type":"x"}',
    )
    headers = {
        "webhook-id": event_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": signing.sign([signing.make_secret(), secret], event_id, now, body),
    }
    assert verify(secret, headers, body) == {"type": "x"}
    with pytest.raises(ValueError, match="not signed"):
        verify(secret, headers, body + b" ")
    with pytest.raises(ValueError, match="too old"):
        verify(secret, {**headers, "webhook-timestamp": "1700000000"}, body)


def check_everything(everything):
    names = [row["name"] for row in everything("/sources")]
    assert len(names) == len(set(names)) == SOURCES + 1


CHECKS = {"verify": check_verify, "everything": check_everything}


def test_every_guide_has_its_page():
    assert sorted(f"guides/{name}" for name in FILES) == sorted(guide.file for guide in guides.GUIDES)


@pytest.mark.parametrize("guide", [*guides.GUIDES, *guides.API_DOCUMENTS], ids=lambda guide: guide.slug)
def test_a_page_shows_its_document_and_every_link_leads_somewhere(guide, client, db, settings):
    answer = client.get(f"/docs/{guide.slug}")
    assert answer.status_code == 200
    html = answer.content.decode()
    assert "<!-- " not in html.replace("<!-- @license", "")
    assert "https://pipeline.example" not in html
    anchors = set(re.findall(r' id="([^"]+)"', html))
    for target in set(re.findall(r"<article.*</article>", html, re.DOTALL)[0].split('href="')[1:]):
        address = target.partition('"')[0]
        if address.startswith("#"):
            assert address[1:] in anchors, address
        elif address.startswith("/"):
            path, _, anchor = address.partition("#")
            there = client.get(path)
            assert there.status_code in {200, 302}, address
            assert not anchor or f'id="{anchor}"' in there.content.decode(), address


@pytest.mark.parametrize(
    "address", ["/docs", "/docs/first-call", "/docs/reference", "/docs/examples/usage.json"]
)
def test_an_operator_can_close_the_docs_to_strangers(address, client, db, settings, django_user_model):
    assert client.get(address).status_code == 200
    settings.DOCS_ARE_PUBLIC = False
    assert client.get(address).status_code == 404
    client.force_login(django_user_model.objects.create_user("alice@example.test"))
    assert client.get(address).status_code == 200


@pytest.mark.parametrize(
    "address", ["/docs/nothing", "/docs/examples/nothing.json", "/docs/examples/..%2f..%2fx.json"]
)
def test_what_is_not_there_is_404(address, client, db):
    assert client.get(address).status_code == 404


@pytest.mark.parametrize("guide", guides._BY_SLUG.values(), ids=guides._BY_SLUG)
def test_a_page_lists_its_sections_once(guide):
    """The page makes the list of its headings; a document has none of its own."""
    html, headings = guides.render_document(guide.file, "https://pipeline.example")
    before_the_first = html.partition("<h2")[0]
    assert [anchor for anchor, _ in headings if f'href="#{anchor}"' in before_the_first] == []
    assert [words for _, words in headings if "`" in words] == []
