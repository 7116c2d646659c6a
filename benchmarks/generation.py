"""Measures a text from push to the delivered webhook `generated.ready`, by the writer without a model.

Bursts of texts are pushed as fast as they are answered. Measured are the CPU time of all our processes for one text (not
PostgreSQL's and Redis's), and the texts a second, from the first push to the last arrival. The floor pushes the same number
with hand-written SQL in the same round, in two processes, and posts the answers on.

Then 20 pushes a second go to 20 workspaces. Measured is the time from the moment at which a push was to be sent to the
arrival of its event, by the receiver's clock. On SQLite, pages are requested from the embedded service meanwhile.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from benchmarks import client, seed
from benchmarks.service import ROOT, Service, Session, session_without_proxy, wait_until
from benchmarks.table import Row, percentile
from benchmarks.tokens import FakeModel
from tests.writers.messages_server import MessagesServer, Recorded, Scripted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import requests

    from accounts.models import Workspace

ON: Final = ("sqlite", "postgres")
SIZES: Final = {
    # Sizes of the bursts.
    "rounds": (5, 1),
    "texts": (150, 3),
    "floor_processes": (2, 1),
    # Sizes of the steady load.
    "workspaces": (20, 2),
    "rate": (20.0, 4.0),
    "seconds": (60.0, 1.0),
    # Texts with a model, for each number of workers.
    "modelled": (200, 1),
}
MAX_CPU_MS: Final = 60.0
MIN_TEXTS_PER_SECOND: Final = 25.0
BURST_PATH: Final = "/in/burst"
PAGES: Final = ("home", "review")
PAGE_INTERVAL_SECONDS: Final = 0.25
MODEL_CALL_SECONDS: Final = 0.3
"""The duration of each of a text's two calls to the model."""
ARRIVAL_TIMEOUT_SECONDS: Final = 300.0


def measure(session: Session) -> Iterator[Row]:
    with session.service() as service:
        if session.database == "postgres":
            yield from measure_bursts(session, service)
        yield from measure_steady_load(session, service)
    if session.database == "postgres":
        yield from measure_with_model(session, session.size.modelled)


# --- Bursts ----------------------------------------------------------------------------------------------------------


def measure_bursts(session: Session, service: Service) -> Iterator[Row]:
    """Yield the CPU time of a text and the texts a second, ours and the floor's in turn."""
    size = session.size
    room = seed.make_newsroom(session.name("Bursts"))
    seed.add_endpoint(room.workspace, session.receiver, BURST_PATH, events=["generated.ready"])
    # The first texts fill each process's caches.
    push_burst(session, service, room.token, "warm", 2)
    cpus: dict[str, list[float]] = {"ours": [], "floor": []}
    rates: dict[str, list[float]] = {"ours": [], "floor": []}
    for number in range(size.rounds):
        # Ours and the floor take turns to begin.
        for side in ("ours", "floor") if number % 2 else ("floor", "ours"):
            if side == "ours":
                seconds, cpu_seconds = push_burst(session, service, room.token, f"burst{number}", size.texts)
            else:
                seconds, cpu_seconds = run_floor(session, room.token, number, size.texts)
            rates[side].append(size.texts / seconds)
            cpus[side].append(1000 * cpu_seconds / size.texts)
    yield Row("CPU of one text, push to webhook", "ms", cpus["ours"], cpus["floor"], maximum=MAX_CPU_MS)
    yield Row("texts from push to webhook", "/s", rates["ours"], rates["floor"], minimum=MIN_TEXTS_PER_SECOND)


def push_burst(
    session: Session,
    service: Service,
    token: str,
    name: str,
    texts: int,
    *,
    story: Callable[[str], dict[str, str]] = seed.make_story,
) -> tuple[float, float]:
    """Push texts, and return the seconds from the first push to the last arrival, and our CPU seconds."""

    def make_request(number: int) -> bytes:
        body = json.dumps(story(f"{name}-{number}")).encode()
        return client.request_bytes("POST", "/v1/raw", token, body)

    session.receiver.forget()
    cpu_before, started = service.cpu(), time.time()
    client.run_requests(service.port, make_request, status=202, numbers=iter(range(texts)))
    wait_until(
        lambda: session.receiver.counts()["unique"] >= texts,
        ARRIVAL_TIMEOUT_SECONDS,
        "the webhooks",
        interval=0.1,
    )
    last_arrival = max(
        arrived_at for key, arrived_at in session.receiver.arrivals().items() if key.endswith(BURST_PATH)
    )
    # The CPU time includes the work that follows the arrival.
    time.sleep(0.5)
    return last_arrival - started, service.cpu() - cpu_before


