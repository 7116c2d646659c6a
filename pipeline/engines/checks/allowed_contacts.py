"""Checks the links, accounts, email addresses, telephone numbers, codes and tags of a draft by an allow-list.

The allow-list has the source's own address and whatever the persona's texts name. Whatever the source's words
name isn't on it: strangers wrote them, and a prompt can't ensure that a model leaves those things out.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pipeline.engines.base import Check, make_check
from pipeline.engines.checks.persona_rules import banned_in
from pipeline.text.html_text import strip_invisible
from pipeline.text.links import TOP_LEVEL_DOMAINS, find_links, is_same_address, without_links
from pipeline.text.prose.verbatim_edits import collapse, drop_asides, first_words

if TYPE_CHECKING:
    from pipeline.engines.base import Brief, PersonaCard

_MAX_NAMED = 5
_MAX_ORDER_CHARACTERS = 200
_MAX_TITLE_CHARACTERS = 60
_MIN_PHONE_DIGITS = 7
"""Fewer digits make no telephone number; the check `numbers` finds them if they aren't in the source."""

# Browsers read these as dots; between letters of other scripts the first one ends a sentence.
_OTHER_DOTS = re.compile(r"(?<=[A-Za-z0-9])[\u3002\uff0e\uff61\u2024\ufe52](?=[A-Za-z0-9])")
_URL_WITH_SCHEME = re.compile(
    r"(?<![A-Za-z0-9+.\-])(?:[A-Za-z][A-Za-z0-9+.\-]{1,20}://|(?:mailto|tel|sms|javascript|data|magnet|skype|whatsapp|"
    r"bitcoin|ethereum|tg|intent):)[^\s<>\"']{1,2000}",
    re.IGNORECASE,
)
# Such as "news.example/path" or "10.0.0.1:8080"; a name with the group `mail` belongs to an email address.
# In any script: readers may use an app that links more than X does.
_HOST = re.compile(
    r"(?<![\w.@\uff20\-])(?P<host>[\w\-]{1,63}(?:\.[\w\-]{1,63}){1,8})(?![\w\-])(?P<mail>[@\uff20]?)"
    r"(?P<tail>(?::\d{1,5})?(?:[/?#][^\s<>\"']{0,2000})?)"
)
_NUMERIC_HOST = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}")
_CLOSING = ".,;:!?)]}>'\"*_\u2019\u201d\u00bb\u2026"

_MENTION = re.compile(r"(?<![\w@\uff20/])[@\uff20][\w][\w.\-]*")
_HASHTAG = re.compile(r"(?<![\w&/])[#\uff03](\w*[^\W\d_]\w*)")
_MAIL = re.compile(r"[\w.+\-]{1,64}[@\uff20][\w\-]{1,63}(?:\.[\w\-]{1,63}){1,8}")
# One number may continue on the next line; a paragraph or a sentence end separates two numbers.
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
    """Return whether the words name only what the allow-list has, and nothing that the persona bans."""
    return not (
        unlisted_addresses(words, brief, persona)
        or unlisted_accounts(words, persona)
        or unlisted_contacts(words, brief, persona)
        or unlisted_tags(words, brief, persona)
        or banned_in(words, persona)
    )


def title_of(brief: Brief, persona: PersonaCard, words: str) -> str:
    """Return the source's title, or the first of `words` if the title is missing or isn't allowed."""
    title = collapse(brief.title)
    return title if title and is_allowed(title, brief, persona) else first_words(words, _MAX_TITLE_CHARACTERS)


def unlisted_addresses(words: str, brief: Brief, persona: PersonaCard, *, url: str = "") -> tuple[str, ...]:
    """Return the addresses, as any app may link them, that are neither the source's nor the persona's, in order."""
    addresses = _addresses(words)
    if not addresses:
        return ()
    story_urls = (story.url for story in brief.stories)
    listed_urls = [listed_url for listed_url in (url, brief.url, *story_urls, *persona.links) if listed_url]
    persona_text = "\n".join(_persona_texts(persona))
    listed_urls += [address for address in _addresses(persona_text) if address not in listed_urls]
    listed_hosts = {
        form
        for listed_url in listed_urls
        for form in (_host(listed_url), _host(listed_url).removeprefix("www."))
    } - {""}
    return tuple(
        address
        for address in dict.fromkeys(addresses)
        # The bare name of a listed site leads to that site only.
        if address.lower() not in listed_hosts
        and not any(
            is_same_address(_with_scheme(address), _with_scheme(listed_url)) for listed_url in listed_urls
        )
    )


