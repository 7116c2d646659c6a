"""The workspace's own page: what is changed, what is kept secret, how it ends and how that is undone."""

from __future__ import annotations

import io
import json
import zipfile
from datetime import UTC, datetime, timedelta

import pytest
from django.core import mail

from accounts import export, model_keys, workspace_deletion, workspaces
from accounts.models import AuditEntry, Membership, Workspace
from config.core import task_runner
from pipeline.models import Outlet, Source
from tests.factories import TokenFactory
from tests.pages.answers import at
from tests.pipeline.steps import make_items
from webhooks import endpoints

PASSWORD = "a long enough phrase 9"
KEY = "sk-ant-api03-A1b2C3d4E5f6G7h8-wxyz"


def reread(workspace):
    return Workspace.everywhere.select_related("plan").get(pk=workspace.pk)


def noted(workspace):
    rows = AuditEntry.objects.of(workspace).exclude(action="workspace.created").order_by("id")
    rows = rows.exclude(action__in=["workspace.whitelisted", "token.issued"])
    return list(rows.values_list("action", "actor"))


@pytest.fixture
def owner(client, alice, newsroom):
    """Logged in a moment ago, by password: what needs a fresh log-in opens."""
    alice.set_password(PASSWORD)
    alice.save(update_fields=["password"])
    alice.mark_email_verified()
    client.post("/account/login/", {"login": alice.email, "password": PASSWORD})
    client.post("/account/reauthenticate/", {"password": PASSWORD})
    return client


# --- What is changed -------------------------------------------------------------------------------------------------


def test_name_time_zone_and_approval_are_changed(owner, newsroom):
    form = {"name": "  Harbour news ", "timezone": "Asia/Tokyo", "requires_approval": "on"}
    answer = owner.post(at(newsroom, "workspace"), form)
    assert (answer.status_code, answer["Location"]) == (302, at(newsroom, "workspace"))
    row = reread(newsroom)
    assert (row.name, row.timezone, row.requires_approval) == ("Harbour news", "Asia/Tokyo", True)
    entry = AuditEntry.objects.of(newsroom).get(action="workspace.changed")
    assert (entry.actor, entry.details) == (
        "alice@example.test",
        {
            "name": ["Newsroom", "Harbour news"],
            "timezone": ["Europe/Berlin", "Asia/Tokyo"],
            "requires_approval": [False, True],
        },
    )


def test_saving_without_a_change_notes_nothing(owner, newsroom):
    owner.post(at(newsroom, "workspace"), {"name": "Newsroom", "timezone": "Europe/Berlin"})
    assert noted(newsroom) == []


@pytest.mark.parametrize(
    ("form", "field", "error"),
    [
        ({"name": " ", "timezone": "UTC"}, "name", "This field is required."),
        (
            {"name": "x" * 121, "timezone": "UTC"},
            "name",
            "Ensure this value has at most 120 characters (it has 121).",
        ),
        (
            {"name": "N", "timezone": "Mars/Base"},
            "timezone",
            "Select a valid choice. Mars/Base is not one of the available choices.",
        ),
    ],
)
def test_what_can_t_be_used_is_said_at_its_field(owner, newsroom, form, field, error):
    answer = owner.post(at(newsroom, "workspace"), form)
    assert answer.context["form"].errors == {field: [error]}
    assert reread(newsroom).name == "Newsroom"


def test_a_model_key_is_set_replaced_removed_and_never_shown(owner, newsroom):
    owner.post(at(newsroom, "workspace_key"), {"model_key": KEY})
    row = reread(newsroom)
    assert (row.model_key.open(), row.model_key_last_four) == (KEY, "wxyz")
    text = owner.get(at(newsroom, "workspace")).content.decode()
    assert ("<code>wxyz</code>" in text, KEY in text) == (True, False)
    assert KEY not in owner.get(at(newsroom, "workspace_key")).content.decode()
    answer = owner.post(at(newsroom, "workspace_key"), {"model_key": "too short"})
    assert answer.context["form"].errors["model_key"] == [
        "Paste the whole key as its vendor shows it: 16 to 400 characters without spaces."
    ]
    assert "too short" not in answer.content.decode()
    assert owner.post(at(newsroom, "workspace_key_remove")).status_code == 200
    assert reread(newsroom).model_key is not None
    owner.post(at(newsroom, "workspace_key_remove"), {"sure": "True"})
    assert (reread(newsroom).model_key, reread(newsroom).model_key_last_four) == (None, "")
    assert noted(newsroom) == [
        ("workspace.model_key_set", "alice@example.test"),
        ("workspace.model_key_removed", "alice@example.test"),
    ]


