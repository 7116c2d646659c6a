"""Each step killed at each of its crash points: the work is done all the same, and its facts are recorded once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest

from config.core.crash_points import POINTS
from tests.faults.world import Neighbour, make_world, serve
from tests.sizes import IS_PROOF

pytestmark = [
    pytest.mark.slow,
    pytest.mark.both_databases if IS_PROOF else pytest.mark.postgres_if_there,
    pytest.mark.minutes(4),
    pytest.mark.parts(3),
]

# Each says something else: what repeats another item isn't published by itself.
STORIES = (
    (
        "Tram line approved",
        "The city council approved the northern tram line on Monday after six hours of debate.",
    ),
    (
        "Library opens late",
        "Readers in Harrow may borrow books until ten at night from the first week of December.",
    ),
    (
        "Bridge is closed",
        "Engineers have found cracks in two pillars of the old stone bridge over the river Ash.",
    ),
    (
        "Bakers win a prize",
        "A small bakery on Mill Street has won the national prize for its dark sourdough bread.",
    ),
    (
        "Frost kills apples",
        "Three nights of hard frost have destroyed half of the apple harvest in the valley.",
    ),
    (
        "Choir needs voices",
        "Every Thursday evening the town choir looks for basses and for people who read music.",
    ),
    (
        "Ferry is replaced",
        "From next spring an electric ferry will carry forty cars across the lake each hour.",
    ),
)
ENTRIES = len(STORIES)
FEED = "".join(
    f"""<item><guid>entry-{number}</guid><title>{title}</title>
    <pubDate>Mon, 02 Nov 2026 0{number}:00:00 GMT</pubDate>
    <description>{words}</description></item>"""
    for number, (title, words) in enumerate(STORIES, 1)
)
RSS = f'<?xml version="1.0"?><rss version="2.0"><channel><title>Trams</title>{FEED}</channel></rss>'.encode()

Step = tuple[str, dict[str, Any]]


def work(*kinds: str) -> Step:
    return "work", {"kinds": list(kinds)}


PUSH: Step = ("push_one", {})
PUSH_WITH_KEY: Step = ("push_one", {"key": "k"})
BATCH: Step = ("push_batch", {"names": ["a", "b", "c"]})
PUBLISH: Step = ("publish", {})
PUBLISH_WITH_KEY: Step = ("publish", {"key": "p"})
TIME: Step = ("let_time_pass", {})
GENERATE = work("generate.run_item")
SEND = work("publish.send_publication")
MADE = (PUSH, GENERATE)
PROMISED = (*MADE, PUBLISH)
SENT = (*PROMISED, SEND)
BRIDGE: Step = ("add_bridge", {})
SENT_IN: Step = ("send", {})
SENT_IN_WITH_KEY: Step = ("send", {"key": "k"})
SOURCE: Step = ("add_source", {})
COMPLAINED = (*MADE, ("complain", {}))
MONTH_OVER = (*SENT, work("analytics.count_events"), ("end_a_month", {}))


def script(*words: str) -> Step:
    return "script", {"words": list(words)}


SPOKEN_FILES = 13
"""A film, two thumbnails, a frame of each of five scenes, two files of captions, storyboard, transcript, voice."""

# --- What must be there in the end -----------------------------------------------------------------------------------


def all_told(**facts: Any) -> dict[str, Any]:
    """The whole tally; what isn't named is one pushed item that was made into one generated item."""
    made: dict[str, Any] = {
        "raw": {"processed": 1},
        "made": {"ready": 1},
        "runs": {"done": 1},
        "publications": {},
        "calls": {},
        "posts": {"accepted": 0, "refused": 0},
        "events": {"raw.ingested": 1, "generated.ready": 1},
        "outcomes": {},
        "measurements": 0,
        "ledger": {"grant": 1, "reserve": 1, "settle": 1},
        "deliveries": {},
        "slots": {},
        "picks": {},
        "returns": {},
        "keys": 0,
        "files": 0,
        "mails": {},
        "messages": {},
        "asked": {"brief": 1, "draft": 1},
    }
    return {**made, **facts}


