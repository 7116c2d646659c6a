"""The dispatcher: what it queues, for whom, and what becomes of a message that comes late, twice or never."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.db import OperationalError, connection

from accounts.models import Workspace
from config import celery, database_connections
from config.core import dispatcher, jobs, task_runner, work_leases, work_queue
from config.core.clock import utc_now
from pipeline.models import Lease, Source
from tests.factories import WorkspaceFactory
from tests.webhooks.factories import make_event

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
JOB = "tests.work"


class Messages:
    """A broker whose messages wait until the test has them worked."""

    def __init__(self):
        self.sent, self.wakes, self.fails, self.long = [], 0, False, 0

    def send(self, job, lease):
        if self.fails:
            raise ConnectionError("The broker is away.")
        self.sent.append((job.name, lease.subject, lease.token, lease.holder))

    def count_waiting(self, queues):
        return dict.fromkeys(queues, self.long)

    def wake(self):
        self.wakes += 1

    def rearm_wake(self):
        pass


class Work:
    def __init__(self):
        self.done, self.given_up, self.then = [], [], lambda row: row.sleep_until(None, attempts=0)

    def __call__(self, row):
        self.done.append(row.pk)
        self.then(row)

    def give_up(self, row):
        self.given_up.append(row.pk)
        row.sleep_until(None, attempts=0)


@pytest.fixture
def broker(settings, monkeypatch):
    settings.JOB_MODULES = []
    monkeypatch.setattr(jobs, "_jobs", {})
    messages = Messages()
    dispatcher.set_waker(messages.wake)
    work_leases.start_worker()
    work_leases.note_worker("one", {"tests": 4})
    yield messages
    task_runner.start()


@pytest.fixture
def work(broker):
    work = Work()
    jobs.register(
        jobs.RowJob(
            name=JOB,
            model=Source,
            work=work,
            give_up=work.give_up,
            lease=timedelta(minutes=1),
            max_attempts=3,
            ahead=2,
        )
    )
    return work


@pytest.fixture
def workspace():
    return WorkspaceFactory()


def waiting(workspace, count=1):
    now = work_queue.database_now() - timedelta(seconds=1)
    return [
        Source.everywhere.create(workspace=workspace, name=f"{number}", type="rss", wake_at=now)
        for number in range(count)
    ]


def round_of(broker):
    """What one round has sent."""
    before = len(broker.sent)
    assert dispatcher.run_round(broker).queued == len(broker.sent) - before
    return broker.sent[before:]


def work_all(messages):
    return [task_runner.run(*message) for message in messages]


def after(seconds, monkeypatch):
    """So many seconds later, by the database's clock."""
    now = work_queue.database_now() + timedelta(seconds=seconds)
    monkeypatch.setattr(work_queue, "database_now", lambda: now)


# --- What is queued --------------------------------------------------------------------------------------------------


def test_a_row_becomes_a_message_a_task_and_nothing_is_left(work, broker, workspace):
    (row,) = waiting(workspace)
    (message,) = round_of(broker)
    assert message == (JOB, row.pk, 1, None)
    lease = Lease.everywhere.get()
    assert (lease.state, lease.owner, lease.worker) == ("queued", workspace.pk, None)
    row.refresh_from_db()
    # A claim is no try.
    assert (row.attempts, row.lease_token) == (0, 1)
    seen = []

    def look(row):
        lease = Lease.everywhere.get()
        seen.append((lease.state, lease.worker, row.attempts))
        row.sleep_until(None, attempts=0)

    work.then = look
    assert work_all([message]) == [True]
    assert seen == [("running", work_leases.worker_id(), 1)]
    assert Lease.everywhere.count() == 0
    assert round_of(broker) == []


def test_no_more_is_queued_than_slots_and_a_little_ahead(work, broker, workspace):
    rows = waiting(WorkspaceFactory(), 5) + waiting(workspace, 5)
    first = round_of(broker)
    assert len(first) == 4 + 2
    assert dispatcher.run_round(broker) == (0, True)
    work_all(first[:3])
    # Whoever ends a task wakes the dispatcher.
    assert broker.wakes == 3
    work_all(first[3:])
    while more := round_of(broker):
        work_all(more)
    assert sorted(work.done) == sorted(row.pk for row in rows)


