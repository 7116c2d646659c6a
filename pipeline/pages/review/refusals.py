"""What came of it, in words: what others have done meanwhile, and which of several were refused and why."""

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

NAMED_MOST: Final = 3
"""Items that one reason names; a toast is read at a glance."""
_TITLE_CHARACTERS: Final = 60


def refusals(refused: Sequence[tuple[GeneratedItem, str]], *, of: int) -> list[str]:
    """A line for each reason. Where several were decided on (`of`), it says which ones it is about."""
    by_reason: dict[str, list[GeneratedItem]] = {}
    for item, why in refused:
        by_reason.setdefault(why, []).append(item)
    if of == 1:
        return list(by_reason)
    return [
        _("%(which)s: %(why)s") % {"which": _named(items), "why": why} for why, items in by_reason.items()
    ]


def _named(items: Sequence[GeneratedItem]) -> str:
    titles = [Truncator(display.title_of(one)).chars(_TITLE_CHARACTERS) for one in items[:NAMED_MOST]]
    said = ", ".join(f"“{title}” ({item.engine_output})" for title, item in zip(titles, items, strict=False))
    more = len(items) - len(titles)
    if not more:
        return said
    return ngettext("%(said)s and %(count)d more", "%(said)s and %(count)d more", more) % {
        "said": said,
        "count": more,
    }


def meanwhile(place: Place, item: GeneratedItem) -> str:
    """The row is read anew: what it was before the refusal says nothing."""
    row = GeneratedItem.objects.of(place.workspace).filter(pk=item.pk, deleted_at=None).first()
    if row is None:
        return _("Deleted by someone else")
    rejection = row.rejection or {}
    if row.status == GeneratedItemStatus.REJECTED and rejection.get("code") == "by_person":
        said = _("%(who)s rejected it.") % {"who": tokens.actor_name(rejection.get("by", ""))}
    elif row.status == GeneratedItemStatus.REJECTED:
        said = _("%(who)s chose another variant.") % {"who": tokens.actor_name(rejection.get("by", ""))}
    elif row.is_approved_as_it_is and row.status == GeneratedItemStatus.READY:
        said = _("%(who)s approved it.") % {"who": tokens.actor_name(row.approved_by)}
    elif row.status != GeneratedItemStatus.READY:
        said = _("Changed since you opened it: %(status)s.") % {
            "status": str(labels.GENERATED_ITEMS[row.status].label).lower()
        }
    elif row.revision > 1:
        said = display.overtaken_by(row, place.user.email)
    else:
        said = _("Changed since you opened it.")
    return said + " " + _("This is the current version.")
