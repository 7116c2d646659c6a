"""The mail that asks a subscriber whether it was really they who subscribed."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from django.conf import settings
from django.utils.translation import gettext as _

from pipeline.platforms.email_newsletter.frame import inlined
from pipeline.platforms.email_newsletter.message import Envelope, Issue, look_of

if TYPE_CHECKING:
    from pipeline.models import Outlet, Subscriber


def confirmation_for(outlet: Outlet, subscriber: Subscriber, message_id: str) -> tuple[Issue, Envelope]:
    name = str(outlet.config.get("from_name") or outlet.name)
    url = f"{settings.PUBLIC_URL.rstrip('/')}/subscribe/confirm/{subscriber.token}"
    subject = _("Please confirm: %(name)s") % {"name": name}
    asked = _("Somebody, hopefully you, subscribed this address to %(name)s. Open this page to confirm:") % {
        "name": name
    }
    ignore = _("If it wasn't you, do nothing: you won't get another mail.")
    html = (
        f'<p>{escape(asked)}</p>\n<p><a href="{escape(url)}">{escape(url)}</a></p>\n<p>{escape(ignore)}</p>'
    )
    issue = Issue(
        " ".join(subject.split()), inlined(html, look_of(outlet.config)), f"{asked}\n\n{url}\n\n{ignore}"
    )
    return issue, Envelope(subscriber.email, message_id)
