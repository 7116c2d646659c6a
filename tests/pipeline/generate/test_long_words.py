"""Threads, LinkedIn posts and articles on their way: made, edited, drawn again, published, and said by a brand lane."""

from __future__ import annotations

import pytest

from config.core.errors import Conflict
from pipeline.generate import run as generation_run
from pipeline.models import Asset, GeneratedItem, Generation, SimulatedPost, WorkspaceDefaults
from pipeline.pages.public_feed import _load_entries
from pipeline.review import decisions
from pipeline.switches.availability import SourceUnavailable
from pipeline.text.content_schema import PARTS_BETWEEN
from tests.engines.test_golden import source_of
from tests.pipeline import steps
from tests.pipeline.personas.lanes import add_lane, make_persona, make_topics, work_slot, write_all
from tests.pipeline.steps import NOON, claimed, promise, reread, state

pytestmark = pytest.mark.usefixtures("own_media")

ESSAY = source_of("essay")
ENGINES = ["Blog Article", "LinkedIn Post", "Thread"]
LINES = (
    "Our bread ovens are fired at four in the morning, long before anybody in town wakes up.",
    "Rye bread asks for patience and gives nine days of freshness in return.",
    "Every loaf of bread is tasted warm by somebody of the night shift.",
    "We never sell bread that is older than one day to a restaurant.",
)


def make(workspace, *engines):
    items = steps.make_items(
        workspace,
        title=ESSAY.title,
        body=(ESSAY.text),
        url=ESSAY.url,
        language="en",
        engines=list(engines),
    )
    return items if len(items) > 1 else items[0]


def heroes_of(item):
    return list(
        Asset.everywhere.filter(item=item, revoked_at=None).values_list("role", "width", "height", "alt_text")
    )


def test_one_source_becomes_a_thread_a_post_and_an_article(workspace):
    items = {item.engine_output: item for item in make(workspace, *ENGINES)}

    assert {name: (item.bucket, item.status, item.body_format) for name, item in items.items()} == {
        "Blog Article": ("blog", "ready", "markdown"),
        "LinkedIn Post": ("text", "ready", "text"),
        "Thread": ("text", "ready", "text"),
    }
    thread, article = items["Thread"], items["Blog Article"]
    assert (len(thread.content["parts"]), thread.body) == (6, PARTS_BETWEEN.join(thread.content["parts"]))
    assert {check["outcome"] for item in items.values() for check in item.checks} == {"passed"}
    assert article.excerpt.startswith(
        "An excerpt: these sentences are taken word for word from Why our repair"
    )
    assert heroes_of(article) == [("hero", 1200, 630, f"{ESSAY.title} – {article.workspace.name}")]
    assert heroes_of(thread) == []


def test_source_that_has_too_little_makes_only_what_it_can(workspace):
    raw = steps.push_raw(workspace, body="One sentence stands here alone.", engines=["Short Post", *ENGINES])

    made = GeneratedItem.everywhere.filter(raw_item=raw.raw_item)
    assert list(made.values_list("engine_output", flat=True)) == ["Short Post"]


def test_edited_parts_of_a_thread_are_its_body(workspace):
    thread = make(workspace, "Thread")

    decisions.edit(thread, {"content": {"parts": ["One.", "Two.", "Three."]}}, by="alice", now=NOON)

    assert state(thread, "body", "content", "revision") == {
        "body": "One.\n\nTwo.\n\nThree.",
        "content": {"parts": ["One.", "Two.", "Three."]},
        "revision": 2,
    }


def test_edited_article_tells_search_engines_what_it_says_now(workspace):
    article = make(workspace, "Blog Article")
    body = f"{article.body}\n\n{'word ' * 460}"
    wished = {
        "slug": "better",
        "meta_description": "About it.",
        "tags": ["a"],
        "canonical_url": "",
        "form": "article",
    }

    decisions.edit(article, {"body": body, "content": wished}, by="alice", now=NOON)

    content = reread(article).content
    assert {**wished, "form": "excerpt", "reading_minutes": 3} == {
        name: value for name, value in content.items() if name != "json_ld"
    }
    told = content["json_ld"]
    assert (told["headline"], told["description"], told["keywords"]) == (ESSAY.title, "About it.", ["a"])
    assert (told["timeRequired"], told["isBasedOn"], "mainEntityOfPage" in told) == ("PT3M", ESSAY.url, False)
    assert (reread(article).status, Generation.everywhere.filter(stage="render").count()) == ("ready", 0)


