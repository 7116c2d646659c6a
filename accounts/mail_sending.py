"""Mails to people: one frame, plain text and HTML, sent after the commit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import css_inline
from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.db import transaction
from django.template.loader import render_to_string
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import mark_safe

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.core.mail import EmailMessage
    from django.utils.safestring import SafeString

_CODE_ALONE: Final = re.compile(r"[A-Z0-9]{3,8}(?:-[A-Z0-9]{3,8})?")
_ONE_LINE: Final = ("workspace", "title", "by")
_DIRECTION_MARKS: Final = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Signs that turn the direction of what stands after them, so that an address or a sentence of ours reads as another."""
_UNDELIVERED: Final = ("filebased.EmailBackend", "console.EmailBackend", "dummy.EmailBackend")
_inliner: Final = css_inline.CSSInliner(keep_style_tags=True)


def is_delivered() -> bool:
    """Whether a mail reaches people here; False where mails are files, lines of a log, or nothing."""
    return not settings.EMAIL_BACKEND.endswith(_UNDELIVERED)


def send(name: str, to: Sequence[str], context: Mapping[str, Any]) -> None:
    """Render `templates/mail/<name>.txt` and send it to each address by itself, after the commit.

    The template's first paragraph is the subject. What was decided holds whether the relay works or not: a mail that can't
    be sent is logged.
    """
    for address in to:
        message = render(name, address, context)
        transaction.on_commit(lambda message=message: message.send(), robust=True)  # type: ignore[misc]


def render(name: str, to: str, context: Mapping[str, Any]) -> EmailMessage:
    """The mail of `templates/mail/<name>.txt` in text and HTML, not sent; the first paragraph is its subject."""
    text = render_to_string(f"mail/{name}.txt", _frame_context(context))
    subject, _, body = text.strip().partition("\n\n")
    plain = EmailMultiAlternatives(" ".join(subject.split()), body.strip() + "\n", None, [to])
    return add_html(plain)


def add_html(message: EmailMessage) -> EmailMessage:
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
        _frame_context({"subject": message.subject, "paragraphs": _paragraphs(str(message.body))}),
    )
    framed_message.attach_alternative(_inliner.inline(html), "text/html")
    return framed_message


def _paragraphs(text: str) -> list[dict[str, Any]]:
    """Blocks of the plain text: a paragraph that is one address of ours becomes a button, a code stands out.

    A line with a list below it becomes a table of two columns.
    """
    blocks: list[dict[str, Any]] = []
    for block in re.split(r"\n\s*\n", text.strip()):
        words = block.strip()
        if _own_address().fullmatch(words):
            blocks.append({"kind": "button", "text": words})
        elif _CODE_ALONE.fullmatch(words):
            blocks.append({"kind": "code", "text": words})
        elif (found := _listed(words)) is not None:
            blocks.append(found)
        else:
            blocks.append({"kind": "text", "text": _linked(words)})
    return blocks


def _linked(words: str) -> SafeString:
    """The words with links where an address of ours stands, and line breaks."""
    parts = _own_address().split(words)
    pieces = [
        format_html('<a href="{0}">{0}</a>', part) if place % 2 else conditional_escape(part)
        for place, part in enumerate(parts)
    ]
    return mark_safe("".join(pieces).replace("\n", "<br>"))  # noqa: S308  escaped above


def _own_address() -> re.Pattern[str]:
    """Titles, messages and errors are written by strangers: an address in them must not look like a button of ours."""
    return re.compile(rf"({re.escape(settings.PUBLIC_URL)}(?:/[^\s<>\"']*)?)(?=[\s)]|$)")


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


def _frame_context(context: Mapping[str, Any]) -> dict[str, Any]:
    """The context and what the frame of every mail shows. A name in a subject becomes one line."""
    values: dict[str, Any] = {
        name: _DIRECTION_MARKS.sub("", value) if isinstance(value, str) else value
        for name, value in context.items()
    }
    # A workspace's name may hold line breaks, which a header must not, and which would end the subject.
    names: dict[str, Any] = {
        name: " ".join(str(values[name]).split()) for name in _ONE_LINE if name in values
    }
    return {
        "site_name": settings.SITE_NAME,
        "public_url": settings.PUBLIC_URL,
        "operator_contact": settings.OPERATOR_CONTACT,
        **values,
        **names,
    }
