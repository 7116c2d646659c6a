"""Lines for a terminal that try a key."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.utils.translation import gettext as _

if TYPE_CHECKING:
    from accounts.models import ApiToken

_EXAMPLE: Final = {
    "title": "The harbour ferry leaves earlier",
    "body": "The harbour ferry leaves at seven from Monday on, twenty minutes earlier than before.",
}


@dataclass(frozen=True)
class Example:
    """A line of curl; `id` is the element's on the page, `label` what the line does."""

    id: str
    label: str
    line: str


def curl_examples(token: ApiToken, key: str = "$API_KEY") -> list[Example]:
    """The lines that this key's scopes allow. `key` is the key to put in, or a variable of the shell."""
    head = f'-H "Authorization: Bearer {key}"'
    found = [
        Example(
            "line-workspace",
            _("Get the workspace"),
            f"curl {settings.PUBLIC_URL}/v1/workspace \\\n  {head}",
        )
    ]
    if "raw:write" in token.scopes:
        line = (
            f"curl {settings.PUBLIC_URL}/v1/raw \\\n  {head} \\\n"
            f"  -H \"Content-Type: application/json\" \\\n  -d '{json.dumps(_EXAMPLE)}'"
        )
        found.append(Example("line-raw", _("Push a text"), line))
    return found