def test_new_title_of_an_article_is_drawn_again(workspace):
    article = make(workspace, "Blog Article")

    decisions.edit(article, {"title": "A better title"}, by="alice", now=NOON)

    assert reread(article).status == "generating"
    generation_run.run_generation(claimed(Generation.everywhere.get(pk=reread(article).generation_id)))
    again = reread(article)
    assert (again.status, again.content["json_ld"]["headline"]) == ("ready", "A better title")
    assert heroes_of(article) == [("hero", 1200, 630, f"A better title – {article.workspace.name}")]


def test_title_that_stands_in_a_scheduled_picture_stays(workspace, feed):
    article = make(workspace, "Blog Article")
    promise(article, feed, publish_at=NOON.replace(year=2028))

    with pytest.raises(Conflict) as refused:
        decisions.edit(article, {"title": "A better title"}, by="alice", now=NOON)
    assert [(one.field, one.code) for one in refused.value.detail] == [("title", "drawn_words")]
    decisions.edit(article, {"body": "Other words."}, by="alice", now=NOON)
    assert reread(article).body == "Other words."


def test_article_and_thread_reach_an_outlet_whole(workspace, feed):
    article, thread = (item for item in make(workspace, "Blog Article", "Thread"))
    stage = steps.make_stage(workspace)

    for item in (article, thread):
        assert steps.send(promise(item, stage)).status == "published"
    assert steps.send(promise(article, feed)).status == "published"

    assert SimulatedPost.everywhere.count() == 2
    (entry,) = _load_entries(feed)
    assert "<h2>What the number did to us</h2>" in entry.content_html
    assert [one.url.rsplit("/", 1)[-1] for one in entry.enclosures] == ["article-1200x630.jpg"]
    assert (entry.image, entry.summary) == (entry.enclosures[0].url, article.content["meta_description"])
    assert entry.json_ld == {
        **article.content["json_ld"],
        "image": entry.image,
        "datePublished": NOON.isoformat().replace("+00:00", "Z"),
    }


def lane_item(workspace, engine, *lines):
    make_persona(workspace, approved_lines=list(lines))
    make_topics(workspace, 1, title="Bread at night")
    source = add_lane(workspace, engines=(engine,))
    work_slot(source)
    return write_all(source)[0]


def test_lane_without_a_model_makes_a_thread_of_lines_on_the_topic(workspace):
    item = lane_item(workspace, "Thread", *LINES, "Nothing here speaks of what is asked.")

    assert (item.status, item.generator["model"]) == ("ready", "approved-lines-1")
    assert sorted(item.content["parts"]) == sorted(LINES)


def test_article_of_a_topic_that_has_only_notes_is_said_to_need_a_source(workspace):
    make_persona(workspace, approved_lines=[])
    make_topics(workspace, 1, title="Bread at night", notes=" ".join(LINES))
    with pytest.raises(
        SourceUnavailable, match="Blog Article: Without a model a Blog Article is taken from a source"
    ):
        work_slot(add_lane(workspace, engines=("Blog Article",)))


@pytest.mark.parametrize(
    ("engine", "lines", "reason"),
    [
        (
            "Thread",
            (*LINES[:2], "Nothing here speaks of what is asked."),
            "Without a model a Thread is made of 3 approved lines or more that speak of the topic; the persona has 2.",
        ),
        ("Blog Article", LINES, "Without a model a Blog Article is taken from a source"),
    ],
)
def test_lane_that_could_make_nothing_of_its_lines_is_refused_at_the_door(workspace, engine, lines, reason):
    with pytest.raises(SourceUnavailable, match=f"{engine}: {reason}"):
        lane_item(workspace, engine, *lines)


def test_fresh_workspace_makes_no_long_words_until_somebody_chooses(charlies):
    assert set(ENGINES).isdisjoint(WorkspaceDefaults.everywhere.get(workspace=charlies).engines)
