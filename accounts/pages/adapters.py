"""What allauth asks of us: who may sign up, where a log-in leads, how its mails look, how its secrets are kept."""

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
        """Who was invited may always come in."""
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
        """A log-in is as good as a re-authentication for as long as one holds: what needs it asks only after that."""
        record_authentication(request, user, method="login", reauthenticated=True)
        joined = invitation.join_after_sign_up(request, user) if arguments["signup"] else None
        if joined is not None:
            arguments["redirect_url"] = reverse("home", kwargs={"ws": joined.workspace_id})
        answer: HttpResponse = super().post_login(request, user, **arguments)
        return answer

    def get_client_ip(self, request: HttpRequest) -> str:
        """Behind the operator's proxies as everywhere else."""
        return client_address(request) or "0.0.0.0"  # noqa: S104  an address of nobody

    def render_mail(
        self,
        template_prefix: str,
        email: str | list[str],
        context: dict[str, Any],
        headers: dict[str, str] | None = None,
    ) -> EmailMessage:
        """Allauth's words in our frame: plain text and HTML."""
        plain: EmailMessage = super().render_mail(template_prefix, email, context, headers)
        return mail_sending.add_html(plain)

    def format_email_subject(self, subject: str) -> str:
        return f"{settings.SITE_NAME}: {subject}"


class MfaAdapter(DefaultMFAAdapter):  # type: ignore[misc]  # it ships no types
    """Secrets of authenticator apps and recovery codes are sealed like every secret that must be readable again."""

    def encrypt(self, text: str) -> str:
        return seal(text)

    def decrypt(self, encrypted_text: str) -> str:
        return unseal(encrypted_text)
