"""`python -m benchmarks reviewing`: the review queue of 10,000 waiting items beside a bare Django view.

The floor is a view of one line behind the same middleware, for the same person. Pages, cards, narrowed lists and the
news, of both shapes of `benchmarks.waiting`, are asked for in turns with it, so that a busy machine slows both. Beside
the times on the clock stands the processor's time of this process, which other programs don't add to; the database's
isn't in it. `--quick` asks less often, with a tenth of the items. With a name of a database as the other benchmarks.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.http import HttpRequest, HttpResponse

    from benchmarks.waiting import Waiting

WAITING: Final = 10_000
FIRST_MOST_MS: Final = 1_000.0
NEXT_MOST_MS: Final = 100.0
TIMES: Final = 100
_DEPTHS: Final = (0.0, 0.5, 0.99)
"""Which part of the stories stands above the page that is asked for."""
_NARROWED: Final = ("check=failed", "check=passed", "status=held", "bucket=text")


def floor(request: HttpRequest) -> HttpResponse:
    from django.http import HttpResponse  # noqa: PLC0415  Django is set up only where it is measured

    return HttpResponse("yes" if request.user.is_authenticated else "no")


def main(arguments: list[str]) -> int:
    from benchmarks.__main__ import OURS, scratch_postgres  # noqa: PLC0415  it imports this module
    from tools.suite import find_postgres  # noqa: PLC0415

    wanted = [name for name in arguments if name in {"sqlite", "postgres"}] or ["sqlite", "postgres"]
    quick = ["--quick"] if "--quick" in arguments else []
    codes = []

    def run(name: str, address: str) -> None:
        environment = {key: value for key, value in os.environ.items() if key not in OURS}
        with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
            environment |= {"ENV_FILE": "tests/settings.env", "LOG_LEVEL": "ERROR", "DATA_DIR": folder}
            environment |= {"DJANGO_SETTINGS_MODULE": "config.settings"}
            environment |= {"DATABASE_URL": address} if address else {}
            command = [sys.executable, "-m", "benchmarks.reviewing", name, *quick]
            codes.append(subprocess.run(command, env=environment, check=False).returncode)

    if "sqlite" in wanted:
        run("sqlite", "")
    if "postgres" in wanted:
        address, reason = find_postgres()
        if not address:
            sys.stdout.write(f"NOT RUN on PostgreSQL: {reason}.\n")
            return 1 if os.environ.get("REQUIRE_SERVICES") == "1" else max(codes, default=0)
        with scratch_postgres(address) as own:
            run("postgres", own)
    return max(codes, default=0)


def measure(name: str, *, is_quick: bool) -> bool:
    """Seeds, asks, prints; False where a promise was missed."""
    from django.core.management import call_command  # noqa: PLC0415
    from django.db import connection  # noqa: PLC0415
    from django.test import Client, override_settings  # noqa: PLC0415
    from django.urls import path  # noqa: PLC0415

    from benchmarks.waiting import seed  # noqa: PLC0415
    from config import urls  # noqa: PLC0415

    call_command("migrate", verbosity=0)
    owner, seeded = seed(WAITING // 10 if is_quick else WAITING)
    urls.urlpatterns.append(path("floor", floor))
    statements = 0

    def watch(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:  # noqa: FBT001  Django's
        nonlocal statements
        statements += 1
        return execute(sql, params, many, context)

    def took(address: str) -> tuple[float, float]:
        """Milliseconds on the clock, and of the processor."""
        started, busy = time.perf_counter(), time.process_time()
        answer = asking.get(address)
        spent = (time.perf_counter() - started) * 1000, (time.process_time() - busy) * 1000
        if answer.status_code != 200:
            raise RuntimeError(answer.content.decode())
        return spent

    lines = [("", "p50 ms", "p95 ms", "CPU p50 ms", "floor p50", "÷ floor", "statements")]
    is_good = True
    with override_settings(ALLOWED_HOSTS=["*"]):
        asking = Client()
        asking.force_login(owner)
        for shape, waiting in seeded:
            for what, address, most in _asked(waiting):
                spent, floors = [], []
                for number in range(-5, 20 if is_quick else TIMES):
                    base, own = took("/floor"), took(address)
                    if number >= 0:
                        floors.append(base[0])
                        spent.append(own)
                statements = 0
                with connection.execute_wrapper(watch):
                    took(address)
                cuts = statistics.quantiles([clock for clock, _busy in spent], n=100)
                base_ms = statistics.median(floors)
                is_good = is_good and cuts[94] <= most
                verdict = "ok" if cuts[94] <= most else "MISSED"
                lines.append(
                    (
                        f"{shape}: {what}",
                        f"{cuts[49]:.1f}",
                        f"{cuts[94]:.1f} (at most {most:.0f}: {verdict})",
                        f"{statistics.median(busy for _clock, busy in spent):.1f}",
                        f"{base_ms:.1f}",
                        f"{cuts[49] / base_ms:.1f}",
                        str(statements),
                    )
                )
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    sys.stdout.write(
        f"\n{name}: {WAITING // 10 if is_quick else WAITING:,} items of each shape wait, load {load:.1f}\n"
    )
    if load > cores + 1:
        sys.stdout.write("Others are at work on this machine: judge by the processor's time.\n")
    for line in lines:
        sys.stdout.write(
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() + "\n"
        )
    return is_good


def _asked(waiting: Waiting) -> Iterator[tuple[str, str, float]]:
    """What it is, its address, and how many milliseconds it may take at the 95th percentile."""
    from django.urls import reverse  # noqa: PLC0415

    from config.ground.ids import encode  # noqa: PLC0415

    where = {"ws": waiting.workspace}
    page, rows, news = (reverse(name, kwargs=where) for name in ("review", "review_rows", "review_news"))
    for part in _DEPTHS:
        depth = int(len(waiting.items) * part)
        at = encode("gen", waiting.items[len(waiting.items) - 1 - depth])
        yield f"page below {depth:,} stories", f"{page}?at={at}" if depth else page, FIRST_MOST_MS
        yield f"further rows below {depth:,} stories", f"{rows}?after={at}", FIRST_MOST_MS
    for narrowed in _NARROWED:
        yield f"page of {narrowed}", f"{page}?{narrowed}", FIRST_MOST_MS
    newest = encode("gen", waiting.items[-1])
    yield "news", f"{news}?shown={newest}:1&first={newest}&check=failed", NEXT_MOST_MS
    for bucket, item in waiting.formats.items():
        yield f"card of {bucket}", reverse("review_card", kwargs={**where, "gen": item}), NEXT_MOST_MS


if __name__ == "__main__":
    import django

    django.setup()
    sys.exit(0 if measure(sys.argv[1], is_quick="--quick" in sys.argv) else 1)
