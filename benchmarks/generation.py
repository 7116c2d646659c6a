"""A text from push to the delivered webhook `generated.ready`, by the writer without a model.

Bursts of texts, pushed as fast as they are answered: the CPU time of all our processes for one (not PostgreSQL's and
Redis's), and items a second, from the first push to the last arrival. The floor pushes with hand-written SQL and posts the
answer on, in two processes, for the same number, in the same round.

Then 20 pushes a second over 20 workspaces: from the moment at which a push was to be sent to the arrival of its event, by
the receiver's clock; beside the embedded service on SQLite also pages, asked for one after the other.
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
from benchmarks.service import ROOT, Service, Session, plain_session, wait_until
from benchmarks.table import Row, percentile
from benchmarks.tokens import Model
from tests.writers.messages_server import MessagesServer, Recorded, Scripted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import requests

    from accounts.models import Workspace

ON: Final = ("sqlite", "postgres")
SIZES: Final = {
    # Of the bursts.
    "rounds": (5, 1),
    "texts": (150, 3),
    "floor_processes": (2, 1),
    # Of the steady load.
    "workspaces": (20, 2),
    "rate": (20.0, 4.0),
    "seconds": (60.0, 1.0),
    # With a model, for each number of workers.
    "modelled": (200, 1),
}
CPU_MOST_MS: Final = 60.0
THROUGHPUT_LEAST: Final = 25.0
BURST_PATH: Final = "/in/burst"
PAGES: Final = ("home", "review")
PAGE_EVERY_SECONDS: Final = 0.25
MODEL_SECONDS: Final = 0.3
"""Of each of a text's two calls."""
LOST_AFTER_SECONDS: Final = 300.0


def measure(session: Session) -> Iterator[Row]:
    with session.service() as service:
        if session.database == "postgres":
            yield from bursts(session, service)
        yield from steady(session, service)
    if session.database == "postgres":
        yield from modelled(session, session.size.modelled)


# --- Bursts ----------------------------------------------------------------------------------------------------------


def bursts(session: Session, service: Service) -> Iterator[Row]:
    size = session.size
    room = seed.newsroom(session.name("Bursts"))
    seed.add_endpoint(room.workspace, session.receiver, BURST_PATH, events=["generated.ready"])
    # The first text warms what each process keeps.
    burst(session, service, room.token, "warm", 2)
    cpus: dict[str, list[float]] = {"ours": [], "floor": []}
    rates: dict[str, list[float]] = {"ours": [], "floor": []}
    for number in range(size.rounds):
        # Which begins changes from round to round.
        for side in ("ours", "floor") if number % 2 else ("floor", "ours"):
            if side == "ours":
                seconds, used = burst(session, service, room.token, f"burst{number}", size.texts)
            else:
                seconds, used = floor(session, room.token, number, size.texts)
            rates[side].append(size.texts / seconds)
            cpus[side].append(1000 * used / size.texts)
    yield Row("CPU of one text, push to webhook", "ms", cpus["ours"], cpus["floor"], most=CPU_MOST_MS)
    yield Row("texts from push to webhook", "/s", rates["ours"], rates["floor"], least=THROUGHPUT_LEAST)


def burst(
    session: Session,
    service: Service,
    token: str,
    name: str,
    texts: int,
    *,
    story: Callable[[str], dict[str, str]] = seed.story,
) -> tuple[float, float]:
    """Seconds from the first push to the last arrival, and the CPU time of all our processes."""

    def make(number: int) -> bytes:
        body = json.dumps(story(f"{name}-{number}")).encode()
        return client.request_bytes("POST", "/v1/raw", token, body)

    session.receiver.forget()
    used, began = service.cpu(), time.time()
    client.run(service.port, make, status=202, numbers=iter(range(texts)))
    wait_until(
        lambda: session.receiver.counts()["unique"] >= texts, LOST_AFTER_SECONDS, "the webhooks", every=0.1
    )
    last = max(at for key, at in session.receiver.arrivals().items() if key.endswith(BURST_PATH))
    # What is still written after the arrival belongs to it.
    time.sleep(0.5)
    return last - began, service.cpu() - used


