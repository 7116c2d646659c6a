"""Finds parts of a text that aren't about its subject: a site's own words, notes, quoted mails, datelines."""

from __future__ import annotations

import re
from typing import Final

# A whole sentence, perhaps with the label of its speaker in a transcript.
_BOILERPLATE: Final = re.compile(
    r"(?:[^\W\d_][^:\n]{0,40}:\s)?(?:"
    # WordPress ends each entry of a feed with it.
    r"(?:the post|der beitrag|l['\u2019]article|la entrada|l['\u2019]articolo|het bericht|o post|artyku\u0142)\s.+?\s(?:(?:first )?appeared (?:first )?on"
    r"|erschien (?:zuerst )?(?:auf|bei)|est apparu en premier sur|(?:se public\u00f3|aparece|apareci\u00f3) primero en|proviene da"
    r"|sembra essere il primo su|verscheen eerst op|apareceu primeiro em|pochodzi z serwisu)\s.+"
    # Disclosures of commissions.
    r"|(?:(?:if|when) you (?:buy|click|shop)\b.{0,80}, )?(?:we|i) (?:may |might |can )?(?:earn|receive|get)s? (?:a|an|some) (?:\w+ ){0,2}commission\b.*"
    r"|(?:this|our|the|some)\b[^.]{0,40}\bcontains? affiliate links\b.*"
    r"|(?:wir|ich) (?:erhalten|erhalte|bekommen|bekomme)\b.{0,60}\bprovision\b.*|nous (?:pouvons (?:toucher|percevoir)|touchons|percevons) une commission\b.*"
    r"|(?:podemos (?:recibir|ganar)|recibimos|ganamos) una comisi\u00f3n\b.*|(?:potremmo ricevere|riceviamo) una commissione\b.*"
    r"|(?:wij|we) (?:ontvangen|krijgen)\b.{0,40}\bcommissie\b.*"
    # At the end of press releases.
    r"|forward[- ]looking statements?\b.*|(?:this|the) (?:press |news )?release (?:may )?contains? (?:certain )?(?:forward-looking )?statements\b.*"
    # To readers and listeners.
    r"|(?:please |and |so |don['\u2019]t forget to )?(?:subscribe|sign up)\b.{0,40}\b(?:newsletter|channel|podcast|mailing list)\b.{0,40}"
    r"|(?:abonnieren sie|abonniere|melden sie sich|jetzt)\b.{0,40}\bnewsletter\b.{0,40}|(?:abonnez-vous|inscrivez-vous)\b.{0,30}\b(?:newsletter|lettre)\b.{0,30}"
    r"|(?:suscr\u00edbete|suscr\u00edbase)\b.{0,30}\b(?:bolet\u00edn|newsletter)\b.{0,30}|iscriviti\b.{0,30}\bnewsletter\b.{0,30}"
    r"|(?:schrijf je in|abonneer je)\b.{0,30}\bnieuwsbrief\b.{0,30}|(?:assine|inscreva-se)\b.{0,30}\bnewsletter\b.{0,30}"
    # Between the parts of a broadcast.
    r"|(?:we|i)(?:['\u2019]ll| will) be (?:right )?back\b.{0,40}|(?:hello,? and )?welcome (?:back )?to\s[^,]{1,60}|(?:stay tuned|thanks for listening)\b.{0,40}"
    r"|(?:wir sind|ich bin) gleich (?:wieder )?(?:da|zur\u00fcck)\b.{0,30}|(?:herzlich )?willkommen (?:zur\u00fcck )?(?:bei|zu)\s[^,]{1,60}"
    r"|on revient tout de suite\b.{0,30}|bienvenue (?:dans|sur|\u00e0)\s[^,]{1,60}|(?:enseguida volvemos|volvemos enseguida)\b.{0,30}"
    r"|bienvenid[oa]s (?:de nuevo )?a\s[^,]{1,60}|torniamo subito\b.{0,30}|(?:bentornati|benvenuti) (?:a|su|in)\s[^,]{1,60}"
    r")",
    re.IGNORECASE,
)
# Words that seldom occur in sentences about another subject.
_SITE_WORDS: Final = re.compile(
    r"\b(?:subscribe|newsletter|sign up|cookies?|click here|read more|all rights reserved|privacy policy|"
    r"follow us|share this|advertisement|comments? below|terms of (?:use|service))\b",
    re.IGNORECASE,
)
# "On Tue, 3 Nov 2026, Ann Bell wrote:", with the quoted lines.
_MAIL: Final = re.compile(
    r"^(?:On|Am|Le|El|Il|Op|Em|W dniu|Den)\s[^\n]{4,120}(?:\n[^\n]{1,80})?\s(?:wrote|schrieb|a \u00e9crit|escribi\u00f3|ha scritto|schreef|escreveu|napisa\u0142|skrev)"
    r"[^\n:]{0,60}:[^\S\n]*\n\s*(?:^>[^\n]*(?:\n|$))+",
    re.MULTILINE,
)
# "[^1]: ...", with its indented lines.
_FOOTNOTE: Final = re.compile(r"^\[\^[^\]\n]+\]:[^\n]*(?:\n[ \t]+[^\n]+)*", re.MULTILINE)
# "HALLOW, Nov. 17 \u2014 ", "LEEDS, England, Nov. 25, 2026 /NewsWire/ -- ": the place in capitals.
_CAPITAL: Final = "[A-Z\u00c0-\u00d6\u00d8-\u00de\u0104\u0106\u010c\u010e\u0118\u011a\u011e\u0130\u0141\u0143\u0147\u0158\u015a\u015e\u0160\u0164\u016e\u0179\u017b\u017d]"
_DATELINE: Final = re.compile(
    rf"{_CAPITAL}{{3,}}(?:[ '\u2019.-]{_CAPITAL}+){{0,3}}"
    r"(?:,[^\n\u2014\u2013]{1,40}?)?(?:\s?/[^/\n]{2,20}/|\s\([^)\n]{2,20}\))?"
    r"\s(?:\u2014|\u2013|--?)\s(?=[\"\u201c\u201e\u00ab]?[^\W\d_a-z])"
)


def is_boilerplate(sentence: str) -> bool:
    """Return whether the sentence is only about the site, its readers or the broadcast.

    An example is "We may earn a commission.".
    """
    return _BOILERPLATE.fullmatch(" ".join(sentence.split())) is not None


def sounds_like_boilerplate(sentence: str) -> bool:
    """Return whether the sentence has a word typical of sites.

    It may be about the text's subject all the same, but is chosen last.
    """
    return _SITE_WORDS.search(sentence) is not None


def find_notes(text: str) -> tuple[tuple[int, int], ...]:
    """Return the spans of footnotes, and of quoted mails that the text answers."""
    return tuple(match.span() for pattern in (_FOOTNOTE, _MAIL) for match in pattern.finditer(text))


def skip_dateline(text: str, start: int, end: int) -> int:
    """Return the offset after a dateline that opens the sentence's paragraph, or `start` if there is none."""
    if text[:start].rstrip(" \t")[-1:] not in {"", "\n"}:
        return start
    match = _DATELINE.match(text, start, end)
    return match.end() if match else start
