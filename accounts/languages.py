"""Lists the languages that a new workspace may choose from; a persona takes any other tag too."""

from __future__ import annotations

from typing import Final

from django.conf.locale import LANG_INFO
from django.utils.translation.trans_real import parse_accept_lang_header

DEFAULT: Final = "en"
"""The language if a browser asks for none of the choices."""


def language_choices() -> list[tuple[str, str]]:
    """Return form choices, language tags with the languages' own names, sorted by name."""
    names_by_tag = {tag: str(info["name_local"]) for tag, info in LANG_INFO.items() if "name_local" in info}
    return sorted(names_by_tag.items(), key=lambda choice: choice[1].casefold())


def preferred_language(accepted: str) -> str:
    """Return the first language of an Accept-Language header that may be chosen, else `DEFAULT`."""
    names_by_tag = dict(language_choices())
    for tag, _weight in parse_accept_lang_header(accepted.lower()):
        for candidate in (tag, tag.partition("-")[0]):
            if candidate in names_by_tag:
                return candidate
    return DEFAULT
