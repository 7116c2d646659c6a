"""A few steps of the pipeline in a process of their own, which a crash point may kill.

`python -m tests.faults.one_step '[["push", {}], ["work", {"kinds": ["generate.run_item"]}]]'` does the steps
in turn and prints what each of them says as one list of JSON. Nothing but the steps works: no worker, no
Beat, no message.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()

from django.apps import apps
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.db import transaction
from django.db.models import Q
from django.test import Client
from django.utils import timezone

from accounts import notices, workspaces
from accounts.access import tokens
from accounts.ledger import credits as credit_account
from accounts.ledger import reports
from accounts.models import (
    AuditEntry,
    CreditBalance,
    IdempotencyKey,
    LedgerEntry,
    Membership,
    Notice,
    NoticeDigest,
    NoticeMessage,
    User,
    Workspace,
)
from analytics.measure import SIMULATED_AT
from analytics.models import Measurement, Measuring, MonthlySummary, Outcome, RollupDay
from analytics.reports import send_monthly_summary
from config.core import task_runner, work_queue
from config.core.ids import encode, uuid7
from config.operations import media_sweep
from pipeline import limits, outlets, plugins
from pipeline.events import TYPES
from pipeline.generate.lifecycle import REWRITE
from pipeline.generate.model import batches
from pipeline.generate.model.spending_caps import BRIEF_AWAITED
from pipeline.ingest import collect, raw_content, store_raw_item, websub
from pipeline.ingest.inbound_deliveries import secrets
from pipeline.media import make_film, uploads
from pipeline.models import (
    Asset,
    Attempt,
    BrandPick,
    BrandSlot,
    Event,
    GeneratedItem,
    Generation,
    InboundDelivery,
    Lease,
    MailDelivery,
    Mailing,
    MailQueue,
    ModelBatch,
    ModelCall,
    Outlet,
    PersonaDraft,
    Publication,
    RawBody,
    RawItem,
    Recurrence,
    RecurrenceTurn,
    Revision,
    Series,
    SharedBrief,
    SimulatedPost,
    Source,
    Subscriber,
    Upload,
    WebSubSubscription,
    WorkspaceDefaults,
)
from pipeline.personas import crud, drafts, topics
from pipeline.review import rewrites
from pipeline.schedule import recurring, series
from pipeline.sources.base import Hub
from pipeline.states import derive_status
from pipeline.writers.base import Writer
from tests.platforms import letterbox
from webhooks import endpoints, recovery
from webhooks.fan_out import wants
from webhooks.models import Delivery, DeliveryAttempt, Endpoint, Recovery

NAME = "Crash"
# A kill finds the same in a small film as in a large one.
make_film.SHRINK, make_film.PRESET = 4, "ultrafast"
ENGINES = ["Short Post"]
"""One for every item, however many there are in this installation."""
TEXT = (
    "The city council approved the new tram line on Monday evening after six hours of debate. "
    "Construction of the northern depot begins in April and will employ about 340 people. "
    "Critics warned that rents along the route have already risen faster than anywhere else in the region. "
    "Passengers can travel free of charge during the first two weeks of regular service."
)
DUE_MODELS = (
    Source,
    BrandSlot,
    PersonaDraft,
    RawItem,
    Generation,
    Publication,
    Delivery,
    Measuring,
    Notice,
    NoticeMessage,
    NoticeDigest,
    Outlet,
    WebSubSubscription,
    MailQueue,
    RollupDay,
    MonthlySummary,
    Series,
    Recurrence,
    ModelBatch,
    Recovery,
)
ENDED = {"published", "failed"}
ASKED = Path(settings.DATA_DIR) / "asked-of-the-writer"
MAILS = Path(settings.DATA_DIR) / "mails"
TOKEN = Path(settings.DATA_DIR) / "token"


# --- Steps -----------------------------------------------------------------------------------------------------------


def prepare(receiver):
    """A workspace with a quota, a key, and two endpoints: one for the types by default, one for all of
    them."""
    call_command("migrate", verbosity=0)
    with transaction.atomic():
        made = workspaces.create(NAME, actor="test")
        workspaces.whitelist(made, "test")
        TOKEN.write_text(tokens.issue(made, name="test", actor="test").secret)
        endpoints.add(made, f"{receiver}/first", actor="test")
        endpoints.add(made, f"{receiver}/second", events=list(TYPES), actor="test")


def request(method, path, body=None, key=None):
    headers = {"Authorization": f"Bearer {TOKEN.read_text()}", **({"Idempotency-Key": key} if key else {})}
    answer = Client().generic(
        method,
        path,
        json.dumps(body) if body is not None else b"",
        content_type="application/json",
        headers=headers,
        SERVER_NAME="127.0.0.1",
    )
    said = json.loads(answer.content) if answer.content else None
    return {"status": answer.status_code, "replayed": "Idempotency-Replayed" in answer.headers, "body": said}


def push_one(key=None, **body):
    given = {"external_id": "tram", "title": "Tram line approved", "body": TEXT, "engines": ENGINES, **body}
    return request("POST", "/v1/raw", given, key)


def push_footage(engine):
    """A video with what is said in it, for films that are made of videos."""
    from tests.render import footage_files

    words, at = [], 0.5
    for word in TEXT.split():
        words.append({"word": word, "start": round(at, 2), "end": round(at + 0.3, 2)})
        at += 0.34 if not word.endswith(".") else 0.9
    film = footage_files.video(seconds=at + 1, size=(160, 90), fps=15, cuts=(9.0,))
    media = []
    for name, data in (("tram.mp4", film), ("tram.json", json.dumps(words).encode())):
        given = uploads.ReceivedFile(io.BytesIO(data), len(data), name)
        row = uploads.store_upload(_workspace(), given, test=False, actor="test")
        media.append({"upload": encode("upl", row.pk), "type": row.mime_type, "author": "Tram TV"})
    return push_one(engines=[engine], body="", media=media, language="en")


def upload(text="A note about the tram.", key=None):
    """A file by the form; what is left of files and rows is asked for with `uploads_left`."""
    headers = {"Authorization": f"Bearer {TOKEN.read_text()}", **({"Idempotency-Key": key} if key else {})}
    form = {"file": SimpleUploadedFile("note.txt", text.encode())}
    answer = Client().post("/v1/uploads", form, headers=headers, SERVER_NAME="127.0.0.1")
    replayed = "Idempotency-Replayed" in answer.headers
    return {"status": answer.status_code, "replayed": replayed, "body": json.loads(answer.content)}


def uploads_left():
    """The rows, and the files by whether a row names them; then the sweep as it is in eight days."""
    root = Path(settings.MEDIA_ROOT)
    named = set(Upload.everywhere.values_list("path", flat=True))

    def files():
        there = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
        return sorted("named" if one in named else "unnamed" for one in there if not one.startswith("."))

    (root / media_sweep.MARK).unlink(missing_ok=True)
    before, later = files(), timezone.now() + timedelta(days=8)
    while media_sweep.sweep_some(later):
        pass
    return {"rows": len(named), "files": before, "after_the_sweep": files()}


def push_batch(names):
    items = [
        {"external_id": name, "title": f"Tram line {name}", "body": TEXT, "engines": ENGINES}
        for name in names
    ]
    return request("POST", "/v1/raw", {"items": items})


def erase():
    return request("DELETE", f"/v1/raw/{encode('raw', RawItem.everywhere.get().pk)}")


def add_source(url):
    """Its items go by themselves to the simulated outlet."""
    outlet = encode("out", _simulated().pk)
    given = collect.SourceSettings(
        type="rss", config={"url": url}, engines=ENGINES, outlets=[outlet], autopilot=True
    )
    collect.register(_workspace(), given)


def follow(hub):
    """A source whose feed names that hub, after the poll that saw so."""
    made = collect.register(
        _workspace(), collect.SourceSettings(type="rss", config={"url": "http://127.0.0.1:9/feed"})
    )
    Source.everywhere.filter(pk=made.pk).update(wake_at=work_queue.database_now() + timedelta(days=1))
    websub.follow(made, Hub((hub,), "https://topic.example/feed"), now=timezone.now())


def hub_verifies():
    asked = {
        "hub.mode": "subscribe",
        "hub.topic": "https://topic.example/feed",
        "hub.challenge": "c",
        "hub.lease_seconds": "86400",
    }
    return Client().get(_callback(), asked, SERVER_NAME="127.0.0.1").status_code


def hub_pushes():
    return Client().post(_callback(), b"<feed/>", "application/atom+xml", SERVER_NAME="127.0.0.1").status_code


def subscription():
    row = WebSubSubscription.everywhere.select_related("source").get()
    return {
        "status": row.status,
        "tries": row.tries,
        "is_claimed": row.attempts > 0,
        "is_leased": row.lease_ends_at is not None,
        "is_source_due": row.source.wake_at <= work_queue.database_now(),
    }


def _callback():
    return f"/hooks/websub/{WebSubSubscription.everywhere.get().token}"


def connect_letterbox(server):
    """An account whose log-in is to be renewed now."""
    know_letterbox()
    secrets_of_it = {"token": "token-1", "refresh": "refresh-1"}
    now = timezone.now()
    made = outlets.connect_outlet(
        _workspace(), "letterbox", name="Box", config={"server": server},
        credentials=secrets_of_it, by="alice@example.test", now=now, expires_at=now + timedelta(hours=1),
    )  # fmt: skip
    Outlet.everywhere.filter(pk=made.pk).update(
        expires_at=now - timedelta(minutes=1), due_at=now, wake_at=work_queue.database_now()
    )


def know_letterbox():
    """Until the process ends."""
    plugins._load("platforms")[letterbox.Letterbox.kind] = letterbox.Letterbox()


def letterbox_outlet():
    row = Outlet.everywhere.get(platform="letterbox")
    told = Event.everywhere.filter(type="outlet.needs_reconnect").count()
    return {"status": row.status, "credentials": row.credentials.open_object(), "told": told}


def recover(portion=1):
    """Everything that was ever sent to the first endpoint, in portions of so many."""
    recovery.PORTION_ROWS = portion
    first = Endpoint.everywhere.get(url__endswith="/first")
    recovery.start(first, timezone.now() - timedelta(days=1), is_everything=True, actor="test")


def recover_by(portion):
    recovery.PORTION_ROWS = portion


def recovered():
    """How it ended, and how often each delivery of its endpoint was attempted."""
    row = Recovery.everywhere.get()
    tries = sorted(row.endpoint.deliveries.values_list("attempt_count", flat=True))
    return {
        "status": row.status,
        "total": row.total,
        "sent": row.sent,
        "tries": tries,
        "is_claimed": row.attempts > 0,
    }


def add_bridge():
    """A webhook source whose sender proves itself; the secret is the world's own."""
    verification = {"type": "bearer", "secret": "a-secret-of-the-bridge"}
    config = {"verification": verification, "mapping": {"external_id": "id", "title": "name", "body": "text"}}
    secrets.register(_workspace(), collect.SourceSettings(type="webhook", config=config, engines=ENGINES))


