"""A persona drafted from past posts as people ask for it: watched, put into the form, saved or left."""

from __future__ import annotations

import pytest

from accounts.models import Membership
from config.core import task_runner
from pipeline.models import Persona, PersonaDraft
from pipeline.personas import crud as stage
from tests.pages.answers import at
from tests.pipeline.steps import NOON

POSTS = "Fog on the river.\n---\nWho left a cello\n\non the night boat?"
SAID = ["Fog on the river.", "Who left a cello\n\non the night boat?"]


@pytest.fixture
def ada(newsroom):
    given = {
        "name": "Ada",
        "who_you_are": "Ada writes about ferries.",
        "approved_lines": ["Ferries run daily."],
    }
    return stage.create(newsroom, given, by="alice@example.test", now=NOON)


def ask(client, address, **given):
    answer = client.post(address, {"url": "", "posts": POSTS, **given})
    assert answer.status_code == 302
    return answer["Location"]


def sent(form, **changes):
    given = {name: value for name, value in form.initial.items() if value is not None and value is not False}
    return {**given, **changes}


def test_a_new_one_is_made_by_the_save_and_not_by_the_draft(editor, newsroom):
    address = ask(editor, at(newsroom, "persona_draft_ask"))
    waiting = editor.get(address)
    assert waiting.context["form"] is None
    assert 'hx-trigger="every 2s"' in waiting.content.decode()
    before = Persona.everywhere.count()
    task_runner.work_all_due("generate.draft_persona")
    page = editor.get(address)
    assert "Without AI · from the source" in page.content.decode()
    form = page.context["form"]
    assert form.initial["reference_posts"] == "\n---\n".join(SAID)
    assert Persona.everywhere.count() == before
    given = sent(form, name="Night desk", voice="Calm.", once="showing")
    answer = editor.post(address, given)
    made = Persona.everywhere.get(name="Night desk")
    assert answer["Location"] == at(newsroom, "persona", per=made.pk)
    assert (made.version, made.voice, made.reference_posts) == (1, "Calm.", SAID)
    editor.post(address, given)
    assert Persona.everywhere.filter(name="Night desk").count() == 1


def test_an_existing_one_gets_a_version_and_keeps_what_the_draft_leaves_out(editor, newsroom, ada):
    address = ask(editor, at(newsroom, "persona_draft_for", per=ada.pk))
    task_runner.work_all_due("generate.draft_persona")
    form = editor.get(address).context["form"]
    ada.refresh_from_db()
    assert (ada.version, ada.reference_posts) == (1, [])
    editor.post(address, sent(form))
    ada.refresh_from_db()
    assert (ada.version, ada.reference_posts) == (2, SAID)
    assert (ada.who_you_are, ada.approved_lines) == ("Ada writes about ferries.", ["Ferries run daily."])


def test_an_older_draft_does_not_overwrite_a_later_change(editor, newsroom, ada):
    address = ask(editor, at(newsroom, "persona_draft_for", per=ada.pk))
    task_runner.work_all_due("generate.draft_persona")
    form = editor.get(address).context["form"]
    stage.change(ada, {"voice": "Loud."}, by="alice@example.test", now=NOON)
    answer = editor.post(address, sent(form), follow=True)
    assert "Changed since you opened it." in answer.content.decode()
    ada.refresh_from_db()
    assert (ada.version, ada.voice) == (2, "Loud.")


def test_a_part_that_is_over_asks_for_the_whole_page(editor, newsroom):
    address = ask(editor, at(newsroom, "persona_draft_ask"))
    asks = {"HX-Request": "true", "HX-Target": "draft"}
    assert "Queued" in editor.get(address, headers=asks).content.decode()
    task_runner.work_all_due("generate.draft_persona")
    assert editor.get(address, headers=asks)["HX-Refresh"] == "true"


def test_a_failed_one_says_why_and_is_tried_again(editor, newsroom):
    address = ask(editor, at(newsroom, "persona_draft_ask"), url="http://127.0.0.1:9/", posts="")
    task_runner.work_all_due("generate.draft_persona")
    draft = PersonaDraft.everywhere.get()
    page = editor.get(address).content.decode()
    assert draft.status == "failed"
    assert "or paste some posts instead." in page
    assert "Retry" in page
    editor.post(at(newsroom, "persona_draft_retry", pdr=draft.pk))
    draft.refresh_from_db()
    assert (draft.status, draft.error) == ("queued", None)


def test_faults_stand_at_their_fields(editor, newsroom):
    address = at(newsroom, "persona_draft_ask")
    for given, field in (({}, "url"), ({"url": "no address"}, "url"), ({"posts": "word " * 1500}, "posts")):
        assert list(editor.post(address, given).context["form"].errors) == [field]
    assert PersonaDraft.everywhere.count() == 0


def test_nobody_else_sees_a_draft(editor, newsroom, vera, charlie, as_person):
    address = ask(editor, at(newsroom, "persona_draft_ask"))
    draft = PersonaDraft.everywhere.get()
    assert as_person(vera).get(address).status_code == 403
    strangers = as_person(charlie)
    assert strangers.get(address).status_code == 404
    own = Membership.everywhere.get(user=charlie).workspace
    assert strangers.get(at(own, "persona_draft", pdr=draft.pk)).status_code == 404
