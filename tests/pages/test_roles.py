"""Every page and act × owner, editor, viewer, stranger, signed out. It fails when an address is missing from
it."""

from __future__ import annotations

import re
from uuid import UUID, uuid4

import pytest
from django.apps import apps
from django.core import mail
from django.test import Client
from django.urls import get_resolver, reverse

from accounts import workspaces
from accounts.models import Membership, User
from config.core.ids import encode
from pipeline.models import Source
from tests.factories import UserFactory
from tests.pipeline.steps import make_items, make_stage, promise

# What each page of a workspace asks of a role; the names are those of accounts/access/roles.py.
PAGES = {
    "home": "look",
    "everything": "look",
    "settings_page": "look",
    "access": "manage",
    "keys": "manage",
    "key_create": "manage",
    "key_revoke_all": "manage",
    "key": "manage",
    "key_requests": "manage",
    "key_secret": "manage",
    "key_rotate": "manage",
    "key_revoke": "manage",
    "key_unrevoke": "manage",
    "webhooks": "manage",
    "webhook_add": "manage",
    "webhook": "manage",
    "webhook_edit": "manage",
    "webhook_secret": "manage",
    "webhook_rotate": "manage",
    "webhook_pause": "manage",
    "webhook_resume": "manage",
    "webhook_test": "manage",
    "webhook_delete": "manage",
    "webhook_receiver": "manage",
    "webhook_recover": "manage",
    "webhook_recover_stop": "manage",
    "webhook_delivery": "manage",
    "webhook_outcome": "manage",
    "webhook_resend": "manage",
    "members": "look",
    "member_invite": "manage",
    "member_restore": "manage",
    "member_leave": "be_here",
    "member_role": "manage",
    "member_remove": "manage",
    "member_resend": "manage",
    "member_withdraw": "manage",
    "member_reinstate": "manage",
    "workspace": "manage",
    "workspace_key": "manage",
    "workspace_key_remove": "manage",
    "workspace_cap": "manage",
    "samples_remove": "manage",
    "workspace_export": "manage",
    "workspace_delete": "manage",
    "workspace_keep": "manage",
    "making": "edit",
    "manual_posts": "look",
    "package": "edit",
    "made": "look",
    "items_page": "look",
    "item_page": "look",
    "item_approve": "edit",
    "item_reject": "edit",
    "item_restore": "edit",
    "item_retry": "edit",
    "item_regenerate": "edit",
    "item_rewrite": "edit",
    "item_rewrite_cancel": "edit",
    "item_rewrite_undo": "edit",
    "item_choose": "edit",
    "item_cancel": "edit",
    "item_publish": "edit",
    "item_edit": "edit",
    "item_recurring": "edit",
    "item_recurring_stop": "edit",
    "series_page": "look",
    "series_add": "edit",
    "series_one": "look",
    "series_edit": "edit",
    "series_pause": "edit",
    "series_make": "edit",
    "series_delete": "edit",
    "series_restore": "edit",
    "item_back": "edit",
    "item_storyboard": "edit",
    "review": "look",
    "review_rows": "look",
    "review_news": "look",
    "review_card": "look",
    "review_decide": "edit",
    "review_undo": "edit",
    "review_edit": "edit",
    "publication_retry": "edit",
    "publication_reconcile": "edit",
    "publication_remove": "edit",
    "sources_page": "look",
    "source_page": "look",
    "item_view_save": "edit",
    "item_view_rename": "edit",
    "item_view_delete": "edit",
    "source_add": "edit",
    "source_choose": "edit",
    "lane_add": "edit",
    "sources_several": "edit",
    "sources_several_undo": "edit",
    "sources_export": "look",
    "source_edit": "edit",
    "source_formats": "edit",
    "source_pause": "edit",
    "source_poll_now": "edit",
    "source_delete": "edit",
    "source_restore": "edit",
    "source_admit": "edit",
    "personas": "look",
    "persona_create": "edit",
    "persona_draft_ask": "edit",
    "persona_draft_for": "edit",
    "persona_draft": "edit",
    "persona_draft_retry": "edit",
    "persona": "edit",
    "persona_look": "edit",
    "persona_versions": "edit",
    "persona_back": "edit",
    "persona_delete": "edit",
    "persona_restore": "edit",
    "topics": "edit",
    "topic_add": "edit",
    "topic": "edit",
    "topic_pause": "edit",
    "topic_delete": "edit",
    "topic_restore": "edit",
    "source_deliveries": "look",
    "source_delivery": "look",
    "source_delivery_replay": "edit",
    "source_dry_run": "edit",
    "source_secret": "manage",
    "source_secret_rotate": "manage",
    "outlets_page": "look",
    "outlet_page": "look",
    "outlet_add": "manage",
    "outlet_oauth_start": "manage",
    "outlet_connect": "manage",
    "outlet_reconnect": "manage",
    "outlet_secret": "manage",
    "outlet_disconnect": "manage",
    "outlet_edit": "edit",
    "outlet_switch": "edit",
    "outlet_default": "edit",
    "calendar": "look",
    "calendar_fill": "edit",
    "calendar_move": "edit",
    "calendar_move_back": "edit",
    "calendar_schedule": "edit",
    "calendar_slot": "edit",
    "calendar_undo": "edit",
    "failures": "look",
    "failures_clear": "edit",
    "failures_undo": "edit",
    "queues_page": "look",
    "queue_add": "edit",
    "queue_begin": "edit",
    "queue_edit": "edit",
    "queue_pause": "edit",
    "queue_delete": "edit",
    "queues_hold": "edit",
    "queues_release": "edit",
    "subscribers": "edit",
    "subscriber_add": "edit",
    "subscribers_import": "edit",
    "subscribers_export": "edit",
    "subscriber_remove": "edit",
    "mailing_stop": "edit",
    "mailing_resume": "edit",
    "analytics_page": "look",
    "pipeline_page": "look",
    "analytics_csv": "look",
    "usage": "look",
    "defaults": "edit",
    "notices": "be_here",
    "notices_test": "be_here",
}
MAY = {
    "look": {"owner", "editor", "viewer"},
    "be_here": {"owner", "editor", "viewer"},
    "edit": {"owner", "editor"},
    "manage": {"owner"},
}
# What stands in an address beside the workspace: of nothing that exists.
OTHERS = {
    "tok": "tok",
    "usr": "usr",
    "whe": "whe",
    "dlv": "dlv",
    "gen": "gen",
    "src": "src",
    "out": "out",
    "sub": "sub",
    "mlg": "mlg",
}


