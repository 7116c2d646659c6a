"""Serves a workspace's settings: name, approval, access, model key and cap, samples, export, deletion."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import messages
from django.core.cache import cache
from django.http import StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import (
    export,
    limits,
    model_keys,
    samples,
    timezones,
    whitelist_requests,
    workspace_deletion,
    workspaces,
)
from accounts.models import WhitelistRequest
from accounts.pages import kept_forms
from accounts.pages.act_messages import report_errors
from accounts.pages.members import ConfirmForm
from accounts.pages.page_access import Place, fresh_log_in_required, workspace_page
from accounts.pages.secret_input import SecretInput
from config.core import limits as core_limits
from config.core.clock import utc_now

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse
    from django.http.response import HttpResponseBase

MICRO_USD: Final = 1_000_000


class WorkspaceSettingsForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=core_limits.NAME_CHARACTERS,
        widget=forms.TextInput(attrs={"autocomplete": "organization"}),
    )
    timezone = forms.ChoiceField(
        label=gettext_lazy("Time zone"),
        help_text=gettext_lazy("Schedules and reports use it."),
    )
    requires_approval = forms.BooleanField(
        label=gettext_lazy("Approval"),
        required=False,
        help_text=gettext_lazy("Require approval before publishing"),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        fields["timezone"].choices = timezones.timezone_choices(self.initial["timezone"])


class ModelKeyForm(forms.Form):
    model_key = forms.CharField(
        label=gettext_lazy("Key"),
        help_text=gettext_lazy("Stored encrypted; not shown again"),
        widget=SecretInput(attrs={"autocomplete": "off", "spellcheck": "false", "autofocus": True}),
    )


class ModelCapForm(forms.Form):
    dollars = forms.DecimalField(
        label=gettext_lazy("US dollars per month"),
        required=False,
        min_value=Decimal("0.01"),
        max_value=Decimal(1_000_000),
        decimal_places=2,
        help_text=gettext_lazy("Runs above it wait until next month (UTC). Leave empty for no cap."),
        widget=forms.NumberInput(attrs={"inputmode": "decimal", "step": "0.01", "autofocus": True}),
    )


class NameForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=core_limits.NAME_CHARACTERS,
        widget=forms.TextInput(attrs={"autocomplete": "off", "autofocus": True}),
    )


@workspace_page("look", methods=("GET",))
def settings_page(request: HttpRequest, place: Place) -> HttpResponse:
    """List the pages of the settings that the user may open."""
    del place
    return render(request, "pages/settings.html")


@workspace_page("manage")
def workspace(request: HttpRequest, place: Place) -> HttpResponse:
    """Show and save the workspace's name, time zone and approval rule."""
    row = place.workspace
    initial = {"name": row.name, "timezone": row.timezone, "requires_approval": row.requires_approval}
    form = kept_forms.form_for(request, WorkspaceSettingsForm, initial=initial)
    if request.method == "POST" and form.is_valid():
        for name in form.changed_data:
            setattr(row, name, form.cleaned_data[name])
        with report_errors(request, form):
            workspaces.change(row, form.changed_data, place.user.email)
            messages.success(request, _("Saved."))
            return redirect(place.url_of("workspace"))
    context = {
        "form": form,
        # Pages load the workspace without its model key.
        "last_four": row.model_key_last_four,
        "cap": _to_dollars(row.model_cap_micro_usd),
        "has_samples": samples.has_samples(row),
    }
    return render(request, "pages/workspace/page.html", context)


@workspace_page("manage")
def model_key(request: HttpRequest, place: Place) -> HttpResponse:
    form = kept_forms.form_for(request, ModelKeyForm)
    if request.method == "POST" and form.is_valid():
        with report_errors(request, form):
            model_keys.set_model_key(place.workspace, form.cleaned_data["model_key"], place.user.email)
            messages.success(request, _("Key saved."))
            return redirect(place.url_of("workspace"))
    return render(request, "pages/workspace/key.html", {"form": form})


@workspace_page("manage")
def remove_model_key(request: HttpRequest, place: Place) -> HttpResponse:
    form = ConfirmForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        if model_keys.remove_model_key(place.workspace, place.user.email):
            messages.success(request, _("Key removed."))
        return redirect(place.url_of("workspace"))
    return render(request, "pages/workspace/key_remove.html", {"form": form})


