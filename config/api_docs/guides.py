"""Shows guides and the documents of the API as pages, publicly if the operator allows it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe
from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest
    from django.utils.functional import _StrPromise
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token
    from markdown_it.utils import EnvType, OptionsDict

DOCS: Final = settings.BASE_DIR / "docs"
_EXAMPLE_HOST: Final = "https://pipeline.example"
"""The address of the service in the documents, which pages replace by this service's."""


@dataclass(frozen=True)
class Guide:
    """A document that has a page under `/docs/<slug>`; `file` is relative to the folder `docs`."""

    slug: str
    file: str
    title: _StrPromise
    summary: _StrPromise


GUIDES: Final = (
    Guide(
        "first-call",
        "guides/first-call.md",
        gettext_lazy("Your first call"),
        gettext_lazy("From a key to a published item in five calls."),
    ),
    Guide("signing", "guides/signing.md", gettext_lazy("Signing"), gettext_lazy("Verify webhooks.")),
    Guide(
        "brand-lane",
        "guides/brand-lane.md",
        gettext_lazy("The brand lane"),
        gettext_lazy("Posts without a source, from a persona and its topics."),
    ),
    Guide("idempotency", "guides/idempotency.md", gettext_lazy("Idempotency"), gettext_lazy("Retry safely.")),
    Guide(
        "pagination",
        "guides/pagination.md",
        gettext_lazy("Pagination"),
        gettext_lazy("Read long lists, page by page."),
    ),
    Guide(
        "limits",
        "guides/limits.md",
        gettext_lazy("Limits"),
        gettext_lazy("Requests, credits, sizes, and errors."),
    ),
    Guide(
        "webhook-sources",
        "guides/webhook-sources.md",
        gettext_lazy("Webhook sources"),
        gettext_lazy("Receive from other services."),
    ),
    Guide("events", "guides/events.md", gettext_lazy("Events"), gettext_lazy("Receive or read events.")),
    Guide(
        "video-sources",
        "guides/video-sources.md",
        gettext_lazy("Videos as sources"),
        gettext_lazy("YouTube and TikTok: what they give, and what they don't."),
    ),
)
API_DOCUMENTS: Final = (
    Guide("api", "api/README.md", gettext_lazy("The API"), gettext_lazy("Tokens, errors, limits and lists.")),
    Guide(
        "api/workspace",
        "api/workspace.md",
        gettext_lazy("Workspace"),
        gettext_lazy("Credits, engines and their prices."),
    ),
    Guide("api/sources", "api/sources.md", gettext_lazy("Sources"), gettext_lazy("Import content.")),
    Guide(
        "api/inbound-deliveries",
        "api/inbound-deliveries.md",
        gettext_lazy("Inbound deliveries"),
        gettext_lazy("Requests to a webhook source."),
    ),
    Guide(
        "api/uploads",
        "api/uploads.md",
        gettext_lazy("Uploads"),
        gettext_lazy("Pictures, sound, video, text."),
    ),
    Guide(
        "api/raw-items",
        "api/raw-items.md",
        gettext_lazy("Raw items"),
        gettext_lazy("Push content and follow it."),
    ),
    Guide(
        "api/generated-items",
        "api/generated-items.md",
        gettext_lazy("Generated items"),
        gettext_lazy("Read, edit and review items."),
    ),
    Guide(
        "api/publishing",
        "api/publishing.md",
        gettext_lazy("Publishing"),
        gettext_lazy("Publish and check the outcome."),
    ),
    Guide(
        "api/schedule",
        "api/schedule.md",
        gettext_lazy("Schedule"),
        gettext_lazy("Queues, week plans, series, recurrences."),
    ),
    Guide("api/outlets", "api/outlets.md", gettext_lazy("Outlets"), gettext_lazy("Accounts on platforms.")),
    Guide(
        "api/personas",
        "api/personas.md",
        gettext_lazy("Personas and topics"),
        gettext_lazy("Voice and topics."),
    ),
    Guide("api/analytics", "api/analytics.md", gettext_lazy("Analytics"), gettext_lazy("Metrics and gaps.")),
    Guide(
        "api/events", "api/events.md", gettext_lazy("Event feed"), gettext_lazy("All events, without gaps.")
    ),
    Guide(
        "webhooks",
        "webhooks.md",
        gettext_lazy("Webhooks"),
        gettext_lazy("Events, signatures, retries, states."),
    ),
    Guide(
        "all-limits", "limits.md", gettext_lazy("All limits"), gettext_lazy("Every number, with its reason.")
    ),
)
_BY_SLUG: Final = {guide.slug: guide for guide in (*GUIDES, *API_DOCUMENTS)}
_BY_FILE: Final = {guide.file: guide for guide in _BY_SLUG.values()}


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """List the guides and the documents of the API."""
    refuse_if_closed(request)
    return render(request, "docs/index.html", {"guides": GUIDES, "in_words": API_DOCUMENTS})


