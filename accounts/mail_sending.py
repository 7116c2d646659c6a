"""Renders mails to people in one frame, as plain text and HTML, and sends them after the commit."""

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

_CODE_LINE: Final = re.compile(r"[A-Z0-9]{3,8}(?:-[A-Z0-9]{3,8})?")
"""Matches a line that is only a code, such as `7KQ3-M2XD`."""
_ONE_LINE_NAMES: Final = ("workspace", "title", "by")
"""Names of context values that may stand in a subject, and so must not have line breaks."""
_DIRECTION_MARKS: Final = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Matches characters that turn the text's direction, and so could make an address of ours read as another."""
_UNDELIVERING_BACKENDS: Final = ("filebased.EmailBackend", "console.EmailBackend", "dummy.EmailBackend")
_inliner: Final = css_inline.CSSInliner(keep_style_tags=True)


def is_delivered() -> bool:
    """Return whether mails reach people here; they don't if they are files, lines of a log, or dropped."""
    return not settings.EMAIL_BACKEND.endswith(_UNDELIVERING_BACKENDS)


def send(name: str, to: Sequence[str], context: Mapping[str, Any]) -> None:
    """Render `templates/mail/<name>.txt` and send it to each address separately, after the commit.

    The template's first paragraph is the subject. The caller's change stands whether the relay works or not:
    a mail that can't be sent is logged.
    """
    for address in to:
        message = render(name, address, context)
        transaction.on_commit(lambda message=message: message.send(), robust=True)  # type: ignore[misc]


def render(name: str, to: str, context: Mapping[str, Any]) -> EmailMessage:
    """Return the mail of `templates/mail/<name>.txt` to one address, as plain text and HTML."""
    text = render_to_string(f"mail/{name}.txt", _frame_context(context))
    subject, _, body = text.strip().partition("\n\n")
    plain = EmailMultiAlternatives(" ".join(subject.split()), body.strip() + "\n", None, [to])
    return add_html(plain)


def add_html(message: EmailMessage) -> EmailMessage:
    """Return a copy of the message with its text as HTML too."""
    framed_message = EmailMultiAlternatives(
        message.subject,
        str(message.body).strip() + "\n",
        message.from_email,
        message.to,
        headers={"Auto-Submitted": "auto-generated", **message.extra_headers},
    )
    html = render_to_string(
        "mail/base.html",
        _frame_context({"subject": message.subject, "paragraphs": _to_blocks(str(message.body))}),
    )
    framed_message.attach_alternative(_inliner.inline(html), "text/html")
    return framed_message


def _to_blocks(text: str) -> list[dict[str, Any]]:
    """Return the text's paragraphs as blocks of a `kind`.

    A paragraph that is an address of ours becomes a `button`, one that is a code a `code`, a line with a list
    below it a `list` of two columns, and any other a `text` in HTML.
    """
    blocks: list[dict[str, Any]] = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        paragraph_text = paragraph.strip()
        if _own_address_pattern().fullmatch(paragraph_text):
            blocks.append({"kind": "button", "text": paragraph_text})
        elif _CODE_LINE.fullmatch(paragraph_text):
            blocks.append({"kind": "code", "text": paragraph_text})
        elif (list_block := _to_list_block(paragraph_text)) is not None:
            blocks.append(list_block)
        else:
            blocks.append({"kind": "text", "text": _link_own_addresses(paragraph_text)})
    return blocks


def _link_own_addresses(text: str) -> SafeString:
    """Return the text as HTML with links for addresses of ours, and line breaks."""
    parts = _own_address_pattern().split(text)
    html_parts = [
        format_html('<a href="{0}">{0}</a>', part) if index % 2 else conditional_escape(part)
        for index, part in enumerate(parts)
    ]
    return mark_safe("".join(html_parts).replace("\n", "<br>"))  # noqa: S308  escaped above


def _own_address_pattern() -> re.Pattern[str]:
    """Return a pattern of addresses of this service, which ends before white space or `)`.

    Only those become links, because strangers write titles, messages and errors.
    """
    return re.compile(rf"({re.escape(settings.PUBLIC_URL)}(?:/[^\s<>\"']*)?)(?=[\s)]|$)")


def _to_list_block(text: str) -> dict[str, Any] | None:
    """Return a table block of a title and the lines `- name: value` below it, or `None` for another text."""
    title, *lines = text.split("\n")
    if not lines or title.startswith("- ") or not all(line.startswith("- ") for line in lines):
        return None
    rows = [line.removeprefix("- ").rpartition(": ") for line in lines]
    return {
        "kind": "list",
        "title": title,
        "rows": [(name or value, value if name else "") for name, _, value in rows],
    }


def _frame_context(context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the context with the frame's values, without marks of direction, and names in one line."""
    values: dict[str, Any] = {
        name: _DIRECTION_MARKS.sub("", value) if isinstance(value, str) else value
        for name, value in context.items()
    }
    # A workspace's name may hold line breaks, which a header must not, and which would end the subject.
    one_line_values: dict[str, Any] = {
        name: " ".join(str(values[name]).split()) for name in _ONE_LINE_NAMES if name in values
    }
    return {
        "site_name": settings.SITE_NAME,
        "public_url": settings.PUBLIC_URL,
        "operator_contact": settings.OPERATOR_CONTACT,
        **values,
        **one_line_values,
    }