def send(key=None):
    """What a bridge sends, with its own id of the delivery or without."""
    source = Source.everywhere.get(type="webhook", is_push=False)
    answer = Client().post(
        f"/hooks/{source.inbound_token}",
        json.dumps({"id": "tram", "name": "Tram line approved", "text": TEXT}),
        content_type="application/json",
        headers={
            "Authorization": "Bearer a-secret-of-the-bridge",
            **({"Idempotency-Key": key} if key else {}),
        },
        SERVER_NAME="127.0.0.1",
    )
    said = json.loads(answer.content)
    return {"status": answer.status_code, "replayed": False, "body": {"id": said["id"]}}


def add_lane(lines=(), notes="", cadence_hours=720):
    """A brand lane whose first slot is due, with eight topics; its persona may say these lines without a
    model."""
    now = timezone.now()
    persona = WorkspaceDefaults.everywhere.get(workspace=_workspace()).persona
    crud.change(persona, {"approved_lines": list(lines)}, by="test", now=now)
    for name in "ABCDEFGH":
        topics.create(_workspace(), {"title": f"Topic {name}", "notes": notes}, now=now)
    config = {"cadence": {"every_hours": cadence_hours}}
    collect.register(_workspace(), collect.SourceSettings(type="brand", config=config, engines=ENGINES))


