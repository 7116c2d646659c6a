"""Several sources added at once: a list of addresses, or a feed reader's OPML file; one undo takes all of them back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core import signing
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.pages import form_recovery
from accounts.pages.act_messages import offer_undo, report_errors
from accounts.pages.page_access import Place, page
from config.core import limits as core_limits
from config.core.clock import utc_now
from config.core.errors import AppError
from pipeline import limits
from pipeline.ingest import collect
from pipeline.ingest.source_lists import ListedAddress, read_opml, register_all
from pipeline.models import Source
from pipeline.pages.new.forms import address_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest, HttpResponse

_SALT: Final = "sources.added"
_UNDO_SECONDS: Final = 24 * 3600


class SeveralForm(forms.Form):
    addresses = forms.CharField(
        label=gettext_lazy("Addresses"),
        required=False,
        max_length=limits.SOURCES_AT_ONCE * core_limits.URL_CHARACTERS,
        help_text=gettext_lazy("One per line: feeds, websites, YouTube channels or TikTok accounts"),
        widget=forms.Textarea(
            attrs={"rows": 8, "spellcheck": "false", "placeholder": "https://example.org/news"}
        ),
    )
    file = forms.FileField(
        label=gettext_lazy("Or an OPML file"),
        required=False,
        help_text=gettext_lazy("Exported from a feed reader"),
        widget=forms.FileInput(attrs={"accept": ".opml,.xml"}),
    )

    def clean_addresses(self) -> list[ListedAddress]:
        found: dict[str, ListedAddress] = {}
        for line in self.cleaned_data["addresses"].split():
            address = address_in(line)
            if not address:
                message = _("%(line)s is no address.") % {"line": line[:80]}
                raise forms.ValidationError(message, code="address")
            found.setdefault(address, ListedAddress(address))
        return list(found.values())

    def clean_file(self) -> list[ListedAddress]:
        file = self.cleaned_data["file"]
        if not file:
            return []
        if file.size > limits.OPML_BYTES:
            raise forms.ValidationError(_("Choose a file of at most 1 MB."), code="too_large")
        try:
            return read_opml(file.read())
        except AppError as error:
            raise forms.ValidationError(error.detail[0].message, code="no_feeds") from error

    def clean(self) -> dict[str, list[ListedAddress]]:
        cleaned: dict[str, list[ListedAddress]] = super().clean() or self.cleaned_data
        listed = [*cleaned.get("addresses", ()), *cleaned.get("file", ())]
        if not self.errors and not listed:
            self.add_error("addresses", _("Enter addresses, or choose a file."))
        if len(listed) > limits.SOURCES_AT_ONCE:
            message = _("%(count)d addresses: add at most %(most)d at a time.")
            self.add_error(None, message % {"count": len(listed), "most": limits.SOURCES_AT_ONCE})
        return cleaned


@page("edit")
def sources_several(request: HttpRequest, place: Place) -> HttpResponse:
    is_sent = request.method == "POST"
    form = (
        SeveralForm(request.POST, request.FILES) if is_sent else form_recovery.form_for(request, SeveralForm)
    )
    if not is_sent or not form.is_valid():
        return _show(request, form)
    if not form_recovery.is_first_sending(request):
        return redirect(place.address("sources_page"))
    listed = [*form.cleaned_data["addresses"], *form.cleaned_data["file"]]
    done = register_all(place.workspace, listed, now=utc_now())
    if done.added:
        said = ngettext("%(count)d source added.", "%(count)d sources added.", len(done.added))
        added = signing.dumps([key.hex for key in done.added], salt=_SALT)
        address = place.address("sources_several_undo")
        offer_undo(request, said % {"count": len(done.added)}, address, {"added": added})
    if done.known:
        said = ngettext("%(count)d was there already.", "%(count)d were there already.", done.known)
        messages.info(request, said % {"count": done.known})
    if not done.refused:
        return redirect(place.address("sources_page"))
    rest = SeveralForm(initial={"addresses": "\n".join(address for address, _why in done.refused)})
    return _show(request, rest, done.refused)


def _show(request: HttpRequest, form: SeveralForm, refused: Sequence[tuple[str, str]] = ()) -> HttpResponse:
    context = {"form": form, "refused": refused, "newest": limits.FIRST_POLL_NEWEST}
    return render(request, "pages/sources/several.html", context)


@page("edit", methods=("POST",))
def sources_several_undo(request: HttpRequest, place: Place) -> HttpResponse:
    try:
        added = signing.loads(request.POST.get("added", ""), salt=_SALT, max_age=_UNDO_SECONDS)
    except signing.BadSignature:
        messages.error(request, _("Too late to undo. Delete each source on its page."))
        return redirect(place.address("sources_page"))
    rows = Source.objects.of(place.workspace).filter(pk__in=[UUID(hex=key) for key in added], deleted_at=None)
    count = 0
    for row in rows:
        with report_errors(request):
            collect.delete(row, now=utc_now())
            count += 1
    said = ngettext("%(count)d source removed.", "%(count)d sources removed.", count)
    messages.success(request, said % {"count": count})
    return redirect(place.address("sources_page"))