def published(
    *, calls: dict[str, int] | None = None, refused: int = 0, failures: int = 0, keys: int = 0
) -> dict[str, Any]:
    """`failures` were told as such and tried again; in the end it is public once."""
    events = {"raw.ingested": 1, "generated.ready": 1, "published.success": 1}
    return all_told(
        made={"published": 1},
        publications={"published": 1},
        calls=calls or {"succeeded": 1},
        posts={"accepted": 1, "refused": refused},
        events={**events, "published.failed": failures} if failures else events,
        outcomes={"True": 1},
        measurements=1,
        keys=keys,
    )


def refused(*, tries: int) -> dict[str, Any]:
    return all_told(
        made={"publish_failed": 1},
        publications={"failed": 1},
        calls={"failed": tries},
        posts={"accepted": 0, "refused": tries},
        events={"raw.ingested": 1, "generated.ready": 1, "published.failed": tries},
        outcomes={"False": 1},
    )


def in_both_outlets() -> dict[str, Any]:
    one = published()
    return {
        **one,
        "publications": {"published": 2},
        "calls": {"succeeded": 2},
        "events": {**one["events"], "published.success": 2},
        "outcomes": {"True": 2},
    }


def times(count: int, **facts: Any) -> dict[str, Any]:
    one = all_told()
    return {
        **one,
        "raw": {"processed": count},
        "made": {"ready": count},
        "runs": {"done": count},
        "events": {"raw.ingested": count, "generated.ready": count},
        "ledger": {"grant": 1, "reserve": count, "settle": count},
        "asked": {"brief": count, "draft": count},
        **facts,
    }


def told(*, first: int = 1) -> dict[str, Any]:
    """Nothing but an item that waits for review and a notice: its owner has one mail of each, or `first` of the notice."""
    return all_told(
        mails={"Credits run out": first, "1 event from Crash": 1},
        messages={"sent": 2},
    )


def month_told() -> dict[str, Any]:
    """One post, and one mail about its month."""
    month = datetime.now(UTC).date().replace(day=1) - timedelta(days=1)
    if datetime.now(UTC) < datetime.combine(month + timedelta(days=1), time(8), UTC):
        month = month.replace(day=1) - timedelta(days=1)
    return {
        **published(),
        "mails": {f"1 post in {month:%B %Y} from Crash": 1},
        "messages": {"sent": 1},
    }


# The first poll takes the newest five of the seven entries; autopilot publishes what they become.
POLLED = times(
    5,
    raw={"processed": 5, "skipped": 2},
    made={"published": 5},
    publications={"published": 5},
    calls={"succeeded": 5},
    posts={"accepted": 5, "refused": 0},
    events={"raw.ingested": 5, "generated.ready": 5, "published.success": 5},
    outcomes={"True": 5},
    measurements=5,
)
NOTHING_MADE = all_told(
    raw={"failed": 1},
    made={"failed": 1},
    runs={"failed": 1},
    events={"raw.ingested": 1, "generated.failed": 1, "raw.failed": 1},
    ledger={"grant": 1, "reserve": 1, "release": 1},
    asked={},
)


# One approved line was said about one topic, and the next slot waits.
SPOKEN = all_told(
    raw={},
    events={"generated.ready": 1},
    slots={"picked": 1, "waiting": 1},
    picks={"used": 1},
    asked={"draft": 1},
)
LANE: Step = ("add_lane", {"lines": ["We fire the oven at four in the morning, before the town wakes up."]})


# Three stories, an item of each, and one digest of them all.
SERIES: Step = ("add_series", {"stories": STORIES[:3]})
DIGESTED = all_told(
    raw={"processed": 3},
    made={"ready": 4},
    runs={"done": 4},
    events={"raw.ingested": 3, "generated.ready": 4},
    ledger={"grant": 1, "reserve": 4, "settle": 4},
    # Those of the digest; its stories were made in peace.
    asked={"brief": 3, "draft": 1},
)


# An item that was published, and the fresh variant as which it came back.
EVERGREEN: Step = ("add_recurrence", {})
CAME_BACK = {
    **published(),
    "made": {"published": 1, "ready": 1},
    "runs": {"done": 2},
    "events": {"raw.ingested": 1, "generated.ready": 2, "published.success": 1},
    "ledger": {"grant": 1, "reserve": 2, "settle": 2},
    "returns": {"active": 1, "made": 1},
}


