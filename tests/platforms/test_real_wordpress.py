"""The WordPress of this machine's package: an author publishes for real, and is killed between all steps."""

from __future__ import annotations

import dataclasses
import re
from datetime import UTC, datetime

import pytest

from config.core.http_client import Client, Policy
from pipeline import plugins
from pipeline.outlets.outlet_client import new_account
from pipeline.platforms.base import Absent, CannotTell, Found, Platform
from pipeline.platforms.payload_types import Payload
from pipeline.platforms.wordpress import PLUGIN
from pipeline.plugins import NeedsReconnect, OutcomeUnknown, Refused, TryLater
from pipeline.sources.base import Source
from tests.platforms.servers.base import picture
from tests.sources.running_wordpress import running

pytestmark = [pytest.mark.real]

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
KEY = "pub_01m80wxp87eh3rnr6xcszcrb9t"
HTTP = Client(Policy(allow_loopback=True, user_agent="tests"))
BODY = """The council voted **14 to 9** for the tram 🚋.

## What comes next

- Rails & wires
- `if (a < b) { stop }`

![The second](https://media.example.com/second.png)

> Nobody was against it.
"""


@pytest.fixture(scope="module")
def running_site(tmp_path_factory):
    with running(tmp_path_factory.mktemp("wordpress")) as made:
        yield made


@pytest.fixture
def site(running_site):
    running_site.act("empty")
    running_site.act("plugin", code="")
    return running_site


@pytest.fixture
def account(site):
    return account_of(site)


@pytest.fixture
def payload():
    return Payload(
        item="gen_01m80wxp87eh3rnr6xcszcrb9t",
        revision=1,
        bucket="blog",
        title="Tram <approved> & “funded”",
        body=BODY,
        body_format="markdown",
        content={
            "slug": "tram-approved",
            "tags": ["Trams", "R&D", "trams", "Straße"],
            "meta_description": "Fourteen to nine.",
        },
        assets=(picture("first.png", alt_text="A red “square”"), picture("second.png"), picture("third.png")),
    )


def account_of(site, *, role="author", **config):
    """What a person who connects the site has, checked once."""
    password = site.act("user", name=role, role=role)
    clean = PLUGIN.clean_config({"site": f"{site.url}/wp-admin/", "username": role, **config})
    given = PLUGIN.clean_credentials({"application_password": password})
    fresh = new_account("wordpress", outlet="out_1", config=clean, credentials=given)
    info = PLUGIN.check_account(fresh, http=HTTP, now=NOW)
    return dataclasses.replace(fresh, config={**clean, **info.config})


def step(account, post, state, key=KEY):
    return PLUGIN.prepare(account, post, state, http=HTTP, key=key, now=NOW)


def prepared(account, post, state=None, key=KEY):
    """Every state on the way, the last one done."""
    states = [dict(state or {})]
    for _ in range(40):
        there = step(account, post, states[-1], key)
        states.append(dict(there.state))
        if there.is_done:
            return states
    pytest.fail("It is never prepared.")


def commit(account, post, state, key=KEY):
    return PLUGIN.commit(account, post, state, http=HTTP, key=key, now=NOW)


def reconcile(account, post, state, key=KEY):
    return PLUGIN.reconcile(account, post, state, http=HTTP, key=key, now=NOW)


def looked(site):
    return site.act("look")[0]


def test_an_article_is_published_as_it_was_written(site, account, payload):
    site.act("category", title="City & Town")
    account = dataclasses.replace(account, config={**account.config, "category": "city & town"})
    post = PLUGIN.adapt(account, payload)
    assert PLUGIN.validate(account, post) == ()

    sent = commit(account, post, prepared(account, post)[-1])

    (shown,) = looked(site)
    assert (shown["status"], shown["slug"], shown["title"]) == (
        "publish",
        "tram-approved",
        "Tram &lt;approved&gt; &amp; “funded”",
    )
    assert (shown["excerpt"], sorted(shown["tags"])) == ("Fourteen to nine.", ["R&amp;D", "Straße", "Trams"])
    assert (shown["categories"], shown["image"]) == (["City &amp; Town"], "A red “square”")
    assert sent.external_id == str(shown["id"])
    page = HTTP.get(sent.url, timeout=60).body.decode()
    assert "<strong>14 to 9</strong> for the tram 🚋." in page
    assert "<code>if (a &lt; b) { stop }</code>" in page
    assert f'src="{site.url}/wp-content/uploads/' in shown["shown"]
    assert "media.example.com" not in shown["content"]
    # The key stands in what is stored, and not on the page.
    assert KEY in shown["content"]
    assert KEY not in shown["shown"]
    assert KEY not in page


