"""Extends allauth's sign-up form by a name, invitations and a limit."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from allauth.account.forms import SignupForm as AllauthSignupForm
from allauth.core import context
from django import forms
from django.contrib.auth.hashers import make_password
from django.utils.translation import gettext_lazy as _

from accounts import limits
from accounts.access import counter_caches
from config.core import limits as core_limits

if TYPE_CHECKING:
    from django.http import HttpRequest


class SignupForm(AllauthSignupForm):  # type: ignore[misc]  # it ships no types
    """Asks for a name too, which colleagues see; with an invitation the address is fixed."""

    name = forms.CharField(
        label=_("Your name"),
        max_length=core_limits.NAME_CHARACTERS,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )
    field_order: ClassVar = ["email", "name", "password1"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._verified_email = str(context.request.session.get("account_verified_email") or "")
        if self._verified_email:
            email = self.fields["email"]
            email.initial = self._verified_email
            email.widget.attrs["readonly"] = True
            email.help_text = _("Invited address")

    def clean_email(self) -> str:
        email = str(super().clean_email())
        if self._verified_email and email.lower() != self._verified_email.lower():
            message = _("Sign up with the invited address, %(email)s.")
            raise forms.ValidationError(message % {"email": self._verified_email})
        return email

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        # Checked for known addresses too, so that nobody learns which are.
        if not self.errors and not self._verified_email and _is_over_limit():
            message = _("Too many sign-ups. Try again in an hour.")
            raise forms.ValidationError(message)
        return cleaned

    def try_save(self, request: HttpRequest) -> Any:
        """Save the user, or for a known address only hash the password, so that it takes as long."""
        if self.account_already_exists:
            make_password(self.cleaned_data["password1"])
        return super().try_save(request)


def _is_over_limit() -> bool:
    """Count this sign-up, and return whether there are too many within the hour."""
    return counter_caches.add_to_count("sign-ups", within=timedelta(hours=1)) > limits.SIGN_UPS
