"""Publishes an email newsletter through the workspace's own SMTP server to the outlet's own subscribers.

`commit` sends nothing: the publication's mailing is made in the transaction that marks it published, and tasks
send it to one recipient after the other, each at most once (`pipeline/mailing/`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pipeline.platforms.base import Account, AccountInfo, Found, Platform, Sent, Setting
from pipeline.platforms.email_newsletter import frame
from pipeline.platforms.email_newsletter import message as email_message
from pipeline.platforms.email_newsletter import session as email_session
from pipeline.platforms.rules import BucketRule
from pipeline.plugins import ConfigInvalid, Evidence, Problem, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from config.core.http_client import Client
    from pipeline.engines.base import Bucket
    from pipeline.platforms.payload_types import Adapted

ADDRESS: Final = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@(?=.{4,190}$)([A-Za-z0-9-]{1,63}\.)+[A-Za-z0-9-]{2,63}"
)
DOMAIN: Final = re.compile(r"(?=.{4,190}$)([A-Za-z0-9-]{1,63}\.)+[A-Za-z0-9-]{2,63}")
SELECTOR: Final = re.compile(r"[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*")
MAX_MAILS_PER_MINUTE: Final = 6000
MAX_SUBJECT_CHARACTERS: Final = 250
"""Our own limit of a subject; mail programs show far less of it."""
_RULE: Final = BucketRule(text_max=None, title_max=MAX_SUBJECT_CHARACTERS, needs_title=True)
_FRAME_BYTES: Final = 8 * 1024
"""The bytes reserved for the frame, and for an outlet's imprint and name at their longest."""
_PATTERNS: Final = {
    "from_address": ADDRESS,
    "reply_to": ADDRESS,
    "return_address": ADDRESS,
    "bounce_domain": DOMAIN,
    "dkim_domain": DOMAIN,
    "dkim_selector": SELECTOR,
    "accent": re.compile(r"#(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "utm_source": re.compile(r"[A-Za-z0-9_.-]{1,60}"),
}


class EmailNewsletter(Platform):
    kind = "email_newsletter"
    label = "Email newsletter"
    icon = "mail"
    summary = "Mails newsletters and articles to your own subscribers, through your own mail server."
    evidence = Evidence("software", "aiosmtpd 1.4", "tests/pipeline/mailing/test_send.py")
    buckets: ClassVar[tuple[Bucket, ...]] = ("newsletter", "blog")
    can_reconcile = True
    posts_are_ours = True
    mails_subscribers = True
    idempotency = "ours"
    rules: ClassVar[Mapping[Bucket, BucketRule]] = {"newsletter": _RULE, "blog": _RULE}
    settings: ClassVar[tuple[Setting, ...]] = (
        Setting("host", "Mail server", "Its host name, as your mail provider gives it for sending (SMTP)."),
        Setting("port", "Port", "587 with STARTTLS, 465 with TLS.", kind="number", default=587),
        Setting(
            "encryption",
            "Encryption",
            kind="choice",
            choices=(
                ("starttls", "STARTTLS"),
                ("tls", "TLS from the start"),
                ("none", "None, without a password"),
            ),
            default="starttls",
        ),
        Setting("user", "User", "Empty where the server asks for none.", is_required=False, max_length=320),
        Setting(
            "password", "Password", kind="password", is_secret=True, is_required=False, allows_unicode=True
        ),
        Setting("from_name", "Sender's name", "What recipients see.", max_length=120),
        Setting("from_address", "Sender's address", kind="email", max_length=254),
        Setting("reply_to", "Replies go to", kind="email", is_required=False, max_length=254),
        Setting(
            "imprint", "Postal address", "Shown below each mail; many countries require it.", max_length=500
        ),
        Setting(
            "accent",
            "Colour",
            "Of links and buttons in the mail, such as #17594a; it is darkened until it can be read.",
            is_required=False,
            max_length=7,
        ),
        Setting(
            "utm_source",
            "Campaign source",
            "Counted as utm_source with every link in the mail, with utm_medium=email; empty: links stay as they are.",
            is_required=False,
            max_length=60,
        ),
        Setting(
            "return_address",
            "Return mailbox",
            "Receives undeliverable and unsubscribe mails; empty: the sender's address.",
            kind="email",
            is_required=False,
            max_length=254,
        ),
        Setting(
            "bounce_domain",
            "Bounce domain",
            "A domain whose mailbox takes every address: then each mail has a return address of its own.",
            is_required=False,
            max_length=190,
        ),
        Setting("dkim_domain", "DKIM domain", "The sender's domain.", is_required=False, max_length=190),
        Setting(
            "dkim_selector",
            "DKIM selector",
            "A name for the key, such as news1.",
            is_required=False,
            max_length=63,
        ),
        Setting(
            "dkim_key",
            "DKIM private key",
            "An RSA key in PEM. Leave it empty where the mail server signs.",
            kind="password",
            is_secret=True,
            is_required=False,
            max_length=8000,
            has_lines=True,
        ),
        Setting(
            "mails_per_minute",
            "Mails per minute",
            "What your mail provider allows.",
            kind="number",
            default=60,
        ),
    )

    def clean_config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        clean = super().clean_config(config)
        problems = [
            Problem(f"config.{name}", "invalid", f"{clean[name]!r} can't be used here.")
            for name, pattern in _PATTERNS.items()
            if name in clean and not pattern.fullmatch(clean[name])
        ]
        problems += [
            Problem(f"config.{name}", "invalid", "It has to be one line.")
            for name in ("host", "user", "from_name")
            if not str(clean.get(name, "")).isprintable()
        ]
        if not 0 < clean["port"] < 65_536:
            problems.append(Problem("config.port", "invalid", "Give a port from 1 to 65535."))
        if not 0 < clean["mails_per_minute"] <= MAX_MAILS_PER_MINUTE:
            message = f"Give a number from 1 to {MAX_MAILS_PER_MINUTE}."
            problems.append(Problem("config.mails_per_minute", "invalid", message))
        if bool(clean.get("dkim_domain")) != bool(clean.get("dkim_selector")):
            message = "DKIM needs a domain and a selector."
            problems.append(Problem("config.dkim_selector", "required", message))
        if problems:
            raise ConfigInvalid(problems)
        return clean

    def validate(self, account: Account, post: Adapted) -> tuple[Problem, ...]:
        problems = super().validate(account, post)
        html = email_message.issue_of(post.payload, account.config).html
        size = len(html.encode("utf-8", "replace"))
        if post.payload.bucket != "newsletter" or size <= frame.MAX_HTML_BYTES - _FRAME_BYTES:
            return problems
        message = (
            f"The mail would have {size // 1024} KB; beyond {frame.MAX_HTML_BYTES // 1024} KB mail programs cut it "
            "off, and the link to unsubscribe with it."
        )
        return (*problems, Problem("body", "too_long", message))

    def check_account(self, account: Account, *, http: Client, now: datetime) -> AccountInfo:
        del now
        notes = dkim_notes(account)
        session = email_session.open_session(account, http.policy)
        session.close()
        address = str(account.config["from_address"])
        return AccountInfo(
            external_id=address, handle=address, name=str(account.config.get("from_name", "")), notes=notes
        )

    def commit(
        self,
        account: Account,
        post: Adapted,
        state: Mapping[str, Any],
        *,
        http: Client,
        key: str,
        now: datetime,
    ) -> Sent:
        """Return the key as the post's id, which the mailing's id replaces once the mailing is made."""
        del account, post, state, http, now
        return Sent(external_id=key)

    def reconcile(
        self,
        account: Account,
        post: Adapted,
        state: Mapping[str, Any],
        *,
        http: Client,
        key: str,
        now: datetime,
    ) -> Found:
        del account, post, state, http, now
        return Found(Sent(external_id=key))


def dkim_notes(account: Account) -> tuple[str, ...]:
    """Return notes on the DKIM signature, with the DNS record to publish.

    Raises `Refused` if the settings are incomplete or the key can't be used.
    """
    config = account.config
    domain = str(config.get("dkim_domain", ""))
    has_key = bool(account.credentials.get("dkim_key"))
    if not has_key and not domain:
        return ("Mails aren't signed here: your mail server has to sign them with DKIM.",)
    if not has_key or not domain:
        message = "DKIM needs a domain, a selector and a private key."
        raise Refused(message, code="dkim_incomplete", action="Complete the DKIM settings, or empty them.")
    notes = [f"Publish this DNS record: {email_message.dns_record(account)}"]
    sender = str(config["from_address"]).rpartition("@")[2].lower()
    if sender != domain.lower() and not sender.endswith(f".{domain.lower()}"):
        notes.append(
            f"The sender's address isn't of {domain}: mailbox providers won't count the signature (DMARC)."
        )
    return tuple(notes)


PLUGIN = EmailNewsletter()
