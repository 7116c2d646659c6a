"""Many sources at once: each line is looked at, becomes a source or says why not, and one undo takes all back."""

from __future__ import annotations

import re
import time

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts import workspaces
from accounts.models import Plan
from config.core.errors import Invalid
from pipeline import limits
from pipeline.ingest import collect, opml
from pipeline.models import Source
from pipeline.pages.sources.bulk_add import parse_line
from tests.pages.answers import at

NO_FEEDS = "No feeds found in this file. Choose an OPML file exported from a feed reader."
ENTITIES = "The file declares entities, which a list of feeds doesn't need. Export it again."

OPML = """<?xml version="1.0"?>
<opml version="2.0"><head><title>Feeds</title></head><body>
<outline text="News"><outline type="rss" text="Harbour" title="Harbour news" xmlUrl="https://harbour.example/feed"/>
<outline type="rss" text="Trams" xmlurl="https://trams.example/rss?a=1&amp;b=2"/></outline>
<outline text="A note without an address"/>
<outline type="rss" text="Harbour again" xmlUrl="https://harbour.example/feed"/>
</body></opml>"""


def send(editor, workspace, *lines, file=None, **fields):
    sent = {"addresses": "\n".join(lines), **fields}
    if file is not None:
        sent["file"] = SimpleUploadedFile("feeds.opml", file.encode() if isinstance(file, str) else file)
    return editor.post(at(workspace, "sources_several"), sent, follow=True)


def add(editor, workspace, *lines, file=None, **fields):
    return send(editor, workspace, *lines, file=file, add="", **fields)


def planned(answer):
    """Each line that is shown, with what would become of it."""
    return [
        (one.number, one.listed.text, "new" if one.source else one.refusal or "known")
        for one in answer.context["planned"]
    ]


def outline(count):
    rows = "".join(f'<outline text="Site {n}" xmlUrl="https://s{n}.example/feed"/>' for n in range(count))
    return f"<opml><body>{rows}</body></opml>"


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
    answer = add(
        editor, newsroom, "https://harbour.example", "https://www.youtube.com/feed/history", "no address"
    )
    assert len(kept(newsroom)) == 1
    (number, line, why), other = planned(answer)
    assert (number, line) == (2, "https://www.youtube.com/feed/history")
    assert why.startswith("This is YouTube, but no channel")
    assert other == (3, "no address", "No address. Enter one such as https://example.org/news.")
    assert answer.context["form"]["addresses"].value() == f"{line}\nno address"


def test_each_line_is_looked_at_before_anything_is_saved(editor, newsroom):
    add(editor, newsroom, "https://harbour.example/feed/ Harbour")
    lines = (
        "https://trams.example Tram news",
        "HTTPS://Harbour.example/feed/?utm_source=x",
        "words alone",
        "https://trams.example",
        "https://www.youtube.com/feed/history",
    )
    answer = send(
        editor, newsroom, *lines, file=OPML.replace("harbour.example/feed", "harbour.example/feed/")
    )
    assert len(kept(newsroom)) == 1
    outcome = {number: what for number, _line, what in planned(answer)}
    assert outcome.pop(5).startswith("This is YouTube")
    assert outcome == {
        1: "new",
        2: "known",
        3: "No address. Enter one such as https://example.org/news.",
        4: "known",
        6: "known",
        7: "new",
        8: "known",
    }
    # What was pasted stays, and what the file holds stands below it: so it can be changed, and needs no second choice.
    shown = answer.context["form"]["addresses"].value().splitlines()
    assert shown[:5] == list(lines)
    assert shown[5:] == [
        "https://harbour.example/feed/ Harbour news",
        "https://trams.example/rss?a=1&b=2 Trams",
        "https://harbour.example/feed/ Harbour again",
    ]
    page = answer.content.decode()
    for words in (
        "Nothing is saved yet.",
        "2 will be added",
        "4 are there already",
        "2 can&#x27;t be added",
        "Add 2 sources",
    ):
        assert words in page or words.replace("&#x27;", "'") in page, words
    # That very text, sent to be added, does what was said.
    add(editor, newsroom, *shown)
    assert [name for _kind, name, _config in kept(newsroom)] == ["Harbour", "Tram news", "Trams"]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("", []),
        ("  trams.example  ", [("https://trams.example", "")]),
        ("https://trams.example Tram news, daily", [("https://trams.example", "Tram news daily")]),
        ("Tram news: https://trams.example", [("https://trams.example", "Tram news:")]),
        ("https://a.example, https://b.example", [("https://a.example", ""), ("https://b.example", "")]),
        ("a.example b.example", [("https://a.example", ""), ("https://b.example", "")]),
        ("https://a.example Node.js blog", [("https://a.example", "Node.js blog")]),
        ("feed://a.example/rss", [("https://a.example/rss", "")]),
        ("javascript:alert(1)", [("", "")]),
        ("file:///etc/passwd", [("", "")]),
        ("some words about a.example", [("", "")]),
    ],
)
def test_a_line_is_an_address_with_a_name_or_several_addresses(line, found):
    assert [(one.address, one.name) for one in parse_line(line)] == found