@workspace_page("manage")
def model_cap(request: HttpRequest, place: Place) -> HttpResponse:
    """Set the monthly cap of the model's cost."""
    row = place.workspace
    form = kept_forms.form_for(
        request, ModelCapForm, initial={"dollars": _to_dollars(row.model_cap_micro_usd)}
    )
    if request.method == "POST" and form.is_valid():
        dollars = form.cleaned_data["dollars"]
        row.model_cap_micro_usd = None if dollars is None else int(dollars * MICRO_USD)
        workspaces.change(row, ["model_cap_micro_usd"], place.user.email)
        messages.success(request, _("Saved."))
        return redirect(place.url_of("workspace"))
    return render(request, "pages/workspace/cap.html", {"form": form})


@workspace_page("manage")
def remove_samples(request: HttpRequest, place: Place) -> HttpResponse:
    form = ConfirmForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        if samples.request_samples_removal(place.workspace, actor=place.user.email):
            messages.success(request, _("The sample data is being removed."))
        return redirect(place.url_of("home"))
    return render(request, "pages/workspace/samples_remove.html", {"form": form})


@workspace_page("manage", methods=("POST",))
def exported(request: HttpRequest, place: Place) -> HttpResponseBase:
    """Stream the workspace's export as a ZIP, at most once per `WORKSPACE_EXPORTED_EVERY`."""
    min_interval_seconds = limits.WORKSPACE_EXPORTED_EVERY.total_seconds()
    if not cache.add(f"exported:{place.workspace.pk}", 1, min_interval_seconds):
        messages.error(request, _("An export was just started. Try again in a minute."))
        return redirect(place.url_of("workspace"))
    name = export.file_name(place.workspace, utc_now())
    chunks = export.stream_export(place.workspace, actor=place.user.email)
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "X-Accel-Buffering": "no"}
    return StreamingHttpResponse(chunks, content_type="application/zip", headers=headers)


@workspace_page("manage")
@fresh_log_in_required
def delete(request: HttpRequest, place: Place) -> HttpResponse:
    """Request the workspace's deletion, confirmed by typing its name."""
    form = kept_forms.form_for(request, NameForm)
    if request.method == "POST" and form.is_valid():
        with report_errors(request, form):
            workspace_deletion.request_deletion(place.workspace, form.cleaned_data["name"], by=place.user)
            return redirect(place.url_of("workspace"))
    context = {"form": form, "days": limits.WORKSPACE_DELETED_AFTER.days}
    return render(request, "pages/workspace/delete.html", context)


@workspace_page("manage", methods=("POST",))
def keep(request: HttpRequest, place: Place) -> HttpResponse:
    """Cancel the workspace's deletion."""
    if workspace_deletion.undo_deletion(place.workspace, actor=place.user.email):
        text = _("%(workspace)s won't be deleted.") % {"workspace": place.workspace.name}
        messages.success(request, text)
    return redirect(place.url_of("workspace"))


def _to_dollars(micro: int | None) -> Decimal | None:
    """Return millionths of a US dollar in dollars, to the cent, or `None` for `None`."""
    return None if micro is None else (Decimal(micro) / MICRO_USD).quantize(Decimal("0.01"))


class AccessForm(forms.Form):
    message = forms.CharField(
        label=gettext_lazy("Intended use"),
        max_length=whitelist_requests.MAX_MESSAGE_CHARACTERS,
        required=False,
        help_text=gettext_lazy("Optional. Your site, what you publish and where."),
        widget=forms.Textarea(attrs={"rows": 4}),
    )


@workspace_page("manage")
def access(request: HttpRequest, place: Place) -> HttpResponse:
    """Show the last request; request access, or with `change` in the form edit the pending request's text."""
    last_request = whitelist_requests.last_request(place.workspace)
    is_waiting = last_request is not None and last_request.status == WhitelistRequest.Status.PENDING
    initial = {"message": last_request.message} if last_request is not None and is_waiting else {}
    form = kept_forms.form_for(request, AccessForm, initial=initial)
    if request.method == "POST" and form.is_valid():
        message, actor = form.cleaned_data["message"], place.user.email
        with report_errors(request, form):
            if "change" in request.POST:
                whitelist_requests.revise_request(place.workspace, message, actor)
                messages.success(request, _("Saved. The operator sees it with the request."))
            else:
                whitelist_requests.request_whitelisting(place.workspace, message, actor)
                messages.success(request, _("Request sent. You can add the intended use below."))
            return redirect(place.url_of("access"))
    context = {"form": form, "last": last_request, "is_waiting": is_waiting}
    return render(request, "pages/access.html", context)