def workspace_pages():
    """Name, callback and the further names in the address, of every address below a workspace."""
    found = []

    def walk(patterns, before=""):
        for pattern in patterns:
            route = before + str(pattern.pattern)
            if hasattr(pattern, "url_patterns"):
                walk(pattern.url_patterns, route)
            elif route.startswith("w/"):
                found.append((pattern.name, pattern.callback, pattern.pattern.converters))

    walk(get_resolver().url_patterns)
    return found


def address(name, workspace, converters):
    others = {key: uuid4() for key in converters if key != "ws"}
    return reverse(name, kwargs={"ws": workspace.pk, **others})


def test_every_page_is_in_the_matrix_and_asks_for_what_it_says():
    assert {name: callback.act for name, callback, _ in workspace_pages()} == PAGES


@pytest.fixture
def people(alice, bob, vera, charlie):
    return {"owner": alice, "editor": bob, "viewer": vera, "stranger": charlie, "signed out": None}


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize("who", ["owner", "editor", "viewer", "stranger", "signed out"])
def test_roles(people, newsroom, as_person, who, method):
    client = as_person(people[who])
    wrong = []
    for name, _, converters in workspace_pages():
        answer = getattr(client, method)(address(name, newsroom, converters))
        if answer.status_code == 405:
            # The page has no such act for anybody; whoever may not see it isn't told even that.
            continue
        if who == "signed out":
            right = answer.status_code == 302 and answer["Location"].startswith("/account/login/?next=")
        elif who == "stranger":
            right = answer.status_code == 404
        elif who in MAY[PAGES[name]]:
            # 404 where the rest of the address names nothing.
            right = answer.status_code in {200, 302} or (len(converters) > 1 and answer.status_code == 404)
        else:
            right = answer.status_code == 403
        if not right:
            wrong.append((name, answer.status_code, answer.headers.get("Location")))
    assert wrong == []


