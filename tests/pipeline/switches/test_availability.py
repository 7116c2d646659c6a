"""What can't work on this instance is refused or told before anything is stored, at every door in the same words."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.core import checks

from config.core import task_runner
from config.core.errors import AppError, Conflict
from pipeline import outlets, plugins
from pipeline.engines.base import Engine
from pipeline.ingest import collect, plan_and_estimate, raw_content, store_raw_item
from pipeline.media import text_to_speech
from pipeline.models import GeneratedItem, Outlet, RawItem, Source, WorkspaceDefaults
from pipeline.platforms.base import Platform
from pipeline.publish.validation import why_closed
from pipeline.sources.base import Source as SourceKind
from pipeline.sources.web_pages import render
from pipeline.switches import availability
from pipeline.voices.base import Voice
from pipeline.workspace import defaults
from tests.pipeline.steps import NOON

TOLD = "The operator has taken {} out of this service. Choose another one, or ask the operator for it."
NO_TOOL = (
    "TikTok lists the videos of an account or a hashtag only to people. Reading the list takes a program such as "
    "yt-dlp, which this service doesn't have. Give the videos' addresses instead, as "
    '`"config": {"links": ["https://www.tiktok.com/@example/video/7106594312292453675"]}`, or ask the operator to '
    "install yt-dlp and set VIDEO_TOOL."
)
STORY = "The harbour has had three cranes since 1974. Each of them lifts forty tonnes over the quay in one minute."


def settings_of(source_type, **config):
    return collect.SourceSettings(type=source_type, config=config, name="Harbour")


def refusal(call, *args, **kwargs):
    with pytest.raises(AppError) as refused:
        call(*args, **kwargs)
    return refused.value.status, refused.value.code, [one.message for one in refused.value.detail]


LINKS = settings_of("tiktok", links=["https://www.tiktok.com/@a/video/1"])


def doors(workspace, given):
    """What each door says to a source like this: create, preview, change, switch on."""
    paused = collect.register(workspace, LINKS, now=NOON)
    for changes in ({"status": "paused"}, {"config": given.config}):
        paused = collect.change(paused, changes, workspace=workspace, now=NOON)
    active = collect.register(workspace, LINKS, now=NOON)
    return [
        refusal(collect.register, workspace, given, now=NOON),
        refusal(collect.preview, workspace, given, test=False, now=NOON),
        refusal(collect.change, active, {"config": given.config}, workspace=workspace, now=NOON),
        refusal(collect.change, paused, {"status": "active"}, workspace=workspace, now=NOON),
    ]


@pytest.mark.parametrize("config", [{"username": "nasa"}, {"hashtag": "moon"}])
def test_tiktok_by_name_without_its_tool_is_refused_at_every_door(workspace, settings, config):
    settings.SOURCE_ENVIRONMENT = {**settings.SOURCE_ENVIRONMENT, "VIDEO_TOOL": ""}
    said = doors(workspace, settings_of("tiktok", **config))
    assert said == [(409, "source_unavailable", [NO_TOOL])] * 4
    assert not Source.everywhere.filter(config__has_key=next(iter(config)), status="active").exists()


def test_tool_that_is_not_where_the_operator_says_is_none(workspace, settings, tmp_path):
    settings.SOURCE_ENVIRONMENT = {**settings.SOURCE_ENVIRONMENT, "VIDEO_TOOL": str(tmp_path / "yt-dlp")}
    status, code, (message,) = refusal(
        collect.register, workspace, settings_of("tiktok", username="nasa"), now=NOON
    )
    assert (status, code) == (409, "source_unavailable")
    assert message.startswith("The program that VIDEO_TOOL names is missing")
    tool = tmp_path / "yt-dlp"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    assert collect.register(workspace, settings_of("tiktok", username="nasa"), now=NOON).status == "active"


def test_rendered_pages_without_a_browser_are_refused_at_the_door(workspace, monkeypatch):
    monkeypatch.setattr(render, "find_spec", lambda _: None)
    given = settings_of("scraper", url="https://harbour.example/", render=True)
    asked = (collect.register, workspace, given), (collect.preview, workspace, given)
    first, second = refusal(*asked[0], now=NOON), refusal(*asked[1], test=False, now=NOON)
    assert first == second
    assert first[:2] == (409, "source_unavailable")
    assert first[2][0].startswith("This service can't run a page's JavaScript. Set `render` to false")
    plain = settings_of("scraper", url="https://harbour.example/")
    assert collect.register(workspace, plain, now=NOON).status == "active"


@pytest.mark.parametrize("kind", plugins.kinds("sources"))
def test_kind_of_source_that_was_taken_out_is_refused(workspace, settings, kind):
    settings.DISABLED_KINDS = frozenset({f"sources/{kind}"})
    config = {
        "rss": {"url": "https://harbour.example/feed"},
        "scraper": {"url": "https://harbour.example/"},
        "youtube": {"handle": "@harbour"},
        "tiktok": {"links": ["https://www.tiktok.com/@a/video/1"]},
        "webhook": {},
        "brand": {"topics": [{"title": "Cranes", "notes": STORY}]},
    }[kind]
    given = settings_of(kind, **config)
    label = plugins.get("sources", kind, SourceKind).label
    said = (409, "source_unavailable", [TOLD.format(label)])
    assert refusal(collect.register, workspace, given, now=NOON) == said
    assert refusal(collect.preview, workspace, given, test=False, now=NOON) == said


def test_what_a_source_is_called_may_change_though_it_can_work_no_more(workspace, settings):
    row = collect.register(workspace, LINKS, now=NOON)
    settings.DISABLED_KINDS = frozenset({"sources/tiktok"})
    same = {"name": "Port", "engines": [], "persona_id": None, "config": row.config}
    assert collect.change(row, same, workspace=workspace, now=NOON).name == "Port"
    assert collect.change(row, {"status": "paused"}, workspace=workspace, now=NOON).status == "paused"


def test_engine_that_was_taken_out_is_refused_where_it_is_named(workspace, settings):
    settings.DISABLED_KINDS = frozenset({"engines/short_post"})
    row = WorkspaceDefaults.objects.of(workspace).get()
    content = raw_content.RawContent(title="Cranes", body=STORY, engines=("Thread", "Short Post"))
    said = (409, "engine_unavailable", [TOLD.format("Short Post")])
    named = {"defaults": row, "now": NOON}
    assert refusal(store_raw_item.push, workspace, row.push_source, content, **named) == said
    assert refusal(plan_and_estimate.estimate, workspace, row.push_source, content, **named) == said
    given = collect.SourceSettings(type="webhook", engines=("Short Post",))
    assert refusal(collect.register, workspace, given, now=NOON) == said
    wanted = replace(defaults.read(workspace), engines=("Short Post",))
    assert refusal(defaults.change, workspace, wanted, actor="alice") == said
    assert RawItem.everywhere.count() == 0


def skipped(pushed):
    """Of each engine that is skipped, the reason's code and sentence."""
    found = [one for one in pushed.as_json()["outcomes"] if one["outcome"] == "skipped"]
    return {one["engine_output"]: (one["reason"]["code"], one["reason"]["message"]) for one in found}