def unlisted_accounts(words: str, persona: PersonaCard) -> tuple[str, ...]:
    """Return the mentioned accounts that the persona doesn't name, in order."""
    mentions = _MENTION.findall(_MAIL.sub(" ", strip_invisible(words)))
    if not mentions:
        return ()
    known = {_account(persona.handle)} | {
        _account(mention) for text in _persona_texts(persona) for mention in _MENTION.findall(text)
    }
    return tuple(dict.fromkeys(mention for mention in mentions if _account(mention) not in known))


def unlisted_tags(words: str, brief: Brief, persona: PersonaCard) -> tuple[str, ...]:
    """Return the hashtags that say what neither the facts nor the persona say, in order."""
    tags = _HASHTAG.findall(strip_invisible(words))
    if not tags:
        return ()
    persona_text = "\n".join(_persona_texts(persona))
    # A hashtag in the source asks to spread it, and states nothing.
    facts = _HASHTAG.sub(" ", "\n".join((*_titles(brief), *(fact.quote for fact in brief.facts))))
    known_words = _NOT_WORD.sub("", f"{persona_text}\n{facts}").casefold()
    return tuple(
        dict.fromkeys(f"#{tag}" for tag in tags if _NOT_WORD.sub("", tag).casefold() not in known_words)
    )


def unlisted_contacts(words: str, brief: Brief, persona: PersonaCard, *, url: str = "") -> tuple[str, ...]:
    """Return the email addresses, telephone numbers and codes that the allow-list doesn't have, each once.

    Long figures and names with digits ("12,000,000", "COVID-19") reach nobody, so they may come from the facts;
    in words about an offer, though, a name with digits is its code.
    """
    words = strip_invisible(words)
    mails, phones, codes = _mails(words), _phones(words), _codes(words)
    if not (mails or phones or codes):
        return ()
    persona_texts = _persona_texts(persona)
    addresses = (brief.url, url, *(story.url for story in brief.stories))
    facts = (*_titles(brief), *addresses, *(fact.quote for fact in brief.facts))
    known_mails = {mail.lower() for text in persona_texts for mail in _mails(text)}
    # A sentence may lose its asides in a draft, and then the figures around one stand together.
    persona_digits = [_digits(text) for text in persona_texts]
    fact_digits = [_digits(variant) for text in facts for variant in (text, drop_asides(text))]
    is_offer = _OFFERS.search(words) is not None
    unlisted = [
        *(mail for mail in mails if mail.lower() not in known_mails),
        *(
            phone
            for phone in phones
            if not any(_digits(phone) in run for run in persona_digits)
            and (
                _is_dialled(phone)
                or not all(any(_digits(line) in run for run in fact_digits) for line in phone.split("\n"))
            )
        ),
        *(
            code
            for code in codes
            if not any(code in text for text in persona_texts)
            and (is_offer or not any(code in text for text in facts))
        ),
    ]
    return tuple(dict.fromkeys(unlisted))


def check_addresses(words: str, brief: Brief, persona: PersonaCard, *, url: str = "") -> Check:
    """Return the check `link_origin`."""
    unlisted = unlisted_addresses(words, brief, persona, url=url)
    message = f"These links are neither the source's nor the persona's: {list_some(unlisted)}."
    passed = "Every link leads to the source or to one of the persona's pages."
    return make_check("link_origin", passed, message if unlisted else None)


def check_accounts(words: str, persona: PersonaCard) -> Check:
    """Return the check `mentions`."""
    unlisted = unlisted_accounts(words, persona)
    message = f"The persona doesn't name these accounts: {list_some(unlisted)}."
    passed = "Every account that is mentioned is the persona's own or one that it names."
    return make_check("mentions", passed, message if unlisted else None)


