"""Serves the operators' page of every mail that the service sends, with sample data, as text and as HTML."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from allauth.account.adapter import get_adapter
from csp.constants import NONE, SELF, UNSAFE_INLINE
from csp.decorators import csp_replace
from django.conf import settings
from django.contrib import admin
from django.http import Http404, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_safe

from accounts import mail_sending
from accounts.models import NoticeKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.core.mail import EmailMessage
    from django.http import HttpRequest

_TO: Final = "alice@example.org"
_WORKSPACE: Final = "Harbour newsroom"
_HOME: Final = f"{settings.PUBLIC_URL}/w/ws_01m7wk807ze8fvmwn6twe28cn6/"
_NOTICE: Final[Mapping[str, Any]] = {
    "workspace": _WORKSPACE,
    "address": _HOME,
    "choices_address": f"{_HOME}settings/notices",
}
_DELETION: Final[Mapping[str, Any]] = {
    "workspace": _WORKSPACE,
    "by": _TO,
    "deletes_at": datetime(2026, 11, 27, 14, 5, tzinfo=UTC),
    "address": f"{_HOME}settings/workspace",
}
_NOTICES: Final[Mapping[str, tuple[str, str]]] = {
    "post_failed": (
        "“Ferries every ten minutes” was not published on Mastodon",
        "The server answered 422: the text is longer than the 500 characters that it allows.",
    ),
    "post_handed_over": (
        "“Ferries every ten minutes” is ready to be posted on Substack",
        "Its words and files are ready to copy. Say afterwards whether it was posted.",
    ),
    "item_flagged": (
        "The source of “Ferries every ten minutes” has changed since it was published",
        "2 published items were made of it.\nIts source was edited after it was published. Compare the two.",
    ),
    "source_failing": (
        "The source Port authority fails",
        "The server answered 503.\nIt is polled again automatically, at longer intervals.",
    ),
    "recurrence_stopped": (
        "“Ferries every ten minutes” no longer repeats",
        "Its source Port authority was deleted. Restore the source, then repeat the item again.",
    ),
    "few_topics": (
        "Bread every morning runs out of topics",
        "Only 4 topics may be taken now, fewer than 7; add some before the lane runs dry.",
    ),
    "outlet_reconnect": (
        "Mastodon has to be reconnected",
        "mastodon says: the access token was revoked.\nNothing is published there until then.",
    ),
    "webhook": (
        "The webhook endpoint at hooks.partner.example was switched off",
        "The endpoint answered 500.\nIts events are held until you switch it on again.",
    ),
    "quota": (
        f"80 % of this month's credits of {_WORKSPACE} are used",
        "200 of 1000 credits are left; the next ones come at 1 Jan 2027, 00:00 UTC.",
    ),
}
OUR_MAILS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    **{
        f"notice-{kind}": ("notice", {**_NOTICE, "title": title, "text": text})
        for kind, (title, text) in _NOTICES.items()
    },
    "monthly": (
        "monthly",
        {
            **_NOTICE,
            "title": f"42 posts in November 2026 from {_WORKSPACE}",
            "text": "November 2026, beside October 2026:\n"
            "- Published: 42 (38 before)\n- Failed: 2 (0 before)\n"
            "- Views: 12,431 (not compared, numbers are missing)\n- Engagements: 1,204 (998 before)\n\n"
            "What isn't known, and is in no sum:\n"
            "- No number from Mastodon: 3 of 12 posts\n- Views not given by: Mastodon, Bluesky\n\n"
            "By outlet:\n- Harbour channel: 30 published, 2 failed, 12,431 views, 901 engagements\n"
            "- Mastodon: 12 published, 303 engagements, no number from 3 of 12\n\n"
            "Best posts, by engagements until now:\n- Ferries every ten minutes (Harbour channel): 310\n\n"
            "The pipeline itself:\n- Published within a minute of its time: 97.6 %\n"
            "- Late, half of them at most: 2 seconds\n- Late, 19 of 20 at most: 41 seconds\n"
            "- Publications that failed: 2 of 44\n- Items that couldn't be made: 1 of 60",
            "off_address": f"{settings.PUBLIC_URL}/notices/off/made-up",
        },
    ),
    "digest": (
        "digest",
        {
            **_NOTICE,
            "title": f"2 events from {_WORKSPACE}",
            "text": "12 items wait for review. The oldest has waited for 2 days.\n\n"
            "“Ferries every ten minutes” was not published on Mastodon\nThe server answered 422.",
        },
    ),
    "invitation": (
        "invitation",
        {
            "by": "Bob Example",
            "email": _TO,
            "workspace": _WORKSPACE,
            "role": "editor",
            "days": 7,
            "address": f"{settings.PUBLIC_URL}/invitation/made-up",
        },
    ),
    "asked": (
        "asked",
        {
            "workspace": _WORKSPACE,
            "id": "ws_01m7wk807ze8fvmwn6twe28cn6",
            "by": _TO,
            "message": "We write about the harbour and publish to Mastodon.",
            "is_in_sandbox": True,
            "address": (
                f"{settings.PUBLIC_URL}/admin/accounts/whitelistrequest/01a226c3-e81d-7157-b30f-518dbd1f6d5d/decide/"
            ),
        },
    ),
    "workspace_deletion": ("workspace_deletion", _DELETION),
    "workspace_kept": ("workspace_kept", _DELETION),
    "whitelisted": ("whitelisted", {"workspace": _WORKSPACE, "address": _HOME}),
    "delisted": ("delisted", {"workspace": _WORKSPACE, "address": f"{_HOME}settings/access"}),
    "refused": (
        "refused",
        {
            "workspace": _WORKSPACE,
            "is_in_sandbox": True,
            "reason": "Say which site it is for.",
            "address": f"{_HOME}settings/access",
        },
    ),
}
"""The template of `templates/mail` and the context of each of our mails, by the mail's name."""
_CHANGE: Final[Mapping[str, Any]] = {
    "timestamp": datetime(2026, 11, 20, 14, 5, tzinfo=UTC),
    "ip": "192.0.2.7",
    "user_agent": "Firefox on Linux",
    "from_email": "old@example.org",
    "to_email": _TO,
    "deleted_email": "old@example.org",
}
_CODE: Final[Mapping[str, Any]] = {"code": "KX4T-9QWM"}
ALLAUTH_MAILS: Final[Mapping[str, Mapping[str, Any]]] = {
    "account/email/email_confirmation_signup": _CODE,
    "account/email/email_confirmation": _CODE,
    "account/email/login_code": _CODE,
    "account/email/password_reset_code": _CODE,
    "account/email/account_already_exists": {
        "email": _TO,
        "password_reset_url": f"{settings.PUBLIC_URL}/account/password/reset/",
    },
    "account/email/unknown_account": {"email": _TO, "signup_url": f"{settings.PUBLIC_URL}/account/signup/"},
    **dict.fromkeys(
        (
            "account/email/password_reset",
            "account/email/password_changed",
            "account/email/password_set",
            "account/email/email_changed",
            "account/email/email_confirm",
            "account/email/email_deleted",
            "mfa/email/totp_activated",
            "mfa/email/totp_deactivated",
            "mfa/email/recovery_codes_generated",
        ),
        _CHANGE,
    ),
}
"""The contexts of allauth's mails, by the prefix of their templates."""