@dataclass(frozen=True)
class Scenario:
    """`before` is done in peace; `step` is killed at `at`; the caller does `again` and is answered `answers`."""

    at: str
    step: tuple[Step, ...]
    expected: dict[str, Any]
    before: tuple[Step, ...] = ()
    again: tuple[Step, ...] = ()
    answers: tuple[Any, ...] = ()
    refusals: int = 0
    sent_twice: int = 0
    """Of the pairs of an event and an endpoint, how many were received twice."""
    about: str = ""

    @property
    def point(self) -> str:
        return self.at.partition("#")[0]


def of(at: str, *step: Step, expected: dict[str, Any], about: str = "", **more: Any) -> Scenario:
    return Scenario(at, step, expected, about=about, **more)


TWO_VARIANTS: Step = ("push_one", {"variants": 2})
MADE_TWO = all_told(made={"ready": 2}, events={"raw.ingested": 1, "generated.ready": 2})

SCENARIOS = [
    # A push: the caller never heard an answer and asks again, with its key or with the item's own identity.
    of("push.stored", PUSH, expected=all_told(), again=(PUSH, PUSH), answers=(202, 200), about="by identity"),
    of(
        "push.stored",
        PUSH_WITH_KEY,
        expected=all_told(keys=1),
        again=(PUSH_WITH_KEY, PUSH_WITH_KEY),
        answers=(202, "replay"),
        about="by key",
    ),
    of(
        "push.stored#2",
        BATCH,
        expected=times(3),
        again=(BATCH,),
        answers=([200, 202, 202],),
        about="in a batch",
    ),
    of(
        "push.committed",
        PUSH,
        expected=all_told(),
        again=(PUSH, PUSH),
        answers=(200, 200),
        about="by identity",
    ),
    of(
        "push.committed",
        PUSH_WITH_KEY,
        expected=all_told(keys=1),
        again=(PUSH_WITH_KEY, PUSH_WITH_KEY),
        answers=(202, "replay"),
        about="by key",
    ),
    of(
        "push.committed#2",
        BATCH,
        expected=times(3),
        again=(BATCH,),
        answers=([200, 200, 202],),
        about="in a batch",
    ),
    of(
        "idempotency.stored",
        PUSH_WITH_KEY,
        expected=all_told(keys=1),
        again=(PUSH_WITH_KEY, PUSH_WITH_KEY),
        answers=(202, "replay"),
        about="a push",
    ),
    of(
        "idempotency.stored",
        PUBLISH_WITH_KEY,
        expected=published(keys=1),
        before=MADE,
        again=(PUBLISH_WITH_KEY, PUBLISH_WITH_KEY),
        answers=(202, "replay"),
        about="a publish",
    ),
    # A bridge: it never heard an answer and sends again, under its own id of the delivery or as a new one.
    *(
        of(
            f"inbound.{name}",
            step,
            expected=all_told(deliveries=kept),
            before=(BRIDGE,),
            again=(step, step),
            answers=answers,
            about=about,
        )
        for name, step, answers, kept, about in (
            ("stored", SENT_IN_WITH_KEY, (202, 200), {"taken": 1}, "by its id"),
            ("stored", SENT_IN, (202, 200), {"taken": 1, "duplicate": 1}, "by identity"),
            ("taken", SENT_IN_WITH_KEY, (200, 200), {"taken": 1}, "by its id"),
            ("taken", SENT_IN, (200, 200), {"taken": 1, "duplicate": 2}, "by identity"),
        )
    ),
    # A poll.
    *(
        of(point, work("ingest.poll_source"), expected=POLLED, before=(SOURCE,))
        for point in (
            "collect.claimed",
            "collect.fetched",
            "collect.stored",
            "collect.committed",
            "collect.ingested",
        )
    ),
    # A slot of a brand lane: one topic is picked, and paid for, once.
    *(
        of(f"brand.{name}", work("ingest.fill_brand_slot"), expected=SPOKEN, before=(LANE,))
        for name in ("claimed", "picked", "committed")
    ),
    # A time of a series: one digest is made at it, and paid for once.
    *(
        of(f"series.{name}", work("generate.make_series_issue"), expected=DIGESTED, before=(SERIES,))
        for name in ("claimed", "made", "committed")
    ),
    # An item that comes back: one variant is made at its time, and paid for once; where its source is gone, none.
    *(
        of(
            f"recurring.{name}",
            work("publish.repeat_item"),
            expected=CAME_BACK,
            before=(EVERGREEN,),
        )
        for name in ("claimed", "made", "committed")
    ),
    *(
        of(
            f"recurring.{name}",
            work("publish.repeat_item"),
            expected={**published(), "returns": {"stopped": 1, "told": 1}, "asked": {}},
            before=(EVERGREEN, ("lose_sources", {})),
            about="its source is gone",
        )
        for name in ("claimed", "committed")
    ),
    # A generation: what the writer has answered is not asked again.
    *(
        of(f"generate.{name}", GENERATE, expected=MADE_TWO, before=(TWO_VARIANTS,), about="two variants")
        for name in ("claimed", "briefed", "drafted", "written", "committed")
    ),
    # What was drawn is served once, whether its hand was killed before the rows of the files or after.
    *(
        of(
            f"generate.{name}",
            GENERATE,
            expected=all_told(files=2),
            before=(("push_one", {"engines": ["Persona Tweet"]}),),
            about="a picture",
        )
        for name in ("rendered", "written")
    ),
    # A film that was made and not kept is made again, and nothing else is.
    *(
        of(
            f"generate.{name}",
            GENERATE,
            expected=all_told(files=11),
            before=(("push_one", {"engines": ["Template Short"]}),),
            about="a film",
        )
        for name in ("handed_on", "filmed", "rendered")
    ),
    # What was spoken for a film is kept before it is filmed.
    of(
        "generate.spoken",
        GENERATE,
        expected=all_told(files=SPOKEN_FILES),
        before=(("push_one", {"engines": ["Persona Short"], "language": "en"}),),
        about="a spoken film",
    ),
    # A film that is cut from a video, and one that is told over it: what was looked at isn't looked at again.
    *(
        of(
            f"generate.{name}",
            GENERATE,
            expected=all_told(files=files),
            before=(("push_footage", {"engine": engine}),),
            about=f"a {engine}",
        )
        for name, engine, files in (
            ("looked", "Clipped Short", 8),
            ("filmed", "Clipped Short", 8),
            ("looked#2", "Composite Short", SPOKEN_FILES + 3),
            ("filmed", "Composite Short", SPOKEN_FILES + 3),
        )
    ),
    of("generate.written", GENERATE, expected=NOTHING_MADE, before=(PUSH, ("erase", {})), about="in vain"),
    *(
        of(
            f"generate.{name}#3",
            GENERATE,
            expected=POLLED,
            before=(SOURCE, work("ingest.poll_source")),
            about="in flight",
        )
        for name in ("written", "committed")
    ),
    # A publication. Killed around the call, it is looked up before anything is sent again.
    of("publish.claimed", SEND, expected=published(), before=PROMISED),
    of("publish.prepared", SEND, expected=published(), before=PROMISED),
    of(
        "publish.armed",
        SEND,
        expected=published(calls={"failed": 1, "succeeded": 1}, failures=1),
        before=PROMISED,
        about="nothing was sent",
    ),
    of("publish.sent", SEND, expected=published(), before=PROMISED, about="accepted"),
    of(
        "publish.sent",
        SEND,
        expected=published(),
        before=(script("timeout_after_accept"), *PROMISED),
        about="accepted, and timed out",
    ),
    of(
        "publish.sent",
        SEND,
        expected=published(calls={"failed": 1, "succeeded": 1}, refused=1, failures=1),
        before=(script("429"), *PROMISED),
        about="too many",
    ),
    of(
        "publish.sent",
        SEND,
        expected=refused(tries=2),
        before=(script("reject", "reject"), *PROMISED),
        about="rejected",
    ),
    of(
        "publish.sent",
        SEND,
        expected=in_both_outlets(),
        before=(*MADE, ("publish", {"outlets": ["simulated", "feed"]})),
        about="the first of two outlets",
    ),
    of("publish.recorded", SEND, expected=published(), before=PROMISED, about="accepted"),
    of(
        "publish.recorded",
        SEND,
        expected=published(),
        before=(script("timeout_after_accept"), *PROMISED),
        about="unknown",
    ),
    of(
        "publish.recorded",
        SEND,
        expected=refused(tries=2),
        before=(script("reject", "reject"), *PROMISED),
        about="rejected",
    ),
    of(
        "publish.recorded#2",
        SEND,
        expected=in_both_outlets(),
        before=(*MADE, ("publish", {"outlets": ["simulated", "feed"]})),
        about="the second of two outlets",
    ),
    of(
        "publish.reconciled",
        SEND,
        TIME,
        SEND,
        expected=published(),
        before=(script("timeout_after_accept"), *PROMISED),
        about="found",
    ),
    of(
        "publish.reconciled",
        SEND,
        TIME,
        SEND,
        expected=published(calls={"failed": 1, "succeeded": 1}, refused=1, failures=1),
        before=(script("error"), *PROMISED),
        about="absent",
    ),
    # Where a claim becomes a task, whatever it works: no try is counted before it begins.
    *(
        of(point, GENERATE, expected=all_told(), before=(PUSH,))
        for point in ("dispatch.queued", "task.begun", "task.worked")
    ),
    *(
        of(point, SEND, expected=published(), before=PROMISED)
        for point in ("dispatch.queued", "task.begun", "task.worked")
    ),
    *(
        of(
            point,
            work("webhooks.deliver_to_endpoint"),
            expected=all_told(),
            before=(*MADE, work("webhooks.fan_out")),
        )
        for point in ("dispatch.queued", "task.begun", "task.worked")
    ),
    # What the events lead to.
    *(
        of(f"fan_out.{name}", work("webhooks.fan_out"), expected=all_told(), before=MADE)
        for name in ("claimed", "written")
    ),
    *(
        of(
            f"deliver.{name}",
            work("webhooks.deliver_to_endpoint"),
            expected=all_told(),
            before=(*MADE, work("webhooks.fan_out")),
            sent_twice=int(name == "sent"),
        )
        for name in ("claimed", "sent", "recorded")
    ),
    *(
        of(
            f"deliver.{name}",
            work("webhooks.deliver_to_endpoint"),
            expected=all_told(),
            before=(*MADE, work("webhooks.fan_out")),
            # Every pair of two events and two endpoints.
            refusals=1,
            sent_twice=4,
            about="refused at first",
        )
        for name in ("sent", "recorded")
    ),
    *(
        of(f"count.{name}", work("analytics.count_events"), expected=published(), before=SENT)
        for name in ("claimed", "written")
    ),
    # What people are told: a mail that was sent as its hand was killed is sent again, and none is lost.
    of("notices.spread", work("mail.spread_notice"), expected=told(), before=COMPLAINED),
    of(
        "notices.sent",
        work("mail.send_notice"),
        expected=told(first=2),
        before=(*COMPLAINED, work("mail.spread_notice")),
        about="twice",
    ),
    of(
        "notices.recorded",
        work("mail.send_notice"),
        expected=told(),
        before=(*COMPLAINED, work("mail.spread_notice")),
    ),
    of("notices.gathered", work("mail.send_digest"), expected=told(), before=COMPLAINED),
    of("monthly.recorded", work("analytics.write_monthly_summary"), expected=month_told(), before=MONTH_OVER),
    *(
        of(
            f"measure.{name}",
            work("analytics.measure_publication"),
            expected=published(),
            before=(*SENT, work("analytics.count_events")),
        )
        for name in ("claimed", "read", "written")
    ),
    *(
        of(
            f"rollup.{name}",
            work("analytics.roll_up_day"),
            expected=published(),
            before=(*SENT, work("analytics.count_events"), TIME),
        )
        for name in ("claimed", "written")
    ),
]