def run_floor(session: Session, token: str, number: int, texts: int) -> tuple[float, float]:
    """Run the floor's processes, and return the seconds and CPU seconds, scaled to so many texts."""
    processes = session.size.floor_processes
    texts_each = max(texts // processes, 1)
    command = [sys.executable, "-m", "benchmarks.floor", token, f"{session.receiver.url}/hook"]
    floor_processes = [
        subprocess.Popen(
            [*command, str(number * texts + index * texts_each), str(texts_each)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for index in range(processes)
    ]
    answers = [json.loads(process.communicate()[0]) for process in floor_processes]
    scale = texts / (texts_each * processes)
    return max(seconds for seconds, _ in answers) * scale, sum(cpu for _, cpu in answers) * scale


def measure_with_model(session: Session, texts: int) -> Iterator[Row]:
    """Yield the texts a second with a model, by 1, 2 and 4 workers."""
    for workers in (1, 2, 4) if texts > 1 else (1,):
        with MessagesServer() as server:
            server.answer = SlowModel()
            model = {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": server.url}
            with session.service(workers=workers, **model) as service:
                room = seed.make_newsroom(session.name("Modelled"))
                seed.add_endpoint(room.workspace, session.receiver, BURST_PATH, events=["generated.ready"])
                push_burst(session, service, room.token, f"warm{workers}", 2, story=seed.make_distinct_story)
                seconds, cpu_seconds = push_burst(
                    session, service, room.token, f"modelled{workers}", texts, story=seed.make_distinct_story
                )
        label = f"texts with a model of {MODEL_CALL_SECONDS * 1000:.0f} ms a call, {workers} workers"
        yield Row(label, "/s", [texts / seconds], note=f"{1000 * cpu_seconds / texts:.0f} ms of CPU each")


class SlowModel(FakeModel):
    """Answers each call for one short post after `MODEL_CALL_SECONDS`."""

    kind = "short_post"
    variants = 1

    def __call__(self, request: Recorded) -> Scripted:
        return replace(super().__call__(request), seconds=MODEL_CALL_SECONDS)


# --- A steady load ---------------------------------------------------------------------------------------------------


def measure_steady_load(session: Session, service: Service) -> Iterator[Row]:
    """Yield the times from planned pushes to their webhooks, and on SQLite those of pages meanwhile."""
    size = session.size
    rooms = [seed.make_newsroom(session.name("Steady")) for _ in range(size.workspaces)]
    for number, room in enumerate(rooms):
        seed.add_endpoint(room.workspace, session.receiver, f"/in/{number}", events=["generated.ready"])
    service.push(rooms[0].token, **seed.make_story("warm"))
    planned: dict[str, float] = {}
    pages: list[float] = []
    stopping = threading.Event()
    http, paths = log_in_member(rooms[0].workspace)
    visitor = threading.Thread(
        target=visit_pages, args=(http, [service.url + path for path in paths], pages, stopping)
    )
    if session.database == "sqlite":
        visitor.start()
    with ThreadPoolExecutor(16) as pool:
        local = threading.local()

        def push(number: int, planned_at: float) -> None:
            if not hasattr(local, "http"):
                local.http = session_without_proxy()
            token = rooms[number % len(rooms)].token
            response = local.http.post(
                f"{service.url}/v1/raw",
                json=seed.make_story(f"steady-{number}"),
                headers={"Authorization": f"Bearer {token}"},
                timeout=60,
            )
            planned[response.json()["id"] if response.status_code == 202 else f"refused {number}"] = (
                planned_at
            )

        started = time.time()
        for number in range(max(int(size.rate * size.seconds), 1)):
            planned_at = started + number / size.rate
            time.sleep(max(planned_at - time.time(), 0))
            pool.submit(push, number, planned_at)
    waits, lost = _wait_for_arrivals(session, planned)
    stopping.set()
    if session.database == "sqlite":
        visitor.join()
    label = f"{size.rate:.0f} pushes/s over {size.workspaces} workspaces, {service.layout}, to webhook:"
    unsound = f"{lost} of {len(planned)} were lost" if lost else ""
    yield Row(f"{label} p50", "s", [percentile(waits, 0.5)], unsound=unsound)
    yield Row(f"{label} p99", "s", [percentile(waits, 0.99)], note=f"{len(waits)} arrived, {lost} lost")
    if session.database == "sqlite":
        yield Row("pages meanwhile: p95", "ms", [percentile(pages, 0.95)], note=f"{len(pages)} pages")


def _wait_for_arrivals(session: Session, planned: dict[str, float]) -> tuple[list[float], int]:
    """Return the seconds from each planned push to its arrival, and the number of pushes that never arrived.

    A refused push counts among those, and isn't waited for.
    """

    def waits() -> list[float]:
        arrivals = {
            key.partition(" ")[0]: arrived_at for key, arrived_at in session.receiver.arrivals().items()
        }
        return [arrivals[raw] - planned_at for raw, planned_at in planned.items() if raw in arrivals]

    expected = sum(not name.startswith("refused") for name in planned)
    deadline = time.monotonic() + ARRIVAL_TIMEOUT_SECONDS
    while len(seconds := waits()) < expected and time.monotonic() < deadline:
        time.sleep(0.3)
    return seconds, len(planned) - len(seconds)


def visit_pages(
    http: requests.Session, urls: list[str], pages: list[float], stopping: threading.Event
) -> None:
    """Append the milliseconds of each page, infinite for an error, until stopped; request each at least once."""
    while True:
        for url in urls:
            started = time.perf_counter()
            response = http.get(url, timeout=60)
            pages.append(
                (time.perf_counter() - started) * 1000 if response.status_code == 200 else float("inf")
            )
            stopping.wait(PAGE_INTERVAL_SECONDS)
        if stopping.is_set():
            return


def log_in_member(workspace: Workspace) -> tuple[requests.Session, list[str]]:
    """Return a session that is logged in as a new owner, and the paths of the pages."""
    from django.test import Client  # noqa: PLC0415
    from django.urls import reverse  # noqa: PLC0415

    from accounts.models import Membership, User  # noqa: PLC0415

    user = User.objects.create_user(email=f"{workspace.pk.hex}@example.test")
    Membership.everywhere.create(workspace=workspace, user=user, role=Membership.Role.OWNER)
    browser = Client()
    browser.force_login(user)
    http = session_without_proxy()
    http.cookies.update({name: cookie.value for name, cookie in browser.cookies.items()})
    return http, [reverse(name, kwargs={"ws": workspace.pk}) for name in PAGES]
