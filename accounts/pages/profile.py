"""Serves the user's profile, with links to their address, password, second factor and sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from allauth.mfa.utils import is_mfa_enabled
from django import forms
from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import users
from accounts.pages import kept_forms
from accounts.pages.page_access import user_page
from config.core import limits

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from accounts.models import User


class ProfileForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=limits.NAME_CHARACTERS,
        required=False,
        help_text=gettext_lazy("Shown to colleagues"),
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )


@user_page
def profile(request: HttpRequest) -> HttpResponse:
    """Show and save the user's name."""
    user = cast("User", request.user)
    form = kept_forms.form_for(request, ProfileForm, initial={"name": user.name})
    if request.method == "POST" and form.is_valid():
        user.name = form.cleaned_data["name"].strip()
        users.save_user(user, ["name"], user.email)
        messages.success(request, _("Saved."))
        return redirect("profile")
    return render(request, "pages/profile.html", {"form": form, "has_second_factor": is_mfa_enabled(user)})