def test_a_job_whose_queue_is_full_of_another_s_rows_has_one_place(work, broker, workspace):
    for _ in range(3):
        waiting(WorkspaceFactory(), 9)
    assert len(round_of(broker)) == 4 + 2
    batch = jobs.BatchJob(name="tests.batch", work=lambda: 0, waits="SELECT 1 AS found")
    jobs.register(batch)
    assert [name for name, *_ in round_of(broker)] == ["tests.batch"]
    assert round_of(broker) == []


def test_a_workspace_has_three_quarters_of_the_slots(work, broker, workspace):
    waiting(workspace, 9)
    assert len(round_of(broker)) == 3
    quiet = WorkspaceFactory()
    (row,) = waiting(quiet)
    assert [subject for _, subject, _, _ in round_of(broker)] == [row.pk]


def test_what_can_wait_is_left_while_more_is_promised_than_there_are_slots(
    work, broker, workspace, monkeypatch
):
    """And not for ever: after some seconds some of it is queued all the same."""
    counts = Work()
    jobs._jobs[JOB] = replace(jobs._jobs[JOB], where={"type": "rss"}, is_promised=True)
    jobs.register(
        jobs.RowJob(
            name="counts.count",
            model=Source,
            work=counts,
            give_up=counts.give_up,
            lease=timedelta(minutes=1),
            where={"type": "hacker_news"},
            can_wait=True,
        )
    )
    work_leases.note_worker("one", {"tests": 4, "counts": 4})
    waiting(workspace, 9)
    (late,) = waiting(WorkspaceFactory())
    Source.everywhere.filter(pk=late.pk).update(type="hacker_news")
    assert {name for name, *_ in round_of(broker)} == {JOB}
    assert dispatcher.run_round(broker) == (0, True)
    began = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: began + dispatcher.MAX_PUT_OFF_SECONDS)
    assert [subject for _, subject, _, _ in round_of(broker)] == [late.pk]


def test_what_can_wait_is_queued_beside_what_is_promised_where_there_are_slots(work, broker, workspace):
    jobs._jobs[JOB] = replace(jobs._jobs[JOB], can_wait=True)
    (row,) = waiting(workspace)
    assert [subject for _, subject, _, _ in round_of(broker)] == [row.pk]


def test_of_rows_of_several_jobs_each_claims_its_own(work, broker, workspace):
    """And a worker that takes one's queue is never sent the other's."""
    films = Work()
    job = jobs.RowJob(
        name="films.make",
        model=Source,
        work=films,
        give_up=films.give_up,
        lease=timedelta(minutes=1),
        where={"type": "hacker_news"},
        ahead=0,
    )
    jobs._jobs[JOB] = replace(jobs._jobs[JOB], where={"type": "rss"})
    (row,) = waiting(workspace)
    jobs.register(job)
    assert {one.name for one in dispatcher.find_due_jobs()} == {JOB}
    # Its first task gives it on to the other queue, where no worker is yet.
    work.then = lambda row: row.sleep_until(work_queue.database_now(), type="hacker_news", attempts=0)
    assert work_all(round_of(broker)) == [True]
    assert {one.name for one in dispatcher.find_due_jobs()} == {job.name}
    assert round_of(broker) == []
    work_leases.note_worker("one", {"tests": 4, "films": 1})
    messages = round_of(broker)
    assert messages == [(job.name, row.pk, 2, None)]
    assert work_leases.read_load(work_queue.database_now()).queues == {"films": 1}
    assert work_all(messages) == [True]
    assert (work.done, films.done) == ([row.pk], [row.pk])


def test_a_lease_goes_along_with_its_row_to_another_job(work, broker, workspace):
    """It is queued there before the task that gave it on has ended."""
    now = work_queue.database_now()
    (row,) = waiting(workspace)
    work_leases.add("tests.work", "tests", [work_leases.QueuedTask(row.pk, 1)], now=now)
    work_leases.begin(row.pk, 1, now=now)
    work_leases.add("films.make", "films", [work_leases.QueuedTask(row.pk, 2)], now=now)
    work_leases.end(row.pk, 1)
    held = work_leases.read_load(now)
    assert (held.queues, held.jobs) == ({"films": 1}, {"films.make": 1})