def add_series(stories):
    """A series whose time has come, and what it may tell: titles and words, each made into an item
    already."""
    for number, (title, words) in enumerate(stories):
        push_one(external_id=f"story-{number}", title=title, body=f"{words} {TEXT}")
    task_runner.work_all_due("generate.run_item")
    now = timezone.now()
    slots = [{"weekday": weekday, "time": "09:00"} for weekday in range(7)]
    given = {"name": "The week", "timezone": "UTC", "slots": slots, "window_days": 7}
    made = series.create(_workspace(), given, test=False, now=now)
    Series.everywhere.filter(pk=made.pk).update(due_at=now, wake_at=now)


def add_recurrence():
    """An item that was published, and whose time to come back has come."""
    push_one()
    task_runner.work_all_due("generate.run_item")
    publish()
    task_runner.work_all_due("publish.send_publication")
    now = timezone.now()
    made = recurring.begin(GeneratedItem.everywhere.get(), every_days=30, now=now)
    Recurrence.everywhere.filter(pk=made.pk).update(due_at=now, wake_at=now)


def lose_sources():
    Source.everywhere.update(status="gone")


def ask_for_draft(url="", posts=""):
    drafts.request(_workspace(), persona=None, url=url, posts=posts, by="test", now=timezone.now())


def ask_for_rewrite():
    rewrites.request(
        GeneratedItem.everywhere.select_related("workspace").get(),
        rewrites.SHORTER,
        workspace=_workspace(),
        by="test",
        now=timezone.now(),
    )


