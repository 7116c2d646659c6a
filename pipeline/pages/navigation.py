"""Defines the navigation of a workspace's pages: the sections and the settings, with the tabs of each.

It covers the pages of every app. A page belongs to the tab that has the first word of its URL name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pipeline.dashboard import counts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from uuid import UUID

    from django.utils.functional import _StrPromise

    from accounts.pages.page_access import Place
    from pipeline.dashboard.counts import CappedCount


@dataclass(frozen=True)
class Tab:
    """A page and the pages below it.

    `page` is the URL name of the page, and `heads` are the first words of the URL names of all of these pages. `about`
    is the sentence in the list of settings.
    """

    page: str
    label: _StrPromise
    heads: frozenset[str]
    icon: str = ""
    about: _StrPromise | str = ""
    is_for: Callable[[Place], bool] | None = None
    """Returns whether a person sees the tab; `None` means everybody who may open the workspace."""
    count: Callable[[UUID], CappedCount] | None = None
    """Counts what waits in the tab, by workspace id; `None` if nothing can wait or the section has the count."""


@dataclass(frozen=True)
class Section:
    """An entry of the main navigation; it opens its first tab."""

    label: _StrPromise
    icon: str
    tabs: tuple[Tab, ...]


@dataclass(frozen=True)
class ShownTab:
    """A tab as templates show it to one person; `is_here` is true if one of its pages is open."""

    label: str
    icon: str
    about: str
    address: str
    is_here: bool
    waiting: CappedCount | None


@dataclass(frozen=True)
class ShownSection:
    """A section as templates show it to one person; `is_here` is true if one of its pages is open."""

    label: str
    icon: str
    address: str
    is_here: bool
    waiting: CappedCount | None
    """The number of items to review, in the inbox; `None` in every other section."""


def _can_edit(place: Place) -> bool:
    return place.may_edit


def _can_manage(place: Place) -> bool:
    return place.may_manage


def _single_page_section(page: str, label: _StrPromise, icon: str, *heads: str) -> Section:
    """Return a section of one tab, for which no tabs are shown."""
    return Section(label, icon, (Tab(page, label, frozenset(heads)),))


INBOX: Final = "review"
SETTINGS_PAGE: Final = "settings_page"
SECTIONS: Final = (
    _single_page_section("home", gettext_lazy("Home"), "house", "home"),
    Section(
        gettext_lazy("Inbox"),
        "inbox",
        (
            Tab(INBOX, gettext_lazy("To review"), frozenset({"review"})),
            Tab("failures", gettext_lazy("Problems"), frozenset({"failures"})),
            Tab(
                "manual_posts",
                gettext_lazy("Manual posts"),
                frozenset({"manual", "package"}),
                count=counts.count_to_post_by_hand,
            ),
        ),
    ),
    _single_page_section(
        "items_page", gettext_lazy("Content"), "newspaper", "items", "item", "made", "publication"
    ),
    Section(
        gettext_lazy("Calendar"),
        "calendar",
        (
            Tab("calendar", gettext_lazy("Calendar"), frozenset({"calendar"})),
            Tab("queues_page", gettext_lazy("Posting times"), frozenset({"queues", "queue"})),
            Tab("series_page", gettext_lazy("Recurring"), frozenset({"series"})),
        ),
    ),
    Section(
        gettext_lazy("Analytics"),
        "chart-column",
        (
            Tab("analytics_page", gettext_lazy("Performance"), frozenset({"analytics"})),
            Tab("pipeline_page", gettext_lazy("Pipeline"), frozenset({"pipeline"})),
        ),
    ),
    _single_page_section("sources_page", gettext_lazy("Sources"), "rss", "sources", "source", "lane"),
    _single_page_section(
        "outlets_page",
        gettext_lazy("Outlets"),
        "send",
        "outlets",
        "outlet",
        "subscribers",
        "subscriber",
        "mailing",
    ),
)
SETTINGS: Final = (
    Tab(
        "access",
        gettext_lazy("Access"),
        frozenset({"access"}),
        "lock",
        gettext_lazy("Ask the people who run this service to approve this workspace"),
        lambda place: not place.workspace.is_whitelisted,
    ),
    Tab(
        "workspace",
        gettext_lazy("Workspace"),
        frozenset({"workspace", "samples"}),
        "settings",
        gettext_lazy("Name, time zone, approval, AI key, export"),
        _can_manage,
    ),
    Tab(
        "members",
        gettext_lazy("Members"),
        frozenset({"members", "member", "invitation"}),
        "users",
        gettext_lazy("People, roles and invitations"),
    ),
    Tab(
        "personas",
        gettext_lazy("Personas"),
        frozenset({"personas", "persona", "topics", "topic"}),
        "palette",
        gettext_lazy("Voices, their branding and topics"),
    ),
    Tab(
        "defaults",
        gettext_lazy("Defaults"),
        frozenset({"defaults"}),
        "list-checks",
        gettext_lazy("Formats and outlets of new content"),
        _can_edit,
    ),
    Tab(
        "usage",
        gettext_lazy("Usage"),
        frozenset({"usage"}),
        "chart-no-axes-column",
        gettext_lazy("Credits and AI cost of the month"),
    ),
    Tab(
        "keys",
        gettext_lazy("API keys"),
        frozenset({"keys", "key"}),
        "key-round",
        gettext_lazy("Create, rotate and revoke keys"),
        _can_manage,
    ),
    Tab(
        "webhooks",
        gettext_lazy("Webhooks"),
        frozenset({"webhooks", "webhook"}),
        "webhook",
        gettext_lazy("Endpoints and their deliveries"),
        _can_manage,
    ),
)


def sections(place: Place, view_name: str) -> list[ShownSection]:
    """Return the sections, with `view_name` as the open page, with one SQL query for the count of the inbox."""
    return [_show_section(section, place, view_name) for section in SECTIONS]


def settings_tabs(place: Place) -> list[ShownTab]:
    """Return the settings that this person may open; no tab is marked as the open one."""
    return _show_tabs(SETTINGS, place, "")


def tabs_of_open_page(place: Place | None, view_name: str) -> Sequence[ShownTab]:
    """Return the tabs of the section or settings whose page is open, or none if there is only one."""
    if place is None:
        return ()
    for tabs in (*(section.tabs for section in SECTIONS), SETTINGS):
        if len(tabs) > 1 and any(_is_open(tab, view_name) for tab in tabs):
            return _show_tabs(tabs, place, view_name)
    return ()


def list_pages(place: Place) -> Iterator[tuple[str, str, str]]:
    """Yield label, address and icon of each page that the person may open, for the search."""
    for section in SECTIONS:
        for tab in section.tabs:
            is_label_enough = len(section.tabs) == 1 or tab.label == section.label
            label = str(section.label) if is_label_enough else f"{section.label} · {tab.label}"
            yield label, place.url_of(tab.page), section.icon
    for settings_tab in settings_tabs(place):
        yield f"{_('Settings')} · {settings_tab.label}", settings_tab.address, settings_tab.icon
    yield str(_("Notifications")), place.url_of("notices"), "bell"


def is_settings_page(view_name: str) -> bool:
    """Return whether the page is the settings page or below it."""
    return view_name == SETTINGS_PAGE or any(_is_open(tab, view_name) for tab in SETTINGS)


def _show_section(section: Section, place: Place, view_name: str) -> ShownSection:
    """Return the section as templates show it; only the inbox has a count."""
    address = place.url_of(section.tabs[0].page)
    waiting = counts.count_to_review(place.workspace.pk) if section.tabs[0].page == INBOX else None
    return ShownSection(
        label=str(section.label),
        icon=section.icon,
        address=address,
        is_here=any(_is_open(tab, view_name) for tab in section.tabs),
        waiting=waiting,
    )


def _show_tabs(tabs: Sequence[Tab], place: Place, view_name: str) -> list[ShownTab]:
    """Return the tabs that the person may open, as templates show them."""
    return [
        ShownTab(
            str(tab.label),
            tab.icon,
            str(tab.about),
            place.url_of(tab.page),
            _is_open(tab, view_name),
            tab.count(place.workspace.pk) if tab.count else None,
        )
        for tab in tabs
        if tab.is_for is None or tab.is_for(place)
    ]


def _is_open(tab: Tab, view_name: str) -> bool:
    """Return whether the open page is one of the tab's."""
    # `view_name` is empty on a 404 page, which no view serves.
    return (view_name or "").partition("_")[0] in tab.heads
