"""Requires a second factor for the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext as _

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

    GetResponse = Callable[[HttpRequest], HttpResponseBase]


class SecondFactor:
    """Middleware that, with `ADMIN_REQUIRES_MFA`, sends staff without a second factor to set one up."""

    def __init__(self, get_response: GetResponse) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if (
            settings.ADMIN_REQUIRES_MFA
            and request.path_info.startswith("/admin/")
            and request.user.is_authenticated
            and request.user.is_staff
            and not is_mfa_enabled(request.user)
        ):
            messages.warning(request, _("Operator pages need two-factor authentication. Set it up first."))
            return redirect("mfa_index")
        return self._get_response(request)