def rewritten():
    row = GeneratedItem.everywhere.get()
    return {
        "words": row.body.partition("\n")[0],
        "revision": row.revision,
        "is_checked": row.is_checked,
        "runs": list(Generation.everywhere.filter(rewrites=row).values_list("status", flat=True)),
    }


def draft():
    row = PersonaDraft.everywhere.get()
    return {
        "status": row.status,
        "sections": row.sections,
        "is_offline": row.is_offline,
        "has_material": row.material is not None,
        "is_claimed": row.attempts > 0,
    }


def add_letter(port, count):
    """A newsletter through the mail server at that port, its subscribers, and an item that is to be mailed to
    them."""
    outlet = Outlet.everywhere.create(
        workspace=_workspace(),
        platform="email_newsletter",
        name="Letter",
        config={
            "host": "127.0.0.1",
            "port": port,
            "encryption": "none",
            "from_name": "Letter",
            "from_address": "news@letter.example",
            "imprint": "1 Quay Street",
            "mails_per_minute": 6000,
        },
        credentials={},
    )
    now = timezone.now()
    rows = [
        Subscriber(workspace=_workspace(), outlet=outlet, email=f"r{n}@readers.example", confirmed_at=now)
        for n in range(count)
    ]
    for row in rows:
        row.status = "active"
    Subscriber.everywhere.bulk_create(rows)
    GeneratedItem.everywhere.update(bucket="newsletter", title="The tram is coming")
    Revision.everywhere.update(title="The tram is coming")


def publish_letter():
    return publish(["email_newsletter"])["status"]


def mailed():
    return {
        "mailings": _by(Mailing, "status"),
        "deliveries": _by(MailDelivery, "status"),
        "publications": _by(Publication, "status"),
        "unknown": list(
            MailDelivery.everywhere.filter(status="unknown").values_list("subscriber__email", flat=True)
        ),
        "counts": [one.counts for one in Mailing.everywhere.all()],
        "is_claimed": MailQueue.everywhere.get().attempts > 0,
    }


def spread_by(rows):
    limits.MAIL_SPREAD_AT_ONCE = rows


def next_slot():
    """The lane's next slot has come."""
    BrandSlot.everywhere.filter(status="waiting").update(
        wake_at=work_queue.database_now() - timedelta(seconds=1)
    )


def script(words):
    """How the simulated platform answers, call by call of one publication; after the last word all is
    well."""
    Outlet.everywhere.filter(pk=_simulated().pk).update(config={"script": words})


def publish(outlets=("simulated",), key=None):
    """The first finished item, on the outlets of these platforms."""
    item = GeneratedItem.everywhere.exclude(status__in=["failed", "rejected"]).order_by("id").first()
    named = [encode("out", Outlet.everywhere.get(platform=platform).pk) for platform in outlets]
    return request("POST", f"/v1/generated/{encode('gen', item.pk)}/publish", {"outlets": named}, key)