def test_a_key_is_not_kept_when_the_session_has_ended(client, newsroom):
    client.post(at(newsroom, "workspace_key"), {"model_key": KEY})
    assert KEY not in json.dumps(dict(client.session))


@pytest.mark.parametrize(("typed", "kept"), [("12.5", 12_500_000), ("", None)])
def test_a_cap_is_kept_in_millionths(owner, newsroom, typed, kept):
    Workspace.everywhere.filter(pk=newsroom.pk).update(model_cap_micro_usd=1)
    owner.post(at(newsroom, "workspace_cap"), {"dollars": typed})
    assert reread(newsroom).model_cap_micro_usd == kept


def test_a_cap_below_a_cent_is_refused(owner, newsroom):
    answer = owner.post(at(newsroom, "workspace_cap"), {"dollars": "0"})
    assert answer.context["form"].errors["dollars"] == ["Ensure this value is greater than or equal to 0.01."]
    assert reread(newsroom).model_cap_micro_usd is None


# --- Export ----------------------------------------------------------------------------------------------------------


def download(client, workspace):
    answer = client.post(at(workspace, "workspace_export"))
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/zip")
    pieces = list(answer.streaming_content)
    return zipfile.ZipFile(io.BytesIO(b"".join(pieces)))


def lines(archive, name):
    return [json.loads(line) for line in archive.read(name).splitlines()]


def test_an_export_that_is_cut_off_is_no_export(owner, newsroom, tmp_path, settings):
    """As where its process is killed: it is written while it is sent, so nothing stays, and the next one is
    whole."""
    settings.MEDIA_ROOT = tmp_path
    make_items(newsroom)
    before = sorted(tmp_path.rglob("*"))
    half = next(export.stream_export(newsroom, actor="test"))[:-100]
    with pytest.raises(zipfile.BadZipFile):
        zipfile.ZipFile(io.BytesIO(half))
    assert sorted(tmp_path.rglob("*")) == before
    assert download(owner, newsroom).testzip() is None


def test_an_export_holds_everything_of_this_workspace_and_no_secret(
    owner, newsroom, charlie, tmp_path, settings
):
    settings.MEDIA_ROOT = tmp_path
    theirs = workspaces.memberships_of(charlie)[0].workspace
    make_items(theirs, title="Charlie's own")
    items = make_items(newsroom)
    model_keys.set_model_key(newsroom, KEY, "alice@example.test")
    token = TokenFactory(workspace=newsroom)
    added = endpoints.add(newsroom, "https://hooks.example/in", actor="test")
    outlet = Outlet.everywhere.get(workspace=newsroom, platform="feed")
    Outlet.everywhere.filter(pk=outlet.pk).update(credentials={"password": "outlet-password-1"})
    Source.everywhere.create(
        workspace=newsroom,
        name="Bridge",
        type="webhook",
        inbound_token="inbound-token-000000000000000001",
        config={"verification": {"type": "address", "secret": "verify-secret-1"}},
    )
    archive = download(owner, newsroom)
    assert archive.testzip() is None
    assert sorted(archive.namelist())[:3] == ["README.txt", "audit.jsonl", "defaults.jsonl"]
    assert [one["email"] for one in lines(archive, "members.jsonl")] == ["alice@example.test"]
    assert [one["name"] for one in lines(archive, "workspace.jsonl")] == ["Newsroom"]
    assert len(lines(archive, "generated_items.jsonl")) == len(items)
    assert sorted(one["body"] for one in lines(archive, "generated_items.jsonl")) == sorted(
        item.body for item in items
    )
    assert len(lines(archive, "revisions.jsonl")) == len(items)
    assert [one["title"] for one in lines(archive, "raw_bodies.jsonl")] == ["Tram line approved"]
    assert [one["url"] for one in lines(archive, "endpoints.jsonl")] == ["https://hooks.example/in"]
    assert {one["kind"] for one in lines(archive, "ledger.jsonl")} == {"grant", "reserve", "settle"}
    pictures = [name for name in archive.namelist() if name.startswith("media/")]
    assert pictures
    assert all(archive.read(name)[:4] == b"\x89PNG" for name in pictures if name.endswith(".png"))
    everything = b"\n".join(archive.read(name) for name in archive.namelist()).decode(errors="replace")
    secrets = [
        KEY,
        token.secret,
        added.secret,
        outlet.secret,
        "outlet-password-1",
        "inbound-token-000000000000000001",
        "verify-secret-1",
        "Charlie's own",
    ]
    assert [one for one in secrets if one in everything] == []
    assert noted(newsroom)[-1] == ("workspace.exported", "alice@example.test")


