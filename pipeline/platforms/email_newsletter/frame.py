"""Renders a newsletter's HTML: one frame of 600 pixels for every mail of an outlet, and its stories.

Mail programs support little more than tables and inline styles: css-inline writes the styles below to the
elements, and only the media queries, for narrow and dark screens, stay in a style sheet. The abilities of mail
programs were read at caniemail.com on 2026-11-22.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit, urlunsplit

import css_inline
import nh3

from pipeline.platforms.rules import images_of
from pipeline.render import colour
from pipeline.render.typography.bidi import is_rtl_language
from pipeline.text.body_html import to_html
from pipeline.text.links import is_same_address
from pipeline.text.newsletter_sections import NewsletterSection, is_safe_link, read_more, sections_of
from pipeline.text.plain_text import plain_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.platforms.payload_types import Payload, PayloadAsset

WIDTH: Final = 600
"""The frame's width, in pixels."""
MAX_HTML_BYTES: Final = 100 * 1024
"""The size of a whole mail's HTML: Gmail cuts a mail, with its unsubscribe link, off at about 102 KB."""
ACCENT: Final = "#17594a"
PREHEADER_END: Final = "<!-- preheader -->"
"""The mark before which HTML goes to the very top of the mail, which inboxes show after the subject."""
_FILLER: Final = "&#847;&zwnj;&nbsp;" * 60
"""The invisible characters that pad the preview, so that it doesn't run on into the body."""

