"""Serves a member's notification preferences, a test notification, and the unsubscribe links of mails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from accounts import limits, notices
from accounts.models import NoticeChannel, NoticeKind
from accounts.notices.kinds import DAILY, KINDS, NOW, OFF
from accounts.pages import kept_forms
from accounts.pages.page_access import Place, workspace_page
from config.core import limits as core_limits

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from accounts.notices import NoticePreferences
    from accounts.notices.kinds import NoticeKindOption

_TIMING_LABELS: Final = {
    NOW: gettext_lazy("Immediately"),
    DAILY: gettext_lazy("Once a day"),
    OFF: gettext_lazy("Never"),
}
_SECRET_SAVED_HELP: Final = gettext_lazy("Saved. Leave empty to keep it.")
# The page doesn't show a saved secret, so the browser must not offer it either.
_SECRET_FIELD_ATTRS: Final = {"autocomplete": "off", "spellcheck": "false"}


class NoticesForm(forms.Form):
    by_mail = forms.BooleanField(label=gettext_lazy("Mail"), required=False)
    by_slack = forms.BooleanField(label=gettext_lazy("Slack"), required=False)
    slack_secret = forms.CharField(
        label=gettext_lazy("Slack incoming webhook"),
        max_length=core_limits.URL_CHARACTERS,
        required=False,
        help_text=gettext_lazy("In Slack: Apps › Incoming Webhooks. Copy the https://hooks.slack.com/ URL."),
        widget=forms.URLInput(attrs=_SECRET_FIELD_ATTRS),
    )
    by_telegram = forms.BooleanField(label=gettext_lazy("Telegram"), required=False)
    telegram_secret = forms.RegexField(
        r"^\d+:[A-Za-z0-9_-]{20,100}$",
        label=gettext_lazy("Telegram bot token"),
        required=False,
        help_text=gettext_lazy("Send /newbot to @BotFather and copy the token."),
        error_messages={"invalid": gettext_lazy("Enter a full token, such as 123456789:AAE…")},
        widget=forms.TextInput(attrs=_SECRET_FIELD_ATTRS),
    )
    telegram_chat = forms.RegexField(
        r"^(-?\d+|@\w+)$",
        label=gettext_lazy("Chat"),
        max_length=64,
        required=False,
        help_text=gettext_lazy("Chat number or channel @name. Message the bot once first."),
        error_messages={"invalid": gettext_lazy("Enter a number such as -1001234 or an @name.")},
    )

    def __init__(self, *args: Any, choice: NoticePreferences, **kwargs: Any) -> None:
        self.choice = choice
        initial = {
            "by_mail": choice.by_mail,
            "by_slack": bool(choice.slack_url),
            "by_telegram": bool(choice.telegram_token),
            "telegram_chat": choice.telegram_chat,
            **{name: choice.when(name) for name in KINDS},
        }
        kwargs["initial"] = initial
        super().__init__(*args, **kwargs)
        for name, kind in KINDS.items():
            self.fields[name] = forms.ChoiceField(
                label=NoticeKind(name).label,
                help_text=kind.help,
                choices=_timing_choices(kind),
            )
        for name, is_saved in (
            ("slack_secret", choice.slack_url),
            ("telegram_secret", choice.telegram_token),
        ):
            if is_saved:
                self.fields[name].help_text = _SECRET_SAVED_HELP

    def kinds(self) -> list[forms.BoundField]:
        """Return the fields of the kinds of notices."""
        return [self[name] for name in KINDS]

    def clean_slack_secret(self) -> str:
        url: str = self.cleaned_data["slack_secret"].strip()
        if url and (urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).hostname):
            raise forms.ValidationError(_("Enter the full https:// URL."))
        return url

    def clean(self) -> dict[str, Any]:
        data = self.cleaned_data
        if data.get("by_slack") and not (data.get("slack_secret") or self.choice.slack_url):
            self._require_field("slack_secret", _("Enter the URL or clear Slack."))
        if data.get("by_telegram"):
            if not (data.get("telegram_secret") or self.choice.telegram_token):
                self._require_field("telegram_secret", _("Enter the token or clear Telegram."))
            if not data.get("telegram_chat"):
                self._require_field("telegram_chat", _("Enter a chat."))
        return data

    def _require_field(self, name: str, message: str) -> None:
        if name not in self.errors:
            self.add_error(name, message)

    def preference_values(self) -> dict[str, Any]:
        """Return the arguments of `save_preferences`; an empty secret keeps a ticked channel's saved one."""
        data = self.cleaned_data
        slack, telegram = data["by_slack"], data["by_telegram"]
        return {
            "kinds": {name: data[name] for name in KINDS},
            "by_mail": data["by_mail"],
            "slack_url": (data["slack_secret"] or self.choice.slack_url) if slack else "",
            "telegram_token": (data["telegram_secret"] or self.choice.telegram_token) if telegram else "",
            "telegram_chat": data["telegram_chat"] if telegram else "",
        }


