"""Many sources at once: a list or an OPML file becomes sources, what can't be one is told, and one undo takes all back."""

from __future__ import annotations

import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from accounts.models import Plan
from pipeline import limits
from pipeline.ingest import source_lists
from pipeline.models import Source
from tests.pages.answers import at

OPML = """<?xml version="1.0"?>
<opml version="2.0"><head><title>Feeds</title></head><body>
<outline text="News"><outline type="rss" text="Harbour" title="Harbour news" xmlUrl="https://harbour.example/feed"/>
<outline type="rss" text="Trams" xmlurl="https://trams.example/rss?a=1&amp;b=2"/></outline>
<outline text="A note without an address"/>
<outline type="rss" text="Harbour again" xmlUrl="https://harbour.example/feed"/>
</body></opml>"""


def add(editor, workspace, *lines, file=None, **fields):
    sent = {"addresses": "\n".join(lines), **fields}
    if file is not None:
        sent["file"] = SimpleUploadedFile("feeds.opml", file.encode() if isinstance(file, str) else file)
    return editor.post(at(workspace, "sources_several"), sent, follow=True)


def kept(workspace):
    rows = Source.objects.of(workspace).filter(test=False, is_push=False, deleted_at=None).order_by("pk")
    return [(row.type, row.name, row.config) for row in rows]


def said(answer):
    return [re.sub(r"<[^>]+>", "", str(one)).split("  ")[0].strip() for one in answer.context["messages"]]


def test_each_line_becomes_the_source_that_its_host_says(editor, newsroom):
    answer = add(
        editor,
        newsroom,
        "https://harbour.example/news",
        "",
        "trams.example",
        "https://www.youtube.com/@harbour",
        "https://www.tiktok.com/@trams/video/1",
        "https://harbour.example/news",
    )
    assert [(kind, config) for kind, _name, config in kept(newsroom)] == [
        ("rss", {"url": "https://harbour.example/news"}),
        ("rss", {"url": "https://trams.example"}),
        ("youtube", {"handle": "@harbour"}),
        ("tiktok", {"links": ["https://www.tiktok.com/@trams/video/1"]}),
    ]
    assert "4 sources added." in said(answer)[0]
    assert answer.redirect_chain[-1][0] == at(newsroom, "sources_page")


def test_an_opml_file_brings_its_feeds_with_their_names(editor, newsroom):
    add(editor, newsroom, file=OPML)
    assert kept(newsroom) == [
        ("rss", "Harbour news", {"url": "https://harbour.example/feed"}),
        ("rss", "Trams", {"url": "https://trams.example/rss?a=1&b=2"}),
    ]


def test_one_undo_takes_all_of_them_back(editor, newsroom):
    answer = add(editor, newsroom, "https://harbour.example", "https://trams.example")
    (mark,) = re.findall(r'name="added" value="([^"]+)"', answer.content.decode())
    undone = editor.post(at(newsroom, "sources_several_undo"), {"added": mark}, follow=True)
    assert said(undone) == ["2 sources removed."]
    assert kept(newsroom) == []
    assert said(editor.post(at(newsroom, "sources_several_undo"), {"added": "x"}, follow=True)) == [
        "Too late to undo. Delete each source on its page."
    ]


def test_what_is_there_already_is_not_added_twice(editor, newsroom):
    add(editor, newsroom, "https://harbour.example")
    answer = add(editor, newsroom, "https://harbour.example", "https://trams.example")
    assert "1 source added." in said(answer)[0]
    assert said(answer)[1] == "1 was there already."
    assert len(kept(newsroom)) == 2


def test_what_cannot_be_one_stays_in_the_form_with_its_reason(editor, newsroom):
    answer = add(editor, newsroom, "https://harbour.example", "https://www.youtube.com/feed/history")
    assert len(kept(newsroom)) == 1
    ((address, why),) = answer.context["refused"]
    assert address == "https://www.youtube.com/feed/history"
    assert why.startswith("This is YouTube, but no channel")
    assert answer.context["form"]["addresses"].value() == address


def test_the_plan_s_number_is_kept_and_told(editor, newsroom):
    Plan.objects.update(active_sources_most=1)
    answer = add(editor, newsroom, "https://harbour.example", "https://trams.example")
    assert len(kept(newsroom)) == 1
    assert [address for address, _why in answer.context["refused"]] == ["https://trams.example"]


@pytest.mark.parametrize(
    ("lines", "file", "field", "message"),
    [
        ([], None, "addresses", "Enter addresses, or choose a file."),
        (["not an address"], None, "addresses", "not is no address."),
        ([], "no feeds here", "file", source_lists.NO_FEEDS),
        ([], "<opml><body/></opml>", "file", source_lists.NO_FEEDS),
        ([], b"\x00\xff" * 40, "file", source_lists.NO_FEEDS),
        ([], " " * (limits.OPML_BYTES + 1), "file", "Choose a file of at most 1 MB."),
    ],
)
def test_a_list_that_says_nothing_is_refused(editor, newsroom, lines, file, field, message):
    answer = add(editor, newsroom, *lines, file=file)
    assert answer.context["form"].errors[field] == [str(message)]
    assert kept(newsroom) == []


def test_so_many_at_once_and_no_more(editor, newsroom):
    answer = add(
        editor, newsroom, *(f"https://s{number}.example" for number in range(limits.SOURCES_AT_ONCE + 1))
    )
    assert answer.context["form"].non_field_errors() == ["101 addresses: add at most 100 at a time."]
    assert kept(newsroom) == []


def test_entities_of_a_file_are_not_opened(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("https://secret.example")
    bomb = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "ha"}">' for n in range(9))
    for declared, said_there in ((f'<!ENTITY x SYSTEM "file://{secret}">', "&x;"), (bomb, "&e8;")):
        data = f'<!DOCTYPE opml [{declared}]><opml><body><outline text="{said_there}" xmlUrl="https://a.example/f"/></body></opml>'
        try:
            (found,) = source_lists.read_opml(data.encode())
        except source_lists.Invalid:
            continue
        assert "secret" not in found.name
        assert len(found.name) < 200
