"""What the workspace has said of late isn't said again: same openings, near copies, copies of the source."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from pipeline import limits
from pipeline.engines.base import Claim, Draft, SourceText
from pipeline.generate.repetition import OwnWords
from pipeline.models import GeneratedItem, Generation
from pipeline.text.similarity import character_runs, jaccard, opening_words
from tests.pipeline.steps import NOON, make_items, push_raw

SAID = "The council voted 14 to 9 on Tuesday to build the tram line to the harbour by 2029."
COPY = "Last night the council voted 14 to 9 on Tuesday to build the tram line to the harbour by 2029."
OTHER = "Retailers in Mill Street fear for their sales while the bridge is closed for repairs."

pytestmark = pytest.mark.django_db


def run_in(workspace, **changes):
    raw = push_raw(workspace, external_id="the new one", url="").raw_item
    run = Generation.everywhere.filter(raw_item=raw).first()
    GeneratedItem.everywhere.filter(generation=run).update(**changes)
    return run


def say(workspace, body, **changes):
    item, *_ = make_items(workspace, external_id=body[:30], url="")
    GeneratedItem.everywhere.filter(pk=item.pk).update(body=body, **changes)
    return GeneratedItem.everywhere.get(pk=item.pk)


def draft_of(body, quote=""):
    claims = (Claim(body, quote, 0, len(quote)),) if quote else ()
    return Draft("", body, "text", {"parts": [body]}, claims, "en")


def checked(run, body, *, is_verbatim=False, source=""):
    checks = OwnWords.for_run(run, is_verbatim=is_verbatim).check(draft_of(body), SourceText("", source))
    return {check.code: (check.outcome, check.message) for check in checks}


def test_near_copy_of_an_own_item_fails(workspace):
    item = say(workspace, SAID)
    outcome, message = checked(run_in(workspace), COPY)["repetition"]
    assert outcome == "failed"
    assert message.startswith("It repeats gen_")
    assert item.pk is not None


def test_same_opening_fails_among_the_newest_only(workspace):
    say(workspace, SAID, created_at=NOON - timedelta(days=3))
    run = run_in(workspace)
    same = "The council voted 14 times for parks, schools and libraries before anybody spoke of money."
    assert checked(run, same)["repetition"][0] == "failed"
    first = GeneratedItem.everywhere.filter(workspace=workspace, revision__gt=0).get()
    GeneratedItem.everywhere.bulk_create(
        [
            GeneratedItem(
                workspace=workspace,
                generation=first.generation,
                bucket="text",
                engine_output="Short Post",
                engine_version=1,
                variant_group=first.pk,
                revision=1,
                body=f"Number {number} of another kind",
            )
            for number in range(limits.REPETITION_OPENINGS)
        ]
    )
    assert checked(run, same)["repetition"][0] == "passed"


def test_label_of_an_engine_is_no_opening(workspace):
    label = "An excerpt: these sentences are taken word for word from"
    say(workspace, f"*{label} the town's report.*\n\n{SAID}")
    own_words = OwnWords.for_run(run_in(workspace), is_verbatim=True)
    labelled = draft_of(f"*{label} the harbour's log.*\n\n{OTHER}")
    assert own_words.check(replace(labelled, added=(label,)), SourceText("", ""))[0].outcome == "passed"
    assert own_words.check(labelled, SourceText("", ""))[0].outcome == "warning"


def test_words_of_a_source_only_warn(workspace):
    say(workspace, SAID)
    run = run_in(workspace)
    assert checked(run, COPY, is_verbatim=True)["repetition"][0] == "warning"
    assert "copying" not in checked(run, COPY, is_verbatim=True)


def test_other_words_pass(workspace):
    say(workspace, SAID)
    assert checked(run_in(workspace), OTHER)["repetition"] == (
        "passed",
        "It repeats nothing of the newest items.",
    )


def test_own_raw_item_and_own_group_do_not_count(workspace):
    item = say(workspace, SAID)
    run = run_in(workspace)
    GeneratedItem.everywhere.filter(pk=item.pk).update(raw_item=run.raw_item)
    assert checked(run, COPY)["repetition"][0] == "passed"
    own = GeneratedItem.everywhere.filter(generation=run).first()
    GeneratedItem.everywhere.filter(pk=item.pk).update(raw_item=None, variant_group=own.variant_group)
    assert checked(run, COPY)["repetition"][0] == "passed"
    GeneratedItem.everywhere.filter(pk=item.pk).update(variant_group=item.variant_group)
    assert checked(run, COPY)["repetition"][0] == "failed"


def test_deleted_and_test_items_and_other_workspaces_do_not_count(workspace, charlies):
    item = say(workspace, SAID, deleted_at=NOON)
    say(charlies, SAID)
    run = run_in(workspace)
    assert checked(run, COPY)["repetition"][0] == "passed"
    GeneratedItem.everywhere.filter(pk=item.pk).update(deleted_at=None, test=True)
    assert checked(run, COPY)["repetition"][0] == "passed"


def test_copy_of_the_source_is_shown_and_a_short_telling_is_not(workspace):
    run = run_in(workspace)
    assert checked(run, COPY, source=SAID)["copying"][0] == "warning"
    assert checked(run, OTHER, source=SAID)["copying"][0] == "passed"
    assert checked(run, SAID, source=f"{SAID} {OTHER * 20}")["copying"][0] == "passed"


def test_memory_is_one_query_for_all_drafts(workspace):
    say(workspace, SAID)
    own_words = OwnWords.for_run(run_in(workspace), is_verbatim=False)
    with CaptureQueriesContext(connection) as caught:
        for body in (SAID, COPY, OTHER):
            own_words.check(draft_of(body), SourceText("", ""))
    assert len(caught) == 1
    assert f"LIMIT {limits.REPETITION_ITEMS}" in caught[0]["sql"]


@pytest.mark.parametrize(
    ("one", "other", "least", "most"),
    [
        (SAID, SAID, 1, 1),
        (SAID, COPY, 0.7, 0.99),
        (SAID, OTHER, 0, 0.1),
        ("", "", 0, 0),
        ("市議会は路面電車を承認した", "市議会は路面電車を否決した", 0.3, 0.9),
    ],
)
def test_likeness_of_short_texts(one, other, least, most):
    assert least <= jaccard(character_runs(one), character_runs(other)) <= most


def test_opening_needs_four_words():
    assert opening_words("“The Council, voted 14 to 9") == ("the", "council", "voted", "14")
    assert opening_words("Three words only") == ()