def test_what_was_added_when_it_stopped_is_not_added_again(editor, newsroom, monkeypatch):
    lines = [f"https://s{n}.example" for n in range(4)]
    stored, add_one = [], collect.add

    def stop_at_the_third(row, **more):
        if len(stored) == 2:
            raise KeyboardInterrupt
        stored.append(row)
        return add_one(row, **more)

    monkeypatch.setattr(collect, "add", stop_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        add(editor, newsroom, *lines)
    monkeypatch.setattr(collect, "add", add_one)
    assert len(kept(newsroom)) == 2
    answer = add(editor, newsroom, *lines)
    assert [config["url"] for _kind, _name, config in kept(newsroom)] == lines
    assert said(answer)[1] == "2 were there already."


def test_the_plan_s_number_is_kept_and_told(editor, newsroom):
    Plan.objects.update(active_sources_most=1)
    answer = add(editor, newsroom, "https://harbour.example", "https://trams.example")
    assert len(kept(newsroom)) == 1
    full = "The plan has 1 active source; pause or delete one, or ask for more."
    assert planned(answer) == [(2, "https://trams.example", full)]
    # A look says it before.
    Source.objects.of(newsroom).filter(type="rss").delete()
    assert planned(send(editor, newsroom, "https://harbour.example", "https://trams.example")) == [
        (2, "https://trams.example", full),
        (1, "https://harbour.example", "new"),
    ]


@pytest.mark.parametrize(
    ("lines", "file", "field", "message"),
    [
        ([], None, "addresses", "Enter addresses, or choose a file."),
        ([], "no feeds here", "file", NO_FEEDS),
        ([], "<opml><body/></opml>", "file", NO_FEEDS),
        ([], b"\x00\xff" * 40, "file", NO_FEEDS),
        ([], " " * (limits.OPML_BYTES + 1), "file", "Choose a file of at most 1 MB."),
        ([], " " * (8 * 1024 * 1024), "file", "Choose a file of at most 1 MB."),
        (
            [],
            OPML.replace("a=1&amp;b", "a=1&b"),
            "file",
            "The file is broken in line 4 (not well-formed (invalid token)). Correct it there, or export it again.",
        ),
        (
            [],
            OPML.replace("</body>", ""),
            "file",
            "The file is broken in line 7 (mismatched tag). Correct it there, or export it again.",
        ),
    ],
)
def test_a_list_that_says_nothing_is_refused(editor, newsroom, lines, file, field, message):
    for given in ([*lines], [*lines, "https://kept.example"]):
        if field == "addresses" and given != lines:
            continue
        answer = add(editor, newsroom, *given, file=file)
        assert answer.context["form"].errors[field] == [message]
        assert kept(newsroom) == []
        # What was pasted stays.
        assert answer.context["form"]["addresses"].value() == "\n".join(given)


def test_so_many_at_once_and_no_more(editor, newsroom):
    most = limits.SOURCES_AT_ONCE
    answer = add(editor, newsroom, file=outline(most + 1))
    form = answer.context["form"]
    assert form.errors["addresses"] == [f"{most + 1} addresses: add at most {most} at a time."]
    assert len(form["addresses"].value().splitlines()) == most + 1
    assert kept(newsroom) == []


def test_five_hundred_feeds_are_looked_at_and_added(editor, newsroom):
    workspaces.lift_limits(newsroom, "operator@example.test")
    most = limits.SOURCES_AT_ONCE
    send(editor, newsroom, "https://warm.example")
    with CaptureQueriesContext(connection) as one:
        send(editor, newsroom, "https://one.example")
    with CaptureQueriesContext(connection) as many:
        answer = send(editor, newsroom, file=outline(most))
    assert (len(answer.context["new"]), len(many)) == (most, len(one))
    began = time.monotonic()
    added = add(editor, newsroom, file=outline(most))
    # A server gives a page half a minute.
    assert time.monotonic() - began < 30
    assert len(kept(newsroom)) == most
    (mark,) = re.findall(r'name="added" value="([^"]+)"', added.content.decode())
    editor.post(at(newsroom, "sources_several_undo"), {"added": mark})
    assert kept(newsroom) == []


def test_outlines_may_be_as_deep_as_they_like():
    deep = "<outline>" * 20_000 + '<outline text="Deep" xmlUrl="https://a.example"/>' + "</outline>" * 20_000
    (found,) = opml.read_opml(f"<opml><body>{deep}</body></opml>".encode())
    assert (found.address, found.name) == ("https://a.example", "Deep")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_a_file_is_read_in_its_own_encoding(encoding):
    text = f'<?xml version="1.0" encoding="{encoding}"?><opml><outline text="Café" xmlUrl="https://a.example"/></opml>'
    (found,) = opml.read_opml(text.encode(encoding))
    assert found.name == "Café"


@pytest.mark.parametrize(
    "declared",
    [
        '<!ENTITY x SYSTEM "file://{secret}">',
        '<!ENTITY x SYSTEM "http://127.0.0.1:9/x">',
        '<!ENTITY % x SYSTEM "file://{secret}"> %x;',
        '<!ENTITY a "ha"><!ENTITY x "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">',
        "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "ha"}">' for n in range(9))
        + '<!ENTITY x "&e8;">',
    ],
)
def test_entities_of_a_file_are_never_opened(tmp_path, declared):
    secret = tmp_path / "secret"
    secret.write_text("https://secret.example")
    head = declared.replace("{secret}", str(secret))
    for name in ("&x;", "plain"):
        data = f'<!DOCTYPE opml [{head}]><opml><body><outline text="{name}" xmlUrl="https://a.example/f"/></body></opml>'
        with pytest.raises(Invalid) as refused:
            opml.read_opml(data.encode())
        assert [one.message for one in refused.value.detail] == [ENTITIES]


def test_a_doctype_alone_does_no_harm():
    data = b'<!DOCTYPE opml SYSTEM "http://127.0.0.1:9/opml.dtd"><opml><outline xmlUrl="https://a.example"/></opml>'
    assert [one.address for one in opml.read_opml(data)] == ["https://a.example"]


def test_what_is_exported_comes_back_as_it_was(editor, newsroom, as_person, vera):
    add(
        editor,
        newsroom,
        'https://harbour.example/feed?a=1&b=2 Harbour <"news">',
        "https://www.youtube.com/@harbour",
        "https://www.youtube.com/channel/UC1234567890123456789012",
        "https://www.youtube.com/playlist?list=PL0123456789",
        "https://www.tiktok.com/@trams/video/1",
    )
    before = kept(newsroom)
    collect.register(newsroom, collect.SourceSettings(type="webhook", name="CMS"))
    answer = as_person(vera).get(at(newsroom, "sources_export"))
    assert answer["Content-Disposition"] == 'attachment; filename="sources.opml"'
    assert b"CMS" not in answer.content
    Source.objects.of(newsroom).filter(is_push=False).delete()
    add(editor, newsroom, file=answer.content)
    assert sorted(kept(newsroom), key=str) == sorted(before, key=str)
    assert len(before) == 5


def test_an_export_names_an_account_and_every_link():
    sources = [
        Source(name="A\x00 & b", type="tiktok", config={"username": "trams"}),
        Source(name="Links", type="tiktok", config={"links": ["https://t.example/1", "https://t.example/2"]}),
        Source(name="Map", type="scraper", config={"sitemap": "https://a.example/sitemap.xml"}),
        Source(name="Topics", type="brand", config={"times": ["09:00"]}),
    ]
    assert [(one.name, one.address) for one in opml.read_opml(opml.write_opml(sources, "Newsroom"))] == [
        ("A & b", "https://www.tiktok.com/@trams"),
        ("Links", "https://t.example/1"),
        ("Links", "https://t.example/2"),
        ("Map", "https://a.example/sitemap.xml"),
    ]


def test_an_export_holds_no_source_of_another_workspace(editor, newsroom, charlie, as_person):
    theirs = workspaces.memberships_of(charlie)[0].workspace
    add(as_person(charlie), theirs, "https://theirs.example")
    add(editor, newsroom, "https://ours.example")
    exported = editor.get(at(newsroom, "sources_export")).content.decode()
    assert ("https://ours.example" in exported, "theirs" in exported) == (True, False)
