"""What a workspace that isn't whitelisted lacks, and the form that asks the operator for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import forms
from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import whitelist
from accounts.models import WhitelistRequest
from accounts.pages import form_recovery
from accounts.pages.feedback import report_errors
from accounts.pages.workspace_view import Place, page

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


class AccessForm(forms.Form):
    message = forms.CharField(
        label=gettext_lazy("What do you want to use it for?"),
        max_length=whitelist.MESSAGE_CHARACTERS,
        help_text=gettext_lazy(
            "A sentence or two help the operator to decide: your site, what you publish, where."
        ),
        widget=forms.Textarea(attrs={"rows": 4}),
    )


@page("manage")
def access(request: HttpRequest, place: Place) -> HttpResponse:
    form = form_recovery.form_for(request, AccessForm)
    if request.method == "POST" and form.is_valid():
        with report_errors(request, form):
            whitelist.ask(place.workspace, form.cleaned_data["message"], place.user.email)
            messages.success(request, _("The operator has your request and answers by mail."))
            return redirect(place.address("access"))
    last = WhitelistRequest.objects.of(place.workspace).order_by("-id").first()
    return render(
        request, "pages/access.html", {"form": form, "last": last, "page_name": "access", "place": place}
    )
