"""The recipes of docs/webhooks.md accept what the service signs, and nothing else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import WebhookVerificationError

from config.core.ids import encode, uuid7
from tests.documents.text import read, section
from webhooks import signing

BODY = '{"id":"evt_x","data":{"title":"Grüße ✓"}}'.encode()


@pytest.fixture
def signed() -> dict[str, str]:
    """Signed with two secrets, as while one is being rotated; `secret` is the older one."""
    older, now, event_id = signing.make_secret(), datetime.now(UTC), encode("evt", uuid7())
    return {
        "secret": older,
        "webhook-id": event_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": signing.sign([signing.make_secret(), older], event_id, now, BODY),
    }


def recipe(language: str) -> str:
    text = section(read("webhooks.md"), "## Verify the signature")
    found = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    assert len(found) == 1, language
    return str(found[0])


def headers_of(signed: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in signed.items() if name.startswith("webhook-")}


def test_python_recipe(signed):
    there: dict[str, Any] = {}
    exec(recipe("python"), there)
    assert there["verified"](signed["secret"], headers_of(signed), BODY)["data"]["title"] == "Grüße ✓"
    with pytest.raises(WebhookVerificationError):
        there["verified"](signed["secret"], headers_of(signed), BODY + b" ")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl on this machine")
@pytest.mark.parametrize(("body", "said", "code"), [(BODY, "genuine\n", 0), (BODY + b" ", "wrong\n", 1)])
def test_openssl_recipe(signed, tmp_path, body, said, code):
    file = tmp_path / "body"
    file.write_bytes(body)
    variables = {name.upper().replace("-", "_"): value for name, value in signed.items()}
    done = subprocess.run(
        ["sh", "-c", recipe("sh")],
        env={"PATH": os.environ["PATH"], "BODY_FILE": str(file), **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert (done.stdout, done.returncode) == (said, code), done.stderr


@pytest.mark.skipif(shutil.which("node") is None, reason="no node on this machine")
@pytest.mark.parametrize(("body", "is_genuine"), [(BODY, True), (BODY + b" ", False)])
def test_node_recipe(signed, tmp_path, body, is_genuine):
    file = tmp_path / "body"
    file.write_bytes(body)
    script = (
        f"{recipe('javascript')}\n"
        "const fs = require('node:fs');\n"
        "const [secret, id, timestamp, signature, file] = process.argv.slice(2);\n"
        "const headers = {'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature};\n"
        "console.log(verified(secret, headers, fs.readFileSync(file)).data.title);\n"
    )
    path = Path(tmp_path) / "recipe.js"
    path.write_text(script)
    given = [signed["secret"], *headers_of(signed).values(), str(file)]
    done = subprocess.run(
        ["node", str(path), *given], capture_output=True, text=True, check=False, timeout=30
    )
    assert (done.returncode == 0, done.stdout) == (is_genuine, "Grüße ✓\n" if is_genuine else ""), done.stderr