def complain():
    """Something that the workspace's owner is told of, at once and in the digest that is due now."""
    owner = User.objects.create_user(email="owner@example.test")
    Membership.everywhere.create(workspace=_workspace(), user=owner, role="owner")
    now = timezone.now()
    with transaction.atomic():
        notices.record(
            "quota", workspace_id=_workspace().pk, key="x", title="Credits run out", text="Few are left."
        )
    morning = notices.next_morning(now - timedelta(days=1), "UTC")
    NoticeDigest.everywhere.filter(workspace=_workspace()).update(due_at=morning, wake_at=morning)


def end_a_month():
    """What was counted is of the last month, whose turn is over; its owner isn't told of it yet."""
    owner = User.objects.create_user(email="owner@example.test")
    Membership.everywhere.create(workspace=_workspace(), user=owner, role="owner")
    turn = send_monthly_summary.last_turn(timezone.now(), "UTC")
    Outcome.everywhere.update(at=turn - timedelta(days=3))
    MonthlySummary.everywhere.filter(workspace=_workspace()).update(due_at=turn, wake_at=turn)


def work(kinds):
    _count_what_the_writer_is_asked()
    return task_runner.work_all_due(*kinds)


def be_patient(hours=4):
    """Nobody waits for the runs: they may ask in batches."""
    Generation.everywhere.update(batch_until=timezone.now() + timedelta(hours=hours))


def end_workspace():
    """The workspace's deletion was asked for, and its time is over."""
    Workspace.everywhere.filter(name=NAME).update(deletes_at=work_queue.database_now() - timedelta(seconds=1))


def left():
    """What there is still of the workspace, of every app, and whether its credits agree."""
    erased = Workspace.everywhere.get(deletes_at__isnull=False)
    held = {}
    for model in apps.get_models():
        fields = [field.name for field in model._meta.concrete_fields if field.related_model is Workspace]
        if fields and (count := model._default_manager.filter(**{fields[0]: erased}).count()):
            held[model._meta.label] = count
    return {
        "held": held,
        "is_deleted": erased.deleted_at is not None,
        "is_erased": erased.erased_at is not None,
        "files": sum(
            # A dot file is the service's own mark.
            path.is_file() and not path.name.startswith(".")
            for path in Path(settings.MEDIA_ROOT).rglob("*")
        ),
        "audit": list(
            AuditEntry.everywhere.filter(actor="system").order_by("id").values_list("action", flat=True)
        ),
        "wrong": [str(one) for one in reports.check()],
    }


def _returns():
    """How many come back or have stopped, what came of their times, and how many notices told of a stop."""
    told = Notice.everywhere.filter(kind="recurrence_stopped").count()
    return _by(Recurrence, "status") | _by(RecurrenceTurn, "decision") | ({"told": told} if told else {})


def let_time_pass():
    """The leases of killed tasks run out, and what is to be tried again may be tried now."""
    now = work_queue.database_now() - timedelta(seconds=1)
    waiting = {model: Q(attempts__gt=0) for model in DUE_MODELS}
    waiting[Publication] |= Q(next_attempt_at__isnull=False)
    waiting[Delivery] |= Q(status="pending")
    waiting[WebSubSubscription] |= Q(status__in=["wanted", "asked"])
    waiting[Generation] |= Q(error__code=BRIEF_AWAITED)
    waiting[ModelBatch] |= Q(status__in=["waiting", "sending", "sent"])
    waiting[RollupDay] |= Q(is_current=False)
    # What a batch is asked for is held until the run's own time is up, not for a lease.
    held = SharedBrief.everywhere.filter(asked_by__error__code=batches.AWAITED).values_list("pk", flat=True)
    SharedBrief.everywhere.filter(asked_until__gt=now).exclude(pk__in=list(held)).update(asked_until=now)
    moved = {
        model.__name__: model.everywhere.filter(which, wake_at__gt=now).update(wake_at=now)
        for model, which in waiting.items()
    }
    # Messages that a killed dispatcher never sent, or a killed task left.
    for lease in Lease.everywhere.exclude(state="resting"):
        for model in DUE_MODELS:
            model.everywhere.filter(pk=lease.subject, wake_at__gt=now).update(wake_at=now)
        lease.delete()
    Publication.everywhere.filter(next_attempt_at__gt=now).update(next_attempt_at=now)
    # So does the time in which the call of a killed hand may still get through.
    calls = Attempt.everywhere.filter(status__in=["started", "unknown"])
    calls.update(started_at=now - timedelta(hours=1))
    return {name: count for name, count in moved.items() if count}