# The first scenario of each point in each run of the suite, but of films only one, because they take minutes. The others
# are in `make prove-kills`.
FILMED_IN_PROOF = {"generate.filmed", "generate.looked", "generate.spoken"}
TRIED = (
    SCENARIOS
    if IS_PROOF
    else [
        one
        for one in {one.point: one for one in reversed(SCENARIOS)}.values()
        if one.point not in FILMED_IN_PROOF
    ]
)


# --- The tests -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def neighbour():
    there = Neighbour(feed=RSS)
    server = serve(there)
    yield there
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory, neighbour):
    """What is done in peace is done once; every scenario that begins so gets a copy."""
    made = {(): make_world(tmp_path_factory.mktemp("prepared") / "data", neighbour.url)}

    def prepare(steps):
        key = tuple(repr(step) for step in steps)
        if key not in made:
            made[key] = made[()].copy(tmp_path_factory.mktemp("prepared") / "data")
            made[key].run(*with_url(steps, neighbour))
        return made[key]

    yield prepare
    for world in made.values():
        world.drop()


@pytest.fixture
def world(scenario, prepared, neighbour, tmp_path):
    begun = prepared(scenario.before)
    neighbour.forget()
    neighbour.refusals = scenario.refusals
    copied = begun.copy(tmp_path / "data")
    yield copied
    copied.drop()