_BACKGROUND, _CARD, _TEXT_COLOUR, _MUTED, _LINE = "#eef0ee", "#ffffff", "#1d2320", "#5c6661", "#dfe3e0"
_DARK_BACKGROUND, _DARK_CARD, _DARK_TEXT_COLOUR, _DARK_MUTED, _DARK_LINE = (
    "#101412",
    "#1a201d",
    "#e7ebe8",
    "#a0aaa5",
    "#35403a",
)
_FONT: Final = "-apple-system,BlinkMacSystemFont,'Segoe UI',Roboto,Helvetica,Arial,sans-serif"
_CSS: Final = f"""
.ground {{ background: {_BACKGROUND}; font-family: {_FONT}; }}
.gutter {{ padding: 24px 12px 40px; }}
.mast {{ padding: 0 8px 14px; font: 700 15px/20px {_FONT}; color: {_TEXT_COLOUR}; }}
.bar {{ height: 5px; font-size: 0; line-height: 0; background: ACCENT; border-radius: 8px 8px 0 0; }}
.card {{ padding: 36px 40px 40px; background: {_CARD}; border-radius: 0 0 8px 8px; font: 16px/26px {_FONT}; color: {_TEXT_COLOUR}; }}
.foot {{ padding: 24px 8px 0; font: 13px/20px {_FONT}; color: {_MUTED}; }}
.foot a {{ color: {_MUTED}; text-decoration: underline; }}
h1 {{ margin: 0 0 20px; font: 700 30px/37px {_FONT}; letter-spacing: -0.4px; color: {_TEXT_COLOUR}; }}
h2 {{ margin: 0 0 10px; font: 700 21px/28px {_FONT}; letter-spacing: -0.2px; color: {_TEXT_COLOUR}; }}
h1 a, h2 a {{ color: {_TEXT_COLOUR}; text-decoration: none; }}
h3, h4, h5, h6 {{ margin: 24px 0 8px; font: 700 17px/24px {_FONT}; color: {_TEXT_COLOUR}; }}
p {{ margin: 0 0 16px; font: 16px/26px {_FONT}; }}
.where {{ margin: 0 0 6px; font: 600 13px/18px {_FONT}; color: {_MUTED}; }}
.story {{ padding: 32px 0 0; }}
.next {{ border-top: 1px solid {_LINE}; margin: 16px 0 0; }}
.more {{ margin: 0; font: 600 16px/26px {_FONT}; }}
a {{ color: ACCENT; text-decoration: underline; }}
.more a {{ text-decoration: none; }}
.button {{ margin: 28px 0 0; border-radius: 6px; background: ACCENT; }}
.button a {{ display: inline-block; padding: 13px 22px; font: 600 16px/22px {_FONT}; color: ON_ACCENT; text-decoration: none; }}
ul, ol {{ margin: 0 0 16px; padding: 0 0 0 24px; }}
li {{ margin: 0 0 6px; font: 16px/26px {_FONT}; }}
blockquote {{ margin: 0 0 16px; padding: 0 0 0 18px; border-left: 3px solid ACCENT; color: {_MUTED}; }}
hr {{ border: 0; border-top: 1px solid {_LINE}; margin: 28px 0; }}
img {{ display: block; max-width: 100%; height: auto; border: 0; border-radius: 6px; }}
pre {{ margin: 0 0 16px; padding: 14px 16px; background: {_BACKGROUND}; border-radius: 6px; font: 14px/21px monospace; white-space: pre-wrap; }}
th, td {{ font: 15px/22px {_FONT}; text-align: left; vertical-align: top; }}
"""
_MEDIA_QUERIES: Final = f"""
@media (max-width: 480px) {{
  .gutter {{ padding: 12px 0 32px !important; }}
  .mast, .foot {{ padding-left: 20px !important; padding-right: 20px !important; }}
  .bar {{ border-radius: 0 !important; }}
  .card {{ padding: 28px 20px 32px !important; border-radius: 0 !important; }}
  h1 {{ font-size: 26px !important; line-height: 32px !important; }}
}}
@media (prefers-color-scheme: dark) {{
  .ground {{ background: {_DARK_BACKGROUND} !important; }}
  .card {{ background: {_DARK_CARD} !important; }}
  .mast, .card, .card h1, .card h2, .card h2 a, .card h3 {{ color: {_DARK_TEXT_COLOUR} !important; }}
  .foot, .foot a, .where, .card blockquote {{ color: {_DARK_MUTED} !important; }}
  .card a {{ color: DARK_ACCENT !important; }}
  .card h1 a, .card h2 a {{ color: {_DARK_TEXT_COLOUR} !important; }}
  .card .button {{ background: DARK_ACCENT !important; }}
  .card .button a {{ color: {_DARK_BACKGROUND} !important; }}
  .next, .card hr {{ border-top-color: {_DARK_LINE} !important; }}
  .card pre {{ background: {_DARK_BACKGROUND} !important; }}
  .bar {{ background: DARK_ACCENT !important; }}
}}
"""
_PAGE: Final = """\
<!doctype html>
<html lang="LANGUAGE" dir="DIRECTION"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><meta name="supported-color-schemes" content="light dark">
<title>TITLE</title><style>CSS</style><style data-css-inline="keep">DARK</style></head>
<body class="ground" style="margin:0;padding:0">BEFORE
<table role="presentation" class="ground" width="100%" cellpadding="0" cellspacing="0" border="0"><tr>
<td class="gutter" align="center">
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0" style="max-width:WIDTHpx;margin:0 auto"><tr>
<td class="mast">NAME</td></tr><tr><td class="bar">&nbsp;</td></tr>
<tr><td class="card">INSIDE</td></tr>FOOT</table></td></tr></table></body></html>
"""
_SLOTS: Final = ("TITLE", "BEFORE", "NAME", "INSIDE", "FOOT")
_LINK_SCHEMES: Final = {"http", "https", "mailto"}
_NON_SLUG_CHARACTERS: Final = re.compile(r"[\W_]+")


@dataclass(frozen=True)
class NewsletterStyle:
    """An outlet's accent colour, and the `utm_source` of its links; both may be empty."""

    accent: str = ""
    utm_source: str = ""


@dataclass(frozen=True)
class RenderedIssue:
    """A payload rendered as styled HTML to put into the frame, and as plain text."""

    html: str
    text: str


def render_sections(payload: Payload, style: NewsletterStyle) -> RenderedIssue:
    """Return the payload's sections as HTML and plain text; the HTML shows its pictures first."""
    title = " ".join(payload.title.split())
    tagger = _UtmTagger(style.utm_source, title)
    sections = _sections_of(payload, title)
    pictures = "".join(map(_render_picture, images_of(payload.assets)))
    stories = "".join(
        _render_story(section, payload, tagger, index, len(sections))
        for index, section in enumerate(sections)
    )
    preheader = str(payload.content.get("preheader") or "") if payload.bucket == "newsletter" else ""
    before = f"{_render_preheader(preheader)}{PREHEADER_END}" if preheader else ""
    heading = "" if _first_headline_leads(title, sections) else f"<h1>{escape(title)}</h1>"
    html = inline_styles(f"{heading}{pictures}{stories}", style)
    return RenderedIssue(before + html, _render_plain_text(title, sections, payload, tagger))