def test_a_page_that_only_acts_takes_no_head(newsroom, owner):
    """Django asks a HEAD for no CSRF token, so that any site could have a browser send one."""
    statuses = {}
    for name, _, converters in workspace_pages():
        place = address(name, newsroom, converters)
        if owner.get(place).status_code == 405:
            statuses[name] = owner.head(place).status_code
    assert len(statuses) > 50
    assert {name: status for name, status in statuses.items() if status != 405} == {}


def test_another_workspace_s_id_and_an_invented_one_answer_the_same(newsroom, charlie, as_person):
    client = as_person(charlie)
    theirs = client.get(reverse("home", kwargs={"ws": newsroom.pk}))
    invented = client.get(f"/w/{encode('ws', UUID(int=5))}/")
    assert theirs.status_code == invented.status_code == 404
    token = b"csrfmiddlewaretoken"
    assert [line for line in theirs.content.splitlines() if token not in line and b"next" not in line] == [
        line for line in invented.content.splitlines() if token not in line and b"next" not in line
    ]


def test_a_deleted_workspace_is_gone_for_its_owner(newsroom, alice, as_person):
    newsroom.deleted_at = newsroom.created_at
    newsroom.save(update_fields=["deleted_at"])
    assert as_person(alice).get(reverse("home", kwargs={"ws": newsroom.pk})).status_code == 404


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda member: member.delete(), 404),
        (lambda member: Membership.everywhere.filter(pk=member.pk).update(role="viewer"), 403),
        (lambda member: User.objects.filter(pk=member.user_id).update(is_active=False), 302),
    ],
    ids=["removed", "lowered", "deactivated"],
)
def test_who_loses_a_right_loses_it_in_the_session_that_is_open(newsroom, bob, as_person, change, status):
    client = as_person(bob)
    form = reverse("source_add", kwargs={"ws": newsroom.pk})
    assert client.get(form).status_code == 200
    change(Membership.objects.of(newsroom).get(user=bob))
    given = {"url": "https://example.test/feed", "once": "a"}
    assert [client.get(form).status_code, client.post(form, given).status_code] == [status, status]
    assert not Source.objects.of(newsroom).filter(type="rss").exists()


def test_who_is_deactivated_logs_in_by_nothing(newsroom, bob):
    """Not by the password, a code by mail or a new password either; nor does an invitation let them in."""
    bob.set_password("a long enough phrase 9")
    bob.is_active = False
    bob.save()
    bob.mark_email_verified()
    client = Client()
    client.post("/account/login/", {"login": bob.email, "password": "a long enough phrase 9"})
    client.post("/account/login/code/", {"email": bob.email})
    client.post("/account/password/reset/", {"email": bob.email})
    assert client.get(reverse("home", kwargs={"ws": newsroom.pk})).status_code == 302
    assert [one for one in mail.outbox if re.search(r"\b[A-Z0-9]{3,4}-[A-Z0-9]{3,4}\b", one.body)] == []


def test_an_address_without_its_slash_leads_to_the_page(alice, newsroom, as_person):
    for name in ("review", "calendar", "failures"):
        address = reverse(name, kwargs={"ws": newsroom.pk})
        answer = as_person(alice).get(f"{address.rstrip('/')}?at=one")
        assert (answer.status_code, answer["Location"]) == (301, f"{address}?at=one")
    assert as_person(alice).get("/nothing-is-here").status_code == 404


# --- What isn't below a workspace ------------------------------------------------------------------------------------