def _timing_choices(kind: NoticeKindOption) -> list[tuple[str, Any]]:
    """Return when a member can be sent this kind, as stored values and labels."""
    if kind.is_monthly:
        return [(NOW, _("Once a month")), (OFF, _TIMING_LABELS[OFF])]
    # A counted kind exists only in digests, so it can't be sent immediately.
    return [(key, label) for key, label in _TIMING_LABELS.items() if key != NOW or not kind.is_counted]


@workspace_page("be_here")
def notices_page(request: HttpRequest, place: Place) -> HttpResponse:
    """Show and save the user's preferences."""
    preferences = _preferences_or_denied(place)
    form = kept_forms.form_for(request, NoticesForm, choice=preferences)
    if request.method == "POST" and form.is_valid():
        notices.save_preferences(place.workspace, place.user, **form.preference_values())
        messages.success(request, _("Saved."))
        return redirect(place.url_of("notices"))
    context = {
        "form": form,
        "choice": preferences,
        "lately": notices.recent_messages(place.workspace, place.user),
        "channels": dict(NoticeChannel.choices),
        "hour": f"{limits.DIGEST_HOUR:02}:00",
        "most": limits.NOTICES_AT_ONCE_MOST,
    }
    return render(request, "pages/notices/page.html", context)


@workspace_page("be_here", methods=("POST",))
def send_test(request: HttpRequest, place: Place) -> HttpResponse:
    """Send a test message by each channel that is set up, or say that none is."""
    channels = _preferences_or_denied(place).channels
    if not channels:
        messages.error(request, _("Choose and save a channel first."))
        return redirect(place.url_of("notices"))
    notices.send_test(place.workspace, place.user, request.POST.get("once", ""))
    labels = ", ".join(str(NoticeChannel(name).label) for name in channels)
    count = len(channels)
    messages.success(
        request,
        ngettext("Test sent by %(said)s.", "Tests sent by %(said)s.", count) % {"said": labels},
    )
    return redirect(place.url_of("notices"))


def _preferences_or_denied(place: Place) -> NoticePreferences:
    """Return the user's preferences in this workspace. Raises `PermissionDenied` if they have just left it."""
    preferences = notices.find_preferences(place.workspace.pk, place.user.pk)
    if preferences is None:
        raise PermissionDenied
    return preferences


@csrf_exempt
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def unsubscribe(request: HttpRequest, token: str) -> HttpResponse:
    """Show a button (GET), or turn the kind of notice off or on again (POST).

    Mail programs prefetch links, so a GET changes nothing, and they unsubscribe by a POST without cookies
    (RFC 8058). An invalid link gets a 404.
    """
    link = notices.resolve_token(token)
    if link is None:
        response = render(request, "pages/notices/off_over.html", status=404)
    else:
        if request.method == "POST":
            notices.switch(link, is_on=request.POST.get("act") == "come_back")
            link = notices.resolve_token(token) or link
        context = {"link": link, "kind": KINDS[link.kind], "label": NoticeKind(link.kind).label}
        response = render(request, "pages/notices/off.html", context)
    response["X-Robots-Tag"] = "noindex, nofollow"
    return response