def mail_page(
    html: str, *, title: str, name: str, footer: Sequence[str], language: str, style: NewsletterStyle
) -> str:
    """Return the whole mail around the HTML of `render_sections`; `footer` are lines of HTML."""
    before, end_mark, inside = html.rpartition(PREHEADER_END)
    is_rtl = is_rtl_language(language)
    foot = f'<tr><td class="foot">{"<br>".join(footer)}</td></tr>' if footer else ""
    slot_values = {
        "TITLE": escape(title),
        "BEFORE": before if end_mark else "",
        "NAME": escape(name),
        "INSIDE": inside,
        "FOOT": inline_styles(foot, style) if foot else "",
    }
    parts = _cut_page(style.accent, language, is_rtl)
    # The odd parts are the names of slots.
    return "".join(slot_values.get(part, part) if index % 2 else part for index, part in enumerate(parts))


def inline_styles(html: str, style: NewsletterStyle) -> str:
    """Return a fragment of the mail with the frame's styles written to its elements."""
    css, _ = _style_sheets(style.accent)
    if html.startswith("<tr"):
        # The parser drops a <tr> outside of a table.
        table = _inliner().inline_fragment(f"<table>{html}</table>", css)
        return re.sub(r"^<table[^>]*>(?:<tbody>)?|(?:</tbody>)?</table>$", "", table)
    return _inliner().inline_fragment(html, css)


@lru_cache(maxsize=64)
def _cut_page(accent: str, language: str, is_rtl: bool) -> tuple[str, ...]:  # noqa: FBT001  a key of the cache
    """Return the styled frame, cut at its slots: every second part is the name of a slot."""
    css, media_queries = _style_sheets(accent)
    page = (
        _PAGE.replace("LANGUAGE", language or "en")
        .replace("DIRECTION", "rtl" if is_rtl else "ltr")
        .replace("WIDTH", str(WIDTH))
        .replace("CSS", css)
        .replace("DARK", media_queries, 1)
    )
    for slot in _SLOTS:
        # The slots become comments, because the parser moves text out of a table.
        page = page.replace(slot, f"<!--{slot}-->" if slot != "TITLE" else "%TITLE%", 1)
    styled = _inliner().inline(page)
    return tuple(re.split(rf"(?:<!--|%)({'|'.join(_SLOTS)})(?:-->|%)", styled))


@lru_cache(maxsize=64)
def _style_sheets(accent: str) -> tuple[str, str]:
    """Return the style sheet and the media queries, with the accent adjusted to a readable contrast."""
    base = colour.parse(accent) or ACCENT
    light, dark = colour.readable(base, _CARD), colour.readable(base, _DARK_CARD)
    # `ON_ACCENT` is replaced first, because it contains `ACCENT`.
    css = _CSS.replace("ON_ACCENT", _CARD).replace("ACCENT", light)
    return css, _MEDIA_QUERIES.replace("DARK_ACCENT", dark)


@lru_cache(maxsize=1)
def _inliner() -> css_inline.CSSInliner:
    """Return the shared inliner; it loads no style sheets from the network."""
    return css_inline.CSSInliner(keep_style_tags=False, load_remote_stylesheets=False)


class _UtmTagger:
    """Adds campaign parameters to links that have none, so that sites can count readers of the mail."""

    def __init__(self, source: str, title: str) -> None:
        self.source = source
        campaign = _NON_SLUG_CHARACTERS.sub("-", title.casefold()).strip("-")[:60].strip("-")
        self.parameters = (
            f"utm_source={quote(source, safe='')}&utm_medium=email&utm_campaign={quote(campaign)}"
        )

    def tag(self, url: str) -> str:
        """Return the address to link: unchanged without a source, or if it isn't one of the web or has a campaign."""
        try:
            parts = urlsplit(url)
        except ValueError:
            return url
        has_utm = "utm_" in parts.query
        if not self.source or parts.scheme not in {"http", "https"} or not parts.netloc or has_utm:
            return url
        query = f"{parts.query}&{self.parameters}" if parts.query else self.parameters
        return urlunsplit((parts.scheme, parts.netloc, parts.path, query, parts.fragment))

    def tag_html(self, html: str) -> str:
        """Return the HTML sanitized, with the campaign in its links."""

        def tag_link(tag: str, attribute: str, value: str) -> str:
            return self.tag(value) if (tag, attribute) == ("a", "href") else value

        return nh3.clean(html, url_schemes=_LINK_SCHEMES, attribute_filter=tag_link, link_rel=None)


