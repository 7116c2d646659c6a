"""Lists what needs the operator's attention, for the first block of the admin: lines with counts and links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db.models import F, Sum
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import WhitelistRequest
from config.core import jobs, work_queue
from config.core.clock import utc_now
from config.core.money import MICRO, as_usd
from config.operations import media_sweep, plugin_checks, queue_stats, running_tasks
from pipeline.media import media_root_id
from pipeline.models import ModelCall
from pipeline.switches import kill_switch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from accounts.models import User

CAP_WARNING_PERCENT: Final = 80
"""The percentage of a cap from which a warning is shown, while there is still time to raise it."""
MAX_CAPS_SHOWN: Final = 20
"""The most workspaces with a nearly used cap that are listed."""


@dataclass(frozen=True)
class Need:
    """A line of the block, and the address of the page that it links to."""

    text: str
    page: str


def visible_needs(user: User) -> list[Need]:
    """Return the lines whose rows this person may view, the most pressing first."""
    parts: tuple[tuple[str, Callable[[], Iterator[Need]]], ...] = (
        ("accounts.view_whitelistrequest", _requests),
        ("pipeline.view_mediafolder", _media),
        ("pipeline.view_switch", _switches),
        ("accounts.view_workspace", _caps),
        ("pipeline.view_modelcall", _instance_cap),
        ("accounts.view_workspace", _unserved),
        ("pipeline.view_publication", _late),
        ("pipeline.view_outlet", _platforms),
    )
    needs = [need for permission, part in parts if user.has_perm(permission) for need in part()]
    return [*needs, *_dead(user)]


def _requests() -> Iterator[Need]:
    waiting = WhitelistRequest.everywhere.filter(status=WhitelistRequest.Status.PENDING)
    count = waiting.count()
    if count:
        text = ngettext("%d workspace requests access", "%d workspaces request access", count) % count
        if count == 1 and (only := waiting.first()) is not None:
            yield Need(text, reverse("admin:accounts_whitelistrequest_decide", args=[only.pk]))
        else:
            yield Need(text, f"{reverse('admin:accounts_whitelistrequest_changelist')}?status__exact=pending")


def _switches() -> Iterator[Need]:
    for switch in kill_switch.standing():
        yield Need(str(switch).rstrip("."), reverse("admin:pipeline_switch_changelist"))


def _media() -> Iterator[Need]:
    """Yield the doctor's sentence if the folder is another database's, or else if its sweep waits."""
    refusal, stopped = media_root_id.compare_folder().refusal, media_sweep.why_stopped()
    text = refusal or (f"{stopped} {media_sweep.APPROVE_ADVICE}" if stopped else "")
    if text:
        yield Need(text, reverse("admin:pipeline_mediafolder_changelist"))


def _caps() -> Iterator[Need]:
    """Yield the workspaces that have used most of their monthly cap; beyond it their runs wait for the next month."""
    capped = (
        ModelCall.everywhere.filter(
            created_at__gte=_month(utc_now()), workspace__model_cap_micro_usd__isnull=False
        )
        .values("workspace__id", "workspace__name", "workspace__model_cap_micro_usd")
        .annotate(spent=Sum("cost_micro_usd"))
        .filter(spent__gte=F("workspace__model_cap_micro_usd") * CAP_WARNING_PERCENT / 100)
        .order_by("-spent")[:MAX_CAPS_SHOWN]
    )
    for workspace in capped:
        parameters = {
            "name": workspace["workspace__name"],
            "spent": as_usd(workspace["spent"]),
            "cap": as_usd(workspace["workspace__model_cap_micro_usd"]),
        }
        page = reverse("admin:accounts_workspace_change", args=[workspace["workspace__id"]])
        yield Need(
            _("%(name)s has spent %(spent)s of its %(cap)s for the model this month") % parameters, page
        )


def _instance_cap() -> Iterator[Need]:
    cap = settings.MODEL_DAILY_CAP_USD * MICRO
    if not cap:
        return
    today = utc_now().replace(hour=0, minute=0, second=0, microsecond=0)
    calls = ModelCall.everywhere.filter(created_at__gte=today, is_own_key=False)
    spent = calls.aggregate(spent=Sum("cost_micro_usd"))["spent"] or 0
    if 100 * spent >= CAP_WARNING_PERCENT * cap:
        parameters = {"spent": as_usd(spent), "cap": as_usd(cap)}
        text = _("Your key for the model has cost %(spent)s of the %(cap)s for today") % parameters
        yield Need(text, reverse("admin:pipeline_modelcall_changelist"))


def _late() -> Iterator[Need]:
    """Yield a line for each kind of rows whose oldest has been due for longer than its job allows."""
    known: dict[str, Any] = dict(jobs.jobs())
    for backlog in queue_stats.backlog_of_jobs():
        if not backlog.is_late:
            continue
        options = known[backlog.kind].model._meta
        parameters = {
            "count": backlog.due,
            "what": options.verbose_name_plural,
            "minutes": backlog.oldest_seconds // 60,
        }
        text = _("%(count)d %(what)s wait for a worker, the oldest for %(minutes)d min") % parameters
        yield Need(text, reverse(f"admin:{options.app_label}_{options.model_name}_changelist"))


def _unserved() -> Iterator[Need]:
    for job_queue in running_tasks.unserved_queues(work_queue.database_now()):
        parameters = {"queue": job_queue.name, "count": job_queue.due}
        text = _("No worker takes the queue %(queue)s, in which %(count)d are due") % parameters
        yield Need(text, reverse("admin_tasks"))


def _platforms() -> Iterator[Need]:
    for api in plugin_checks.aging_apis():
        page = f"{reverse('admin:pipeline_outlet_changelist')}?platform__exact={api.kind}"
        yield Need(f"{api.message} {api.advice}", page)


def _dead(user: User) -> Iterator[Need]:
    """Yield a line for each kind of dead rows that the person may view."""
    texts = {
        "sources": lambda n: ngettext("%d source fails or is gone", "%d sources fail or are gone", n),
        "raw_items": lambda n: ngettext("%d raw item failed", "%d raw items failed", n),
        "generated_items": lambda n: ngettext("%d generated item failed", "%d generated items failed", n),
        "persona_drafts": lambda n: ngettext(
            "%d draft of a persona failed", "%d drafts of personas failed", n
        ),
        "publications": lambda n: ngettext(
            "%d publication failed or is unknown", "%d publications failed or are unknown", n
        ),
        "deliveries": lambda n: ngettext("%d webhook delivery failed", "%d webhook deliveries failed", n),
    }
    for name, dead in queue_stats.DEAD.items():
        options = dead.model._meta
        if user.has_perm(f"{options.app_label}.view_{options.model_name}"):
            count = dead.rows().count()
            if count:
                yield Need(texts[name](count) % count, f"{reverse('admin_dead_rows')}#{name}")


def _month(now: datetime) -> datetime:
    return now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
