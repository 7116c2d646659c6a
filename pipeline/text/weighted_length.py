"""Computes the weighted length of a post on X, by version 3 of its published table.

The table was read on 20 November 2026.
"""

from __future__ import annotations

import re
import unicodedata

from pipeline.text.links import find_links

MAX_LENGTH = 280
"""The longest post, in weighted characters."""
LINK_WEIGHT = 23
EMOJI_WEIGHT = 2

# The characters of weight 1: scripts up to Georgian, spaces, dashes and quotation marks. All others weigh 2.
_LIGHT = r"\u0000-\u10ff\u2000-\u200d\u2010-\u201f\u2032-\u2037"
_HEAVY_CHARACTER = re.compile(f"[^{_LIGHT}]")
# The characters that are an emoji or can become one, such as scissors (U+2702) and the grinning face (U+1F600).
_BASE = (
    r"[\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u231a-\u23ff\u24c2\u25aa-\u25fe\u2600-\u27bf"
    r"\u2934\u2935\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001f1e5\U0001f200-\U0001faff]"
)
# An emoji with a variation selector or a skin tone, such as a brown hand.
_ELEMENT = rf"{_BASE}(?:\ufe0f|[\U0001f3fb-\U0001f3ff])?"
# Flags of two letters, keycaps, © and ® in their coloured form, flags of tags, families and others joined.
_EMOJI = re.compile(
    rf"[\U0001f1e6-\U0001f1ff]{{2}}|[#*0-9]\ufe0f?\u20e3|[\u00a9\u00ae]\ufe0f"
    rf"|\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f|{_ELEMENT}(?:\u200d{_ELEMENT})*"
)


def _plain_weight(text: str) -> int:
    """Return the weighted length of a text without links."""
    emoji_free, emoji = _EMOJI.subn("", text)
    return emoji * EMOJI_WEIGHT + len(emoji_free) + sum(1 for _ in _HEAVY_CHARACTER.finditer(emoji_free))


def weighted_length(text: str) -> int:
    """Return the length as X counts it: 23 for an address, 2 for an emoji or a far script's character, else 1.

    The text is NFC-normalised first. An emoji counts once even if it is joined from several. An address whose
    top-level domain isn't in IANA's list counts as a link or by its characters, whichever is more, because X links
    it once X's own list has the domain.
    """
    normal = unicodedata.normalize("NFC", text)
    total = 0
    position = 0
    for link in find_links(normal):
        total += _plain_weight(normal[position : link.start])
        total += LINK_WEIGHT if link.is_known else max(LINK_WEIGHT, _plain_weight(link.url))
        position = link.end
    return total + _plain_weight(normal[position:])
