"""Mutation check: runs the tests against small faults, and reports which of them no test finds.

The mutants are chosen by seed from the source of one commit (--chosen-at) and applied to a copy of another (--at), where
they are found by file, function and text: so the tests of two commits can be compared by the same mutants.
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter, defaultdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tools.mutants import Mutant, apply, changes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

ROOT = Path(__file__).resolve().parent.parent
SOURCES = {
    "publish": "pipeline/publish/*.py",
    "generate": "pipeline/generate/*.py",
    "review": """pipeline/review/decisions.py pipeline/review/regenerate.py pipeline/review/bulk_review.py pipeline/review/undo.py
        pipeline/review/variants.py pipeline/review/rerender.py""",
    "tokens": "accounts/access/tokens.py accounts/access/authentication.py accounts/access/ratelimit.py",
}
# The tests of each package, below tests/.
TESTS = {
    "publish": """states contracts/test_publi*.py contracts/test_on_time.py contracts/test_order_of_checks.py
        pipeline/publish/test_p*.py pipeline/publish/test_queue_slots.py pipeline/publish/test_rate_caps.py pipeline/publish/test_removal.py pipeline/review/test_explanation.py
        pipeline/publish/test_manual_publish.py pipeline/outlets/test_short_links.py pipeline/switches/test_kill_switch.py pipeline/review/test_decisions.py
        pipeline/outlets/test_simulated_server.py pipeline/schedule/planning pipeline/schedule/recurring pipeline/mailing pages/test_queues.py
        pages/test_manual_publish.py pages/test_failures.py pages/test_calendar.py""",
    "generate": """pipeline/generate/test_generate*.py pipeline/generate/test_autopilot_checks.py pipeline/generate/test_repetition.py pipeline/generate/test_shared_brief.py
        pipeline/generate/test_model_failures.py pipeline/generate/test_long_words.py pipeline/generate/test_pictures.py pipeline/review/test_storyboards.py
        pipeline/review/test_decisions.py pipeline/ingest/test_store_raw_item.py pipeline/generate/test_videos.py pipeline/generate/test_narration.py pipeline/generate/test_paid_once.py
        pipeline/generate/test_composites.py pipeline/generate/test_clips.py pipeline/personas/test_lane*.py pipeline/personas/test_select_topic.py
        pipeline/generate/batches pipeline/schedule/series contracts/test_generated_*.py contracts/test_raw.py pages/test_items_storyboard.py""",
    "review": """pipeline/review/test_decisions.py pipeline/publish/test_p*.py pipeline/review/test_storyboards.py pipeline/generate/test_pictures.py
        pipeline/schedule/planning contracts/test_generated_*.py contracts/test_publish.py contracts/test_order_of_checks.py
        contracts/test_storyboards.py pages/test_review.py pages/test_items*.py pages/test_new.py""",
    "tokens": """accounts contracts/test_rate_headers.py contracts/test_strict_input.py contracts/test_statements.py
        pages/test_keys.py""",
}
# What whole histories look at, for --simulate.
SIMULATED = {
    "publish": """pipeline/publish/blockers.py pipeline/publish/item_status.py pipeline/publish/publish_http_client.py
        pipeline/publish/reconciliation.py pipeline/publish/removal.py pipeline/publish/requests.py
        pipeline/publish/results.py pipeline/publish/send.py pipeline/publish/steps.py
        pipeline/publish/timing/rate_caps.py""",
    "dispatch": """config/core/dispatcher.py config/core/jobs.py config/core/task_runner.py config/core/work_leases.py
        config/core/work_queue.py""",
    "credits": "accounts/ledger/months.py accounts/ledger/reports.py accounts/ledger/credits.py",
    "deliveries": """webhooks/deliver.py webhooks/results.py webhooks/fan_out.py webhooks/endpoint_rate.py webhooks/signing.py
        webhooks/recovery.py webhooks/endpoints.py""",
}
SIMULATION = {"SEEDS": "1-200", "DAYS": "3", "STOP": "1"}
PYTEST = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow and not real"]
PYTEST += ["--hypothesis-seed=0", "-p", "no:cacheprovider"]


def choose(
    root: Path, package: str, count: int, seed: int, sources: Mapping[str, str] = SOURCES
) -> list[Mutant]:
    """At most one mutant of a statement, so that each statement is as likely as another, however long it is."""
    by_statement = defaultdict(list)
    for path in find_files(root, sources[package]):
        for change in changes_of(str(path.relative_to(root)), ast.parse(path.read_text())):
            one = change.mutant
            if sources is SIMULATED and not one.function:
                # Sizes and limits, which no history reaches.
                continue
            by_statement[one.file, change.line, one.statement].append(one)
    chance = random.Random(f"{package} {seed}")  # noqa: S311 - it is to be the same again
    return [chance.choice(by_statement[one]) for one in sorted(chance.sample(list(by_statement), count))]


def find_files(root: Path, patterns: str) -> list[Path]:
    return [path for pattern in patterns.split() for path in sorted(root.glob(pattern))]


def extract(commit: str, folder: Path) -> Path:
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        opened.extractall(folder, filter="data")
    return folder


def migrate(root: Path) -> dict[str, str]:
    """The environment of a copy's tests: SQLite without services, and a database that theirs are copied from."""
    environment = {
        name: os.environ[name] for name in ("PATH", "HOME", "LANG", "CHROMIUM") if name in os.environ
    }
    # Before there was tests/settings.env, MODE alone was enough.
    environment |= {"ENV_FILE": "tests/settings.env", "MODE": "development", "DATA_DIR": str(root / "var")}
    subprocess.run([sys.executable, "manage.py", "migrate", "-v", "0"], cwd=root, env=environment, check=True)
    return environment | {"MIGRATED": str((root / "var/db.sqlite3").rename(root / "var/migrated.sqlite3"))}


