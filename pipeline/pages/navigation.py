"""Where the pages of a workspace stand: seven sections and the settings, with their tabs, of every app by the URL's name."""

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
    """A page with those below it; `heads` are the first words of their URL names."""

    page: str
    label: _StrPromise
    heads: frozenset[str]
    icon: str = ""
    about: _StrPromise | str = ""
    is_for: Callable[[Place], bool] | None = None
    """None: for everybody who may open the workspace."""
    count: Callable[[UUID], CappedCount] | None = None
    """What waits there, by the workspace; None where nothing ever does, or the section says it."""


@dataclass(frozen=True)
class Section:
    label: _StrPromise
    icon: str
    tabs: tuple[Tab, ...]


@dataclass(frozen=True)
class ShownTab:
    label: str
    icon: str
    about: str
    address: str
    is_here: bool
    waiting: CappedCount | None


@dataclass(frozen=True)
class ShownSection:
    label: str
    icon: str
    address: str
    is_here: bool
    waiting: CappedCount | None
    """What waits in it; None where nothing ever does."""


def _edits(place: Place) -> bool:
    return place.may_edit


def _manages(place: Place) -> bool:
    return place.may_manage


def _alone(page: str, label: _StrPromise, icon: str, *heads: str) -> Section:
    return Section(label, icon, (Tab(page, label, frozenset(heads)),))


INBOX: Final = "review"
SETTINGS_PAGE: Final = "settings_page"
SECTIONS: Final = (
    _alone("home", gettext_lazy("Home"), "house", "home"),
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
                count=counts.to_post_by_hand,
            ),
        ),
    ),
    _alone("items_page", gettext_lazy("Content"), "newspaper", "items", "item", "made", "publication"),
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
    _alone("sources_page", gettext_lazy("Sources"), "rss", "sources", "source", "lane"),
    _alone(
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
        _manages,
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
        _edits,
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
        _manages,
    ),
    Tab(
        "webhooks",
        gettext_lazy("Webhooks"),
        frozenset({"webhooks", "webhook"}),
        "webhook",
        gettext_lazy("Endpoints and their deliveries"),
        _manages,
    ),
)


def sections(place: Place, view_name: str) -> list[ShownSection]:
    """The sections; one statement, for what waits in the inbox. `view_name` is that of the page that is open."""
    return [_shown(section, place, view_name) for section in SECTIONS]


def settings_tabs(place: Place) -> list[ShownTab]:
    """What the settings list; none of them is open."""
    return _shown_tabs(SETTINGS, place, "")


def tabs_here(place: Place | None, view_name: str) -> Sequence[ShownTab]:
    """The tabs of the section whose page is open; none where it has one alone."""
    if place is None:
        return ()
    for tabs in (*(section.tabs for section in SECTIONS), SETTINGS):
        if len(tabs) > 1 and any(_is_here(tab, view_name) for tab in tabs):
            return _shown_tabs(tabs, place, view_name)
    return ()


def every_page(place: Place) -> Iterator[tuple[str, str, str]]:
    """Label, address and icon of each, as somebody may search for it."""
    for section in SECTIONS:
        for tab in section.tabs:
            is_named_so = len(section.tabs) == 1 or tab.label == section.label
            label = str(section.label) if is_named_so else f"{section.label} · {tab.label}"
            yield label, place.address(tab.page), section.icon
    for shown in settings_tabs(place):
        yield f"{_('Settings')} · {shown.label}", shown.address, shown.icon
    yield str(_("Notifications")), place.address("notices"), "bell"


def is_of_settings(view_name: str) -> bool:
    return view_name == SETTINGS_PAGE or any(_is_here(tab, view_name) for tab in SETTINGS)


def _shown(section: Section, place: Place, view_name: str) -> ShownSection:
    address = place.address(section.tabs[0].page)
    waiting = counts.to_review(place.workspace.pk) if section.tabs[0].page == INBOX else None
    return ShownSection(
        label=str(section.label),
        icon=section.icon,
        address=address,
        is_here=any(_is_here(tab, view_name) for tab in section.tabs),
        waiting=waiting,
    )


def _shown_tabs(tabs: Sequence[Tab], place: Place, view_name: str) -> list[ShownTab]:
    return [
        ShownTab(
            str(tab.label),
            tab.icon,
            str(tab.about),
            place.address(tab.page),
            _is_here(tab, view_name),
            tab.count(place.workspace.pk) if tab.count else None,
        )
        for tab in tabs
        if tab.is_for is None or tab.is_for(place)
    ]


def _is_here(tab: Tab, view_name: str) -> bool:
    # An address that nothing answers has no name.
    return (view_name or "").partition("_")[0] in tab.heads