def test_a_second_export_waits_a_minute(owner, newsroom):
    download(owner, newsroom)
    answer = owner.post(at(newsroom, "workspace_export"))
    assert (answer.status_code, answer["Location"]) == (302, at(newsroom, "workspace"))
    assert AuditEntry.objects.of(newsroom).filter(action="workspace.exported").count() == 1


def test_an_export_is_read_in_turns(owner, newsroom, monkeypatch):
    """However many rows there are, each is there once."""
    from accounts import export

    monkeypatch.setattr(export, "_ROWS_PER_QUERY", 2)
    Source.everywhere.bulk_create(
        Source(workspace=newsroom, name=f"Source {number}", type="rss") for number in range(5)
    )
    names = [one["name"] for one in lines(download(owner, newsroom), "sources.jsonl")]
    assert names == ["Pushed through the API"] * 2 + [f"Source {number}" for number in range(5)]


# --- Its end ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def ending(owner, newsroom, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        owner.post(at(newsroom, "workspace_delete"), {"name": "Newsroom"})
    return newsroom


def test_deleting_asks_for_a_fresh_log_in(newsroom, alice, as_person):
    alice.set_password(PASSWORD)
    alice.save(update_fields=["password"])
    client = as_person(alice)
    answer = client.post(at(newsroom, "workspace_delete"), {"name": "Newsroom"})
    assert answer.status_code == 302
    assert answer["Location"].startswith("/account/reauthenticate/?next=")
    assert reread(newsroom).deletes_at is None


@pytest.mark.parametrize("typed", ["newsroom", "Newsroo", "", "Elsewhere"])
def test_deleting_asks_for_the_name(owner, newsroom, typed):
    answer = owner.post(at(newsroom, "workspace_delete"), {"name": typed})
    assert (answer.status_code, list(answer.context["form"].errors)) == (200, ["name"])
    assert reread(newsroom).deletes_at is None


def test_it_rests_at_once_and_every_owner_is_told(ending, owner, client):
    row = reread(ending)
    assert abs(row.deletes_at - datetime.now(UTC) - timedelta(days=7)) < timedelta(minutes=1)
    [message] = [one for one in mail.outbox if "will be deleted" in one.subject]
    assert (message.to, "/settings/workspace" in message.body) == (["alice@example.test"], True)
    token = TokenFactory(workspace=row)
    answer = client.get("/v1/workspace", headers={"Authorization": f"Bearer {token.secret}"})
    assert (answer.status_code, answer.json()["error"]) == (403, "workspace_not_whitelisted")
    assert [one["code"] for one in answer.json()["detail"]] == ["workspace_being_deleted"]
    assert (row.is_whitelisted, row.is_at_work) == (True, False)


def test_every_page_says_so_with_an_undo_for_owners(ending, owner, vera, as_person):
    for name in ("home", "members", "usage", "workspace"):
        text = owner.get(at(ending, name)).content.decode()
        assert ("This workspace will be deleted on" in text, at(ending, "workspace_keep") in text) == (
            True,
            True,
        )
    text = as_person(vera).get(at(ending, "home")).content.decode()
    assert ("This workspace will be deleted on" in text, at(ending, "workspace_keep") in text) == (
        True,
        False,
    )
    assert "An owner can undo this." in text


def test_undone_it_works_again(ending, owner, client):
    owner.post(at(ending, "workspace_keep"))
    row = reread(ending)
    assert (row.deletes_at, row.is_at_work) == (None, True)
    token = TokenFactory(workspace=row)
    answer = client.get("/v1/workspace", headers={"Authorization": f"Bearer {token.secret}"})
    assert answer.status_code == 200
    assert [action for action, _ in noted(ending)] == [
        "workspace.deletion_asked",
        "workspace.deletion_undone",
    ]
    # A second click, and one without a deletion, change nothing.
    owner.post(at(ending, "workspace_keep"))
    assert len(noted(ending)) == 2


def test_asking_twice_keeps_the_first_day(ending, owner):
    first = reread(ending).deletes_at
    owner.post(at(ending, "workspace_delete"), {"name": "Newsroom"})
    assert reread(ending).deletes_at == first


def test_once_its_time_is_over_nobody_can_undo_it(ending, alice):
    workspace_deletion.erase_some(now=reread(ending).deletes_at)
    assert workspace_deletion.undo_deletion(reread(ending), actor="test") is False
    assert reread(ending).deleted_at is not None


def test_before_its_time_nothing_is_erased(ending):
    assert workspace_deletion.erase_some(now=reread(ending).deletes_at - timedelta(seconds=1)) == 0
    assert task_runner.work_all_due("housekeeping.erase_workspaces") == 0
    assert Membership.everywhere.filter(workspace=ending).count() == 1
