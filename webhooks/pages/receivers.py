"""Serves example receivers, complete programs with an endpoint's values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

from django.shortcuts import render
from django.template.loader import render_to_string

from accounts.pages.page_access import Place, workspace_page
from webhooks.pages import labels
from webhooks.pages.parts import find_endpoint

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse

    from webhooks.models import Endpoint

# The HTTP client sends these unescaped, and none has a meaning in double-quoted strings of the three
# languages.
_SAFE_CHARACTERS: Final = "/%:@!$&'()*+,;=~[]"
_LOCAL_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_DEFAULT_PORT: Final = 8080


@dataclass(frozen=True)
class Language:
    """A language of the receivers: the program's file, the command that runs it, and the version it needs."""

    label: str
    file: str
    run: str
    needs: str


LANGUAGES: Final[Mapping[str, Language]] = {
    "python": Language("Python", "receiver.py", "python3 receiver.py", "Python 3.8 or newer"),
    "node": Language("Node.js", "receiver.mjs", "node receiver.mjs", "Node.js 16 or newer"),
    "go": Language("Go", "receiver.go", "go run receiver.go", "Go 1.18 or newer"),
}
"""Each program needs only its language's standard library, from the version in `needs`."""


def render_receiver(endpoint: Endpoint, language: str) -> str:
    """Return the program, which reads the secret from `WEBHOOK_SECRET` and the port from `PORT`."""
    parts = urlsplit(endpoint.url)
    is_local = parts.hostname in _LOCAL_HOSTS and parts.port
    values = {
        "address": quote(endpoint.url, safe=_SAFE_CHARACTERS + "?"),
        "path": quote(parts.path, safe=_SAFE_CHARACTERS) or "/",
        "port": parts.port if is_local else _DEFAULT_PORT,
    }
    return render_to_string(f"webhooks/{LANGUAGES[language].file}.txt", values)


@workspace_page("manage", methods=("GET",))
def webhook_receiver(request: HttpRequest, place: Place, whe: UUID) -> HttpResponse:
    """Show an example receiver in the language `?language=`, or else in the first."""
    endpoint = find_endpoint(place, whe)
    language = request.GET.get("language", "")
    if language not in LANGUAGES:
        language = next(iter(LANGUAGES))
    context = {
        "endpoint": endpoint,
        "name": labels.name_of(endpoint),
        "state": labels.state_of(endpoint),
        "languages": LANGUAGES,
        "language": language,
        "chosen": LANGUAGES[language],
        "code": render_receiver(endpoint, language),
        "types": labels.types_of(endpoint),
        "tab": "receiver",
    }
    return render(request, "pages/webhooks/receiver.html", context)
