"""Pages whose text comes from JavaScript: in a real browser, against a local server, under the guard of our client."""

from __future__ import annotations

import shutil
import socket
import threading
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, sleep

import pytest
from werkzeug import Response

from config.core.http_client import Client, Policy
from pipeline.plugins import Refused, TryLater
from pipeline.sources import scraper
from pipeline.sources.scraper import PLUGIN
from pipeline.sources.web_pages import polite_fetch, render
from pipeline.sources.web_pages.render import find_browser
from tests import chromium

from .fake_site import USER_AGENT
from .test_scraper import article

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
WORDS = "Hold the blade flat and cut quickly through the skin of the dough, as deep as a finger is wide. "

pytestmark = [pytest.mark.slow]


@pytest.fixture
def browser(monkeypatch) -> str:
    found = chromium.find()
    # A busy machine starts a browser slowly; what is tested here is what it loads.
    monkeypatch.setattr(render, "RENDER_SECONDS", 120)
    monkeypatch.setattr(render, "REQUEST_SECONDS", 60)
    monkeypatch.setattr(scraper, "FETCH_SECONDS", 600)
    monkeypatch.setattr(polite_fetch, "pause", lambda seconds: None)
    return found


@pytest.fixture
def site(httpserver):
    httpserver.expect_request("/robots.txt").respond_with_data("", status=404)
    return httpserver


def fetch(site, browser, path="/", *, policy=None):
    config = PLUGIN.clean_config({"url": site.url_for(path), "render": True, "max_pages": 1})
    client = Client(policy or Policy(allow_loopback=True, user_agent=USER_AGENT))
    return PLUGIN.fetch(config, {}, http=client, now=NOW, environment={"CHROMIUM_PATH": browser})


def app(script: str) -> str:
    return f"<!doctype html><html lang=en><head><title>App</title></head><body><div id=root></div><script>{script}</script></body></html>"


def asked(site):
    return [request.path for request, _ in site.log]


