"""Which ways to reach somebody a draft may show: links, accounts, email addresses, telephone numbers, codes, tags.

The allow-list is the source's own address and all that the persona says of itself. What the source's words name is
not on it: they were written by strangers, and a prompt that asks a model to leave such things out is only a wish.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pipeline.engines.base import Check
from pipeline.engines.checks.persona_rules import banned_in
from pipeline.text.html_text import strip_invisible
from pipeline.text.links import TOP_LEVEL_DOMAINS, find_links, is_same_address, without_links
from pipeline.text.prose.verbatim_edits import collapse, drop_asides, first_words

if TYPE_CHECKING:
    from pipeline.engines.base import Brief, PersonaCard

_MOST_NAMED = 5
_ORDER_SHOWN = 200
_TITLE_LENGTH = 60
_LEAST_DIGITS = 7
"""Fewer digits make no telephone number; as a number they have to stand in the source anyway."""

# Browsers read these as dots; between letters of other scripts the first one ends a sentence.
_OTHER_DOTS = re.compile(r"(?<=[A-Za-z0-9])[\u3002\uff0e\uff61\u2024\ufe52](?=[A-Za-z0-9])")
_SCHEMED = re.compile(
    r"(?<![A-Za-z0-9+.\-])(?:[A-Za-z][A-Za-z0-9+.\-]{1,20}://|(?:mailto|tel|sms|javascript|data|magnet|skype|whatsapp|"
    r"bitcoin|ethereum|tg|intent):)[^\s<>\"']{1,2000}",
    re.IGNORECASE,
)
# Any script: who reads a post may use an app that links more than X does.
_HOST = re.compile(
    r"(?<![\w.@\uff20\-])(?P<host>[\w\-]{1,63}(?:\.[\w\-]{1,63}){1,8})(?![\w\-])(?P<mail>[@\uff20]?)"
    r"(?P<tail>(?::\d{1,5})?(?:[/?#][^\s<>\"']{0,2000})?)"
)
_NUMERIC_HOST = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}")
_CLOSING = ".,;:!?)]}>'\"*_\u2019\u201d\u00bb\u2026"

_MENTION = re.compile(r"(?<![\w@\uff20/])[@\uff20][\w][\w.\-]*")
_HASHTAG = re.compile(r"(?<![\w&/])[#\uff03](\w*[^\W\d_]\w*)")
_MAIL = re.compile(r"[\w.+\-]{1,64}[@\uff20][\w\-]{1,63}(?:\.[\w\-]{1,63}){1,8}")
# One number may be written on two lines; what a paragraph or a sentence parts is two.
_DIGITS = re.compile(r"\+?\d(?:[\d(),/\-\u2010-\u2013']|\.(?!\s)|[^\S\n]|(?<=\d)\n(?=[\d(+])){0,40}\d")
_DIALLED = re.compile(
    r"\+\d|00[1-9]|0\d{2,5}\)?[\s./\-\u2010-\u2013]{1,3}\d|0\d(?:[\s.\-]\d\d){4}|0\d{7,}"
    r"|(?:1[\s.\-])?\d{3}\)?[\s.\-]{1,2}\d{3}[\s.\-]\d{4}$"
)
_DATE = re.compile(r"\d{1,2}[./\-]\d{1,2}[./\-]\d{2,4}|0[.,]\d+")
_CODE = re.compile(
    # Capitals with digits among them, and whatever is written as a code after the word.
    r"(?<![\w\-])(?=[A-Z0-9\-]*\d)(?=(?:\d|-)*[A-Z](?:[0-9\-]*[A-Z]){2})[A-Z0-9][A-Z0-9\-]{3,30}[A-Z0-9](?![\w\-])"
    r"|(?:(?i:\b(?:codes?|coupon|voucher|promo|gutscheincode|rabattcode|c\u00f3digo|codice))\b[\s:\"'\u201c\u2018]{1,4})"
    r"([A-Z0-9][A-Z0-9\-]{2,30})(?![\w\-])"
)
_OFFERS = re.compile(
    r"\b(?:codes?|coupons?|vouchers?|promo\w*|discounts?|redeem\w*|checkout|gutschein\w*|rabatt\w*|c\u00f3digo|cup\u00f3n"
    r"|descuento|remise|r\u00e9duction|sconto)\b|%\s*off\b",
    re.IGNORECASE,
)
_NOT_DIGIT = re.compile(r"\D")
_NOT_WORD = re.compile(r"[\W_]+")


def is_allowed(words: str, brief: Brief, persona: PersonaCard) -> bool:
    """Whether nobody can be reached through these words but through what is listed, and the persona may say them."""
    return not (
        strange_addresses(words, brief, persona)
        or strange_accounts(words, persona)
        or strange_contacts(words, brief, persona)
        or strange_tags(words, brief, persona)
        or banned_in(words, persona)
    )


def title_of(brief: Brief, persona: PersonaCard, words: str) -> str:
    """The source's title, or the draft's first words where the title is missing or leads to strangers."""
    title = collapse(brief.title)
    return title if title and is_allowed(title, brief, persona) else first_words(words, _TITLE_LENGTH)


def strange_addresses(words: str, brief: Brief, persona: PersonaCard, *, url: str = "") -> tuple[str, ...]:
    """What some app would make a link of and is neither the source's address nor one of the persona's, in order."""
    found = _addresses(words)
    if not found:
        return ()
    stories = (story.url for story in brief.stories)
    listed = [one for one in (url, brief.url, *stories, *persona.links) if one]
    own = "\n".join(_own_words(persona))
    listed += [address for address in _addresses(own) if address not in listed]
    hosts = {form for one in listed for form in (_host(one), _host(one).removeprefix("www."))} - {""}
    return tuple(
        address
        for address in dict.fromkeys(found)
        # The bare name of a listed site leads nowhere else.
        if address.lower() not in hosts
        and not any(is_same_address(_with_scheme(address), _with_scheme(one)) for one in listed)
    )


def strange_accounts(words: str, persona: PersonaCard) -> tuple[str, ...]:
    """The accounts that are mentioned and that the persona doesn't name, in order."""
    mentions = _MENTION.findall(_MAIL.sub(" ", strip_invisible(words)))
    if not mentions:
        return ()
    known = {_account(persona.handle)} | {
        _account(one) for piece in _own_words(persona) for one in _MENTION.findall(piece)
    }
    return tuple(dict.fromkeys(one for one in mentions if _account(one) not in known))