def test_killed_after_every_step_there_is_one_article(site, account, payload):
    """Each step is done twice, and after each a hand that knows nothing does all of it again."""
    post = PLUGIN.adapt(account, payload)
    for state in prepared(account, post):
        step(account, post, state)
        step(account, post, state)
    states = prepared(account, post)
    again = prepared(account, post)
    assert again[-1] == states[-1]
    assert [one["status"] for one in looked(site)] == ["draft"]
    assert len(site.act("media")[0]) == 1  # The three pictures are the same bytes.
    assert reconcile(account, post, states[-1]) == Absent()
    assert reconcile(account, post, {}) == Absent()

    first = commit(account, post, states[-1])
    second = commit(account, post, states[-1])

    assert first == second
    assert reconcile(account, post, states[-1]) == Found(first)
    # Also one whose state was lost meets what is public.
    assert reconcile(account, post, {}) == Found(first)
    assert commit(account, post, prepared(account, post)[-1]) == first
    assert [(one["status"], one["slug"]) for one in looked(site)] == [("publish", "tram-approved")]


def test_a_lost_answer_is_found_by_looking(site, account, payload):
    """The call goes out, and its answer is thrown away."""
    post = PLUGIN.adapt(account, dataclasses.replace(payload, assets=(), body="Plain words."))
    state = prepared(account, post)[-1]

    class Deaf:
        def request(self, *args, **options):
            HTTP.request(*args, **options)
            return dataclasses.replace(HTTP.get(f"{site.url}/"), status=502)

    with pytest.raises(OutcomeUnknown):
        PLUGIN.commit(account, post, state, http=Deaf(), key=KEY, now=NOW)
    found = reconcile(account, post, state)

    (shown,) = looked(site)
    assert (type(found), found.sent.external_id, shown["status"]) == (Found, str(shown["id"]), "publish")


def test_newer_words_reach_the_draft_that_is_there(site, account, payload):
    post = PLUGIN.adapt(account, dataclasses.replace(payload, assets=()))
    prepared(account, post)
    newer = dataclasses.replace(payload, assets=(), body="Newer words.", title="Newer", revision=2)
    post = PLUGIN.adapt(account, newer)
    commit(account, post, prepared(account, post)[-1])

    (shown,) = looked(site)
    assert (shown["title"], shown["shown"].strip(), shown["slug"]) == (
        "Newer",
        "<p>Newer words.</p>",
        "tram-approved",
    )


def test_two_articles_of_one_slug_have_an_address_each(site, account, payload):
    post = PLUGIN.adapt(account, dataclasses.replace(payload, assets=()))
    other = f"{KEY[:-1]}z"
    sent = [commit(account, post, prepared(account, post, key=key)[-1], key) for key in (KEY, other)]

    assert [one["slug"] for one in looked(site)] == ["tram-approved", "tram-approved-2"]
    assert len({one.url for one in sent}) == 2
    assert reconcile(account, post, {}, KEY).sent == sent[0]
    assert reconcile(account, post, {}, other).sent == sent[1]


def test_without_a_slug_the_site_makes_one_of_the_title(site, account, payload):
    post = PLUGIN.adapt(
        account, dataclasses.replace(payload, assets=(), content={}, title="Für Élise, 2. Teil")
    )
    commit(account, post, prepared(account, post)[-1])

    assert [one["slug"] for one in looked(site)] == ["fur-elise-2-teil"]


def test_a_draft_that_was_thrown_away_is_made_anew(site, account, payload):
    post = PLUGIN.adapt(account, dataclasses.replace(payload, assets=()))
    state = prepared(account, post)[-1]
    site.act("empty")
    with pytest.raises(TryLater) as gone:
        commit(account, post, state)
    assert gone.value.code == "draft_gone"
    assert reconcile(account, post, state) == Absent()

    commit(account, post, prepared(account, post, state)[-1])

    assert [one["status"] for one in looked(site)] == ["publish"]


def test_what_is_in_the_trash_is_a_persons_to_tell(site, account, payload):
    post = PLUGIN.adapt(account, dataclasses.replace(payload, assets=()))
    state = prepared(account, post)[-1]
    sent = commit(account, post, state)

    PLUGIN.remove(account, sent, http=HTTP, now=NOW)
    PLUGIN.remove(account, sent, http=HTTP, now=NOW)

    assert [one["status"] for one in looked(site)] == ["trash"]
    assert type(reconcile(account, post, state)) is CannotTell
    site.act("empty")
    PLUGIN.remove(account, sent, http=HTTP, now=NOW)
    assert looked(site) == []


def test_comments_are_counted(site, account, payload):
    post = PLUGIN.adapt(account, dataclasses.replace(payload, assets=()))
    sent = commit(account, post, prepared(account, post)[-1])

    def comments():
        (samples,) = PLUGIN.metrics(account, [(sent, NOW)], http=HTTP, now=NOW)
        return next((one.value, one.availability) for one in samples if one.metric == "comments")

    assert comments() == (0, "ok")
    for words in ("Very true.", "Not at all."):
        site.act("comment", name="tram-approved", content=words)
    assert comments() == (2, "ok")
    site.act("empty")
    assert comments() == (None, "unavailable")


