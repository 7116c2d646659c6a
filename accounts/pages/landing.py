"""Serves pages outside a workspace: the front page, creating a workspace, the theme, and the errors."""

from __future__ import annotations

import json
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
from accounts.pages import context_processors, kept_forms
from accounts.pages.act_messages import report_errors
from accounts.pages.page_access import user_page
from config.core import limits
from config.core.middleware import request_id

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

_THEME_SECONDS: Final = 365 * 24 * 3600
operators_log_in = secure_admin_login(admin.site.login)
"""The admin's log-in page, which redirects to that of all users, with codes, a second factor and limits."""


@require_safe
@never_cache
def front(request: HttpRequest) -> HttpResponse:
    """Redirect a logged-in user to the last workspace, or to create one; show others what the service is."""
    if not request.user.is_authenticated:
        return render(request, "pages/front.html")
    membership = context_processors.last_or_first(request, context_processors.memberships(request))
    if membership is None:
        return redirect("workspace_create")
    return redirect("home", ws=membership.workspace_id)


@user_page
def settings_front(request: HttpRequest, rest: str = "") -> HttpResponse:
    """Redirect `/settings/…`, as documents and mails give it, to the last workspace, or to create one."""
    membership = context_processors.last_or_first(request, context_processors.memberships(request))
    if membership is None:
        return redirect("workspace_create")
    return redirect(f"/w/{membership.workspace.public_id}/settings/{rest}")


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
        help_text=gettext_lazy("You can change it later in the persona, the voice of your posts."),
        choices=languages.language_choices,
        required=False,
    )

    def __init__(self, *args: Any, language: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["language"].initial = language
        if not self.is_bound:
            # The page's script selects the browser's own time zone; many browsers use obsolete names.
            self.fields["timezone"].widget.attrs["data-own-zone"] = json.dumps(timezones.present_names())


@user_page
def create(request: HttpRequest) -> HttpResponse:
    """Create a workspace owned by the user; the form's second sending creates none."""
    language = languages.preferred_language(request.headers.get("Accept-Language", ""))
    form = kept_forms.form_for(request, NewWorkspaceForm, language=language)
    if request.method == "POST" and form.is_valid():
        if not kept_forms.is_first_sending(request):
            return redirect("front")
        with report_errors(request, form):
            workspace = workspaces.create(
                form.cleaned_data["name"],
                owner=request.user,  # type: ignore[arg-type]  # they are logged in
                timezone=form.cleaned_data["timezone"],
                language=form.cleaned_data["language"] or language,
            )
            messages.success(request, _("%(name)s is ready.") % {"name": workspace.name})
            return redirect("home", ws=UUID(str(workspace.pk)))
    return render(request, "pages/workspace/create.html", {"form": form})


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Store the chosen theme in a cookie, or delete the cookie, as the page's script does without a request."""
    theme_name = request.POST.get("theme", "")
    response = redirect(_safe_next_address(request))
    if theme_name in context_processors.THEMES:
        response.set_cookie(
            "theme", theme_name, max_age=_THEME_SECONDS, samesite="Lax", secure=request.is_secure()
        )
    else:
        response.delete_cookie("theme")
    return response


def _safe_next_address(request: HttpRequest) -> str:
    """Return the page that the form was on, or `/` for an address that may lead to another site."""
    address = request.POST.get("next", "/")
    return address if address.startswith("/") and not address.startswith(("//", "/\\")) else "/"


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Render the 404 page, which is the same for rows of another workspace."""
    del exception
    return render(request, "pages/errors/404.html", status=404)


def too_many_requests(request: HttpRequest) -> HttpResponse:
    """Render the 429 page for a log-in, sign-up or code requested too often (see `ACCOUNT_RATE_LIMITS`)."""
    return render(request, "pages/errors/429.html", status=429)


def server_error(request: HttpRequest) -> HttpResponse:
    """Render the 500 page without a database query, because the database may be broken."""
    return render(request, "pages/errors/500.html", {"request_id": request_id()}, status=500)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Render the page for a form that was open too long, or whose browser keeps no cookies."""
    del reason
    return render(request, "pages/errors/csrf.html", status=403)