def strange_tags(words: str, brief: Brief, persona: PersonaCard) -> tuple[str, ...]:
    """The hashtags that say in one word what neither the facts nor the persona say in words."""
    tags = _HASHTAG.findall(strip_invisible(words))
    if not tags:
        return ()
    own = "\n".join(_own_words(persona))
    # A tag of the source's own is an order to spread it, not a statement.
    facts = _HASHTAG.sub(" ", "\n".join((*_titles(brief), *(fact.quote for fact in brief.facts))))
    said = _NOT_WORD.sub("", f"{own}\n{facts}").casefold()
    return tuple(dict.fromkeys(f"#{tag}" for tag in tags if _NOT_WORD.sub("", tag).casefold() not in said))


def strange_contacts(words: str, brief: Brief, persona: PersonaCard, *, url: str = "") -> tuple[str, ...]:
    """The email addresses, telephone numbers and codes in `words` that the allow-list doesn't hold, in order.

    Long figures and names with digits ("12,000,000", "COVID-19") aren't ways to reach anybody and may come from the
    facts; where the words speak of an offer, a name with digits is its code.
    """
    words = strip_invisible(words)
    mails, phones, codes = _mails(words), _phones(words), _codes(words)
    if not (mails or phones or codes):
        return ()
    own = _own_words(persona)
    addresses = (brief.url, url, *(story.url for story in brief.stories))
    facts = (*_titles(brief), *addresses, *(fact.quote for fact in brief.facts))
    known_mails = {mail.lower() for piece in own for mail in _mails(piece)}
    # A sentence may lose its asides on the way into a draft, and the figures around one then stand together.
    own_runs = [_digits(piece) for piece in own]
    fact_runs = [_digits(form) for piece in facts for form in (piece, drop_asides(piece))]
    is_offer = _OFFERS.search(words) is not None
    strange = [
        *(mail for mail in mails if mail.lower() not in known_mails),
        *(
            phone
            for phone in phones
            if not any(_digits(phone) in run for run in own_runs)
            and (
                _is_dialled(phone)
                or not all(any(_digits(line) in run for run in fact_runs) for line in phone.split("\n"))
            )
        ),
        *(
            code
            for code in codes
            if not any(code in piece for piece in own)
            and (is_offer or not any(code in piece for piece in facts))
        ),
    ]
    return tuple(dict.fromkeys(strange))


def check_addresses(words: str, brief: Brief, persona: PersonaCard, *, url: str = "") -> Check:
    """The check `link_origin`."""
    strange = strange_addresses(words, brief, persona, url=url)
    message = f"These links are neither the source's nor the persona's: {list_some(strange)}."
    passed = "Every link leads to the source or to one of the persona's pages."
    return Check("link_origin", "failed", message) if strange else Check("link_origin", "passed", passed)


