"""What the platforms that take articles have in common: the body as HTML, with the lines that an outlet adds."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any, Final

from pipeline.platforms.base import Adapted, Payload, Setting, Step
from pipeline.platforms.fitting import FITTING
from pipeline.platforms.rules import images_of
from pipeline.plugins import Problem
from pipeline.text.markup import to_html
from pipeline.text.normalization import plain_text

if TYPE_CHECKING:
    from collections.abc import Mapping

ADDED: Final = (
    *(one for one in FITTING if one.name == "link"),
    Setting(
        "ai_line",
        "Line under generated articles",
        "Added where a model had its hand in the article, such as “Written with AI”: there is no field for that here.",
        is_required=False,
    ),
)


def as_html(payload: Payload, config: Mapping[str, Any]) -> Adapted:
    """The article as HTML with its images alone; what was added or left out is a step."""
    steps: list[Step] = []
    html = to_html(payload.body, payload.body_format)
    if config.get("link") == "end" and payload.link and escape(payload.link) not in html:
        address = escape(payload.link)
        html = f'{html}\n<p><a href="{address}">{address}</a></p>'
        steps.append(Step("link_added", "The source's address was added at the end."))
    line = str(config.get("ai_line") or "")
    if line and payload.is_ai_generated:
        html = f"{html}\n<p><em>{escape(line)}</em></p>"
        steps.append(Step("disclosure_added", "The line about AI was added at the end."))
    shown = tuple(images_of(payload.assets))
    if len(shown) < len(payload.assets):
        steps.append(Step("files_left_out", "Files that are no images were left out."))
    fitted = replace(
        payload, title=well_formed(payload.title).strip(), body=html, body_format="html", assets=shown
    )
    return Adapted(fitted, (html,), tuple(steps))


def without_words(post: Adapted, problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """The problem that an article of markup alone is, unless it was found already."""
    if plain_text(post.parts[0], "html").strip() or any(one.field == "body" for one in problems):
        return ()
    return (Problem("body", "empty", "There are no words to publish."),)


def well_formed(text: str) -> str:
    """The text without half characters, which no server takes."""
    return text.encode("utf-8", "replace").decode("utf-8")


def names(values: object) -> list[str]:
    """Tags as they are written, each once."""
    found: dict[str, str] = {}
    for value in values if isinstance(values, list | tuple) else ():
        name = " ".join(well_formed(str(value)).split())
        if name:
            found.setdefault(name.casefold(), name)
    return list(found.values())