def finish(rounds=40):
    """A fresh process works whatever is left, until nothing waits for a lease or for another try.

    What is told to an endpoint that never answers takes a round for each of its tries, and some more while it
    rests.
    """
    _count_what_the_writer_is_asked()
    moved, worked = {}, 0
    for _ in range(rounds):
        moved = let_time_pass()
        worked = task_runner.work_all_due()
        if not worked and not moved:
            return
    message = f"Rows were still due after {rounds} rounds: {worked} worked, after these were woken: {moved}."
    raise RuntimeError(message)


def _count_what_the_writer_is_asked():
    settings.EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    settings.EMAIL_FILE_PATH = str(MAILS)
    writer = plugins.get("writers", "extractive", Writer)
    for name in ("brief", "draft"):
        setattr(writer, name, _noted(name, getattr(type(writer), name).__get__(writer)))


def _noted(name, ask):
    def asked(*arguments, **options):
        # Each line is one write, so that a kill can't take back what was asked.
        with ASKED.open("a") as file:
            file.write(f"{name}\n")
        return ask(*arguments, **options)

    return asked


def _workspace():
    return Workspace.everywhere.select_related("plan").get(name=NAME)


def _simulated():
    return Outlet.everywhere.get(workspace__name=NAME, platform="simulated")


def seed(count, what, receiver=""):
    """`count` rows of an unlimited workspace, as pushing and publishing make them, but for being due."""
    many = workspaces.create("Many", actor="test")
    workspaces.whitelist(many, "test")
    workspaces.lift_limits(many, "test")
    if receiver:
        endpoints.add(many, f"{receiver}/many", actor="test")
    defaults = WorkspaceDefaults.everywhere.get(workspace=many)
    pushed = raw_content.RawContent(
        external_id="first", title="Tram line approved", body=TEXT, engines=ENGINES
    )
    store_raw_item.push(many, defaults.push_source, pushed, defaults=defaults)
    if what == "publications":
        task_runner.work_all_due("generate.run_item")
    with transaction.atomic():
        {"generations": _copy_generations, "publications": _copy_publications, "events": _copy_events}[what](
            many, count
        )


def _copy_generations(many, count):
    raw, body = RawItem.everywhere.get(), RawBody.everywhere.get()
    run, item = Generation.everywhere.get(), GeneratedItem.everywhere.get()
    raws = [_copy(raw, dedup_key=f"{raw.dedup_key}-{number}") for number in range(count)]
    runs = [_copy(run, raw_item=one, wake_at=None) for one in raws]
    _store(raws)
    _store([_copy(body, raw_item=one) for one in raws])
    _store(runs)
    _store([_copy(item, raw_item=one.raw_item, generation=one, variant_group=one.pk) for one in runs])
    credit_account.reserve(many, {one.pk: one.credits_reserved for one in runs}, now=timezone.now())


def _copy_publications(many, count):
    item, revision = GeneratedItem.everywhere.get(), Revision.everywhere.get()
    outlet = Outlet.everywhere.get(workspace=many, platform="simulated")
    items = [_copy(item, status="scheduled", variant_group=uuid7()) for _ in range(count)]
    promised = {"workspace": many, "outlet": outlet, "platform": "simulated", "revision": item.revision}
    _store(items)
    _store([_copy(revision, item=one) for one in items])
    _store([Publication(item=one, due_at=timezone.now(), **promised) for one in items])


def _copy_events(_many, count):
    event = Event.everywhere.get()
    _store([_copy(event, dispatched_at=event.created_at) for _ in range(count)])


def _store(rows):
    type(rows[0]).everywhere.bulk_create(rows, batch_size=500)


def _copy(row, **changes):
    fields = {
        field.attname: getattr(row, field.attname)
        for field in row._meta.concrete_fields
        if field.name != "id"
    }
    for name, value in changes.items():
        fields.pop(f"{name}_id", None)
        fields[name] = value
    return type(row)(**fields)


def books():
    """What was asked of a model, by step and outcome, and the briefs that are kept."""
    calls = ModelCall.everywhere.values_list("stage", "outcome")
    return {
        "calls": dict(Counter(f"{stage} {outcome}" for stage, outcome in calls)),
        "briefs": SharedBrief.everywhere.filter(content__isnull=False).count(),
        "asked_by": SharedBrief.everywhere.exclude(asked_by=None).count(),
    }


