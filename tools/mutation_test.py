"""Mutation check: runs the tests against small faults, and reports which of them no test finds.

The mutants are chosen by seed from the source of one commit (--chosen-at) and applied to a copy of another (--at), where
they are found by file, function and text: so the tests of two commits can be compared by the same mutants.

With --simulate 200 seeded histories take the place of the tests. Their mutants are of statements inside of functions that
the first 20 of these histories run without a fault, as `coverage` measures. What no promise is about is left out, by kind:

- counters, notes of the audit and lines of the log, by these words in a name;
- texts for people: f-strings, and what `message`, `text` and `title` are set to;
- bounds of slices: the lengths that texts are cut to;
- whether a moment that is exactly now counts as past or as to come;
- how fast it is: pauses of rounds, how much is queued ahead, which rows are read together, when connections are given back;
- arguments of locks, transactions and calls of the network, and which database it is: histories have SQLite with one
  writer, and a network of their own;
- `strict` of zip, by which code checks itself.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
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

from tools.mutants import Mutant, apply, changes_of, is_of_a_promise

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping

ROOT = Path(__file__).resolve().parent.parent
SOURCES_BY_PACKAGE = {
    "publish": "pipeline/publish/*.py",
    "generate": "pipeline/generate/*.py",
    "review": """pipeline/review/decisions.py pipeline/review/regenerate.py pipeline/review/bulk_review.py pipeline/review/undo.py
        pipeline/review/variants.py pipeline/review/rerender.py""",
    "tokens": "accounts/access/tokens.py accounts/access/authentication.py accounts/access/workspace_rate_limit.py",
}
# The tests of each package, below tests/.
TESTS_BY_PACKAGE = {
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
# The modules that simulated histories run, for --simulate.
SIMULATED_SOURCES = {
    "publish": """pipeline/publish/blockers.py pipeline/publish/item_status_and_events.py pipeline/publish/late_answers.py
        pipeline/publish/reconciliation.py pipeline/publish/removal.py pipeline/publish/requests.py
        pipeline/publish/record_outcome.py pipeline/publish/send.py pipeline/publish/steps.py
        pipeline/publish/timing/postpone.py
        pipeline/publish/timing/rate_caps.py""",
    "dispatch": """config/core/dispatcher.py config/core/jobs.py config/core/task_runner.py config/core/work_leases.py
        config/core/work_queue.py""",
    "credits": "accounts/ledger/months.py accounts/ledger/reports.py accounts/ledger/credits.py",
    "deliveries": """webhooks/deliver.py webhooks/results.py webhooks/fan_out.py webhooks/endpoint_rate.py webhooks/signing.py
        webhooks/recovery.py webhooks/endpoints.py""",
}
SIMULATION_ENVIRONMENT = {"SEEDS": "1-200", "DAYS": "3", "STOP": "1"}
MEASURED_SEEDS = "1-20"
PYTEST = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow and not real"]
PYTEST += ["--hypothesis-seed=0", "-p", "no:cacheprovider"]


def choose_mutants(
    root: Path,
    package: str,
    count: int,
    seed: int,
    sources: Mapping[str, str] = SOURCES_BY_PACKAGE,
    *,
    lines_run: Container[tuple[str, int]] | None = None,
) -> list[Mutant]:
    """Choose mutants, at most one of a statement, so that each statement is equally likely, however long it is.

    With `lines_run` only statements that begin on these lines, and that a promise is about, are mutated.
    """
    by_statement = defaultdict(list)
    for path in find_files(root, sources[package]):
        for change in changes_of(str(path.relative_to(root)), ast.parse(path.read_text())):
            mutant = change.mutant
            if lines_run is not None and not (
                (mutant.file, change.line) in lines_run and is_of_a_promise(change)
            ):
                continue
            by_statement[mutant.file, change.line, mutant.statement].append(mutant)
    generator = random.Random(f"{package} {seed}")  # noqa: S311 - it is to be the same again
    return [
        generator.choice(by_statement[statement])
        for statement in sorted(generator.sample(list(by_statement), count))
    ]


def find_lines_run(root: Path, environment: Mapping[str, str]) -> set[tuple[str, int]]:
    """Run histories without a mutant; return the file and first line of each statement that a function ran."""
    coverage = [sys.executable, "-m", "coverage"]
    environment = {
        **environment,
        **SIMULATION_ENVIRONMENT,
        "SEEDS": MEASURED_SEEDS,
        # The histories run in the process that is measured.
        "PROCESSES": "1",
        "COVERAGE_FILE": str(root / "var/coverage"),
    }
    for command in (
        ["run", "--concurrency=greenlet", "-m", "tests.simulation"],
        ["json", "-q", "-o", "var/coverage.json"],
    ):
        subprocess.run(
            [*coverage, *command], cwd=root, env=environment, stdout=subprocess.DEVNULL, check=True
        )
    files = json.loads((root / "var/coverage.json").read_text())["files"]
    return {
        (file, line)
        for file, measured in files.items()
        for function, part in measured["functions"].items()
        if function
        for line in part["executed_lines"]
    }


def find_files(root: Path, patterns: str) -> list[Path]:
    """Return the files of the patterns, which are separated by blanks."""
    return [path for pattern in patterns.split() for path in sorted(root.glob(pattern))]


def extract(commit: str, folder: Path) -> Path:
    """Write the files of a commit into the folder, and return the folder."""
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        opened.extractall(folder, filter="data")
    return folder


def migrate(root: Path) -> dict[str, str]:
    """Migrate a database in the copy, and return the environment of its tests: SQLite, without services."""
    environment = {
        name: os.environ[name] for name in ("PATH", "HOME", "LANG", "CHROMIUM") if name in os.environ
    }
    # Older commits have no tests/settings.env and need MODE.
    environment |= {"ENV_FILE": "tests/settings.env", "MODE": "development", "DATA_DIR": str(root / "var")}
    subprocess.run([sys.executable, "manage.py", "migrate", "-v", "0"], cwd=root, env=environment, check=True)
    return environment | {"MIGRATED": str((root / "var/db.sqlite3").rename(root / "var/migrated.sqlite3"))}


def run_tests(root: Path, environment: dict[str, str], *arguments: str, limit: float | None = None) -> str:
    """Run tests and return the first that failed, or "" if none did, or "the time limit" if they took too long.

    Ends the program if pytest fails and names no test. `limit` is in seconds.
    """
    # Hypothesis would try the failing examples of one mutant first at the next one.
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
    """Run histories and return the first broken invariant, or "" if none was, or "the time limit"."""
    command = [sys.executable, "-m", "tests.simulation"]
    with subprocess.Popen(
        command,
        cwd=root,
        env=environment | SIMULATION_ENVIRONMENT,
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
    """Run the mutated module, and return the test, or the invariant, that finds the mutant, or "" if none does.

    A test has to fail among all and then alone, because tests may also fail when the machine is busy.
    """
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
    """Write the source, and delete compiled modules: they are matched by second and size, as the original's might."""
    file.write_text(source)
    for compiled in file.parent.glob(f"__pycache__/{file.stem}.*.pyc"):
        compiled.unlink()