def browsers():
    """The processes of browsers that a renderer started."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            found += [entry.name] if b"page-render-" in (entry / "environ").read_bytes() else []
        except OSError:
            continue
    return found


def are_gone(processes):
    """Whether they end within the moment that a killed process takes to."""
    until = monotonic() + 20
    while any(Path("/proc", name).exists() for name in processes):
        if monotonic() > until:
            return False
        sleep(0.02)
    return True


def test_text_that_a_script_loads_is_read(site, browser):
    site.expect_request("/").respond_with_data(
        app(
            "fetch('/data.json').then(r => r.json()).then(d => { document.title = d.title; "
            "document.getElementById('root').innerHTML = '<article><h1>' + d.title + '</h1>' + d.body + '</article>'; })"
        ),
        content_type="text/html",
    )
    site.expect_request("/data.json").respond_with_json(
        {"title": "Rye", "body": f"<p>{WORDS}</p><p>It needs practice.</p>"}
    )
    before = browsers()
    found = fetch(site, browser)
    (entry,) = found.entries
    assert (entry.title, entry.left_out) == ("Rye", None)
    assert entry.body.startswith("Hold the blade flat")
    assert asked(site) == ["/robots.txt", "/", "/data.json"]
    assert [request.headers["User-Agent"] for request, _ in site.log] == [USER_AGENT] * 3
    assert are_gone(set(browsers()) - set(before))


def test_without_rendering_the_page_says_that_it_needs_it(site):
    site.expect_request("/").respond_with_data(app("document.write('x')"), content_type="text/html")
    config = PLUGIN.clean_config({"url": site.url_for("/"), "max_pages": 1})
    client = Client(Policy(allow_loopback=True, user_agent=USER_AGENT))
    (entry,) = PLUGIN.fetch(config, {}, http=client, now=NOW, environment={}).entries
    assert entry.left_out is not None
    assert (entry.left_out.code, "`render`" in entry.left_out.message) == ("needs_javascript", True)


class Trap:
    """Listens on loopback for whatever calls past the guard, by TCP and by UDP."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self.port = self._tcp.getsockname()[1]
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", self.port))
        for listen in (self._accept, self._receive):
            threading.Thread(target=listen, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                self._tcp.accept()
            except OSError:
                return
            self.calls.append("tcp")

    def _receive(self) -> None:
        while True:
            try:
                if not self._udp.recv(10):
                    return
            except OSError:
                return
            self.calls.append("udp")

    def close(self) -> None:
        self._tcp.close()
        self._udp.close()


@pytest.fixture
def trap():
    made = Trap()
    yield made
    made.close()


ESCAPES = """
const told = [];
const tell = (name, promise) => promise.then(() => told.push(name + ' got through'), () => told.push(name + ' refused'));
const until = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));
const element = (name, address) => new Promise((good, bad) => {
  const made = document.createElement(name);
  made.onload = good; made.onerror = bad; made.src = address; document.body.append(made);
  setTimeout(bad, 3000);
});
const socket = new Promise((good, bad) => {
  const made = new WebSocket('ws://127.0.0.1:PORT/');
  made.onmessage = good; made.onerror = bad; made.onclose = bad;
  // One that is closed before the page listens for it may stay silent.
  setTimeout(bad, 3000);
});
const all = [
  tell('metadata', fetch('http://169.254.169.254/latest/meta-data/', {mode: 'no-cors'})),
  tell('private', fetch('http://10.0.0.1/', {mode: 'no-cors'})),
  tell('script', element('script', 'http://192.168.0.1/x.js')),
  tell('picture', element('img', 'http://127.0.0.1:PORT/x.png')),
  tell('post', fetch('/post', {method: 'POST', body: 'x'})),
  tell('file', fetch('file:///etc/passwd')),
  tell('websocket', socket),
  tell('worker', new Promise((good, bad) => {
    const code = "fetch('http://10.0.0.2/', {mode: 'no-cors'}).then(() => postMessage(1), () => postMessage(0))";
    const worker = new Worker(URL.createObjectURL(new Blob([code])));
    worker.onmessage = (said) => said.data ? good() : bad(); worker.onerror = bad; setTimeout(bad, 3000);
  })),
  tell('service worker', navigator.serviceWorker ? navigator.serviceWorker.register('/sw.js').then((made) => made.scope) : Promise.reject()),
  tell('webrtc', new Promise((good, bad) => {
    const made = new RTCPeerConnection({iceServers: [{urls: 'stun:127.0.0.1:PORT'}]});
    made.createDataChannel('x'); made.createOffer().then((offer) => made.setLocalDescription(offer)); setTimeout(good, 1500);
  })),
];
navigator.sendBeacon('http://127.0.0.1:PORT/beacon');
const frame = document.createElement('iframe'); frame.src = 'http://127.0.0.1:PORT/frame'; document.body.append(frame);
const hint = document.createElement('link'); hint.rel = 'preconnect'; hint.href = 'http://127.0.0.1:PORT'; document.head.append(hint);
window.open('http://127.0.0.1:PORT/window');
// A page that loads nothing for half a second is taken as it is; these answers may take longer on a busy machine.
const ticking = setInterval(() => fetch('/tick'), 100);
const show = () => {
  clearInterval(ticking);
  document.getElementById('root').innerHTML = '<article><h1>Report</h1><p>' + told.join('. ') + '.</p><p>FILLER</p></article>';
};
Promise.all(all).then(show);
"""


def test_no_way_leads_past_the_guard(site, browser, trap):
    script = ESCAPES.replace("PORT", str(trap.port)).replace("FILLER", WORDS * 4)
    site.expect_request("/").respond_with_data(app(script), content_type="text/html")
    for path in ("/post", "/sw.js", "/tick"):
        site.expect_request(path).respond_with_data("", content_type="text/javascript")
    found = fetch(site, browser)
    assert found.entries[0].left_out is None
    told = found.entries[0].body.split(WORDS)[0]
    assert "got through" not in told
    for way in (
        "metadata",
        "private",
        "script",
        "picture",
        "post",
        "file",
        "websocket",
        "worker",
        "service worker",
        "webrtc",
    ):
        assert f"{way} refused" in told
    assert trap.calls == []
    assert [path for path in asked(site) if path != "/tick"] == ["/robots.txt", "/"]


def test_a_page_has_so_many_requests(site, browser, monkeypatch):
    monkeypatch.setattr(render, "MAX_REQUESTS", 5)
    script = (
        "Promise.allSettled([...Array(30).keys()].map(n => fetch('/data/' + n))).then(all => {"
        "document.getElementById('root').innerHTML = '<article><p>' + all.filter(x => x.status == 'fulfilled').length + ' loaded. "
        + WORDS * 4
        + "</p></article>'; })"
    )
    site.expect_request("/").respond_with_data(app(script), content_type="text/html")
    site.expect_request("/data").respond_with_data("x")
    for number in range(30):
        site.expect_request(f"/data/{number}").respond_with_data("x")
    assert fetch(site, browser).entries[0].body.startswith("5 loaded.")


def test_page_that_never_ends_is_killed(site, browser, monkeypatch):
    monkeypatch.setattr(render, "RENDER_SECONDS", 15)
    site.expect_request("/").respond_with_data(app("while (true) {}"), content_type="text/html")
    before = browsers()
    with pytest.raises(TryLater) as caught:
        fetch(site, browser)
    assert caught.value.code in {"render_timed_out", "render_failed"}
    assert are_gone(set(browsers()) - set(before))


def test_list_and_its_pages_are_rendered_by_one_browser(site, browser):
    links = "".join(
        f"<h2><a href=/2026/11/story-of-{name}>A story of {name}</a></h2>" for name in ("rye", "oats")
    )
    site.expect_request("/").respond_with_data(
        app(f"document.getElementById('root').innerHTML = '<main>{links}</main>'"), content_type="text/html"
    )
    for name in ("rye", "oats"):
        page = article(name).replace("<article>", "<script>document.title = document.title</script><article>")
        site.expect_request(f"/2026/11/story-of-{name}").respond_with_response(
            Response(
                page,
                content_type="text/html",
                headers={"X-Robots-Tag": "noindex" if name == "oats" else "all"},
            )
        )
    config = PLUGIN.clean_config({"url": site.url_for("/"), "render": True})
    client = Client(Policy(allow_loopback=True, user_agent=USER_AGENT))
    found = PLUGIN.fetch(config, {}, http=client, now=NOW, environment={"CHROMIUM_PATH": browser})
    assert {entry.title: entry.left_out.code if entry.left_out else "" for entry in found.entries} == {
        "rye": "",
        "oats": "noindex",
    }


def test_address_that_may_not_be_called_never_reaches_the_browser(site, browser):
    with pytest.raises(Refused) as caught:
        fetch(site, browser, policy=Policy(user_agent=USER_AGENT))
    assert (caught.value.code, asked(site)) == ("address_refused", [])


def test_missing_browser_is_told_with_how_to_get_one(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    for environment in ({}, {"CHROMIUM_PATH": "/nowhere/chromium"}):
        with pytest.raises(Refused) as caught:
            find_browser(environment)
        assert (caught.value.code, caught.value.field) == ("render_unavailable", "config.render")
        assert "CHROMIUM_PATH" in caught.value.message
    monkeypatch.setattr(render, "find_spec", lambda name: None)
    with pytest.raises(Refused) as caught:
        find_browser({})
    assert "`browser`" in caught.value.message


def test_browser_that_does_not_start_is_a_trouble(site, browser, tmp_path):
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    site.expect_request("/").respond_with_data(app(""), content_type="text/html")
    with pytest.raises(TryLater) as caught:
        fetch(site, str(program))
    assert caught.value.code == "render_failed"