# --- What became of it -----------------------------------------------------------------------------------------------


def report():
    """Every fact that is there, counted, and every rule that it breaks in a sentence."""
    posts = SimulatedPost.everywhere.values_list("is_accepted", flat=True)
    return {
        "tally": {
            "raw": _by(RawItem, "status"),
            "made": _by(GeneratedItem, "status"),
            "runs": _by(Generation, "status"),
            "publications": _by(Publication, "status"),
            "calls": _by(Attempt, "status"),
            "posts": {"accepted": sum(posts), "refused": len(posts) - sum(posts)},
            "events": _by(Event, "type"),
            "outcomes": {str(key): count for key, count in Counter(_values(Outcome, "is_published")).items()},
            # The next one is due after half a minute, which a busy machine may need until here.
            "measurements": Measurement.everywhere.filter(number=1).count(),
            "ledger": _by(LedgerEntry, "kind"),
            "deliveries": _by(InboundDelivery, "status"),
            "slots": _by(BrandSlot, "status"),
            "picks": _by(BrandPick, "decision"),
            "returns": _returns(),
            "keys": IdempotencyKey.everywhere.count(),
            "files": Asset.everywhere.filter(revoked_at=None).count(),
            "mails": _by_subject(),
            "messages": _by(NoticeMessage, "status"),
            "asked": dict(Counter(ASKED.read_text().split())) if ASKED.exists() else {},
        },
        "broken": [
            *_broken_events(),
            *_broken_runs(),
            *_broken_files(),
            *_broken_publications(),
            *_left_over(),
        ],
        "events": [encode("evt", key) for key in _values(Event, "id")],
    }


def _by_subject():
    subjects = []
    for path in sorted(MAILS.glob("*.log")) if MAILS.exists() else []:
        subjects += [line for line in path.read_text().splitlines() if line.startswith("Subject: ")]
    return dict(Counter(line.removeprefix("Subject: ") for line in subjects))


def _values(model, name):
    return list(model.everywhere.values_list(name, flat=True))


def _by(model, name):
    return dict(Counter(_values(model, name)))


def _broken_events():
    events = list(Event.everywhere.order_by("position"))
    if [one.position for one in events] != list(range(1, len(events) + 1)):
        yield f"positions {[one.position for one in events]}"
    yield from (f"{one.type} is not marked" for one in events if not (one.dispatched_at and one.counted_at))
    told = Counter(
        (one.type, one.publication_id or one.generated_item_id or one.raw_item_id)
        for one in events
        if not one.will_retry
    )
    yield from (
        f"{kind} of {subject} told {count} times" for (kind, subject), count in told.items() if count > 1
    )
    for endpoint in Endpoint.everywhere.all():
        deliveries = {one.event_id: one for one in Delivery.everywhere.filter(endpoint=endpoint)}
        wanted = {one.pk for one in events if wants(endpoint, one)}
        if set(deliveries) != wanted:
            yield f"{len(deliveries)} deliveries of {len(wanted)} events to {endpoint.url}"
        for one in deliveries.values():
            made = DeliveryAttempt.everywhere.filter(delivery=one).order_by("number")
            if one.status != "delivered" or [try_.number for try_ in made] != list(
                range(1, one.attempt_count + 1)
            ):
                yield f"a delivery is {one.status} after {one.attempt_count} attempts, {len(made)} kept"


def _broken_runs():
    yield from (f"ledger: {wrong}" for wrong in reports.check())
    yield from (f"{left} credits stay reserved" for left in _values(CreditBalance, "reserved") if left)
    for run in Generation.everywhere.all():
        entries = Counter(LedgerEntry.everywhere.filter(subject=run.pk).values_list("kind", flat=True))
        if entries["reserve"] != 1 or entries["settle"] + entries["release"] != 1:
            yield f"a run that is {run.status} has {dict(entries)}"
        # What the undo of a rewrite needs stays.
        if run.answers.keys() - ({REWRITE} if run.rewrites_id else set()):
            yield f"a run that is {run.status} keeps its answers"
    for item in GeneratedItem.everywhere.all():
        numbers = list(
            Revision.everywhere.filter(item=item).order_by("number").values_list("number", flat=True)
        )
        if numbers != list(range(1, item.revision + 1)):
            yield f"an item at revision {item.revision} has the revisions {numbers}"


