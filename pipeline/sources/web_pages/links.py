"""Which links of a page or a sitemap look like articles."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.sources.web_pages.text import Link


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# First or only parts of a path under which sites keep what is no article.
_NEVER: Final = _words(
    "about account accounts agb archive archives author authors autor cart categories category checkout contact "
    "cookies customer datenschutz faq feed feeds help imprint impressum jobs kategorie kontakt legal login logout "
    "page pages password-reset policies privacy profile register rss schlagwort search settings shop sign-in sign-up "
    "signin signup sitemap sitemaps subscribe tag tags team terms topic topics ueber-uns user users "
    "wp-admin wp-content wp-includes wp-json wp-login.php"
)
_FILES: Final = re.compile(
    r"(?i)\.(?:7z|apk|avi|bz2|css|csv|dmg|docx?|epub|exe|gif|gz|ico|ics|jpe?g|js|json|m4a|m4v|mov|mp3|mp4|ogg|pdf|png|"
    r"pptx?|rar|rss|svg|tar|txt|wav|webm|webp|xlsx?|xml|zip)$"
)
_DATE: Final = re.compile(r"/(?:19|20)[0-9]{2}[/-](?:0?[1-9]|1[0-2])(?:[/-]|$)")
_NUMBER: Final = re.compile(r"(?:^|[-_/.])[0-9]{4,}(?:[-_/.]|$)")
_SITEMAPS_OF_LISTS: Final = re.compile(
    r"(?i)(?:taxonom|categor|tags?\b|post_tag|author|users?\b|image|video|product)"
)

ENOUGH: Final = 3
"""Links that look like articles from which a page counts as a list."""
SCORE: Final = 3


def find_articles(links: Sequence[Link], *, page: str) -> list[Link]:
    """The links to what looks like an article of the same host, in the order of the page."""
    host = _bare_host(page)
    own = _without_slash(page)
    return [
        link
        for link in links
        if link.place != "nav"
        and _bare_host(link.url) == host
        and _without_slash(link.url) != own
        and not is_never_article(link.url)
        and _score(link) >= SCORE
    ]


def is_never_article(url: str) -> bool:
    """Whether the address alone says that it is a list, a form, a file or the front page."""
    path = urlsplit(url).path
    parts = [part for part in path.lower().split("/") if part]
    if not parts:
        # Sites without readable addresses tell their articles apart by a number in the query.
        return re.search(r"(?:^|&)(?:p|id|post|article)=[0-9]+", urlsplit(url).query) is None
    is_paged = re.search(r"/page/[0-9]+/?$", path) is not None
    return parts[0] in _NEVER or parts[-1] in _NEVER or is_paged or _FILES.search(path) is not None


def is_sitemap_of_lists(url: str) -> bool:
    """Whether a sitemap's name says that it holds categories, authors or files instead of articles."""
    return _SITEMAPS_OF_LISTS.search(urlsplit(url).path.rpartition("/")[2]) is not None


def is_below(url: str, page: str) -> bool:
    """Whether an address lies on the page's host, in its folder or under it."""
    folder = urlsplit(page).path.rpartition("/")[0] + "/"
    return _bare_host(url) == _bare_host(page) and (urlsplit(url).path or "/").startswith(folder)


def _score(link: Link) -> int:
    parts = urlsplit(link.url)
    name = parts.path.rstrip("/").rpartition("/")[2]
    words = [word for word in re.split(r"[-_.+]|%20", name) if word]
    return (
        (2 if link.place == "heading" else 0)
        + (1 if link.place == "article" else 0)
        + (2 if _DATE.search(parts.path) else 0)
        + (2 if len(words) >= 3 else 0)
        + (1 if _NUMBER.search(parts.path) or re.search(r"[0-9]", parts.query) else 0)
        + (1 if len(link.text.split()) >= 4 else 0)
    )


def _bare_host(url: str) -> str:
    return urlsplit(url).netloc.lower().removeprefix("www.")


def _without_slash(url: str) -> str:
    return url.partition("#")[0].rstrip("/")
