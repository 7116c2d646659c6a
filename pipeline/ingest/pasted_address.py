"""The words behind one address that a person pasted, read as a source of web pages reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from config.core import limits
from config.core.http_client import shared
from pipeline import plugins
from pipeline.ingest import push
from pipeline.plugins import ConfigInvalid, PluginError
from pipeline.sources.base import Source
from pipeline.switches.availability import environment_of_source
from pipeline.text.normalization import seen_text, title_in
from pipeline.writers.headings import find_headings

if TYPE_CHECKING:
    from datetime import datetime

    from pipeline.sources.base import Entry


@dataclass(frozen=True)
class Read:
    """`entry` is None where nothing could be read; then `message` says why, and what to do."""

    entry: Entry | None
    message: str = ""


def headline_of(words: str) -> str:
    """What pasted words call themselves: their heading, as a push without a title reads it, or a first line that stands
    alone, short and without an end mark, over a paragraph; else empty.
    """
    body_format = push.format_of(words)
    text = seen_text(words, body_format).strip()
    first = next(iter(find_headings(text)), (1, 1))
    found = title_in(words, body_format) or (text[slice(*first)] if first[0] == 0 else "")
    return found[: limits.TITLE_CHARACTERS]


def read_page(url: str, *, now: datetime) -> Read:
    """Fetch one page and its words; robots.txt is heeded as by a source. Writes nothing."""
    instead = _("Paste its words instead.")
    kind = plugins.get("sources", "scraper", Source)
    if not kind.fetches:
        return Read(None, _("Pages can't be read here yet.") + f" {instead}")
    asked = environment_of_source(kind)
    try:
        config = kind.clean_config({"url": url})
        found = kind.fetch(config, {}, http=shared.client(), now=now, environment=asked)
    except ConfigInvalid as invalid:
        return Read(None, f"{invalid} {instead}")
    except PluginError as failure:
        return Read(None, f"{failure.message} {instead}")
    entry = next((one for one in found.entries if one.body and one.left_out is None), None)
    if entry is not None:
        return Read(entry)
    left_out = next((one.left_out.message for one in found.entries if one.left_out), "")
    notes = " ".join(note.message for note in found.notes)
    return Read(None, f"{left_out or notes or _('No words were found on this page.')} {instead}")
