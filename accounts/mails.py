"""Mails to people: one frame, plain text and HTML, sent after the commit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import css_inline
import structlog
from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.db import transaction
from django.template.loader import render_to_string
from django.utils.html import conditional_escape, urlize
from django.utils.safestring import mark_safe

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.core.mail import EmailMessage

log = structlog.get_logger(__name__)
_CODE_ALONE: Final = re.compile(r"[A-Z0-9]{3,8}(?:-[A-Z0-9]{3,8})?")
_ONE_LINE: Final = ("workspace", "title", "by")
_inliner: Final = css_inline.CSSInliner(keep_style_tags=True)


def send(name: str, to: Sequence[str], context: Mapping[str, Any]) -> None:
    """Render `templates/mail/<name>.txt` and send it to each address by itself, after the commit.

    The template's first paragraph is the subject. What was decided holds whether the relay works or not: a mail that can't
    be sent is logged.
    """
    for address in to:
        message = render(name, address, context)
        transaction.on_commit(lambda message=message: message.send(), robust=True)  # type: ignore[misc]


def render(name: str, to: str, context: Mapping[str, Any]) -> EmailMessage:
    text = render_to_string(f"mail/{name}.txt", _surroundings(context))
    subject, _, body = text.strip().partition("\n\n")
    plain = EmailMultiAlternatives(" ".join(subject.split()), body.strip() + "\n", None, [to])
    return framed(plain)


def framed(message: EmailMessage) -> EmailMessage:
    """The message with its text as HTML beside it."""
    framed_message = EmailMultiAlternatives(
        message.subject,
        str(message.body).strip() + "\n",
        message.from_email,
        message.to,
        headers={"Auto-Submitted": "auto-generated", **message.extra_headers},
    )
    html = render_to_string(
        "mail/base.html",
        _surroundings({"subject": message.subject, "paragraphs": _paragraphs(str(message.body))}),
    )
    framed_message.attach_alternative(_inliner.inline(html), "text/html")
    return framed_message


def _paragraphs(text: str) -> list[dict[str, Any]]:
    """Blocks of the plain text: a paragraph that is one address becomes a button, one that is a code stands out.

    A line with a list below it becomes a table of two columns.
    """
    blocks: list[dict[str, Any]] = []
    for block in re.split(r"\n\s*\n", text.strip()):
        words = block.strip()
        if re.fullmatch(r"https?://\S+", words):
            blocks.append({"kind": "button", "text": words})
        elif _CODE_ALONE.fullmatch(words):
            blocks.append({"kind": "code", "text": words})
        elif (found := _listed(words)) is not None:
            blocks.append(found)
        else:
            linked = urlize(conditional_escape(words), autoescape=False)
            blocks.append({"kind": "text", "text": mark_safe(linked.replace("\n", "<br>"))})  # noqa: S308  escaped above
    return blocks


def _listed(words: str) -> dict[str, Any] | None:
    """A line and what is listed below it, each on a line `- what: how much`; None for anything else."""
    title, *lines = words.split("\n")
    if not lines or title.startswith("- ") or not all(line.startswith("- ") for line in lines):
        return None
    rows = [line.removeprefix("- ").rpartition(": ") for line in lines]
    return {
        "kind": "list",
        "title": title,
        "rows": [(name or value, value if name else "") for name, _, value in rows],
    }


def _surroundings(context: Mapping[str, Any]) -> dict[str, Any]:
    # A workspace's name may hold line breaks, which a header must not, and which would end the subject.
    names = {name: " ".join(str(context[name]).split()) for name in _ONE_LINE if name in context}
    return {
        "site_name": settings.SITE_NAME,
        "public_url": settings.PUBLIC_URL,
        "operator_contact": settings.OPERATOR_CONTACT,
        **context,
        **names,
    }
