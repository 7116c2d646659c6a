"""Imports point down and never up; plug-ins are pure; the way out is one module."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.architecture.code import ROOT, modules

NETWORK = frozenset(
    {"requests", "urllib3", "httpx", "socket", "ssl", "http.client", "urllib.request", "smtplib"}
)
MAY_NAME_THE_NETWORK = {
    "config/connections/client_connection.py": "has the connection that a client opened to web; connects nowhere",
    "config/connections/response_socket.py": "writes to the connection that a client opened to web; connects nowhere",
    "config/connections/worker.py": "takes the connections that clients open to web; connects nowhere",
    "config/server.py": "probes whether its own port can be listened at; connects nowhere",
    "config/management/commands/demo.py": "asks the service's own /readyz on loopback, in development only",
    "pipeline/generate/model/call_timeout.py": "shuts connections of the model's client; opens none",
    "pipeline/platforms/email_newsletter/session.py": "speaks SMTP over a socket that the guard has connected",
    "config/operations/doctor.py": "asks the embedded service's own /readyz on loopback, at the operator's word",
}


def test_import_contracts_are_kept():
    done = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "0 broken" in done.stdout, done.stdout[-4000:] + done.stderr[-2000:]
    assert done.returncode == 0


def test_layers_name_every_module_of_the_wiring():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract for contract in contracts if contract["id"] == "layers")["layers"]
    named = {name.strip(" ()") for name in layers[0].split(":")}
    there = {
        f"config.{path.stem}"
        for path in (ROOT / "config").iterdir()
        if (path.suffix == ".py" or (path / "__init__.py").exists()) and path.stem not in {"__init__", "core"}
    }
    assert there - named == set()
    assert named - there <= {"config.admin_site.views"}


def test_nothing_but_the_outbound_guard_reaches_the_network():
    found = [
        f"{module.at(node)} {name}"
        for module in modules()
        if not module.path.startswith("config/core/http_client/") and module.path not in MAY_NAME_THE_NETWORK
        for _, node in module.functions()
        for name in _imported(node)
        if name in NETWORK
    ]
    assert found == []


def test_reasons_to_name_the_network_are_still_needed():
    used = {
        module.path
        for module in modules()
        for _, node in module.functions()
        if any(name in NETWORK for name in _imported(node))
    }
    assert set(MAY_NAME_THE_NETWORK) <= used


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []
