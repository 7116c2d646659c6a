"""Provides the operators' forms for a workspace and a plan, and a table of the limits in force."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import ValidationError
from django.forms import BooleanField, CharField, DecimalField, ModelForm, PasswordInput
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext_lazy as _

from accounts import model_keys, timezones
from accounts.ledger.credits import plan_limits
from accounts.models import Plan, Workspace
from config.core.errors import AppError
from config.core.money import MICRO

if TYPE_CHECKING:
    from django.utils.safestring import SafeString

    ModelFormBase = ModelForm[Workspace]
    PlanFormBase = ModelForm[Plan]
else:
    ModelFormBase = PlanFormBase = ModelForm

MAX_CAP_USD: Final = 1_000_000
"""The highest cap, in US dollars; a higher one is a typing error."""
LIMIT_LABELS: Final = {
    "credits_per_month": _("Credits per month"),
    "active_sources_most": _("Maximum active sources"),
    "poll_interval_minutes_least": _("Minimum minutes between polls"),
}


class WorkspaceAdminForm(ModelFormBase):
    """Edits a workspace. Fields that aren't columns are written by `take_over` and by the admin after it."""

    model_cap_usd = DecimalField(
        label=_("Monthly cap (USD)"),
        required=False,
        min_value=0,
        max_value=MAX_CAP_USD,
        decimal_places=2,
        help_text=_("Per calendar month (UTC). Leave empty for no cap."),
    )
    new_model_key = CharField(
        label=_("New key"),
        required=False,
        strip=True,
        # Chromium fills in the user's own password unless it is told that this is a new one.
        widget=PasswordInput(attrs={"autocomplete": "new-password", "size": "60"}),
        help_text=_("Replaces the current key. Stored encrypted; not shown again."),
    )
    is_key_removed = BooleanField(
        label=_("Remove key"),
        required=False,
        help_text=_("The operator's key is used from the next call."),
    )

    class Meta:
        model = Workspace
        fields = ("name", "timezone", "plan", "requires_approval", *LIMIT_LABELS)
        labels = LIMIT_LABELS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        cap = self.instance.model_cap_micro_usd
        if cap is not None and "model_cap_usd" in self.fields:
            self.initial["model_cap_usd"] = Decimal(cap) / MICRO

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if cleaned.get("new_model_key") and cleaned.get("is_key_removed"):
            self.add_error("is_key_removed", _("Either set a new key or remove it."))
        return cleaned

    def clean_new_model_key(self) -> str:
        key: str = self.cleaned_data["new_model_key"]
        if key:
            try:
                model_keys.validate_model_key(key)
            except AppError as error:
                raise ValidationError(str(error)) from error
        return key

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"].strip()
        return name

    def clean_timezone(self) -> str:
        name: str = self.cleaned_data["timezone"]
        try:
            timezones.validate_timezone(name)
        except AppError as error:
            raise ValidationError(str(error)) from error
        return name

    def take_over(self, workspace: Workspace) -> None:
        """Write the cap, given in dollars, to the workspace in micro-dollars; the row isn't saved."""
        cap = self.cleaned_data["model_cap_usd"]
        workspace.model_cap_micro_usd = None if cap is None else int(cap * MICRO)

    def columns(self) -> list[str]:
        """Return the changed columns of the workspace, without those that other functions write."""
        columns_by_field = {
            "model_cap_usd": "model_cap_micro_usd",
            "new_model_key": None,
            "is_key_removed": None,
        }
        names = (columns_by_field.get(name, name) for name in self.changed_data)
        return [name for name in names if name is not None]


def table_of_limits(workspace: Workspace) -> SafeString:
    """Return an HTML table of each limit with the plan's value, the operator's, and the one in force."""
    limits_in_force = plan_limits(workspace)
    rows = []
    for name, label in LIMIT_LABELS.items():
        override = getattr(workspace, name)
        rows.append(
            (
                label,
                getattr(workspace.plan, name),
                _("none") if override is None else override,
                getattr(limits_in_force, name),
            )
        )
    return format_html(
        '<table class="what-holds"><thead><tr><th></th><th>{}</th><th>{}</th><th>{}</th></tr></thead>'
        "<tbody>{}</tbody></table>",
        _("Plan"),
        _("Instead"),
        _("Holds"),
        format_html_join("", "<tr><th>{}</th><td>{}</td><td>{}</td><td><strong>{}</strong></td></tr>", rows),
    )


class PlanForm(PlanFormBase):
    class Meta:
        model = Plan
        fields = ("name", *LIMIT_LABELS)
        labels = LIMIT_LABELS
