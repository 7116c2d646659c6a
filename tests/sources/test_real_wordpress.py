"""A real publisher on this machine: WordPress, polled as rss, by page and by sitemap while its posts change."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest

from accounts import workspaces
from accounts.models import Plan
from pipeline.models import RawItem, WorkspaceDefaults
from pipeline.sources import page_memory, page_visit, scraper
from pipeline.stages import collect
from tests.stages.steps import claimed

PACKAGE = Path("/usr/share/wordpress")
THEME = "twentytwentythree"
SCRIPTS = Path(__file__).parent / "real_wordpress"
PROGRAMS = ("php", "mariadbd", "mariadb-install-db", "mariadb")
PATIENCE_SECONDS = 180

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def missing() -> list[str]:
    found = [program for program in PROGRAMS if shutil.which(program) is None]
    found += [] if (PACKAGE / "wp-load.php").exists() else ["wordpress"]
    found += [] if (PACKAGE / "wp-content/themes" / THEME).exists() else [f"wordpress-theme-{THEME}"]
    if not found:
        modules = (
            subprocess.run(["php", "-m"], capture_output=True, text=True, check=True).stdout.lower().split()
        )
        found += [f"php-{name}" for name in ("mysqli", "simplexml", "mbstring") if name not in modules]
    return found


def wait_until(is_so, what: str) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > until:
            pytest.fail(f"{what} did not come within {PATIENCE_SECONDS} seconds")
        time.sleep(0.2)


class WordPress:
    """One site with a database server of its own; everything goes with its folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._site = folder / "site"
        self._processes: list[subprocess.Popen[bytes]] = []
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{probe.getsockname()[1]}"
        self._environment = {
            "PATH": os.environ["PATH"],
            "WORDPRESS_URL": self.url,
            "WORDPRESS_DATABASE": "wordpress",
            "WORDPRESS_USER": "root",
            "WORDPRESS_SOCKET": str(folder / "db.sock"),
        }
        self._at = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=3)

    def start(self) -> None:
        self._start_database()
        shutil.copytree(
            PACKAGE, self._site, symlinks=False, ignore=shutil.ignore_patterns(".htaccess", "wp-config.php")
        )
        for script in SCRIPTS.glob("*.php"):
            shutil.copy(script, self._site)
        self.act("install", theme=THEME)
        address = self.url.removeprefix("http://")
        self._run("php", "-S", address, "-t", str(self._site), str(self._site / "router.php"))
        wait_until(self._answers, "WordPress")

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait()
        # 200 MB that pytest would keep.
        shutil.rmtree(self._folder, ignore_errors=True)

    def act(self, act: str, **given: str):
        """What WordPress says to it; each act has a later moment than the one before."""
        self._at += timedelta(minutes=1)
        at = self._at.strftime("%Y-%m-%d %H:%M:%S")
        done = subprocess.run(
            ["php", str(self._site / "act.php"), json.dumps({"act": act, "at": at, **given})],
            capture_output=True,
            text=True,
            check=False,
            env=self._environment,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        told = json.loads(done.stdout.splitlines()[-1])
        assert told, done.stdout
        assert not isinstance(told, dict), told
        return told

    def add(self, name: str) -> str:
        """A post of its own words; its address."""
        return self.act("add", name=f"all-about-{name}", title=f"All about {name}", content=words(name))

    def edit(self, name: str, **changes: str) -> None:
        self.act("edit", name=f"all-about-{name}", **changes)

    def _start_database(self) -> None:
        data = self._folder / "db"
        # Both refuse to run as root without being told so.
        user = ["--user=root"] if os.geteuid() == 0 else []
        subprocess.run(
            [
                "mariadb-install-db",
                "--no-defaults",
                f"--datadir={data}",
                "--auth-root-authentication-method=normal",
                *user,
            ],
            check=True,
            capture_output=True,
            timeout=PATIENCE_SECONDS,
        )
        self._run(
            "mariadbd",
            "--no-defaults",
            f"--datadir={data}",
            f"--socket={self._environment['WORDPRESS_SOCKET']}",
            f"--pid-file={self._folder / 'db.pid'}",
            "--skip-networking",
            *user,
        )
        wait_until(lambda: self._ask("SELECT 1").returncode == 0, "MariaDB")
        assert self._ask("CREATE DATABASE wordpress CHARACTER SET utf8mb4").returncode == 0

    def _ask(self, statement: str) -> subprocess.CompletedProcess[bytes]:
        command = ["mariadb", "--no-defaults", "-uroot", f"--socket={self._environment['WORDPRESS_SOCKET']}"]
        return subprocess.run([*command, "-e", statement], capture_output=True, check=False)

    def _run(self, *command: str) -> None:
        with (self._folder / f"{command[0]}.log").open("wb") as log:
            started = subprocess.Popen(
                command, env=self._environment, stdout=log, stderr=subprocess.STDOUT, cwd=self._folder
            )
        self._processes.append(started)

    def _answers(self) -> bool:
        try:
            with urlopen(f"{self.url}/", timeout=60) as answer:
                return answer.status == 200
        except (HTTPError, URLError, OSError):
            return False


def words(name: str, *, more: str = "") -> str:
    paragraphs = [
        f"This is what there is to say about {name}, and it is a good deal more than most people think at first.",
        f"Bakers have worked with {name} for hundreds of years, in every valley in a way of its own.",
        f"Whoever begins with {name} needs patience, a warm room, clean hands and a scale that can be trusted.{more}",
    ]
    return "\n\n".join(f"<!-- wp:paragraph --><p>{text}</p><!-- /wp:paragraph -->" for text in paragraphs)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    lacking = missing()
    if lacking:
        message = f"There is no WordPress to poll; missing: {', '.join(lacking)}."
        if os.environ.get("REQUIRE_SERVICES") == "1":
            pytest.fail(message)
        pytest.skip(message)
    made = WordPress(tmp_path_factory.mktemp("wordpress"))
    try:
        made.start()
        yield made
    finally:
        made.stop()


KINDS = {
    "rss": ("rss", lambda url: {"url": f"{url}/feed/"}),
    "page": ("scraper", lambda url: {"url": f"{url}/"}),
    "page by selector": (
        "scraper",
        lambda url: {"url": f"{url}/", "item_selector": ".wp-block-post-title a"},
    ),
    "sitemap": ("scraper", lambda url: {"url": f"{url}/", "sitemap": f"{url}/wp-sitemap.xml"}),
}


@pytest.fixture
def workspace(db):
    plan = Plan.objects.create(name="Large", credits_per_month=1000, active_sources_most=10)
    made = workspaces.create("Newsroom", plan=plan)
    workspaces.whitelist(made, "operator")
    WorkspaceDefaults.everywhere.filter(workspace=made).update(engines=["Short Post"])
    return made


def listed(source):
    """Each raw item by its title: its version of the content, and whether its source took it back."""
    rows = RawItem.everywhere.filter(source=source)
    return sorted((row.title, row.content_version, row.withdrawn_at is not None) for row in rows)


def everything(source):
    """Whatever a poll could have written about the entries of a source."""
    rows = RawItem.everywhere.filter(source=source).order_by("pk")
    entries = source.entries.order_by("pk")
    return (
        list(rows.values_list("pk", "version", "content_version", "status", "updated_at", "withdrawn_at")),
        list(entries.values_list("key", "decision", "decided_at")),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_change_is_seen_once(site, workspace, monkeypatch, kind):
    monkeypatch.setattr(page_visit, "pause", lambda seconds: None)
    # A busy machine's PHP may take long; nothing here is about time.
    monkeypatch.setattr(scraper, "FETCH_SECONDS", 600)
    # A page rests for a tenth of the time for which it stayed the same, which a busy machine stretches to seconds.
    monkeypatch.setattr(page_memory.PageRecord, "is_due", lambda self, *, now: not self.stamp)
    site.act("empty")
    links = {name: site.add(name) for name in ("rye", "wheat", "oats", "spelt")}
    kind_name, config_of = KINDS[kind]
    source = collect.register(
        workspace, collect.SourceSettings(type=kind_name, config=config_of(site.url), first_poll="all")
    )

    def poll():
        before = source.last_polled_at

        def is_polled():
            # The host rests for a moment between two fetches; a poll that comes too soon only waits.
            collect.poll(claimed(source))
            source.refresh_from_db()
            return source.last_polled_at != before

        wait_until(is_polled, "The poll")
        assert (source.status, source.last_error) == ("active", None)
        return listed(source)

    before = [(f"All about {name}", 1, False) for name in ("oats", "rye", "spelt", "wheat")]
    assert poll() == before
    addresses = RawItem.everywhere.filter(source=source).values_list("url", flat=True)
    assert sorted(addresses) == sorted(links.values())

    def nothing_more():
        kept = everything(source)
        poll()
        assert everything(source) == kept

    nothing_more()
    site.act(
        "comment", name="all-about-oats", content="Very true, and thank you for writing all of this down."
    )
    nothing_more()

    site.add("maize")
    site.edit("rye", content=words("rye", more=" And a good night's sleep."))
    site.act("trash", name="all-about-wheat")
    if kind == "rss":
        # A feed only leaves it out, which the stage believes at the second poll.
        assert ("All about wheat", 1, False) in poll()
    assert poll() == [
        ("All about maize", 1, False),
        ("All about oats", 1, False),
        ("All about rye", 2, False),
        ("All about spelt", 1, False),
        ("All about wheat", 1, True),
    ]
    nothing_more()

    site.edit("oats", title="All about oats, again")
    site.edit("maize", content=words("maize", more=" Or two of them."))
    assert poll() == [
        ("All about maize", 2, False),
        ("All about oats, again", 2, False),
        ("All about rye", 2, False),
        ("All about spelt", 1, False),
        ("All about wheat", 1, True),
    ]
    nothing_more()
    assert sorted(source.entries.values_list("decision", flat=True)) == [
        "new",
        "revised",
        "revised",
        "revised",
        "withdrawn",
    ]