# WordPress itself keeps contributors from choosing the slug of what waits for review.
@pytest.mark.parametrize(("wanted", "slug"), [("pending", ""), ("draft", "tram-approved")])
def test_an_article_may_wait_for_an_editor(site, payload, wanted, slug):
    account = account_of(site, role="contributor", status=wanted)
    post = PLUGIN.adapt(account, dataclasses.replace(payload, assets=()))
    state = prepared(account, post)[-1]
    assert reconcile(account, post, state) == Absent()

    sent = commit(account, post, state)

    assert commit(account, post, state) == sent
    assert reconcile(account, post, state) == Found(sent)
    assert reconcile(account, post, {}) == Found(sent)
    assert commit(account, post, prepared(account, post)[-1]) == sent
    assert [(one["status"], one["slug"]) for one in looked(site)] == [(wanted, slug)]


def test_a_wrong_password_is_the_accounts(site, account, payload):
    wrong = dataclasses.replace(
        account, credentials={"application_password": "abcd efgh ijkl mnop qrst uvwx"}
    )
    with pytest.raises(NeedsReconnect) as told:
        PLUGIN.check_account(wrong, http=HTTP, now=NOW)
    assert (told.value.code, told.value.platform_status) == ("needs_reconnect", 401)
    assert told.value.message == (
        "The site treats the call as anonymous: the user name or the application password is wrong."
    )
    unknown = dataclasses.replace(account, config={**account.config, "username": "nobody"})
    with pytest.raises(NeedsReconnect, match="call as anonymous"):
        PLUGIN.check_account(unknown, http=HTTP, now=NOW)
    post = PLUGIN.adapt(account, dataclasses.replace(payload, assets=()))
    state = prepared(account, post)[-1]
    with pytest.raises(NeedsReconnect):
        commit(wrong, post, state)
    assert [one["status"] for one in looked(site)] == ["draft"]


def test_a_missing_right_is_told_when_connecting(site):
    with pytest.raises(NeedsReconnect) as told:
        account_of(site, role="contributor")
    assert told.value.code == "missing_right"
    assert told.value.message == "The user may write articles on this site, but not publish them."


def test_contributors_are_told_that_they_may_not_upload(site, payload):
    account = account_of(site, role="contributor", status="pending")
    info = PLUGIN.check_account(account, http=HTTP, now=NOW)
    assert info.notes[0] == "The user may not upload files: articles with images will be refused."
    post = PLUGIN.adapt(account, payload)
    with pytest.raises(NeedsReconnect) as told:
        prepared(account, post)
    assert told.value.code == "missing_right"


def test_an_author_may_not_add_a_category(site, account, payload):
    account = dataclasses.replace(account, config={**account.config, "category": "No such one"})
    with pytest.raises(Refused) as told:
        prepared(account, PLUGIN.adapt(account, dataclasses.replace(payload, assets=())))
    assert (told.value.code, told.value.message) == (
        "no_such_term",
        "The site has no category “No such one”, and the user may not add it.",
    )


def test_passwords_that_are_switched_off_are_named(site, account):
    site.act("plugin", code="add_filter( 'wp_is_application_passwords_available', '__return_false' );")
    with pytest.raises(NeedsReconnect) as told:
        PLUGIN.check_account(account, http=HTTP, now=NOW)
    assert told.value.code == "application_passwords_off"


def test_a_plugin_that_prints_into_the_answers_does_no_harm(site, account, payload):
    site.act("plugin", code='echo "<br />\\n<b>Notice</b>: Undefined [index] in {closure}<br />\\n";')
    post = PLUGIN.adapt(account, payload)
    state = prepared(account, post)[-1]
    sent = commit(account, post, state)

    assert reconcile(account, post, state).sent.external_id == sent.external_id
    assert [one["status"] for one in looked(site)] == ["publish"]


def test_a_site_without_pretty_links_is_found(site, payload):
    code = "add_filter( 'pre_option_permalink_structure', '__return_empty_string' );"
    blocked = "if ( 0 === strpos( $_SERVER['REQUEST_URI'] ?? '', '/wp-json' ) ) { http_response_code( 404 ); exit; }"
    site.act("plugin", code=code + blocked)
    account = account_of(site)
    assert account.config["rest_root"] == f"{site.url}/?rest_route=/"
    post = PLUGIN.adapt(account, payload)

    commit(account, post, prepared(account, post)[-1])

    assert [one["status"] for one in looked(site)] == ["publish"]


def test_this_is_the_version_that_the_documents_name(site):
    feed = HTTP.request("GET", f"{site.url}/?feed=rss2").body.decode()
    (version,) = re.findall(r"wordpress\.org/\?v=([\d.]+)", feed)
    named = {plugins.get("platforms", "wordpress", Platform).evidence.against} | {
        plugins.get("sources", kind, Source).evidence.against for kind in ("rss", "scraper")
    }
    assert named == {f"WordPress {'.'.join(version.split('.')[:2])}"}