# Who is let in. Whoever has the secret of an address is everybody to its page; an invented one leads nowhere.
ELSEWHERE = {
    "everybody": {
        "front",
        "theme",
        "docs",
        "reference",
        "docs_example",
        "guide",
        "openapi.json",
        "favicon.ico",
        "healthz",
        "readyz",
        "demo/feed.xml",
        "demo/webhook",
        "account_login",
        "account_logout",
        "account_inactive",
        "account_signup",
        "account_email_verification_sent",
        "account_reset_password",
        "account_confirm_login_code",
        "account_confirm_password_reset_code",
        "account_complete_password_reset",
        "account_password_reset_completed",
        "account_request_login_code",
        "mfa_authenticate",
    },
    "secret": {
        "invitation",
        "notices_off",
        "inbound",
        "websub",
        "returned_mail",
        "confirm_letter",
        "subscribe",
        "unsubscribe",
        "feed",
        "feed_page",
        "short_link",
        "media",
    },
    "person": {
        "workspace_create",
        "profile",
        "settings",
        "outlet_oauth_callback",
        "account_reauthenticate",
        "account_email",
        "account_change_password",
        "account_set_password",
        "mfa_index",
        "mfa_reauthenticate",
        "mfa_activate_totp",
        "mfa_deactivate_totp",
        "mfa_view_recovery_codes",
        "mfa_generate_recovery_codes",
        "mfa_download_recovery_codes",
        "usersessions_list",
    },
    "metrics": {"metrics"},
}
WITHOUT_A_PASSWORD = {"account_reauthenticate", "mfa_reauthenticate"}
# The admin's pages that anybody of the staff opens; each other one asks for the permission of what it shows.
STAFF = {
    "admin:index",
    "admin:login",
    "admin:logout",
    "admin:password_change",
    "admin:password_change_done",
    "admin:autocomplete",
    "admin:jsi18n",
    "admin:view_on_site",
    "admin:app_list",
    "admin:catch_all",
    "admin_dead_rows",
    "admin_mails",
    "admin_mail",
}


def other_pages():
    """Name (else the route) and address of what is neither a workspace's page nor the API's; in it what isn't
    there."""
    found = {}

    def walk(patterns, before="", namespace=""):
        for pattern in patterns:
            route = before + str(pattern.pattern)
            if hasattr(pattern, "url_patterns"):
                walk(pattern.url_patterns, route, pattern.namespace or namespace)
            elif not route.startswith(("w/", "v1/", "^v1")):
                name = pattern.name or ("catch_all" if namespace else route)
                # Its own catch-all stands in the way of none of the others.
                found.setdefault(f"{namespace}:{name}" if namespace else name, filled(route))

    walk(get_resolver().url_patterns)
    return found


def filled(route):
    """The route as an address, with something in each place that names nothing."""
    route = (
        route.replace("(?P<app_label>", "(").replace("(?P<form>", "(").replace("(?:/(?P<rest>[a-z/-]*))?", "")
    )
    route = re.sub(r"\((\w+)(?:\|\w+)*\)", r"\1", route)
    route = re.sub(r"\(\?P<\w+>\[[^]]+\]\{?(\d*)[^)]*\)", lambda one: "x" * int(one[1] or 1), route)
    route = re.sub(r"\(\?P<url>[^)]*\)", "x/", route)
    route = re.sub(r"<path:content_type_id>", "1", route)
    route = re.sub(r"<(?:path:)?(?:object_)?id>", str(uuid4()), route)
    route = re.sub(r"<str:public_id>", encode("ws", uuid4()), route)
    route = re.sub(r"<\w+:\w+>", "x", route)
    return "/" + re.sub(r"/\?\$|[\^$\\]", "", route)


def is_of_the_admin(name):
    return name.startswith("admin") or name == "workspace_overview"


def test_every_other_page_is_in_the_matrix():
    names = other_pages()
    assert {name for name in names if not is_of_the_admin(name)} == set().union(*ELSEWHERE.values())
    assert set(names) > STAFF


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize("who", ["owner", "stranger", "signed out"])
def test_roles_elsewhere(people, as_person, who, method):
    client = as_person(people[who])
    wrong = []
    for name, address in other_pages().items():
        if name in {"account_logout", "admin:logout"}:
            continue
        answer = getattr(client, method)(address)
        status, leads_to = answer.status_code, answer.headers.get("Location", "")
        if is_of_the_admin(name):
            # Who is no staff is told that by the log-in page, or led to it.
            right = status == 403 or (
                status == 302 and leads_to.startswith(("/admin/login/", "/account/login/"))
            )
        elif name in ELSEWHERE["secret"]:
            right = status in {404, 405} or (name, method, status) == ("websub", "post", 410)
        elif name in ELSEWHERE["metrics"]:
            right = status in {404, 405}
        elif name in ELSEWHERE["person"] and who == "signed out":
            right = status == 405 or (status == 302 and leads_to.startswith("/account/"))
        else:
            # Nobody works the queues of a test, so it isn't ready; these people have nothing to log in afresh
            # with.
            right = (status < 500 and status != 403) or name in {"readyz", *WITHOUT_A_PASSWORD}
        if not right:
            wrong.append((name, status, leads_to))
    assert wrong == []


