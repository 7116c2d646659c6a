"""Defines sources that bridges push to: the settings of a source's own inbound address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pipeline.limits import MAPPING_CHARACTERS
from pipeline.plugins import Evidence, Problem
from pipeline.sources.base import Source
from pipeline.sources.config_fields import Choice, Group, Many, Text, clean
from pipeline.sources.webhook.entries import MAX_TAG_CHARACTERS, MAX_TAGS, TARGETS
from pipeline.sources.webhook.expressions import ExpressionUnreadable, compile_expression
from pipeline.sources.webhook.signatures import KINDS, MAX_SECRET_CHARACTERS, MIN_SECRET_CHARACTERS
from pipeline.text.body_html import BODY_FORMATS

if TYPE_CHECKING:
    from collections.abc import Mapping

_HEADER_PATTERN: Final = r"^\s*[A-Za-z0-9][A-Za-z0-9_-]{0,63}\s*$"
_SECRET_PATTERN: Final = rf"^\s*[!-~]{{{MIN_SECRET_CHARACTERS},{MAX_SECRET_CHARACTERS}}}\s*$"
"""Printable ASCII without spaces, because many senders send a secret in a header."""


@dataclass(frozen=True)
class ExpressionField(Text):
    """A JMESPath expression (jmespath.org); one that can't be read is refused with the position."""

    def schema(self) -> dict[str, Any]:
        return {**super().schema(), "format": "jmespath"}

    def read(self, value: object, path: str) -> tuple[Any, list[Problem]]:
        stored, problems = super().read(value, path)
        if not problems:
            try:
                compile_expression(stored)
            except ExpressionUnreadable as error:
                return None, [Problem(path, "invalid", str(error))]
        return stored, problems


class Secret(Text):
    """A field that is written and never read, because it isn't stored or shown with the settings."""

    def schema(self) -> dict[str, Any]:
        return {**super().schema(), "writeOnly": True}


def _expression(hint: str) -> ExpressionField:
    """Return a field for a JMESPath expression."""
    return ExpressionField(hint, max_length=MAPPING_CHARACTERS)


MAPPING: Final = Group(
    "at least one field of the raw item with its place in the payload",
    {
        name: _expression(f"the place of `{name}` in the payload, such as data.items[0].{name}")
        for name in TARGETS
    },
    is_empty_allowed=False,
)
DEFAULTS: Final = Group(
    "what a field is where the payload doesn't say",
    {
        "title": Text("the title of items without one", max_length=500),
        "author": Text("the author of items without one", max_length=200),
        "language": Text(
            "a BCP 47 language tag, such as en or pt-BR",
            max_length=35,
            pattern=r"^\s*[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*\s*$",
        ),
        "body_format": Choice("what the body is written in", BODY_FORMATS),
        "tags": Many("tags", Text("a tag", max_length=MAX_TAG_CHARACTERS), MAX_TAGS),
    },
)
SETTINGS: Final = Group(
    "the settings of the webhook",
    {
        "mapping": MAPPING,
        "defaults": DEFAULTS,
        "verification": Group(
            "how the sender proves itself",
            {
                "type": Choice("how the sender proves itself", KINDS),
                "header": Text("the header that carries the secret", max_length=100, pattern=_HEADER_PATTERN),
                "secret": Secret(
                    f"a secret of {MIN_SECRET_CHARACTERS} to {MAX_SECRET_CHARACTERS} printable ASCII characters, without spaces",
                    max_length=MAX_SECRET_CHARACTERS + 20,
                    pattern=_SECRET_PATTERN,
                    description="Written once and never shown again.",
                ),
            },
            required=("type",),
        ),
    },
)


class Webhook(Source):
    kind = "webhook"
    label = "Webhook"
    evidence = Evidence("software", "standardwebhooks 1.1", "tests/inbound/test_verification.py")
    config_schema: ClassVar[Mapping[str, Any]] = SETTINGS.schema()

    def clean_config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings without the secret, which is stored apart, encrypted."""
        cleaned = clean(SETTINGS, config)
        cleaned.get("verification", {}).pop("secret", None)
        return cleaned


PLUGIN = Webhook()