def test_engine_that_was_taken_out_is_left_out_where_nobody_names_it(workspace, settings):
    row = WorkspaceDefaults.objects.of(workspace).get()
    row.engines = ["Short Post", "Quote Graphic"]
    row.save()
    settings.DISABLED_KINDS = frozenset({"engines/short_post"})
    content = raw_content.RawContent(title="Cranes", body=STORY, url="https://example.com/cranes")
    pushed = store_raw_item.push(workspace, row.push_source, content, defaults=row, now=NOON)
    assert skipped(pushed) == {"Short Post": ("engine_unavailable", TOLD.format("Short Post"))}
    assert [one.engine_output for one in GeneratedItem.everywhere.filter(raw_item=pushed.raw_item)] == [
        "Quote Graphic"
    ]


def test_script_without_its_font_is_told_at_push_and_in_the_estimate(workspace):
    row = WorkspaceDefaults.objects.of(workspace).get()
    story = "港口的42艘渡轮现在全部使用电池，最后一艘将于星期一出发。市议会批准了四亿元用于建设新码头。"
    content = raw_content.RawContent(
        title="渡轮", body=story, engines=("Short Post", "Quote Graphic", "Persona Tweet")
    )
    plan = plan_and_estimate.estimate(workspace, row.push_source, content, defaults=row, now=NOON)
    pushed = store_raw_item.push(workspace, row.push_source, content, defaults=row, now=NOON)
    told = skipped(pushed)
    assert plan.why_not == tuple(f"{name}: {message}" for name, (_, message) in told.items())
    assert list(told) == ["Quote Graphic", "Persona Tweet"]
    assert all("fonts-noto-cjk" in message for _, message in told.values())
    assert [one.engine_output for one in GeneratedItem.everywhere.filter(raw_item=pushed.raw_item)] == [
        "Short Post"
    ]