def check_accounts(words: str, persona: PersonaCard) -> Check:
    """The check `mentions`."""
    strange = strange_accounts(words, persona)
    message = f"The persona doesn't name these accounts: {list_some(strange)}."
    passed = "Every account that is mentioned is the persona's own or one that it names."
    return Check("mentions", "failed", message) if strange else Check("mentions", "passed", passed)


def check_contacts(words: str, brief: Brief, persona: PersonaCard, *, url: str = "") -> Check:
    """The check `contacts`: nobody is reached but through what the persona names."""
    strange = strange_contacts(words, brief, persona, url=url)
    message = f"These addresses, numbers or codes are not the persona's: {list_some(strange)}."
    passed = "Every email address, telephone number and code is the persona's."
    return Check("contacts", "failed", message) if strange else Check("contacts", "passed", passed)


def check_suspicion(brief: Brief) -> Check:
    """The check `instructions`: a warning for the reviewer where the source talks to machines, with what it says."""
    if brief.orders:
        quoted = list_some(tuple(f"\u201c{first_words(order, _ORDER_SHOWN)}\u201d" for order in brief.orders))
        message = (
            f"The source gives orders to a machine, which were left out: {quoted} Read this one with care."
        )
        return Check("instructions", "warning", message)
    if brief.is_suspect:
        message = "The source holds text that reads like orders to a machine. Read this one with care."
        return Check("instructions", "warning", message)
    return Check("instructions", "passed", "The source contains no instructions to an AI.")


def list_some(things: tuple[str, ...]) -> str:
    """Some of them, and how many more there are."""
    shown = ", ".join(things[:_MOST_NAMED])
    left_out = len(things) - _MOST_NAMED
    return f"{shown} and {left_out} more" if left_out > 0 else shown


def _titles(brief: Brief) -> tuple[str, ...]:
    return (brief.title, *(story.title for story in brief.stories))


def _own_words(persona: PersonaCard) -> tuple[str, ...]:
    brand = (str(value) for value in persona.brand.values())
    said = (persona.who_you_are, persona.voice, *persona.reference_posts, *persona.approved_lines)
    asked_for = (str(structure.get("text") or "") for structure in persona.required_structures)
    return (persona.name, persona.handle, *persona.links, *said, *asked_for, *brand)


def _addresses(text: str) -> list[str]:
    """In the order of the text, as a browser would read them; those that platforms link, and some more."""
    # A hidden character breaks an address for us, and not for who copies it.
    folded = _OTHER_DOTS.sub(".", strip_invisible(text))
    found = [(link.start, link.url) for link in find_links(folded)]
    taken = [(link.start, link.end) for link in find_links(folded)]
    for match in (*_SCHEMED.finditer(folded), *_HOST.finditer(unicodedata.normalize("NFC", folded))):
        address = match.group().rstrip(_CLOSING)
        if match.re is _HOST and (match["mail"] or not _is_reached(match["host"], match["tail"])):
            continue
        if not any(start < match.end() and match.start() < end for start, end in taken):
            found.append((match.start(), address))
            taken.append((match.start(), match.end()))
    return [address for _, address in sorted(found)]


def _is_reached(host: str, tail: str) -> bool:
    """Whether the name is one that a browser would look up."""
    labels = host.lower().split(".")
    if labels[0] == "www" and len(labels) > 1:
        return True
    if _NUMERIC_HOST.fullmatch(host):
        # Without a port or a path it is a version, or a number of another kind.
        return bool(tail.rstrip(_CLOSING))
    try:
        last = labels[-1].encode("idna").decode("ascii")
    except UnicodeError:
        return False
    return last in TOP_LEVEL_DOMAINS and not last.isdigit()


def _with_scheme(url: str) -> str:
    return url if "://" in url or not url else f"https://{url}"


def _host(url: str) -> str:
    try:
        return (urlsplit(_with_scheme(url)).hostname or "").lower()
    except ValueError:
        return ""


def _account(mention: str) -> str:
    return mention.lower().lstrip("@\uff20").rstrip(".-")


def _mails(text: str) -> list[str]:
    return _MAIL.findall(text)


def _phones(text: str) -> list[str]:
    # Addresses hold runs of digits that nobody dials, and plain digits are a number, which has a check of its own.
    runs = (run.strip() for run in _DIGITS.findall(without_links(text)))
    return [
        run for run in runs if len(_digits(run)) >= _LEAST_DIGITS and (run[0] in "+0" or not run.isdigit())
    ]


def _is_dialled(run: str) -> bool:
    return _DIALLED.match(run) is not None and _DATE.fullmatch(run) is None


def _codes(text: str) -> list[str]:
    return [match.group(1) or match.group() for match in _CODE.finditer(without_links(text))]


def _digits(run: str) -> str:
    return _NOT_DIGIT.sub("", run)
