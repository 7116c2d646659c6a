"""The work of one hand: a promised draft is made, or says in plain words why there is none."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.conf import settings
from django.utils.translation import gettext as _

from config.core import limits, states, work_queue
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from pipeline.generate.model import account
from pipeline.generate.model.account import LostLease
from pipeline.models import PersonaDraftStatus
from pipeline.personas.drafts.material import gather
from pipeline.plugins import NeedsReconnect, PluginError, Refused, TryLater
from pipeline.sources.base import host_in
from pipeline.switches import host_slots
from pipeline.writers.claude.persona_draft import draft_with_model
from pipeline.writers.persona_draft import Material, draft_without_ai

if TYPE_CHECKING:
    from pipeline.models import PersonaDraft

log = structlog.get_logger(__name__)

MODEL_TRIES: Final = 3
"""A person waits: an outage that lasts longer is told, and they decide."""


def work(draft: PersonaDraft) -> None:
    """Make one claimed draft. What was read and what was answered is stored before the next step."""
    crash_point("drafts.claimed")
    try:
        _work(draft)
    except (LostLease, states.Overtaken) as error:
        log.info("overtaken", draft=draft.pk.hex, reason=str(error))


def give_up(draft: PersonaDraft) -> None:
    message = _(
        "Drafting broke several times; the operator's log has the reason. Write the sections yourself."
    )
    try:
        _fail(draft, "gave_up", message)
    except states.Overtaken as error:
        log.info("overtaken", draft=draft.pk.hex, reason=str(error))


def _work(draft: PersonaDraft) -> None:
    if not draft.workspace.is_at_work:
        _fail(draft, "not_at_work", _("This workspace isn't at work now; ask for the draft when it is."))
        return
    if draft.status == PersonaDraftStatus.QUEUED:
        states.move(draft, "running", under_lease=True)
    material = _material(draft)
    if material is None:
        return
    crash_point("drafts.read")
    if material.is_empty:
        message = _("There are no words to draft from. Give another address, or paste some posts.")
        _fail(draft, "no_words", message)
        return
    try:
        with account.open_client(draft) as client:
            made = draft_without_ai(material) if client is None else draft_with_model(material, client)
    except TryLater as error:
        _wait(draft, error)
        return
    except (Refused, NeedsReconnect) as error:
        _fail(draft, error.code, error.message)
        return
    crash_point("drafts.drafted")
    states.move(
        draft,
        "done",
        under_lease=True,
        sections=asdict(made),
        is_offline=client is None,
        material=None,
        error=None,
        wake_at=None,
        attempts=0,
        finished_at=utc_now(),
    )


def _material(draft: PersonaDraft) -> Material | None:
    """What is there to draft from; None where the draft waits for its host, or has failed."""
    if draft.material is not None:
        kept: dict[str, Any] = draft.material
        return Material(**{**kept, "posts": tuple(kept["posts"]), "texts": tuple(kept["texts"])})
    now, host = utc_now(), host_in(draft.url)
    free_at = host_slots.take_turn(host, draft.pk, now)
    if free_at is not None:
        draft.sleep_until(free_at, attempts=0)
        return None
    try:
        material = gather(draft.url, draft.posts, now=now)
    except PluginError as error:
        message = _("%(reason)s Try it again later, or paste some posts instead.")
        _fail(draft, error.code, message % {"reason": error.message})
        return None
    finally:
        host_slots.give_back(host, draft.pk, utc_now())
    held_until = work_queue.database_now() + timedelta(seconds=settings.LEASE_SECONDS)
    if not draft.sleep_until(held_until, material=asdict(material)):
        raise LostLease
    return material


def _wait(draft: PersonaDraft, error: TryLater) -> None:
    """A short outage is waited out; caps and stops last, and somebody sits before the page: they are told at once."""
    wait = error.after or limits.MODEL_RETRIES[min(draft.tries, len(limits.MODEL_RETRIES) - 1)]
    is_long = error.code in account.WAITING_CODES or wait > limits.PERSONA_DRAFT_PATIENCE
    if is_long or draft.tries + 1 >= MODEL_TRIES:
        message = _("%(reason)s Nothing was drafted: ask for it again then, or write the sections yourself.")
        _fail(draft, error.code, message % {"reason": error.message})
        return
    kept = {"code": error.code, "message": error.message}
    draft.sleep_until(utc_now() + wait, tries=draft.tries + 1, attempts=0, error=kept)


def _fail(draft: PersonaDraft, code: str, message: str) -> None:
    error = {"code": code, "message": message}
    states.move(
        draft,
        "failed",
        under_lease=True,
        error=error,
        material=None,
        wake_at=None,
        attempts=0,
        finished_at=utc_now(),
    )
