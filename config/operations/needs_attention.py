"""What needs the operator, for the first block of the admin: each line with its count and where to go."""

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

NEAR_PERCENT: Final = 80
"""Of a cap: from here on there is still time to raise it."""
CAPS_SHOWN: Final = 20


@dataclass(frozen=True)
class Need:
    text: str
    page: str


def visible_needs(user: User) -> list[Need]:
    """What this person may see of it, the most pressing first."""
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
    found = [need for permission, part in parts if user.has_perm(permission) for need in part()]
    return [*found, *_dead(user)]


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
    """The sweep waits, or the folder is another database's; in the words of the doctor, as it is mended by commands."""
    refusal, stopped = media_root_id.compare_folder().refusal, media_sweep.why_stopped()
    text = refusal or (f"{stopped} {media_sweep.APPROVE}" if stopped else "")
    if text:
        yield Need(text, reverse("admin:pipeline_mediafolder_changelist"))


def _caps() -> Iterator[Need]:
    """Workspaces that have used most of their cap; one that is used up holds their runs until the month ends."""
    capped = (
        ModelCall.everywhere.filter(
            created_at__gte=_month(utc_now()), workspace__model_cap_micro_usd__isnull=False
        )
        .values("workspace__id", "workspace__name", "workspace__model_cap_micro_usd")
        .annotate(spent=Sum("cost_micro_usd"))
        .filter(spent__gte=F("workspace__model_cap_micro_usd") * NEAR_PERCENT / 100)
        .order_by("-spent")[:CAPS_SHOWN]
    )
    for one in capped:
        given = {
            "name": one["workspace__name"],
            "spent": as_usd(one["spent"]),
            "cap": as_usd(one["workspace__model_cap_micro_usd"]),
        }
        page = reverse("admin:accounts_workspace_change", args=[one["workspace__id"]])
        yield Need(_("%(name)s has spent %(spent)s of its %(cap)s for the model this month") % given, page)


def _instance_cap() -> Iterator[Need]:
    cap = settings.MODEL_DAILY_CAP_USD * MICRO
    if not cap:
        return
    today = utc_now().replace(hour=0, minute=0, second=0, microsecond=0)
    calls = ModelCall.everywhere.filter(created_at__gte=today, is_own_key=False)
    spent = calls.aggregate(spent=Sum("cost_micro_usd"))["spent"] or 0
    if 100 * spent >= NEAR_PERCENT * cap:
        given = {"spent": as_usd(spent), "cap": as_usd(cap)}
        text = _("Your key for the model has cost %(spent)s of the %(cap)s for today") % given
        yield Need(text, reverse("admin:pipeline_modelcall_changelist"))


def _late() -> Iterator[Need]:
    known: dict[str, Any] = dict(jobs.jobs())
    for one in queue_stats.backlog_of_jobs():
        if not one.is_late:
            continue
        options = known[one.kind].model._meta
        given = {"count": one.due, "what": options.verbose_name_plural, "minutes": one.oldest_seconds // 60}
        text = _("%(count)d %(what)s wait for a worker, the oldest for %(minutes)d min") % given
        yield Need(text, reverse(f"admin:{options.app_label}_{options.model_name}_changelist"))


def _unserved() -> Iterator[Need]:
    for one in running_tasks.unserved_queues(work_queue.database_now()):
        given = {"queue": one.name, "count": one.due}
        text = _("No worker takes the queue %(queue)s, in which %(count)d are due") % given
        yield Need(text, reverse("admin_tasks"))


def _platforms() -> Iterator[Need]:
    for one in plugin_checks.aging_apis():
        page = f"{reverse('admin:pipeline_outlet_changelist')}?platform__exact={one.kind}"
        yield Need(f"{one.said} {one.advice}", page)


def _dead(user: User) -> Iterator[Need]:
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