def with_url(steps, neighbour):
    url = {"url": f"{neighbour.url}/feed"}
    return [(name, {**given, **url} if name == "add_source" else given) for name, given in steps]


def answer_of(said):
    if said["replayed"]:
        return "replay"
    return [one["status"] for one in said["body"]["data"]] if said["status"] == 207 else said["status"]


def test_every_crash_point_has_a_scenario():
    """Those of the operator's commands and of what is forgotten are killed at in tests/operations.

    A workspace's end has tests of its own, which leave no tally. The two around a call to a model, and the one between two topics, are killed at in test_model_kills.py, with all others of a generation.
    """
    elsewhere = {
        point for point in POINTS if point.startswith(("backup.", "restore.", "retention.", "erase."))
    }
    # An upload is no step of the pipeline: test_uploads.py. What a hub says is in test_websub_kills.py.
    elsewhere |= {"generate.asking", "generate.answered", "uploads.written", "brand.discarded"}
    elsewhere |= {point for point in POINTS if point.startswith(("websub.", "drafts.", "outlets."))}
    # What is mailed has a ledger of its own: test_mailing_kills.py.
    elsewhere |= {point for point in POINTS if point.startswith("mailing.")}
    # Their scenarios need a model that takes batches: test_model_kills.py.
    elsewhere |= {point for point in POINTS if point.startswith("batches.")}
    # A rewrite needs a model too: test_rewrite_kills.py.
    elsewhere |= {point for point in POINTS if point.startswith("rewrite.")}
    # What is sent again has been sent before: test_recovery_kills.py.
    elsewhere |= {point for point in POINTS if point.startswith("recover.")}
    # Around the calls of every platform: tests/pipeline/publish/test_never_twice.py. Taking a post back, and what follows once
    # it is public, may be repeated: tests/pipeline/publish/test_removal.py, test_publish_meanwhile.py.
    elsewhere |= {"publish.removed", "publish.finished"}
    assert {scenario.point for scenario in SCENARIOS} == POINTS - elsewhere


@pytest.mark.parametrize(
    "scenario",
    sorted(TRIED, key=lambda one: one.at),
    ids=lambda one: f"{one.at} {one.about}".strip().replace(" ", "_"),
)
def test_killed_step_is_done_once(scenario, world, neighbour):
    world.run(*scenario.step, crash_at=scenario.at)

    *said, _, found = world.run(*scenario.again, "finish", "report")
    assert tuple(answer_of(one) for one in said) == scenario.answers
    # What answered for one item answered for the same one every time.
    assert len({one["body"]["id"] for one in said if "id" in one["body"]}) <= 1
    assert found["broken"] == []
    assert found["tally"] == scenario.expected

    received = neighbour.times()
    assert {event for _, event in received} == set(found["events"])
    assert (
        sorted(received.values()) == [1] * (len(received) - scenario.sent_twice) + [2] * scenario.sent_twice
    )
    # The same event has the same bytes, wherever and however often it arrives.
    assert len({(event, body) for _, event, body in neighbour.received}) == len(found["events"])
