"""Composes curl commands that try a key."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.utils.translation import gettext as _

if TYPE_CHECKING:
    from accounts.models import ApiToken

_EXAMPLE_TEXT: Final = {
    "title": "The harbour ferry leaves earlier",
    "body": "The harbour ferry leaves at seven from Monday on, twenty minutes earlier than before.",
}


@dataclass(frozen=True)
class Example:
    """A curl command; `id` is the element's on the page, `label` says what the command does."""

    id: str
    label: str
    line: str


def curl_examples(token: ApiToken, key: str = "$API_KEY") -> list[Example]:
    """Return the commands that the key's scopes allow. `key` is its secret, or a variable of the shell."""
    header_option = f'-H "Authorization: Bearer {key}"'
    examples = [
        Example(
            "line-workspace",
            _("Get the workspace"),
            f"curl {settings.PUBLIC_URL}/v1/workspace \\\n  {header_option}",
        )
    ]
    if "raw:write" in token.scopes:
        line = (
            f"curl {settings.PUBLIC_URL}/v1/raw \\\n  {header_option} \\\n"
            f"  -H \"Content-Type: application/json\" \\\n  -d '{json.dumps(_EXAMPLE_TEXT)}'"
        )
        examples.append(Example("line-raw", _("Push a text"), line))
    return examples
