"""Registers the operators' pages of calls to models, switches, apps at platforms and the media folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import Count, Sum
from django.forms import CharField, ChoiceField, ModelForm, PasswordInput
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from accounts.admin.base import ReadOnlyAdmin, WorkspaceSearch
from config.core.clock import utc_now
from config.core.errors import AppError
from config.core.money import as_usd
from pipeline import plugins
from pipeline.models import MediaFolder, ModelCall, OAuthApp, Switch
from pipeline.outlets import oauth_connect
from pipeline.switches import kill_switch

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse
    from django.template.response import TemplateResponse

    ModelAdmin = admin.ModelAdmin[Any]
    ModelFormBase = ModelForm[Any]
else:
    ModelAdmin = admin.ModelAdmin
    ModelFormBase = ModelForm


@admin.register(ModelCall)
class ModelCallAdmin(ReadOnlyAdmin, WorkspaceSearch):
    """Lists the calls to models, with the totals of the filtered ones."""

    change_list_template = "admin/pipeline/modelcall/change_list.html"
    list_display = (
        "created_at",
        "workspace",
        "cost",
        "engine",
        "stage",
        "model_asked",
        "outcome",
        "tokens",
        "request_id",
    )
    list_filter = (
        "created_at",
        "outcome",
        "stage",
        "asked_model",
        ("generation__engine", admin.AllValuesFieldListFilter),
        "is_own_key",
    )
    search_fields = ("workspace__name", "request_id")
    search_help_text = _("A workspace's name or id, or the vendor's request id")
    ordering = ("-created_at",)
    list_per_page = 50
    # Counting all calls for "n of m" costs more than the page.
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        # A run's stored answers can be long, and the list shows its engine alone.
        calls: QuerySet[Any] = super().get_queryset(request)
        return calls.select_related("workspace", "generation").defer("generation__answers")

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> TemplateResponse:
        response: Any = super().changelist_view(request, extra_context)
        context = getattr(response, "context_data", None) or {}
        if "cl" in context:
            totals = (
                context["cl"]
                .queryset.order_by()
                .aggregate(
                    calls=Count("pk"),
                    input=Sum("input_tokens", default=0),
                    cached=Sum("cache_read_tokens", default=0),
                    output=Sum("output_tokens", default=0),
                    cost=Sum("cost_micro_usd", default=0),
                )
            )
            context["totals"] = {**totals, "cost": as_usd(totals["cost"])}
        page: TemplateResponse = response
        return page

    @admin.display(description=_("format"), ordering="generation__engine")
    def engine(self, call: ModelCall) -> str:
        return call.generation.engine if call.generation else "-"

    @admin.display(description=_("model"), ordering="asked_model")
    def model_asked(self, call: ModelCall) -> str:
        return call.model or call.asked_model

    @admin.display(description=_("tokens in / cached / out"), ordering="input_tokens")
    def tokens(self, call: ModelCall) -> str:
        return f"{call.input_tokens} / {call.cache_read_tokens} / {call.output_tokens}"

    @admin.display(description=_("cost"), ordering="cost_micro_usd")
    def cost(self, call: ModelCall) -> str:
        return as_usd(call.cost_micro_usd)


def _platform_choices() -> list[tuple[str, Any]]:
    return [("", _("all")), *((kind, kind) for kind in plugins.kinds("platforms"))]


class SwitchForm(ModelFormBase):
    platform = ChoiceField(choices=_platform_choices, required=False, label=_("Platform"))

    class Meta:
        model = Switch
        fields = ("what", "platform", "workspace", "reason")

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or self.cleaned_data
        try:
            kill_switch.refuse_unless_sound(
                values.get("what", ""), values.get("platform", ""), values.get("reason", "")
            )
        except AppError as error:
            raise ValidationError(str(error)) from error
        return values

    def _get_validation_exclusions(self) -> set[str]:
        # A second stop of the same renews its reason, so the unique constraint isn't checked here.
        excluded: set[str] = super()._get_validation_exclusions()  # type: ignore[misc]
        return excluded | {"platform"}


@admin.register(MediaFolder)
class MediaFolderAdmin(ReadOnlyAdmin):
    """`manage.py media` changes it, on the machine that has the folder."""

    list_display = (
        "instance",
        "created_at",
        "sweep_stopped_at",
        "sweep_found",
        "sweep_total",
        "sweep_approved",
    )
    list_display_links = None


@admin.register(Switch)
class SwitchAdmin(ModelAdmin):
    form = SwitchForm
    list_display = ("what", "where", "workspace", "reason", "set_by", "created_at")
    list_display_links = None
    list_select_related = ("workspace",)
    autocomplete_fields = ("workspace",)
    actions = ("resume",)

    @admin.display(description=_("platform"))
    def where(self, switch: Switch) -> str:
        return switch.platform or str(_("all"))

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        title = {"title": _("Pause publishing or AI calls")}
        return super().add_view(request, form_url, {**(extra_context or {}), **title})

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        del request, obj
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Django's delete would resume without waking the rows that wait.
        del request, obj
        return False

    def has_resume_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("pipeline.delete_switch")

    def save_model(self, request: HttpRequest, obj: Switch, form: ModelForm[Any], change: bool) -> None:  # noqa: FBT001  Django's signature
        del form, change
        switch = kill_switch.stop(
            obj.what,  # type: ignore[arg-type]
            platform=obj.platform,
            workspace=obj.workspace,
            reason=obj.reason,
            actor=request.user.get_username(),
        )
        obj.pk = switch.pk

    @admin.action(description=_("Resume"), permissions=["resume"])
    def resume(self, request: HttpRequest, queryset: QuerySet[Switch]) -> None:
        actor = request.user.get_username()
        resumed = sum(
            kill_switch.resume(switch, actor=actor) for switch in queryset.select_related("workspace")
        )
        text = ngettext("%d switch resumed.", "%d switches resumed.", resumed) % resumed
        self.message_user(request, text, messages.SUCCESS)


def _oauth_platform_choices() -> list[tuple[str, Any]]:
    return [(platform.kind, platform.label) for platform in oauth_connect.platforms()]


class OAuthAppForm(ModelFormBase):
    platform = ChoiceField(choices=_oauth_platform_choices, label=_("Platform"))
    secret = CharField(
        label=_("Client secret"),
        required=False,
        strip=True,
        max_length=2000,
        widget=PasswordInput(attrs={"autocomplete": "off"}),
        help_text=_("Stored encrypted; not shown again. Leave empty to keep it."),
    )

    class Meta:
        model = OAuthApp
        fields = ("platform", "client_id", "scopes", "review", "note")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk and not self.instance._state.adding:
            self.fields["platform"].disabled = True


@admin.register(OAuthApp)
class OAuthAppAdmin(ModelAdmin):
    form = OAuthAppForm
    fields = ("platform", "redirect", "setup", "client_id", "secret", "scopes", "review", "note")
    readonly_fields = ("redirect", "setup")
    list_display = ("platform", "client_id", "review", "redirect", "updated_at")
    actions = None

    @admin.display(description=_("redirect address to register there"))
    def redirect(self, app: OAuthApp) -> str:
        if app.platform:
            return oauth_connect.redirect_address(app.platform)
        kinds = [platform.kind for platform in oauth_connect.platforms()]
        return ", ".join(map(oauth_connect.redirect_address, kinds))

    @admin.display(description=_("how to register"))
    def setup(self, app: OAuthApp) -> str:
        return " ".join(
            f"{platform.label}: {platform.oauth.setup}"
            for platform in oauth_connect.platforms()
            if platform.oauth and app.platform in {"", platform.kind}
        )

    def save_model(self, request: HttpRequest, obj: OAuthApp, form: ModelForm[Any], change: bool) -> None:  # noqa: FBT001  Django's signature
        del change
        secret = form.cleaned_data["secret"]
        oauth_connect.register(obj, secret=secret, by=request.user.get_username(), now=utc_now())

    def delete_model(self, request: HttpRequest, obj: OAuthApp) -> None:
        oauth_connect.unregister(obj, by=request.user.get_username())
