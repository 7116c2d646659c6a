"""Adapts allauth's sign-ups, redirects, mails and stored secrets to this service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.flows.login import record_authentication
from allauth.mfa.adapter import DefaultMFAAdapter
from django.conf import settings
from django.urls import reverse

from accounts import mail_sending
from accounts.access.authentication import client_address
from accounts.pages import invitation
from config.core.encrypted_fields import seal, unseal

if TYPE_CHECKING:
    from django.core.mail import EmailMessage
    from django.forms import BaseForm
    from django.http import HttpRequest, HttpResponse

    from accounts.models import User


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # it ships no types
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Return whether the visitor may sign up; with a valid invitation they always may."""
        return settings.SIGNUP_OPEN or invitation.find_kept_invitation(request) is not None

    def get_login_redirect_url(self, request: HttpRequest) -> str:
        del request
        return reverse("front")

    get_signup_redirect_url = get_login_redirect_url

    def save_user(self, request: HttpRequest, user: User, form: BaseForm, commit: bool = True) -> User:  # noqa: FBT001, FBT002  allauth's
        user.name = str(form.cleaned_data.get("name") or "").strip()
        saved: User = super().save_user(request, user, form, commit)
        return saved

    def post_login(self, request: HttpRequest, user: User, **arguments: Any) -> HttpResponse:
        """Finish the log-in; after a sign-up with an invitation accept it, and redirect to its workspace.

        A log-in also counts as a re-authentication, so pages that need one ask only after that has expired.
        """
        record_authentication(request, user, method="login", reauthenticated=True)
        membership = invitation.join_after_sign_up(request, user) if arguments["signup"] else None
        if membership is not None:
            arguments["redirect_url"] = reverse("home", kwargs={"ws": membership.workspace_id})
        response: HttpResponse = super().post_login(request, user, **arguments)
        return response

    def get_client_ip(self, request: HttpRequest) -> str:
        """Return the client's address behind the operator's proxies, or `0.0.0.0` if it is unknown."""
        return client_address(request) or "0.0.0.0"  # noqa: S104  stands for an unknown address

    def render_mail(
        self,
        template_prefix: str,
        email: str | list[str],
        context: dict[str, Any],
        headers: dict[str, str] | None = None,
    ) -> EmailMessage:
        """Render allauth's text in our frame, as plain text and HTML."""
        plain: EmailMessage = super().render_mail(template_prefix, email, context, headers)
        return mail_sending.add_html(plain)

    def format_email_subject(self, subject: str) -> str:
        return f"{settings.SITE_NAME}: {subject}"


class MfaAdapter(DefaultMFAAdapter):  # type: ignore[misc]  # it ships no types
    """Encrypts the secrets of authenticator apps and recovery codes, as other readable secrets are."""

    def encrypt(self, text: str) -> str:
        return seal(text)

    def decrypt(self, encrypted_text: str) -> str:
        return unseal(encrypted_text)
