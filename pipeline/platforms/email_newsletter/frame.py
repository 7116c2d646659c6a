"""The look of a newsletter: one frame of 600 pixels for every mail of an outlet, and the stories inside it.

Mail programs know tables and styles at the elements, little else: the styles below are written to the elements by
css-inline, and only what a dark screen changes stays in a style sheet. What mail programs can do was read at
caniemail.com on 2026-11-22.
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
HTML_MOST: Final = 100 * 1024
"""Bytes. Gmail cuts a mail off at about 102 KB, and its unsubscribe link with it."""
ACCENT: Final = "#17594a"
PREHEADER_END: Final = "<!-- preheader -->"
"""What stands before it goes to the very top of the mail, where inboxes read on after the subject."""
_FILLER: Final = "&#847;&zwnj;&nbsp;" * 60
"""Keeps inboxes from going on with the words of the mail."""

_GROUND, _CARD, _WORDS, _FAINT, _LINE = "#eef0ee", "#ffffff", "#1d2320", "#5c6661", "#dfe3e0"
_DARK_GROUND, _DARK_CARD, _DARK_WORDS, _DARK_FAINT, _DARK_LINE = (
    "#101412",
    "#1a201d",
    "#e7ebe8",
    "#a0aaa5",
    "#35403a",
)
_FONT: Final = "-apple-system,BlinkMacSystemFont,'Segoe UI',Roboto,Helvetica,Arial,sans-serif"
_CSS: Final = f"""
.ground {{ background: {_GROUND}; font-family: {_FONT}; }}
.gutter {{ padding: 24px 12px 40px; }}
.mast {{ padding: 0 8px 14px; font: 700 15px/20px {_FONT}; color: {_WORDS}; }}
.bar {{ height: 5px; font-size: 0; line-height: 0; background: ACCENT; border-radius: 8px 8px 0 0; }}
.card {{ padding: 36px 40px 40px; background: {_CARD}; border-radius: 0 0 8px 8px; font: 16px/26px {_FONT}; color: {_WORDS}; }}
.foot {{ padding: 24px 8px 0; font: 13px/20px {_FONT}; color: {_FAINT}; }}
.foot a {{ color: {_FAINT}; text-decoration: underline; }}
h1 {{ margin: 0 0 20px; font: 700 30px/37px {_FONT}; letter-spacing: -0.4px; color: {_WORDS}; }}
h2 {{ margin: 0 0 10px; font: 700 21px/28px {_FONT}; letter-spacing: -0.2px; color: {_WORDS}; }}
h1 a, h2 a {{ color: {_WORDS}; text-decoration: none; }}
h3, h4, h5, h6 {{ margin: 24px 0 8px; font: 700 17px/24px {_FONT}; color: {_WORDS}; }}
p {{ margin: 0 0 16px; font: 16px/26px {_FONT}; }}
.where {{ margin: 0 0 6px; font: 600 13px/18px {_FONT}; color: {_FAINT}; }}
.story {{ padding: 32px 0 0; }}
.next {{ border-top: 1px solid {_LINE}; margin: 16px 0 0; }}
.more {{ margin: 0; font: 600 16px/26px {_FONT}; }}
a {{ color: ACCENT; text-decoration: underline; }}
.more a {{ text-decoration: none; }}
.button {{ margin: 28px 0 0; border-radius: 6px; background: ACCENT; }}
.button a {{ display: inline-block; padding: 13px 22px; font: 600 16px/22px {_FONT}; color: ON_ACCENT; text-decoration: none; }}
ul, ol {{ margin: 0 0 16px; padding: 0 0 0 24px; }}
li {{ margin: 0 0 6px; font: 16px/26px {_FONT}; }}
blockquote {{ margin: 0 0 16px; padding: 0 0 0 18px; border-left: 3px solid ACCENT; color: {_FAINT}; }}
hr {{ border: 0; border-top: 1px solid {_LINE}; margin: 28px 0; }}
img {{ display: block; max-width: 100%; height: auto; border: 0; border-radius: 6px; }}
pre {{ margin: 0 0 16px; padding: 14px 16px; background: {_GROUND}; border-radius: 6px; font: 14px/21px monospace; white-space: pre-wrap; }}
th, td {{ font: 15px/22px {_FONT}; text-align: left; vertical-align: top; }}
"""
_DARK: Final = f"""
@media (max-width: 480px) {{
  .gutter {{ padding: 12px 0 32px !important; }}
  .mast, .foot {{ padding-left: 20px !important; padding-right: 20px !important; }}
  .bar {{ border-radius: 0 !important; }}
  .card {{ padding: 28px 20px 32px !important; border-radius: 0 !important; }}
  h1 {{ font-size: 26px !important; line-height: 32px !important; }}
}}
@media (prefers-color-scheme: dark) {{
  .ground {{ background: {_DARK_GROUND} !important; }}
  .card {{ background: {_DARK_CARD} !important; }}
  .mast, .card, .card h1, .card h2, .card h2 a, .card h3 {{ color: {_DARK_WORDS} !important; }}
  .foot, .foot a, .where, .card blockquote {{ color: {_DARK_FAINT} !important; }}
  .card a {{ color: DARK_ACCENT !important; }}
  .card h1 a, .card h2 a {{ color: {_DARK_WORDS} !important; }}
  .card .button {{ background: DARK_ACCENT !important; }}
  .card .button a {{ color: {_DARK_GROUND} !important; }}
  .next, .card hr {{ border-top-color: {_DARK_LINE} !important; }}
  .card pre {{ background: {_DARK_GROUND} !important; }}
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
_SCHEMES: Final = {"http", "https", "mailto"}
_NOT_SLUG: Final = re.compile(r"[\W_]+")


@dataclass(frozen=True)
class NewsletterStyle:
    """What an outlet chooses: its colour, and the source that its links are counted under; both may be empty."""

    accent: str = ""
    utm_source: str = ""


@dataclass(frozen=True)
class RenderedIssue:
    """The words of a payload in both forms: `html` is the inside of the frame, styled; `text` the same as plain text."""

    html: str
    text: str


def render_sections(payload: Payload, look: NewsletterStyle) -> RenderedIssue:
    """The payload's sections, its pictures first, in both forms."""
    title = " ".join(payload.title.split())
    tag = _Tag(look.utm_source, title)
    sections = _sections(payload, title)
    pictures = "".join(map(_picture, images_of(payload.assets)))
    stories = "".join(_story(one, payload, tag, place, len(sections)) for place, one in enumerate(sections))
    preheader = str(payload.content.get("preheader") or "") if payload.bucket == "newsletter" else ""
    before = f"{_hidden(preheader)}{PREHEADER_END}" if preheader else ""
    heading = "" if _is_led(title, sections) else f"<h1>{escape(title)}</h1>"
    html = inline_styles(f"{heading}{pictures}{stories}", look)
    return RenderedIssue(before + html, _text(title, sections, payload, tag))


def mail_page(
    html: str, *, title: str, name: str, footer: Sequence[str], language: str, look: NewsletterStyle
) -> str:
    """The whole mail around `html`. `footer` are lines of HTML."""
    before, mark, inside = html.rpartition(PREHEADER_END)
    is_rtl = is_rtl_language(language)
    foot = f'<tr><td class="foot">{"<br>".join(footer)}</td></tr>' if footer else ""
    given = {
        "TITLE": escape(title),
        "BEFORE": before if mark else "",
        "NAME": escape(name),
        "INSIDE": inside,
        "FOOT": inline_styles(foot, look) if foot else "",
    }
    parts = _page(look.accent, language, is_rtl)
    return "".join(given.get(part, part) if place % 2 else part for place, part in enumerate(parts))


def inline_styles(html: str, look: NewsletterStyle) -> str:
    """A piece of the mail with the frame's styles written to its elements."""
    css, _ = _styles(look.accent)
    if html.startswith("<tr"):
        # A row outside of a table is none.
        table = _inliner().inline_fragment(f"<table>{html}</table>", css)
        return re.sub(r"^<table[^>]*>(?:<tbody>)?|(?:</tbody>)?</table>$", "", table)
    return _inliner().inline_fragment(html, css)


@lru_cache(maxsize=64)
def _page(accent: str, language: str, is_rtl: bool) -> tuple[str, ...]:  # noqa: FBT001  a key of the cache
    """The frame, cut at its slots: each second part names the slot."""
    css, dark = _styles(accent)
    whole = (
        _PAGE.replace("LANGUAGE", language or "en")
        .replace("DIRECTION", "rtl" if is_rtl else "ltr")
        .replace("WIDTH", str(WIDTH))
        .replace("CSS", css)
        .replace("DARK", dark, 1)
    )
    for slot in _SLOTS:
        # Comments stay where a table would throw out words.
        whole = whole.replace(slot, f"<!--{slot}-->" if slot != "TITLE" else "%TITLE%", 1)
    styled = _inliner().inline(whole)
    return tuple(re.split(rf"(?:<!--|%)({'|'.join(_SLOTS)})(?:-->|%)", styled))


@lru_cache(maxsize=64)
def _styles(accent: str) -> tuple[str, str]:
    """For light screens and for dark ones, in the outlet's colour as far as it can be read there."""
    own = colour.parse(accent) or ACCENT
    light, dark = colour.readable(own, _CARD), colour.readable(own, _DARK_CARD)
    css = _CSS.replace("ON_ACCENT", _CARD).replace("ACCENT", light)
    return css, _DARK.replace("DARK_ACCENT", dark)


@lru_cache(maxsize=1)
def _inliner() -> css_inline.CSSInliner:
    return css_inline.CSSInliner(keep_style_tags=False, load_remote_stylesheets=False)


class _Tag:
    """Puts the campaign into links that have none: their sites' own counts then tell who came by the mail."""

    def __init__(self, source: str, title: str) -> None:
        self.source = source
        campaign = _NOT_SLUG.sub("-", title.casefold()).strip("-")[:60].strip("-")
        self.added = f"utm_source={quote(source, safe='')}&utm_medium=email&utm_campaign={quote(campaign)}"

    def __call__(self, url: str) -> str:
        try:
            parts = urlsplit(url)
        except ValueError:
            return url
        is_counted = "utm_" in parts.query
        if not self.source or parts.scheme not in {"http", "https"} or not parts.netloc or is_counted:
            return url
        query = f"{parts.query}&{self.added}" if parts.query else self.added
        return urlunsplit((parts.scheme, parts.netloc, parts.path, query, parts.fragment))

    def in_html(self, html: str) -> str:
        def filtered(tag: str, attribute: str, value: str) -> str:
            return self(value) if (tag, attribute) == ("a", "href") else value

        return nh3.clean(html, url_schemes=_SCHEMES, attribute_filter=filtered, link_rel=None)


def _sections(payload: Payload, title: str) -> tuple[NewsletterSection, ...]:
    """Those of a newsletter; any other words are one story, whose link is the source's."""
    if payload.bucket == "newsletter" and payload.body_format == "markdown":
        sections = sections_of(title, payload.body)
    else:
        sections = (NewsletterSection(title, payload.body),)
    if len(sections) != 1 or sections[0].link or not is_safe_link(payload.link):
        return sections
    # A link that the words hold already isn't offered twice.
    is_said = any(
        is_same_address(payload.link, one) for one in re.findall(r"https?://[^\s<>\"')\]]+", payload.body)
    )
    one = sections[0]
    return (one if is_said else NewsletterSection(one.headline, one.text, payload.link),)


def _is_led(title: str, sections: Sequence[NewsletterSection]) -> bool:
    """Whether the title of several stories only begins with the headline of the first, which then stands for it."""
    return len(sections) > 1 and bool(sections[0].headline) and title.startswith(sections[0].headline)


def _picture(asset: PayloadAsset) -> str:
    # Outlook on Windows heeds the attribute alone.
    width = min(asset.width or WIDTH - 80, WIDTH - 80)
    return f'<p><img src="{escape(asset.url)}" alt="{escape(asset.alt_text)}" width="{width}"></p>'


def _story(section: NewsletterSection, payload: Payload, tag: _Tag, place: int, stories: int) -> str:
    form = (
        "markdown"
        if payload.bucket == "newsletter" and payload.body_format == "markdown"
        else payload.body_format
    )
    words = tag.in_html(to_html(section.text, form))
    link = escape(tag(section.link))
    label = escape(read_more(payload.language))
    if stories == 1:
        button = (
            '<table role="presentation" cellpadding="0" cellspacing="0" border="0"><tr>'
            f'<td class="button"><a href="{link}">{label}</a></td></tr></table>'
        )
        return words + (button if section.link else "")
    host = escape(_host(section.link))
    headline = escape(section.headline)
    linked = f'<a href="{link}">{headline}</a>' if section.link else headline
    is_lead = not place and payload.title.startswith(section.headline)
    rank = "h1" if is_lead else "h2"
    arrow = "\u2190" if is_rtl_language(payload.language) else "\u2192"
    return (
        ('<div class="next">&nbsp;</div>' if place else "")
        + (f'<p class="where">{host}</p>' if host else "")
        + (f"<{rank}>{linked}</{rank}>" if headline else "")
        + words
        + (f'<p class="more"><a href="{link}">{label}&nbsp;{arrow}</a></p>' if section.link else "")
    )


def _text(title: str, sections: Sequence[NewsletterSection], payload: Payload, tag: _Tag) -> str:
    blocks = [] if _is_led(title, sections) else [f"{title}\n{'=' * min(len(title), 72)}"]
    for one in sections:
        if len(sections) > 1 and one.headline:
            blocks.append(f"{one.headline}\n{'-' * min(len(one.headline), 72)}")
        words = plain_text(one.text, payload.body_format) if payload.body_format != "text" else one.text
        blocks.append(words.strip())
        if one.link:
            blocks.append(f"{read_more(payload.language)}: {tag(one.link)}")
    return "\n\n".join(block for block in blocks if block)


def _hidden(preheader: str) -> str:
    style = "display:none;font-size:1px;line-height:1px;max-height:0;max-width:0;opacity:0;overflow:hidden;mso-hide:all"
    return f'<div style="{style}">{escape(preheader)}{_FILLER}</div>'


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").removeprefix("www.")
    except ValueError:
        return ""
