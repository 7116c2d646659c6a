"""Clients that code generators make of the OpenAPI document: no warning, strict types, and a round that works.

The two that are used most run with the slow tests, the others and the linters in `make prove-clients`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest
from django.conf import settings

from tests.clients.toolbox import ROUNDS, Toolbox, last_line, run
from tests.sizes import IS_PROOF

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(settings.IS_POSTGRES, reason="A client meets the same API on every database."),
]
ROUND: Final = {
    "source": "webhook",
    "rows": 3,
    "parts": 1,
    "publications": 1,
    "metrics": True,
    "errors": {
        "400": "invalid_cursor",
        "401": "unauthenticated",
        "402": "quota_exceeded",
        "404": "not_found",
        "409": "conflict",
        "412": "version_conflict",
        "429": "rate_limited",
    },
}
LATER: Final = {
    "platform": "hologram",
    "event": "item.praised",
    "source": "telepathy",
    "engine": "Hologram",
    "held": "moon_phase",
    "error": "code_of_tomorrow",
}
"""What a server of a later version answers, which no client knows."""
TYPESCRIPT: Final[dict[str, Any]] = {
    "compilerOptions": {
        "strict": True,
        "noEmit": True,
        "target": "ES2022",
        "module": "ESNext",
        "moduleResolution": "bundler",
        "types": ["node"],
        "lib": ["ES2022", "DOM", "DOM.Iterable"],
    },
    "include": ["**/*.ts"],
    "exclude": ["node_modules"],
}


@dataclass(frozen=True)
class Generator:
    """How a client is made in a folder, and how its round is called."""

    name: str
    make: Callable[[Toolbox, Path], list[str]]
    round: str
    warning: str
    """What a warning of the generator looks like."""
    tolerated: tuple[str, ...] = ()
    """Warnings of the tool about itself."""
    own_files: tuple[str, ...] = ()
    """The beginnings of paths of what it writes whatever the document says, with types that mypy calls too wide."""


def _openapi_python_client(tools: Toolbox, folder: Path) -> list[str]:
    del folder
    return [
        str(tools.folder / "python/bin/openapi-python-client"),
        *("generate", "--path", "openapi.json", "--meta", "none", "--output-path", "client_package"),
        "--fail-on-warning",
    ]


def _openapi_generator(tools: Toolbox, folder: Path) -> list[str]:
    # It makes functions of webhooks too, and leaves out the types of their parameters, whatever the document says.
    document = json.loads((folder / "openapi.json").read_text())
    del document["webhooks"]
    (folder / "openapi.json").write_text(json.dumps(document))
    return [
        *tools.openapi_generator,
        *("generate", "-i", "openapi.json", "-g", "python", "-o", "."),
        "--additional-properties=packageName=client_package",
    ]


def _hey_api(tools: Toolbox, folder: Path) -> list[str]:
    del folder
    return [
        tools.npm("openapi-ts"),
        "-i",
        "openapi.json",
        "-o",
        "client_package",
        "-c",
        "@hey-api/client-fetch",
    ]


def _openapi_typescript(tools: Toolbox, folder: Path) -> list[str]:
    del folder
    return [tools.npm("openapi-typescript"), "openapi.json", "-o", "client_package/schema.d.ts"]


def _orval(tools: Toolbox, folder: Path) -> list[str]:
    target = {"target": "client_package/client.ts", "client": "axios"}
    configuration = {"client": {"input": "openapi.json", "output": target}}
    (folder / "orval.config.cjs").write_text(f"module.exports = {json.dumps(configuration)};")
    return [tools.npm("orval"), "--config", "orval.config.cjs"]


_WARNING: Final = r"(?i)\bwarn"
GENERATORS: Final = (
    Generator(
        "openapi-python-client",
        _openapi_python_client,
        "with_openapi_python_client.py",
        _WARNING,
        own_files=("client_package/client.py",),
    ),
    Generator("@hey-api/openapi-ts", _hey_api, "with_hey_api.ts", _WARNING),
    Generator(
        "openapi-generator-python",
        _openapi_generator,
        "with_openapi_generator.py",
        r"\bWARN\b",
        (
            # It is about the tool: "OpenAPI 3.1 support is still in beta".
            "OpenAPI 3.1 support is still in beta",
            # Objects with any members: `metadata`, `settings`.
            "Codegen property is null",
            "Failed to get the schema name: null",
            # `from` of a range, which is a field of the contract.
            "From (reserved word) cannot be used as model name",
        ),
        # The whole package: `to_dict` and the like are written without types.
        own_files=("client_package/", "setup.py", "test/"),
    ),
    Generator("openapi-typescript", _openapi_typescript, "with_openapi_fetch.ts", _WARNING),
    Generator("orval", _orval, "with_orval.ts", _WARNING),
)
IN_EVERY_RUN: Final = {"openapi-python-client", "@hey-api/openapi-ts"}


@pytest.mark.parametrize(
    "generator",
    [one for one in GENERATORS if IS_PROOF or one.name in IN_EVERY_RUN],
    ids=lambda generator: generator.name,
)
def test_client(tools, document, live, later, generator, tmp_path, record_property):
    shutil.copy(document, tmp_path / "openapi.json")
    shutil.copy(ROUNDS / generator.round, tmp_path / generator.round)
    (tmp_path / "node_modules").symlink_to(tools.folder / "node_modules")
    (tmp_path / "tsconfig.json").write_text(json.dumps(TYPESCRIPT))
    (tmp_path / "package.json").write_text('{"type": "module"}')

    made = run(
        generator.make(tools, tmp_path), tmp_path, PATH=f"{tools.folder}/python/bin:{os.environ['PATH']}"
    )
    assert made.returncode == 0, made.stdout[-4000:]
    warnings = [line for line in made.stdout.splitlines() if re.search(generator.warning, line)]
    unknown = [line for line in warnings if not any(text in line for text in generator.tolerated)]
    assert unknown == []

    is_python = generator.round.endswith(".py")
    strict = (
        [tools.python, "-m", "mypy", "--strict", "--config-file=", "."]
        if is_python
        else [tools.npm("tsc"), "-p", "tsconfig.json"]
    )
    faults = [
        line
        for line in run(strict, tmp_path).stdout.splitlines()
        if "error" in line and not line.startswith((*generator.own_files, "Found "))
    ]
    assert faults == []

    command = [tools.python] if is_python else [tools.npm("tsx")]
    assert last_line(run([*command, generator.round], tmp_path, **live)) == ROUND
    assert last_line(run([*command, generator.round], tmp_path, **later)) == LATER
    said = f"{generator.name}: {len(warnings)} warnings (of the tool about itself); strict types"
    record_property("told", f"{said}; the round and the later server passed")


@pytest.mark.skipif(not IS_PROOF, reason="Linters say nothing about clients: make prove-clients")
@pytest.mark.parametrize("linter", ["redocly", "spectral"])
def test_linter(tools, document, linter, tmp_path, record_property):
    shutil.copy(document, tmp_path / "openapi.json")
    (tmp_path / "spectral.yaml").write_text('extends: ["spectral:oas"]\n')
    command = {
        "redocly": [tools.npm("redocly"), "lint", "openapi.json", "--format=json"],
        "spectral": [
            *(tools.npm("spectral"), "lint", "-r", "spectral.yaml", "openapi.json"),
            *("--fail-severity=hint", "-f", "json", "-q"),
        ],
    }[linter]
    done = run(command, tmp_path)
    assert done.returncode == 0, done.stdout[-4000:]
    record_property("told", f"{linter}: no error, no warning")