def check_contacts(words: str, brief: Brief, persona: PersonaCard, *, url: str = "") -> Check:
    """Return the check `contacts`: readers are led only to what the persona names."""
    unlisted = unlisted_contacts(words, brief, persona, url=url)
    message = f"These addresses, numbers or codes are not the persona's: {list_some(unlisted)}."
    passed = "Every email address, telephone number and code is the persona's."
    return make_check("contacts", passed, message if unlisted else None)


def check_suspicion(brief: Brief) -> Check:
    """Return the check `instructions`: a warning, with the orders, if the source gives orders to machines."""
    if brief.orders:
        quoted = list_some(
            tuple(f"\u201c{first_words(order, _MAX_ORDER_CHARACTERS)}\u201d" for order in brief.orders)
        )
        message = (
            f"The source gives orders to a machine, which were left out: {quoted} Read this one with care."
        )
        return Check("instructions", "warning", message)
    if brief.is_suspect:
        message = "The source holds text that reads like orders to a machine. Read this one with care."
        return Check("instructions", "warning", message)
    return Check("instructions", "passed", "The source contains no instructions to an AI.")


def list_some(names: tuple[str, ...]) -> str:
    """Return the first few names, and the number of the others."""
    listed = ", ".join(names[:_MAX_NAMED])
    omitted_count = len(names) - _MAX_NAMED
    return f"{listed} and {omitted_count} more" if omitted_count > 0 else listed


def _titles(brief: Brief) -> tuple[str, ...]:
    return (brief.title, *(story.title for story in brief.stories))


def _persona_texts(persona: PersonaCard) -> tuple[str, ...]:
    brand_texts = (str(value) for value in persona.brand.values())
    own_texts = (persona.who_you_are, persona.voice, *persona.reference_posts, *persona.approved_lines)
    required_texts = (str(structure.get("text") or "") for structure in persona.required_structures)
    return (persona.name, persona.handle, *persona.links, *own_texts, *required_texts, *brand_texts)


def _addresses(text: str) -> list[str]:
    """Return the addresses of a text in order: those that platforms link, and others that a browser opens."""
    # A hidden character breaks an address for our patterns, but not for a reader who copies it.
    folded = _OTHER_DOTS.sub(".", strip_invisible(text))
    addresses = [(link.start, link.url) for link in find_links(folded)]
    spans = [(link.start, link.end) for link in find_links(folded)]
    for match in (*_URL_WITH_SCHEME.finditer(folded), *_HOST.finditer(unicodedata.normalize("NFC", folded))):
        address = match.group().rstrip(_CLOSING)
        if match.re is _HOST and (match["mail"] or not _is_resolvable(match["host"], match["tail"])):
            continue
        if not any(start < match.end() and match.start() < end for start, end in spans):
            addresses.append((match.start(), address))
            spans.append((match.start(), match.end()))
    return [address for _, address in sorted(addresses)]


def _is_resolvable(host: str, tail: str) -> bool:
    """Return whether a browser would look the name up; `tail` is what follows it, such as ":80" or "/path"."""
    labels = host.lower().split(".")
    if labels[0] == "www" and len(labels) > 1:
        return True
    if _NUMERIC_HOST.fullmatch(host):
        # Without a port or a path it is a version or another kind of number.
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
    # Addresses hold runs of digits that nobody dials; plain digits are a number, which has its own check.
    runs = (run.strip() for run in _DIGITS.findall(without_links(text)))
    return [
        run
        for run in runs
        if len(_digits(run)) >= _MIN_PHONE_DIGITS and (run[0] in "+0" or not run.isdigit())
    ]


def _is_dialled(run: str) -> bool:
    return _DIALLED.match(run) is not None and _DATE.fullmatch(run) is None


def _codes(text: str) -> list[str]:
    return [match.group(1) or match.group() for match in _CODE.finditer(without_links(text))]


def _digits(run: str) -> str:
    return _NOT_DIGIT.sub("", run)