def test_platform_that_was_taken_out_takes_neither_accounts_nor_posts(workspace, settings):
    outlet = Outlet.objects.of(workspace).get(platform="feed")
    assert why_closed(outlet) is None
    settings.DISABLED_KINDS = frozenset({"platforms/x", "platforms/feed"})
    label = plugins.get("platforms", "x", Platform).label
    with pytest.raises(Conflict) as refused:
        outlets.connect_outlet(workspace, "x", name="", config={}, credentials={}, by="alice", now=NOON)
    assert [(one.code, one.message) for one in refused.value.detail] == [
        ("platform_unavailable", TOLD.format(label))
    ]
    closed = why_closed(outlet)
    assert closed is not None
    assert closed.code == "platform_unavailable"


def test_voice_that_was_taken_out_leaves_films_silent_and_says_so(settings):
    settings.DISABLED_KINDS = frozenset({"voices/system"})
    settings.VOICE_ENVIRONMENT = {"VOICE_TOOL": ""}
    spoken = text_to_speech.speak("The ferry leaves.", language="en")
    assert (spoken.speech, spoken.note) == (None, TOLD.format(plugins.get("voices", "system", Voice).label))
    film = plugins.get("engines", "persona_short", Engine)
    silent, _fonts = availability.restrictions_of(film)
    assert (silent.code, silent.reason.startswith("Films are silent, with captions: ")) == ("taken_out", True)
    assert availability.restrictions_of(plugins.get("engines", "short_post", Engine)) == []


def test_setting_that_names_nothing_is_an_error_of_the_operator_s(settings):
    settings.DISABLED_KINDS = frozenset({"sources/tiktok", "engines/short post"})
    found = [one for one in checks.run_checks() if one.id == "availability.E001"]
    assert [str(one.msg) for one in found] == [
        "DISABLED_KINDS names 'engines/short post', which is no kind that can be taken out: it has no effect."
    ]


def test_source_that_lost_its_tool_says_the_same_sentence(workspace, settings, tmp_path):
    tool = tmp_path / "yt-dlp"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    settings.SOURCE_ENVIRONMENT = {**settings.SOURCE_ENVIRONMENT, "VIDEO_TOOL": str(tool)}
    row = collect.register(workspace, settings_of("tiktok", username="nasa"), now=NOON)
    settings.SOURCE_ENVIRONMENT = {**settings.SOURCE_ENVIRONMENT, "VIDEO_TOOL": ""}
    task_runner.work_all_due("ingest.poll_source")
    row.refresh_from_db()
    assert (row.last_error["code"], row.last_error["message"]) == ("tool_missing", NO_TOOL)