def test_what_computes_may_have_all_slots_of_its_queue(work, broker, workspace):
    jobs._jobs[JOB] = replace(jobs._jobs[JOB], computes=True)
    waiting(workspace, 9)
    assert len(round_of(broker)) == 4 + 2


def test_slots_are_those_of_all_living_workers(work, broker, workspace, monkeypatch):
    for _ in range(3):
        waiting(WorkspaceFactory(), 5)
    work_leases.start_worker()
    work_leases.note_worker("two", {"tests": 3})
    assert len(round_of(broker)) == 4 + 3 + 2
    after(work_leases.ALIVE.total_seconds() + 1, monkeypatch)
    work_leases.note_worker("two", {"tests": 3})
    # The first one is dead, and the messages have got lost.
    assert len(round_of(broker)) == 3 + 2


def test_what_a_dead_worker_runs_takes_no_slot_of_the_living(work, broker, workspace, monkeypatch):
    waiting(workspace, 2)
    for name, subject, token, _ in round_of(broker):
        work_leases.begin(subject, token, now=work_queue.database_now())
        assert work_queue.begin(jobs.jobs()[name].model, subject, token, lease=timedelta(minutes=9))
    now = work_queue.database_now()
    assert work_leases.read_load(now).queues == {"tests": 2}
    assert work_leases.read_load(now + work_leases.ALIVE).queues == {}


def test_nothing_is_queued_where_no_worker_takes_the_queue(work, broker, workspace):
    waiting(workspace)
    work_leases.end_worker()
    assert dispatcher.run_round(broker) == (0, False)
    assert Source.everywhere.get().lease_token == 0


def test_nothing_is_added_to_a_queue_whose_messages_wait(work, broker, workspace):
    waiting(workspace)
    broker.long = 25
    assert round_of(broker) == []
    broker.long = 24
    assert len(round_of(broker)) == 1


def test_a_job_that_can_t_be_claimed_holds_up_no_other(work, broker, workspace, monkeypatch):
    waiting(workspace)
    others = Work()
    jobs.register(
        jobs.RowJob(
            name="tests.another",
            model=Source,
            work=others,
            give_up=others,
            lease=timedelta(minutes=1),
        )
    )
    claim = dispatcher.claim

    def broken(job, slots):
        if job.name == JOB:
            raise OperationalError("broken")
        return claim(job, slots)

    monkeypatch.setattr(dispatcher, "claim", broken)
    assert [name for name, *_ in round_of(broker)] == ["tests.another"]


def test_rounds_end_when_nothing_is_due(work, broker, workspace, monkeypatch):
    waiting(workspace, 3)
    monkeypatch.setattr(dispatcher, "ROUND_PAUSE_SECONDS", (0, 0))
    assert dispatcher.run_rounds(broker) == 3
    assert dispatcher.run_rounds(broker) == 0
    assert broker.wakes == 0


def test_pauses_grow_while_what_is_left_finds_no_slot(broker, monkeypatch):
    """An endpoint that hangs must not keep the dispatcher busy; what is queued brings the short pauses back."""
    queued, pauses = iter([1, 0, 0, 0, 0, 0, 2]), []

    def look(_broker):
        number = next(queued, None)
        return dispatcher.DispatchRound(number or 0, is_left=number is not None)

    monkeypatch.setattr(dispatcher, "run_round", look)
    monkeypatch.setattr(dispatcher, "_pause_after", lambda _seconds: 0.0)
    monkeypatch.setattr(dispatcher.time, "sleep", pauses.append)
    assert dispatcher.run_rounds(broker) == 3
    assert pauses == [0.03, 0.06, 0.12, 0.24, 0.25, 0.25, 0.03]


