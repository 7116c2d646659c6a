"""Tell people that what is published was made of an entry that has changed, or was withdrawn, since."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts import notices
from pipeline import labels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from django.utils.functional import _StrPromise

    from pipeline.models import GeneratedItem, RawItem

_TITLES: Final[Mapping[str, _StrPromise]] = {
    "source_changed": gettext_lazy("The source of “%(title)s” has changed since it was published"),
    "source_withdrawn": gettext_lazy("The source of “%(title)s” was withdrawn since it was published"),
}
_TITLE_CHARACTERS: Final = 100


def tell_flagged(row: RawItem, reason: str, items: Sequence[GeneratedItem], now: datetime) -> None:
    """One notice for all that was made of an entry; call it in the transaction that flagged the items.

    The key names the version of the entry, so that the same change is never told twice. Test items are nobody's worry.
    """
    if row.test or not items:
        return
    title = row.title or items[0].title or items[0].excerpt
    count = ngettext(
        "%(count)d published item was made of it.", "%(count)d published items were made of it.", len(items)
    ) % {"count": len(items)}
    version = row.content_version if reason == "source_changed" else row.version
    notices.record(
        "item_flagged",
        workspace_id=row.workspace_id,
        key=f"{row.pk.hex}:{reason}:{version}",
        title=_TITLES[reason] % {"title": title[:_TITLE_CHARACTERS] or _("Untitled")},
        text=f"{count}\n{labels.FLAGS[reason]}",
        path="#flagged",
        now=now,
    )
