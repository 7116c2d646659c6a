"""The files by which the service is deployed, read for tests: compose.yaml, the Dockerfile, units, settings."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field

import yaml

from tests.documents.text import ROOT, read, rows, section

COMPOSE_ONLY = frozenset({"POSTGRES_PASSWORD", "WEB_BIND"})


def settings_names():
    """Those that docs/settings.md lists; a test of its own keeps that list true."""
    return {cells[0].strip("`") for cells in rows(section(read("settings.md"), "## The service"))}


def compose_text():
    return (ROOT / "compose.yaml").read_text()


def compose(**environment):
    """As compose reads it: names replaced, anchors merged."""

    def replaced(match):
        name, sign, rest = match.groups()
        if name in environment:
            return environment[name]
        assert sign == ":-", f"{name} must be given: {rest}"
        return rest

    text = re.sub(r"(?<!\$)\$\{(\w+)(:[-?])([^}]*)\}", replaced, compose_text())
    return yaml.safe_load(text)


def seconds(text):
    number, unit = re.fullmatch(r"(\d+)(s|m)", text).groups()
    return int(number) * {"s": 1, "m": 60}[unit]


def env_example():
    """Each name with whether it stands as a comment."""
    lines = (ROOT / "deploy/env.example").read_text().splitlines()
    found = [re.fullmatch(r"(#?)([A-Z_]+)=(.*)", line) for line in lines]
    return {match[2]: (match[1] == "#", match[3]) for match in found if match}


@dataclass
class Image:
    """What the last stage of the Dockerfile says."""

    user: str = ""
    workdir: str = ""
    ports: list[str] = field(default_factory=list)
    volumes: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    copied: dict[str, str] = field(default_factory=dict)
    runs: list[str] = field(default_factory=list)


def dockerfile_steps():
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text())
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            word, _, rest = line.partition(" ")
            yield word, rest.strip()


def image():
    made = Image()
    for word, rest in dockerfile_steps():
        if word == "FROM":
            made = Image()
        elif word == "USER":
            made.user = rest
        elif word == "WORKDIR":
            made.workdir = rest
        elif word == "EXPOSE":
            made.ports += rest.split()
        elif word == "VOLUME":
            made.volumes += rest.split()
        elif word == "RUN":
            made.runs.append(rest)
        elif word == "ENV":
            made.environment |= dict(pair.split("=", 1) for pair in shlex.split(rest))
    return made