@pytest.mark.parametrize("method", ["get", "post"])
def test_staff_without_a_permission_see_nothing_that_needs_one(db, as_person, method):
    client = as_person(UserFactory(email="helper@example.test", is_staff=True))
    wrong = []
    for name, address in other_pages().items():
        if not is_of_the_admin(name) or name in STAFF:
            continue
        answer = getattr(client, method)(address)
        # A history looks for its object before it asks who looks.
        is_nothing = answer.status_code == 302 and answer.headers["Location"] == "/admin/"
        is_read_alone = answer.status_code == 405 and method == "post"
        if answer.status_code != 403 and not (is_nothing and name.endswith("_history")) and not is_read_alone:
            wrong.append((name, answer.status_code, answer.headers.get("Location")))
    assert wrong == []


# --- Ids of another workspace in forms and queries -------------------------------------------------------------------


def rows_of(workspace):
    """Every row of the workspace, as it is stored."""
    found = {}
    for model in apps.get_models():
        if any(field.name == "workspace" for field in model._meta.fields):
            rows = model._base_manager.filter(workspace=workspace).order_by("pk")
            found[model._meta.label] = [str(sorted(row.items())) for row in rows.values()]
    return found


@pytest.mark.parametrize("method", ["get", "post"])
def test_forms_and_queries_that_name_another_workspaces_rows_change_and_show_nothing(
    newsroom, charlie, as_person, method
):
    """Each page of one's own workspace, with ids of somebody else's under every name that a form has."""
    theirs = make_items(newsroom, title="The quagga of the other newsroom")[0]
    stage = make_stage(newsroom, "reject", name="Quagga stage")
    publication = promise(theirs, stage)
    elsewhere = Membership.everywhere.get(user=charlie).workspace
    workspaces.whitelist(elsewhere, "operator@example.test")
    own = make_items(elsewhere)[0]
    mine = {
        "gen": own.pk,
        "out": make_stage(elsewhere).pk,
        "src": Source.objects.of(elsewhere).first().pk,
        "per": own.persona_id,
    }
    source = Source.objects.of(newsroom).first()
    gen, out, pub = encode("gen", theirs.pk), encode("out", stage.pk), encode("pub", publication.pk)
    src, per = encode("src", source.pk), encode("per", theirs.persona_id)
    at = "2099-01-01T09:00:00Z"
    given = {
        **dict.fromkeys(("ids", "items", "item", "back", "gen", "decided", "after", "generated_item"), gen),
        **dict.fromkeys(("outlets", "outlet", "default_outlets", "out"), out),
        **dict.fromkeys(("sources", "source", "src"), src),
        **dict.fromkeys(("persona", "default_persona", "per"), per),
        **dict.fromkeys(("only", "publication", "pub"), pub),
        **dict.fromkeys(("rows", "row"), f"{pub}:{publication.version}"),
        **dict.fromkeys(("decide", "act", "decision"), "approve"),
        "one": f"retry:{pub}:{publication.version}",
        "entry": f"{gen} {theirs.version} {out} {at}",
        "undo": f"{gen} {pub}",
        "sure": "True",
        "name": "Mine",
        "title": "Mine",
        "body": "Mine.",
        "on": "yes",
    }
    before = rows_of(newsroom)
    client = as_person(charlie)
    client.raise_request_exception = False
    opened = 0
    for name, _, converters in workspace_pages():
        if name in {"workspace_delete", "member_leave", "samples_remove"}:
            continue
        others = {key: mine.get(key, uuid4()) for key in converters if key != "ws"}
        address = reverse(name, kwargs={"ws": elsewhere.pk, **others})
        answer = getattr(client, method)(address, given)
        content = b"".join(answer.streaming_content) if answer.streaming else answer.content
        assert answer.status_code < 500, (name, answer.status_code)
        assert b"quagga" not in content.lower(), name
        opened += answer.status_code in {200, 302}
    assert opened > 40
    assert rows_of(newsroom) == before