def run_tests(root: Path, environment: dict[str, str], *arguments: str, limit: float | None = None) -> str:
    """The first test that failed, or nothing. A run without an end fails."""
    # Examples that one mutant left would be tried first at the next.
    shutil.rmtree(root / ".hypothesis", ignore_errors=True)
    with subprocess.Popen(
        [*PYTEST, *arguments],
        cwd=root,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return "the time limit"
    if process.returncode == 0:
        return ""
    for line in output.splitlines():
        if line.startswith(("FAILED tests/", "ERROR tests/")):
            return line.partition(" ")[2].partition(" - ")[0]
    sys.exit(f"{output[-2000:]}\npytest ended with {process.returncode} and named no test.")


def simulate(root: Path, environment: dict[str, str], *, limit: float | None = None) -> str:
    """The first promise that a history saw broken, or nothing. Histories without an end break one too."""
    command = [sys.executable, "-m", "tests.simulation"]
    with subprocess.Popen(
        command,
        cwd=root,
        env=environment | SIMULATION,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return "the time limit"
    if process.returncode == 0:
        return ""
    seed = next((line for line in output.splitlines() if line.startswith("seed ")), "")
    broken = next(
        (line for line in output.splitlines() if ": BROKEN " in line), output.strip().splitlines()[-1]
    )
    return f"{seed.partition(' broke')[0] or 'the start'}: {broken.partition('BROKEN ')[2] or broken}"


def kill(file: Path, mutated: str, run: Callable[..., str], *tests: str, limit: float) -> str:
    """The test that fails with the mutant, both among all and alone: others may fail because the machine is busy."""
    source = file.read_text()
    try:
        write_module(file, mutated)
        if not tests:
            return run(limit=limit)
        for _ in range(3):
            killer = run("-n", "2", *tests, limit=limit)
            if "::" not in killer or run(killer, limit=limit):
                return killer
        return ""
    finally:
        write_module(file, source)


def write_module(file: Path, source: str) -> None:
    """Its compiled form is known by second and size, which a mutant may share with the original."""
    file.write_text(source)
    for compiled in file.parent.glob(f"__pycache__/{file.stem}.*.pyc"):
        compiled.unlink()


def report(options: argparse.Namespace, folder: Path) -> Iterator[str]:
    at, chosen_at = (
        subprocess.check_output(["git", "rev-parse", "--short=7", commit], cwd=ROOT, text=True).strip()
        for commit in (options.at, options.chosen_at)
    )
    yield f"{datetime.now(UTC):%Y-%m-%d}, commit {at}: {options.count} mutants of commit {chosen_at}, seed {options.seed}"
    root = extract(at, folder / "code")
    environment = migrate(root)
    sources = SIMULATED if options.simulate else SOURCES
    chosen_from = extract(chosen_at, folder / "chosen")
    run = partial(simulate if options.simulate else run_tests, root, environment)
    took = 0.0
    for index, package in enumerate(sources):
        tests = [] if options.simulate else find_tests(root, package)
        if not (options.simulate and took):
            # Histories are the same for each package.
            started = time.monotonic()
            if failed := run(*(("-n", "2", *tests) if tests else ())):
                sys.exit(f"{failed} fails without a mutant.")
            took = time.monotonic() - started
        yield f"\n{package}: {took:.0f} s without a mutant"
        sums: Counter[str] = Counter()
        # What doesn't divide goes to the first packages.
        count = (options.count + len(sources) - 1 - index) // len(sources)
        for mutant in choose(chosen_from, package, count, options.seed, sources):
            started = time.monotonic()
            file = root / mutant.file
            found = apply(mutant, file.read_text()) if file.exists() else None
            if found is None:
                line, result = "?", "not found again"
            else:
                line = str(found[0])
                killer = kill(file, found[1], run, *tests, limit=3 * took + 120)
                result = f"killed by {killer}" if killer else "survived"
            sums[result.partition(" by ")[0]] += 1
            yield f"{mutant.file}:{line} {mutant}\n  {result}, {time.monotonic() - started:.0f} s"
        yield f"{package}: " + ", ".join(f"{number} {result}" for result, number in sorted(sums.items()))


def find_tests(root: Path, package: str) -> list[str]:
    return [
        f"tests/{path.relative_to(root / 'tests')}" for path in find_files(root / "tests", TESTS[package])
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--at", default="HEAD", help="commit whose tests are run (default: HEAD)")
    parser.add_argument("--chosen-at", default="HEAD", help="commit that the mutants are chosen from")
    parser.add_argument(
        "--count", type=int, default=30, help="mutants of all packages together (default: 30)"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--simulate", action="store_true", help="live through 200 histories in place of the tests"
    )
    parser.add_argument("--into", type=Path, help="file that gets the report when it is complete")
    options = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for line in report(options, Path(folder)):
            print(line, flush=True)
            lines.append(f"{line}\n")
    if options.into:
        options.into.write_text("".join(lines))


if __name__ == "__main__":
    main()