_LABELS: Final[Mapping[str, Any]] = {
    "monthly": gettext_lazy("Monthly summary"),
    "digest": gettext_lazy("Daily digest"),
    "invitation": gettext_lazy("Invitation"),
    "asked": gettext_lazy("Access request (to the operator)"),
    "workspace_deletion": gettext_lazy("Workspace deletion"),
    "workspace_kept": gettext_lazy("Workspace deletion cancelled"),
    "whitelisted": gettext_lazy("Access approved"),
    "refused": gettext_lazy("Access refused"),
    "delisted": gettext_lazy("Access revoked"),
    "email_confirmation_signup": gettext_lazy("Sign-up code"),
    "email_confirmation": gettext_lazy("Address code"),
    "login_code": gettext_lazy("Log-in code"),
    "password_reset_code": gettext_lazy("Password reset code"),
    "account_already_exists": gettext_lazy("Account exists"),
    "unknown_account": gettext_lazy("No such account"),
    "password_reset": gettext_lazy("Password reset"),
    "password_changed": gettext_lazy("Password changed"),
    "password_set": gettext_lazy("Password set"),
    "email_changed": gettext_lazy("Address changed"),
    "email_confirm": gettext_lazy("Address confirmed"),
    "email_deleted": gettext_lazy("Address removed"),
    "totp_activated": gettext_lazy("Two-factor authentication on"),
    "totp_deactivated": gettext_lazy("Two-factor authentication off"),
    "recovery_codes_generated": gettext_lazy("New recovery codes"),
}


def mail_names() -> dict[str, Any]:
    """Return the label of each mail by its name."""
    notice_labels = {
        f"notice-{kind}": _("Notification: %(kind)s") % {"kind": NoticeKind(kind).label} for kind in _NOTICES
    }
    return notice_labels | dict(_LABELS)


def sample_mail(name: str) -> EmailMessage:
    """Return the mail as it would be sent, with sample data. Raises `Http404` for an unknown name."""
    if name in OUR_MAILS:
        template, context = OUR_MAILS[name]
        return mail_sending.render(template, _TO, context)
    for prefix, context in ALLAUTH_MAILS.items():
        if prefix.rpartition("/")[2] == name:
            message: EmailMessage = get_adapter().render_mail(prefix, _TO, dict(context))
            return message
    raise Http404


@require_safe
def mails_page(request: HttpRequest) -> HttpResponse:
    """Show one mail as text, next to its HTML in a frame; the page is behind `admin_view`."""
    chosen = request.GET.get("mail") or next(iter(OUR_MAILS))
    message = sample_mail(chosen)
    context = {
        **admin.site.each_context(request),
        "title": _("Mails"),
        "names": mail_names(),
        "chosen": chosen,
        "subject": message.subject,
        "text": message.body,
    }
    return TemplateResponse(request, "admin/mails.html", context)


# A mail has inline styles, which no other page may have. Besides them it may load only our images, and only our own page
# may frame it.
@require_safe
@xframe_options_sameorigin
@csp_replace(  # type: ignore[arg-type]  # its types don't allow a view with arguments
    {
        "default-src": [NONE],
        "style-src": [UNSAFE_INLINE],
        "img-src": [SELF],
        "frame-ancestors": [SELF],
        "form-action": [NONE],
        "base-uri": [NONE],
    }
)
def mail_as_html(request: HttpRequest, name: str) -> HttpResponse:
    del request
    ((html, _kind),) = sample_mail(name).alternatives  # type: ignore[attr-defined]  # the framed mails have one
    return HttpResponse(html)
