"""Describes refused decisions: which items were refused and why, and what others have done meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.access import tokens
from pipeline import labels
from pipeline.models import GeneratedItem, GeneratedItemStatus
from pipeline.pages.items import display

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accounts.pages.page_access import Place

MAX_ITEMS_NAMED: Final = 3
"""The most items that one reason names, because a toast is read at a glance."""
_MAX_TITLE_CHARACTERS: Final = 60


def describe_refusals(refused: Sequence[tuple[GeneratedItem, str]], *, is_single: bool) -> list[str]:
    """Return a line for each reason; it names the refused items unless the decision was on a single item."""
    by_reason: dict[str, list[GeneratedItem]] = {}
    for item, reason in refused:
        by_reason.setdefault(reason, []).append(item)
    if is_single:
        return list(by_reason)
    return [
        _("%(which)s: %(why)s") % {"which": _name_items(items), "why": reason}
        for reason, items in by_reason.items()
    ]


def _name_items(items: Sequence[GeneratedItem]) -> str:
    """Return the titles of the first items, and how many more there are."""
    titles = [
        Truncator(display.title_of(refused_item)).chars(_MAX_TITLE_CHARACTERS)
        for refused_item in items[:MAX_ITEMS_NAMED]
    ]
    names = ", ".join(f"“{title}” ({item.engine_output})" for title, item in zip(titles, items, strict=False))
    more_count = len(items) - len(titles)
    if not more_count:
        return names
    return ngettext("%(said)s and %(count)d more", "%(said)s and %(count)d more", more_count) % {
        "said": names,
        "count": more_count,
    }


def describe_newer_state(place: Place, item: GeneratedItem) -> str:
    """Return what somebody else has done with the item; the row is read again, because `item` is outdated."""
    row = GeneratedItem.objects.of(place.workspace).filter(pk=item.pk, deleted_at=None).first()
    if row is None:
        return _("Deleted by someone else")
    rejection = row.rejection or {}
    if row.status == GeneratedItemStatus.REJECTED and rejection.get("code") == "by_person":
        text = _("%(who)s rejected it.") % {"who": tokens.actor_name(rejection.get("by", ""))}
    elif row.status == GeneratedItemStatus.REJECTED:
        text = _("%(who)s chose another variant.") % {"who": tokens.actor_name(rejection.get("by", ""))}
    elif row.is_approved_as_it_is and row.status == GeneratedItemStatus.READY:
        text = _("%(who)s approved it.") % {"who": tokens.actor_name(row.approved_by)}
    elif row.status != GeneratedItemStatus.READY:
        text = _("Changed since you opened it: %(status)s.") % {
            "status": str(labels.GENERATED_ITEMS[row.status].label).lower()
        }
    elif row.revision > 1:
        text = display.describe_newer_edit(row, place.user.email)
    else:
        text = _("Changed since you opened it.")
    return text + " " + _("This is the current version.")