def _broken_files():
    for one in Asset.everywhere.filter(revoked_at=None):
        path = Path(settings.MEDIA_ROOT) / one.path
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != one.sha256:
            yield f"the file of {one.name} isn't what its row says"
    kept = Counter(Asset.everywhere.filter(revoked_at=None).values_list("item_id", "name"))
    yield from (f"{name} is there {count} times" for (_, name), count in kept.items() if count > 1)


def _broken_publications():
    for row in Publication.everywhere.select_related("outlet", "item"):
        there = set(row.item.publications.values_list("status", flat=True))
        if row.item.status != derive_status(there):
            yield f"an item is {row.item.status} with publications {there}"
        if row.status not in ENDED:
            yield f"a publication is {row.status}"
            continue
        is_published = row.status == "published"
        accepted = SimulatedPost.everywhere.filter(ref=encode("pub", row.pk), is_accepted=True).count()
        if row.outlet.is_simulated and accepted != is_published:
            yield f"a publication that {row.status} was accepted {accepted} times"
        finals = Event.everywhere.filter(publication_id=row.pk).exclude(will_retry=True)
        expected = ["published.success" if is_published else "published.failed"]
        if list(finals.values_list("type", flat=True)) != expected:
            yield f"a publication that is {row.status} told {list(finals.values_list('type', flat=True))}"
        if list(Outcome.everywhere.filter(publication_id=row.pk).values_list("is_published", flat=True)) != [
            is_published
        ]:
            yield f"a publication that is {row.status} was counted otherwise"
        yield from _broken_measuring(row, is_published=is_published)
    yield from (
        f"an attempt is {status}" for status in _values(Attempt, "status") if status in {"started", "unknown"}
    )


def _broken_measuring(row, *, is_published):
    plans = list(Measuring.everywhere.filter(publication=row))
    kept = list(Measurement.everywhere.filter(publication=row).order_by("number"))
    numbers = [measurement.number for measurement in kept]
    if len(plans) != is_published:
        yield f"a publication that is {row.status} is measured by {len(plans)} rows"
    for plan in plans:
        # A simulated outlet is measured at once, and on a slow machine its next time comes during the test.
        if bool(plan.measured) != row.outlet.is_simulated or numbers != list(range(1, plan.measured + 1)):
            yield f"{plan.measured} measured, of which {numbers} are kept"
    for measurement, age in zip(kept, SIMULATED_AT, strict=False):
        if measurement.at < row.published_at + age:
            yield f"measurement {measurement.number} was made before its time"


def _left_over():
    ended = {
        Generation: ["done", "failed"],
        Publication: ["published", "failed", "cancelled", "removed"],
        Delivery: ["delivered", "failed"],
    }
    for model in DUE_MODELS:
        claimed = model.everywhere.filter(wake_at__isnull=False, attempts__gt=0).count()
        if claimed:
            yield f"{claimed} of {model.__name__} are still claimed"
    for model, statuses in ended.items():
        awake = model.everywhere.filter(status__in=statuses, wake_at__isnull=False).count()
        if awake:
            yield f"{awake} of {model.__name__} have ended and wait for a hand"


STEPS = {
    one.__name__: one
    for one in (
        prepare,
        complain,
        end_a_month,
        push_one,
        push_footage,
        push_batch,
        upload,
        uploads_left,
        erase,
        add_source,
        follow,
        hub_verifies,
        hub_pushes,
        subscription,
        connect_letterbox,
        know_letterbox,
        letterbox_outlet,
        ask_for_draft,
        draft,
        ask_for_rewrite,
        rewritten,
        add_bridge,
        recover,
        recover_by,
        recovered,
        send,
        add_lane,
        add_series,
        add_recurrence,
        lose_sources,
        next_slot,
        be_patient,
        add_letter,
        publish_letter,
        mailed,
        spread_by,
        script,
        publish,
        work,
        let_time_pass,
        finish,
        end_workspace,
        left,
        seed,
        books,
        report,
    )
}

if __name__ == "__main__":
    sys.stdout.write(
        json.dumps([STEPS[name](**given) for name, given in json.loads(sys.argv[1])], default=str)
    )