def test_rounds_go_on_in_another_task_while_something_waits_for_a_slot(work, broker, workspace, monkeypatch):
    waiting(workspace, 9)
    monkeypatch.setattr(dispatcher, "ROUND_PAUSE_SECONDS", (0, 0))
    monkeypatch.setattr(dispatcher, "ROUNDS_SECONDS", 0)
    assert dispatcher.run_rounds(broker) == 3
    assert broker.wakes == 1


def test_one_task_of_a_process_dispatches_and_looks_again_for_the_others(broker, monkeypatch):
    looks, goes_on = [], threading.Event()

    def look(_broker):
        looks.append(threading.current_thread().name)
        assert goes_on.wait(10)
        return dispatcher.DispatchRound(0, is_left=False)

    monkeypatch.setattr(dispatcher, "run_round", look)
    first = threading.Thread(target=dispatcher.run_rounds, args=(broker,), name="first")
    first.start()
    while not looks:
        time.sleep(0.001)
    assert dispatcher.run_rounds(broker) == 0
    assert looks == ["first"]
    goes_on.set()
    first.join(10)
    # A last look after each.
    assert looks == ["first"] * 4


def test_a_wake_is_one_however_often_it_is_asked_for(broker, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        for _ in range(5):
            dispatcher.wake()
    assert broker.wakes == 1


# --- Messages that are lost, late or doubled -------------------------------------------------------------------------


def test_the_second_copy_of_a_message_does_nothing(work, broker, workspace):
    waiting(workspace)
    (message,) = round_of(broker)
    copies = []

    def come_again(row):
        copies.append(task_runner.run(*message))
        row.sleep_until(None, attempts=0)

    work.then = come_again
    assert work_all([message, message]) == [True, False]
    assert copies == [False]
    assert len(work.done) == 1


def test_a_lost_message_costs_ten_seconds_and_no_try(work, broker, workspace, monkeypatch):
    (row,) = waiting(workspace)
    (lost,) = round_of(broker)
    after(9, monkeypatch)
    assert round_of(broker) == []
    after(2, monkeypatch)
    work_leases.note_worker("one", {"tests": 4})
    (message,) = round_of(broker)
    assert message == (JOB, row.pk, 2, None)
    # It was only late.
    assert work_all([lost, message]) == [False, True]
    assert len(work.done) == 1


def test_a_message_that_can_t_be_sent_gives_its_row_back(work, broker, workspace):
    waiting(workspace)
    broker.fails = True
    assert round_of(broker) == []
    assert Lease.everywhere.count() == 0
    broker.fails = False
    assert len(round_of(broker)) == 1


def test_a_row_that_a_person_changed_meanwhile_is_not_worked_by_the_old_message(work, broker, workspace):
    (row,) = waiting(workspace)
    (message,) = round_of(broker)
    Source.everywhere.filter(pk=row.pk).update(wake_at=None, **work_queue.overtake())
    assert work_all([message]) == [True]
    assert work.done == []
    assert Lease.everywhere.count() == 0


def test_work_that_fails_is_due_again_when_its_lease_ends_and_is_given_up_in_the_end(
    work, broker, workspace, monkeypatch
):
    (row,) = waiting(workspace)
    work.then = lambda row: 1 / 0
    for _ in range(3):
        assert work_all(round_of(broker)) == [True]
        assert Lease.everywhere.count() == 0
        assert round_of(broker) == []
        after(61, monkeypatch)
        work_leases.note_worker("one", {"tests": 4})
    assert work_all(round_of(broker)) == [True]
    assert (len(work.done), work.given_up) == (3, [row.pk])


def test_five_flushes_of_the_broker_end_no_row(work, broker, workspace, monkeypatch):
    (row,) = waiting(workspace)
    for _ in range(5):
        assert len(round_of(broker)) == 1
        after(11, monkeypatch)
        work_leases.note_worker("one", {"tests": 4})
    assert work_all(round_of(broker)) == [True]
    assert (work.done, work.given_up) == ([row.pk], [])


def test_a_process_that_stops_gives_back_what_was_queued_for_it(work, broker, workspace):
    waiting(workspace)
    messages = round_of(broker)
    task_runner.stop()
    assert work_all(messages) == [False]
    task_runner.start()
    assert len(round_of(broker)) == 1
    assert work.done == []


def test_a_task_that_the_database_fails_leaves_its_row_to_the_lease(work, broker, workspace, monkeypatch):
    waiting(workspace)
    messages = round_of(broker)

    def broken(*_, **__):
        raise OperationalError("gone")

    with monkeypatch.context() as patched:
        patched.setattr(work_leases, "begin", broken)
        assert work_all(messages) == [False]
    after(11, monkeypatch)
    work_leases.note_worker("one", {"tests": 4})
    assert work_all(round_of(broker)) == [True]


# --- Work without rows -----------------------------------------------------------------------------------------------


def test_a_batch_is_queued_once_and_goes_on_until_nothing_is_left(broker):
    left = [3, 2, 0]
    jobs.register(jobs.BatchJob(name="tests.batch", work=lambda: left.pop(0), waits="SELECT 1 AS found"))
    (message,) = round_of(broker)
    assert round_of(broker) == []
    assert work_all([message]) == [True]
    assert left == []
    assert len(round_of(broker)) == 1


def test_a_batch_with_a_pace_rests_between_two_runs(broker, monkeypatch):
    ran = []

    def run():
        ran.append(1)
        return 0

    jobs.register(jobs.BatchJob(name="tests.rare", work=run, every_seconds=600))
    assert work_all(round_of(broker)) == [True]
    assert round_of(broker) == []
    after(599, monkeypatch)
    work_leases.note_worker("one", {"tests": 4})
    assert round_of(broker) == []
    after(2, monkeypatch)
    assert work_all(round_of(broker)) == [True]
    assert len(ran) == 2


def test_a_batch_that_fails_is_not_queued_again_at_once(broker, monkeypatch):
    jobs.register(jobs.BatchJob(name="tests.batch", work=lambda: 1 / 0, waits="SELECT 1 AS found"))
    assert work_all(round_of(broker)) == [True]
    assert round_of(broker) == []
    after(1.1, monkeypatch)
    assert len(round_of(broker)) == 1


def test_a_batch_whose_worker_died_is_queued_again(broker, monkeypatch):
    jobs.register(jobs.BatchJob(name="tests.rare", work=lambda: 0, every_seconds=600))
    ((_, subject, token, _),) = round_of(broker)
    work_leases.begin(subject, token, now=work_queue.database_now())
    assert round_of(broker) == []
    after(16, monkeypatch)
    work_leases.start_worker()
    work_leases.note_worker("two", {"tests": 1})
    assert [message[2] for message in round_of(broker)] == [token + 1]


# --- The jobs of the service -----------------------------------------------------------------------------------------


def names_of_due_jobs():
    return {job.name for job in dispatcher.find_due_jobs()}


ALWAYS = {
    "housekeeping.follow_time_zones",
    "housekeeping.erase_workspaces",
    "housekeeping.forget_old_rows",
}


def test_one_statement_finds_what_is_due_alone(workspace):
    assert names_of_due_jobs() == ALWAYS
    now = utc_now()
    for wake_at in (None, now + timedelta(hours=1)):
        Source.everywhere.create(workspace=workspace, name="Later", type="rss", wake_at=wake_at)
    assert names_of_due_jobs() == ALWAYS
    Source.everywhere.create(workspace=workspace, name="Now", type="rss", wake_at=now)
    make_event(workspace)
    Workspace.everywhere.update(samples=Workspace.Samples.REMOVING)
    assert names_of_due_jobs() - ALWAYS == {
        "housekeeping.remove_samples",
        "ingest.poll_source",
        "webhooks.fan_out",
        "analytics.count_events",
    }


def test_every_statement_of_a_look_reads_an_index():
    """A table that was worked through for years must not be read each second."""
    asked = []

    def note(execute, sql, parameters, many, context):
        asked.append((sql, parameters))
        return execute(sql, parameters, many, context)

    with connection.cursor() as cursor:
        with connection.execute_wrapper(note):
            dispatcher.find_due_jobs()
        ((probe, moments),) = [one for one in asked if "UNION ALL" in one[0]]
        assert probe.count("wake_at <=") == sum(
            not isinstance(job, jobs.BatchJob) for job in jobs.jobs().values()
        )
        if connection.vendor == "sqlite":
            cursor.execute(f"EXPLAIN QUERY PLAN {probe}", moments)
            plan = [row[3] for row in cursor.fetchall()]
            assert [
                line for line in plan if line.startswith("SCAN") and "INDEX" not in line and "one" not in line
            ] == []


def test_each_job_is_a_celery_task_in_its_own_queue(settings):
    for name, job in jobs.jobs().items():
        assert name in celery.app.tasks
        assert job.queue in settings.QUEUE_SLOTS
    assert set(celery.app.amqp.queues) == set(jobs.QUEUES) == {"dispatch", *settings.QUEUE_SLOTS}


@pytest.mark.parametrize(
    ("queues", "pool", "size", "slots", "connections"),
    [
        (["dispatch", "publish", "webhooks"], "threads", None, {"publish": 24, "webhooks": 16}, 44),
        (["generate"], "prefork", 2, {"generate": 2}, 6),
        (["generate"], "threads", 12, {"generate": 12}, 14),
        (["publish", "mail"], "threads", 40, {"publish": 40, "mail": 40}, 42),
        (["generate", "compute"], "threads", None, {"generate": 4, "compute": 1}, 7),
        # An encoder takes two cores.
        (["compute", "render"], "prefork", 8, {"compute": 8, "render": 3}, 18),
        (["render"], "prefork", 2, {"render": 2}, 6),
    ],
)
def test_a_worker_has_the_slots_of_the_settings_or_of_its_command_and_connections_for_them(
    settings, queues, pool, size, slots, connections
):
    settings.FILMS_AT_ONCE = 3
    settings.QUEUE_SLOTS = {**settings.QUEUE_SLOTS, "compute": 1}
    taken = {name: SimpleNamespace(name=name) for name in queues}
    app = SimpleNamespace(amqp=SimpleNamespace(queues=SimpleNamespace(consume_from=taken)))
    worker = SimpleNamespace(app=app, concurrency=size or settings.WORKER_SLOTS, pool_cls=pool)
    assert (database_connections.slots_of(worker), database_connections.connections_of(worker)) == (
        slots,
        connections,
    )


@pytest.mark.parametrize(
    ("options", "is_threads"),
    [([], True), (["-Q", "mail"], True), (["-P", "prefork"], False), (["--pool=prefork"], False)],
)
def test_a_pool_that_the_command_names_is_not_replaced_by_that_of_the_settings(options, is_threads):
    """Celery's own default is `prefork`, so it can't tell whether that was said."""
    found = celery.pool_settings(["celery", "-A", "config", "worker", *options])
    assert found == ({"worker_pool": "threads"} if is_threads else {})


def test_settings_of_celery():
    conf = celery.app.conf
    # The row is the truth: late acknowledgement would make copies of messages whose worker lives.
    assert (conf.task_acks_late, conf.task_reject_on_worker_lost) == (False, None)
    assert conf.task_ignore_result is True
    assert (conf.worker_hijack_root_logger, conf.worker_redirect_stdouts) == (False, False)
    assert conf.beat_schedule == {"wake the dispatcher": {"task": "dispatch.wake", "schedule": 1.0}}


def test_redis_keeps_no_list_of_what_isn_t_acknowledged(settings):
    """So a worker's own count bounds what it takes."""
    has_redis = bool(settings.REDIS_URL)
    assert {queue.no_ack for queue in celery.app.conf.task_queues} == {has_redis}
    assert celery.app.conf.worker_disable_prefetch is has_redis


def test_what_is_done_every_second_outlives_a_fault(monkeypatch):
    done = []

    def broken():
        done.append("broken")
        raise OperationalError("the connection is closed")

    monkeypatch.setattr(task_runner, "_every_second", [broken, lambda: done.append("next")])
    for _ in range(3):
        monkeypatch.setitem(task_runner._did_at, "at", 0.0)
        task_runner.do_every_second()
    task_runner.do_every_second()
    assert done == ["broken", "next"] * 3