def report_lines(options: argparse.Namespace, folder: Path) -> Iterator[str]:
    """Yield the report's lines, each as soon as it is known."""
    at, chosen_at = (
        subprocess.check_output(["git", "rev-parse", "--short=7", commit], cwd=ROOT, text=True).strip()
        for commit in (options.at, options.chosen_at)
    )
    yield f"{datetime.now(UTC):%Y-%m-%d}, commit {at}: {options.count} mutants of commit {chosen_at}, seed {options.seed}"
    root = extract(at, folder / "code")
    environment = migrate(root)
    sources = SIMULATED_SOURCES if options.simulate else SOURCES_BY_PACKAGE
    chosen_from = extract(chosen_at, folder / "chosen")
    lines_run = find_lines_run(chosen_from, migrate(chosen_from)) if options.simulate else None
    run = partial(simulate if options.simulate else run_tests, root, environment)
    seconds_without_mutant = 0.0
    for index, package in enumerate(sources):
        tests = [] if options.simulate else find_tests(root, package)
        if not (options.simulate and seconds_without_mutant):
            # Simulated histories are the same for each package.
            started = time.monotonic()
            if failure := run(*(("-n", "2", *tests) if tests else ())):
                sys.exit(f"{failure} fails without a mutant.")
            seconds_without_mutant = time.monotonic() - started
        yield f"\n{package}: {seconds_without_mutant:.0f} s without a mutant"
        counts: Counter[str] = Counter()
        # The remainder of the division goes to the first packages.
        count = (options.count + len(sources) - 1 - index) // len(sources)
        for mutant in choose_mutants(chosen_from, package, count, options.seed, sources, lines_run=lines_run):
            started = time.monotonic()
            file = root / mutant.file
            mutated = apply(mutant, file.read_text()) if file.exists() else None
            if mutated is None:
                line, result = "?", "not found again"
            else:
                line = str(mutated[0])
                killer = kill(file, mutated[1], run, *tests, limit=3 * seconds_without_mutant + 120)
                result = f"killed by {killer}" if killer else "survived"
            counts[result.partition(" by ")[0]] += 1
            yield f"{mutant.file}:{line} {mutant}\n  {result}, {time.monotonic() - started:.0f} s"
        yield f"{package}: " + ", ".join(f"{number} {result}" for result, number in sorted(counts.items()))


def find_tests(root: Path, package: str) -> list[str]:
    """Return the tests of a package, as arguments of pytest."""
    return [
        f"tests/{path.relative_to(root / 'tests')}"
        for path in find_files(root / "tests", TESTS_BY_PACKAGE[package])
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
        for line in report_lines(options, Path(folder)):
            print(line, flush=True)
            lines.append(f"{line}\n")
    if options.into:
        options.into.write_text("".join(lines))


if __name__ == "__main__":
    main()
