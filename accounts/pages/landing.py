"""Where people come in: the front page, their workspaces, and what they are told when something isn't there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from allauth.account.decorators import secure_admin_login
from django import forms
from django.contrib import admin, messages
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts import languages, timezones, workspaces
from accounts.pages import context_processors, form_recovery
from accounts.pages.act_messages import report_errors
from accounts.pages.page_access import person_page
from config.core import limits
from config.core.middleware import request_id

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

_THEME_SECONDS: Final = 365 * 24 * 3600
operators_log_in = secure_admin_login(admin.site.login)
"""The operators' log-in is everybody's: with codes, a second factor and limits on guessing."""


@require_safe
@never_cache
def front(request: HttpRequest) -> HttpResponse:
    """Who is logged in goes on to their workspace; everybody else is told what this is."""
    if not request.user.is_authenticated:
        return render(request, "pages/front.html")
    own = context_processors.last_or_first(request, context_processors.memberships(request))
    if own is None:
        return redirect("workspace_create")
    return redirect("home", ws=own.workspace_id)


@person_page
def settings_front(request: HttpRequest, rest: str = "") -> HttpResponse:
    """`/settings/…` without a workspace in it, as documents and mails name it: the page of the last workspace."""
    own = context_processors.last_or_first(request, context_processors.memberships(request))
    if own is None:
        return redirect("workspace_create")
    return redirect(f"/w/{own.workspace.public_id}/settings/{rest}")


class NewWorkspaceForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=limits.NAME_CHARACTERS,
        help_text=gettext_lazy("Your team, brand or publication. You can change it later."),
        widget=forms.TextInput(attrs={"autocomplete": "organization", "autofocus": True}),
    )
    timezone = forms.ChoiceField(
        label=gettext_lazy("Time zone"),
        help_text=gettext_lazy("Schedules and reports use it."),
        choices=timezones.timezone_choices,
        initial="UTC",
    )
    language = forms.ChoiceField(
        label=gettext_lazy("Language of posts"),
        help_text=gettext_lazy("You can change it in the persona."),
        choices=languages.language_choices,
        required=False,
    )

    def __init__(self, *args: Any, language: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["language"].initial = language
        if not self.is_bound:
            # The page's script chooses the browser's own.
            self.fields["timezone"].widget.attrs["data-own-zone"] = ""


@person_page
def create(request: HttpRequest) -> HttpResponse:
    language = languages.preferred_language(request.headers.get("Accept-Language", ""))
    form = form_recovery.form_for(request, NewWorkspaceForm, language=language)
    if request.method == "POST" and form.is_valid():
        if not form_recovery.is_first_sending(request):
            return redirect("front")
        with report_errors(request, form):
            made = workspaces.create(
                form.cleaned_data["name"],
                owner=request.user,  # type: ignore[arg-type]  # they are logged in
                timezone=form.cleaned_data["timezone"],
                language=form.cleaned_data["language"] or language,
            )
            messages.success(request, _("%(name)s is ready.") % {"name": made.name})
            return redirect("home", ws=UUID(str(made.pk)))
    return render(request, "pages/workspace/create.html", {"form": form})


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Keep the theme that was chosen; the script does the same without a request."""
    chosen = request.POST.get("theme", "")
    answer = redirect(_own_address(request))
    if chosen in context_processors.THEMES:
        answer.set_cookie("theme", chosen, max_age=_THEME_SECONDS, samesite="Lax", secure=request.is_secure())
    else:
        answer.delete_cookie("theme")
    return answer


def _own_address(request: HttpRequest) -> str:
    """Back to where the form stood; never to another site."""
    address = request.POST.get("next", "/")
    return address if address.startswith("/") and not address.startswith(("//", "/\\")) else "/"


def nothing_here(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Also what belongs to somebody else: the two can't be told apart."""
    del exception
    return render(request, "pages/errors/404.html", status=404)


def too_often(request: HttpRequest) -> HttpResponse:
    """A log-in, a sign-up or a code that was asked for again and again: ACCOUNT_RATE_LIMITS."""
    return render(request, "pages/errors/429.html", status=429)


def broken(request: HttpRequest) -> HttpResponse:
    """It asks the database nothing: that may be what is broken."""
    return render(request, "pages/errors/500.html", {"request_id": request_id()}, status=500)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form that was open too long, or in a browser that keeps no cookies."""
    del reason
    return render(request, "pages/errors/csrf.html", status=403)