def _sections_of(payload: Payload, title: str) -> tuple[NewsletterSection, ...]:
    """Return a newsletter's sections, or any other text as one story; a single story is linked to the source."""
    if payload.bucket == "newsletter" and payload.body_format == "markdown":
        sections = sections_of(title, payload.body)
    else:
        sections = (NewsletterSection(title, payload.body),)
    if len(sections) != 1 or sections[0].link or not is_safe_link(payload.link):
        return sections
    # A link that the text has already isn't offered twice.
    is_linked = any(
        is_same_address(payload.link, url) for url in re.findall(r"https?://[^\s<>\"')\]]+", payload.body)
    )
    section = sections[0]
    return (section if is_linked else NewsletterSection(section.headline, section.text, payload.link),)


def _first_headline_leads(title: str, sections: Sequence[NewsletterSection]) -> bool:
    """Return whether the title of several stories begins with the first headline, which then replaces it."""
    return len(sections) > 1 and bool(sections[0].headline) and title.startswith(sections[0].headline)


def _render_picture(asset: PayloadAsset) -> str:
    """Return a picture's paragraph."""
    # Outlook on Windows obeys only the attribute, not the style.
    width = min(asset.width or WIDTH - 80, WIDTH - 80)
    return f'<p><img src="{escape(asset.url)}" alt="{escape(asset.alt_text)}" width="{width}"></p>'


def _render_story(
    section: NewsletterSection, payload: Payload, tagger: _UtmTagger, index: int, stories: int
) -> str:
    """Return one section as HTML; a single story gets a button, several get headlines with links."""
    body = tagger.tag_html(to_html(section.text, payload.body_format))
    link = escape(tagger.tag(section.link))
    label = escape(read_more(payload.language))
    if stories == 1:
        button = (
            '<table role="presentation" cellpadding="0" cellspacing="0" border="0"><tr>'
            f'<td class="button"><a href="{link}">{label}</a></td></tr></table>'
        )
        return body + (button if section.link else "")
    host = escape(_host_name(section.link))
    headline = escape(section.headline)
    linked = f'<a href="{link}">{headline}</a>' if section.link else headline
    is_lead = not index and payload.title.startswith(section.headline)
    heading_tag = "h1" if is_lead else "h2"
    arrow = "\u2190" if is_rtl_language(payload.language) else "\u2192"
    return (
        ('<div class="next">&nbsp;</div>' if index else "")
        + (f'<p class="where">{host}</p>' if host else "")
        + (f"<{heading_tag}>{linked}</{heading_tag}>" if headline else "")
        + body
        + (f'<p class="more"><a href="{link}">{label}&nbsp;{arrow}</a></p>' if section.link else "")
    )


def _render_plain_text(
    title: str, sections: Sequence[NewsletterSection], payload: Payload, tagger: _UtmTagger
) -> str:
    """Return the whole issue as plain text."""
    blocks = [] if _first_headline_leads(title, sections) else [f"{title}\n{'=' * min(len(title), 72)}"]
    for section in sections:
        if len(sections) > 1 and section.headline:
            blocks.append(f"{section.headline}\n{'-' * min(len(section.headline), 72)}")
        text = (
            plain_text(section.text, payload.body_format) if payload.body_format != "text" else section.text
        )
        blocks.append(text.strip())
        if section.link:
            blocks.append(f"{read_more(payload.language)}: {tagger.tag(section.link)}")
    return "\n\n".join(block for block in blocks if block)


def _render_preheader(preheader: str) -> str:
    """Return the preheader as an element that only the inbox preview shows."""
    style = "display:none;font-size:1px;line-height:1px;max-height:0;max-width:0;opacity:0;overflow:hidden;mso-hide:all"
    return f'<div style="{style}">{escape(preheader)}{_FILLER}</div>'


def _host_name(url: str) -> str:
    """Return an address's host without "www.", or an empty string if it has none."""
    try:
        return (urlsplit(url).hostname or "").removeprefix("www.")
    except ValueError:
        return ""