@require_safe
def guide(request: HttpRequest, slug: str) -> HttpResponse:
    """Show one document. Raises `Http404` for an unknown slug."""
    refuse_if_closed(request)
    document = _BY_SLUG.get(slug)
    if document is None:
        raise Http404
    html, headings = render_document(document.file, settings.PUBLIC_URL)
    return render(
        request,
        "docs/guide.html",
        {"guide": document, "guides": GUIDES, "in_words": API_DOCUMENTS, "html": html, "headings": headings},
    )


@require_safe
def example(request: HttpRequest, name: str) -> HttpResponse:
    """Answer an example body that a document links to. Raises `Http404` if there is none of this name."""
    refuse_if_closed(request)
    path = DOCS / "examples" / f"{name}.json"
    if not path.is_file():
        raise Http404
    return HttpResponse(path.read_bytes(), content_type="application/json")


def refuse_if_closed(request: HttpRequest) -> None:
    """Raise `Http404` for people who aren't logged in if the operator has closed the documents."""
    if not settings.DOCS_ARE_PUBLIC and not request.user.is_authenticated:
        raise Http404


@cache
def render_document(file: str, public_url: str) -> tuple[SafeString, tuple[tuple[str, str], ...]]:
    """Return a document's HTML without its title, and the anchor and text of each second-level heading."""
    text = (DOCS / file).read_text().replace(_EXAMPLE_HOST, public_url)
    # The page has a heading with the title already; comments are marks for the tests.
    text = re.sub(r"^<!-- .*? -->\n", "", text.partition("\n")[2], flags=re.MULTILINE)
    tokens = _markdown.parse(text)
    headings = tuple(
        (_anchor(tokens[position + 1].content), tokens[position + 1].content.replace("`", ""))
        for position, token in enumerate(tokens)
        if token.type == "heading_open" and token.tag == "h2"
    )
    html = _markdown.renderer.render(tokens, _markdown.options, {"file": file})
    return mark_safe(html), headings  # noqa: S308  from our own documents, HTML in them is off


def _anchor(heading: str) -> str:
    """Return the anchor that GitHub gives a heading, which the links inside the documents use."""
    return re.sub(r"[^\w\- ]", "", heading.lower().replace("`", "")).replace(" ", "-")


def _heading_open(
    _renderer: RendererHTML, tokens: Sequence[Token], number: int, _options: OptionsDict, _env: EnvType
) -> str:
    token = tokens[number]
    return f'<{token.tag} id="{escape(_anchor(tokens[number + 1].content))}">'


def _fence(
    _renderer: RendererHTML, tokens: Sequence[Token], number: int, _options: OptionsDict, _env: EnvType
) -> str:
    """Render a block of code with a button that copies it."""
    code = f"code-{number}"
    return format_html(
        '<div class="copybox"><pre tabindex="0" role="group" aria-label="{}"><code id="{}">{}</code></pre>'
        '<button class="button small" type="button" data-copy="{}" data-copied="{}">{}</button></div>',
        tokens[number].info or _("Example"),
        code,
        tokens[number].content.rstrip("\n"),
        code,
        _("Copied"),
        _("Copy"),
    )


def _table_open(
    _renderer: RendererHTML, _tokens: Sequence[Token], _number: int, _options: OptionsDict, _env: EnvType
) -> str:
    return format_html('<div class="scroll" tabindex="0" role="group" aria-label="{}"><table>', _("Table"))


def _table_close(
    _renderer: RendererHTML, _tokens: Sequence[Token], _number: int, _options: OptionsDict, _env: EnvType
) -> str:
    return "</table></div>"


def _link_open(
    renderer: RendererHTML, tokens: Sequence[Token], number: int, options: OptionsDict, env: EnvType
) -> str:
    token = tokens[number]
    token.attrSet("href", _page_link(str(token.attrGet("href") or ""), str(env["file"])))
    return renderer.renderToken(tokens, number, options, env)


def _page_link(target: str, file: str) -> str:
    """Return the page's link for a target in a document; absolute links and anchors stay as they are."""
    path, mark, anchor = target.partition("#")
    if not path or path.startswith(("/", "http:", "https:", "mailto:")):
        return target
    parts: list[str] = []
    for part in (*Path(file).parent.parts, *path.split("/")):
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    joined_path = "/".join(parts)
    if joined_path in _BY_FILE:
        return f"/docs/{_BY_FILE[joined_path].slug}{mark}{anchor}"
    if joined_path.startswith("examples/"):
        return f"/docs/{joined_path}"
    # Documents for operators have no page.
    return "/docs"


def _create_markdown() -> Any:
    markdown = MarkdownIt("commonmark", {"html": False}).enable(["table"])
    markdown.add_render_rule("heading_open", _heading_open)
    markdown.add_render_rule("fence", _fence)
    markdown.add_render_rule("link_open", _link_open)
    markdown.add_render_rule("table_open", _table_open)
    markdown.add_render_rule("table_close", _table_close)
    return markdown


_markdown: Final = _create_markdown()