def floor(session: Session, token: str, number: int, texts: int) -> tuple[float, float]:
    processes = session.size.floor_processes
    each = max(texts // processes, 1)
    command = [sys.executable, "-m", "benchmarks.floor", token, f"{session.receiver.url}/hook"]
    running = [
        subprocess.Popen(
            [*command, str(number * texts + place * each), str(each)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for place in range(processes)
    ]
    answers = [json.loads(one.communicate()[0]) for one in running]
    scale = texts / (each * processes)
    return max(seconds for seconds, _ in answers) * scale, sum(cpu for _, cpu in answers) * scale


def modelled(session: Session, texts: int) -> Iterator[Row]:
    """Texts a second with a model, by 1, 2 and 4 workers."""
    for workers in (1, 2, 4) if texts > 1 else (1,):
        with MessagesServer() as server:
            server.answer = SlowModel()
            model = {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": server.url}
            with session.service(workers=workers, **model) as service:
                room = seed.newsroom(session.name("Modelled"))
                seed.add_endpoint(room.workspace, session.receiver, BURST_PATH, events=["generated.ready"])
                burst(session, service, room.token, f"warm{workers}", 2, story=seed.unlike_story)
                seconds, used = burst(
                    session, service, room.token, f"modelled{workers}", texts, story=seed.unlike_story
                )
        what = f"texts with a model of {MODEL_SECONDS * 1000:.0f} ms a call, {workers} workers"
        yield Row(what, "/s", [texts / seconds], note=f"{1000 * used / texts:.0f} ms of CPU each")


class SlowModel(Model):
    kind = "short_post"
    variants = 1

    def __call__(self, request: Recorded) -> Scripted:
        return replace(super().__call__(request), seconds=MODEL_SECONDS)


# --- A steady load ---------------------------------------------------------------------------------------------------


def steady(session: Session, service: Service) -> Iterator[Row]:
    size = session.size
    rooms = [seed.newsroom(session.name("Steady")) for _ in range(size.workspaces)]
    for number, room in enumerate(rooms):
        seed.add_endpoint(room.workspace, session.receiver, f"/in/{number}", events=["generated.ready"])
    service.push(rooms[0].token, **seed.story("warm"))
    planned: dict[str, float] = {}
    pages: list[float] = []
    ends = threading.Event()
    http, paths = member(rooms[0].workspace)
    visitor = threading.Thread(target=visit, args=(http, [service.url + path for path in paths], pages, ends))
    if session.database == "sqlite":
        visitor.start()
    with ThreadPoolExecutor(16) as pool:
        local = threading.local()

        def push(number: int, at: float) -> None:
            if not hasattr(local, "http"):
                local.http = plain_session()
            token = rooms[number % len(rooms)].token
            answer = local.http.post(
                f"{service.url}/v1/raw",
                json=seed.story(f"steady-{number}"),
                headers={"Authorization": f"Bearer {token}"},
                timeout=60,
            )
            planned[answer.json()["id"] if answer.status_code == 202 else f"refused {number}"] = at

        began = time.time()
        for number in range(max(int(size.rate * size.seconds), 1)):
            at = began + number / size.rate
            time.sleep(max(at - time.time(), 0))
            pool.submit(push, number, at)
    waits, lost = _wait_for(session, planned)
    ends.set()
    if session.database == "sqlite":
        visitor.join()
    what = f"{size.rate:.0f} pushes/s over {size.workspaces} workspaces, {service.layout}, to webhook:"
    unsound = f"{lost} of {len(planned)} were lost" if lost else ""
    yield Row(f"{what} p50", "s", [percentile(waits, 0.5)], unsound=unsound)
    yield Row(f"{what} p99", "s", [percentile(waits, 0.99)], note=f"{len(waits)} arrived, {lost} lost")
    if session.database == "sqlite":
        yield Row("pages meanwhile: p95", "ms", [percentile(pages, 0.95)], note=f"{len(pages)} pages")


def _wait_for(session: Session, planned: dict[str, float]) -> tuple[list[float], int]:
    """How long each took, and how many never came."""

    def waits() -> list[float]:
        arrivals = {key.partition(" ")[0]: at for key, at in session.receiver.arrivals().items()}
        return [arrivals[raw] - at for raw, at in planned.items() if raw in arrivals]

    wanted = sum(not name.startswith("refused") for name in planned)
    until = time.monotonic() + LOST_AFTER_SECONDS
    while len(found := waits()) < wanted and time.monotonic() < until:
        time.sleep(0.3)
    return found, len(planned) - len(found)


def visit(http: requests.Session, urls: list[str], pages: list[float], ends: threading.Event) -> None:
    """Milliseconds of each page, until it ends; each was asked for once."""
    while True:
        for url in urls:
            began = time.perf_counter()
            answer = http.get(url, timeout=60)
            pages.append((time.perf_counter() - began) * 1000 if answer.status_code == 200 else float("inf"))
            ends.wait(PAGE_EVERY_SECONDS)
        if ends.is_set():
            return


def member(workspace: Workspace) -> tuple[requests.Session, list[str]]:
    """Somebody who is logged in, and the pages to ask for."""
    from django.test import Client  # noqa: PLC0415
    from django.urls import reverse  # noqa: PLC0415

    from accounts.models import Membership, User  # noqa: PLC0415

    user = User.objects.create_user(email=f"{workspace.pk.hex}@example.test")
    Membership.everywhere.create(workspace=workspace, user=user, role=Membership.Role.OWNER)
    browser = Client()
    browser.force_login(user)
    http = plain_session()
    http.cookies.update({name: cookie.value for name, cookie in browser.cookies.items()})
    return http, [reverse(name, kwargs={"ws": workspace.pk}) for name in PAGES]
