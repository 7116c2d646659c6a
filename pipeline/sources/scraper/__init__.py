"""Reads web pages: one article, a page that lists articles, or a sitemap."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, Final

from cssselect import ExpressionError, HTMLTranslator, SelectorError

from pipeline.plugins import Evidence, Refused
from pipeline.sources.base import FETCH_SECONDS, Fetch, Source, host_in
from pipeline.sources.config_fields import BATCH_HOURS, Count, Flag, Group, Text, WebAddress, clean
from pipeline.sources.web_pages.page_reader import PageReader
from pipeline.sources.web_pages.polite_fetch import PoliteFetcher
from pipeline.sources.web_pages.poll import PagePoll, Settings
from pipeline.sources.web_pages.poll_state import PagePollState
from pipeline.sources.web_pages.render import RENDER_SECONDS, Renderer, find_browser, missing_browser
from pipeline.sources.web_pages.robots import Robots, product_token

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from cssselect.parser import Pseudo
    from cssselect.xpath import XPathExpr

    from config.core.http_client import Client
    from pipeline.plugins import Unavailability

MAX_PAGES: Final = 100
DEFAULT_PAGES: Final = 20

SETTINGS: Final = Group(
    "the settings of the page",
    {
        "url": WebAddress("the address of the page that lists the articles"),
        "item_selector": Text("a CSS selector that matches one article's link or block", max_length=500),
        "sitemap": WebAddress("the address of the site's sitemap"),
        "max_pages": Count("the number of pages to read in one poll", minimum=1, maximum=MAX_PAGES),
        "render": Flag("whether to run the pages' JavaScript in a browser"),
        "batch_hours": BATCH_HOURS,
    },
    required=("url",),
    defaults={"max_pages": DEFAULT_PAGES, "render": False},
)


class Scraper(Source):
    """Reads web pages.

    The first poll decides how the address is read, and a note says so:

    - with `sitemap`: the pages of that sitemap whose addresses lie under `url`'s folder;
    - with `item_selector`: the pages that the matching links of `url` lead to;
    - an address of a sitemap: its pages;
    - with `max_pages` 1, or if the page says that it is an article (JSON-LD, OpenGraph): the page itself;
    - a page with three or more links that look like articles, or a front page with one: those pages;
    - a front page without such links: the pages of the site's sitemaps;
    - else the page itself.
    """

    kind = "scraper"
    label = "Web page"
    evidence = Evidence("server", "WordPress 6.1", "tests/sources/test_real_wordpress.py")
    fetches = True
    config_schema: ClassVar[Mapping[str, Any]] = SETTINGS.schema()
    environment: ClassVar[Mapping[str, str]] = {"CHROMIUM_PATH": ""}

    def clean_config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        return clean(SETTINGS, config)

    def unavailable_settings(self, environment: Mapping[str, str]) -> Mapping[str, Unavailability]:
        unavailability = missing_browser(environment)
        return {} if unavailability is None else {"render": unavailability}

    def fetch(
        self,
        config: Mapping[str, Any],
        state: Mapping[str, Any],
        *,
        http: Client,
        now: datetime,
        environment: Mapping[str, str],
    ) -> Fetch:
        """Read the pages that there is time for; the rest waits for the next poll.

        An empty `state` reads everything again. Raises `Refused` and `TryLater` if the source as a whole can't
        be read.
        """
        for name in ("url", "sitemap"):
            if config.get(name) and not host_in(config[name]):
                message = "The address has no host name that can be read. Give another address."
                raise Refused(message, code="address_refused", field=f"config.{name}")
        settings = Settings(
            url=config["url"],
            sitemap=config.get("sitemap", ""),
            selector=config.get("item_selector", ""),
            xpath=_xpath_of(config["item_selector"]) if config.get("item_selector") else "",
            max_pages=config["max_pages"],
        )
        renderer = Renderer(find_browser(environment), http=http) if config.get("render") else None
        # Under other settings the state would be of other pages.
        address = json.dumps([config.get(name) for name in ("url", "item_selector", "sitemap", "render")])
        poll_state = PagePollState.of(state, address=address)
        robots = Robots(http, poll_state.robots, now=now)
        robot = product_token(http.policy.user_agent)
        fetcher = PoliteFetcher(
            http, robots, seconds=FETCH_SECONDS, now=now, processing_seconds=RENDER_SECONDS if renderer else 0
        )
        with PageReader(robot=robot) as reader, renderer or nullcontext():
            poll = PagePoll(
                settings,
                poll_state,
                fetcher=fetcher,
                reader=reader,
                robots=robots,
                robot=robot,
                renderer=renderer,
                now=now,
            )
            return poll.run()


class _StaticTranslator(HTMLTranslator):
    """Refuses pseudo-classes of a user's pointer, which match nothing in a page that no person views."""

    def xpath_pseudo(self, pseudo: Pseudo) -> XPathExpr:
        if pseudo.ident in {"active", "focus", "hover", "target", "visited"}:
            message = f"Nothing of a page that is read is :{pseudo.ident}"
            raise ExpressionError(message)
        return super().xpath_pseudo(pseudo)


def _xpath_of(selector: str) -> str:
    """Return an XPath that matches the same elements. Raises `Refused` if the selector can't be read."""
    try:
        return _StaticTranslator().css_to_xpath(selector, prefix="//")
    except SelectorError as error:
        message = f"The item selector can't be read: {str(error).rstrip('.')}. Give a CSS selector, such as: article.post h2 > a."
        raise Refused(message, code="selector_unreadable", field="config.item_selector") from error


PLUGIN = Scraper()
