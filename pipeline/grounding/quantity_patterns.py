"""Defines patterns of the words and signs around a number, with examples, and how far they are searched."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

# The word or sign after a number, with the gap: " million", "-year", " %-points", "°C", " m²", " km/h", "€".
NEXT: Final = re.compile(
    r"(?P<gap>[ \t\u00a0\u202f\u2009]{0,3}(?:\n[ \t]{0,3})?[-\u2010\u2011]?)(?P<word>(?:US|A|C|HK|NZ|R)?[$€£¥₹₩₽]|(?:M|Md|Mrd|k|K|B|G)(?=[$€£])|%-points|[%‰٪％]|°\s?[CF]?(?![^\W\d_])"
    r"|[^\W\d_]+[²]?(?:/h)?|[×])"
)
# A sign or a word before a temperature: "(-", " minus ".
MINUS: Final = re.compile(r"(?:(?:^|[\s(])[-\u2212]|\b(?:minus|moins|menos)\s)$")
# The second half of "3/4".
FRACTION: Final = re.compile(r"\s?/\s?(\d{1,3})(?![\d/]|\.\d)")
# Between the two numbers of a share: "one in five", "3 out of 4", "2 de cada 3". By the last part "to" counts
# only if no space follows it, and a colon never does: "3 to 4" and "3:4" are no shares.
SHARE_JOIN: Final = re.compile(
    r"\s+(?:in|in every|out of|of every|von|sur|de cada|auf|aus)\s+|\s?(?:to|:)\s?(?=\b$)"
)
ABBREVIATION_CONTINUES: Final = re.compile(r"\.[^\W\d_]")
"""A full stop inside an abbreviation, followed by its next letter."""
# Between the two numbers of a list or a range: " to ", "–", " bis ", " to $".
RANGE: Final = re.compile(
    r"\s*(?:[-\u2013\u2014]|to|and|or|through|bis|und|oder|à|et|ou|a|y|o|,|, and|, or)\s*(?:(?:US|A|C)?[$€£¥₹]\s?)?"
)
EASTERN_UNITS: Final = {
    "円": "cur:JPY",
    "歳": "month",
    "割": "ratio",
    "パーセント": "ratio",
    "平方メートル": "m2",
}
EASTERN_FIRST_CHARACTERS: Final = frozenset(word[0] for word in EASTERN_UNITS)
# Ages are in months, as durations of years are.
EASTERN_FACTORS: Final = {"割": Fraction(1, 10), "パーセント": Fraction(1, 100), "歳": Fraction(12)}
# Before an ordinal position: "no. ", "Platz ", "#".
PLACE_BEFORE: Final = re.compile(r"(?:\b(?:no|nr|number|platz|rank|place|nummer|numéro|número)\.?|[#№])\s?$")
WORD_AFTER: Final = re.compile(r"\s+[^\W\d_]")
WORD_AFTER_FULL_STOP: Final = re.compile(r"\.\s+[^\W\d_]")
# "Two and a half", "dos y media".
NUMBER_AND_A_HALF: Final = re.compile(r"\s+(?:and a half|y media|et demie?|einhalb)\b")
# Before the "half" of "a year and a half".
UNIT_AND_A_HALF: Final = re.compile(r"\b(?:an?|one)\s([a-z]+)\sand\sa\s$")
MAX_SHARE_OF: Final = 100
"""The largest whole of a share: "one in a hundred"."""
MAX_READINGS: Final = 8
"""The most meanings of a number, which takes those of its neighbours in a list; a real one has two or three."""
MAX_SCALES: Final = 4
"""The most scales after one number: "a million million"."""
LAST_DAY_OF_MONTH: Final = 31
MAX_GERMAN_ORDINAL: Final = 100
"""The largest German number with a full stop and a word after it ("3. Platz") that may be an ordinal."""
# The numbers of characters that are searched around a number.
WINDOW_OF_WORD: Final = 14
WINDOW_OF_AND_A_HALF: Final = 24
WINDOW_BEFORE: Final = 8
WINDOW_OF_MINUS: Final = 7
WINDOW_AFTER_ORDINAL: Final = 7
