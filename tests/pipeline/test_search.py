"""Items and sources are found by their words: the right one first, in the languages of the items, and no one else's."""

from __future__ import annotations

import importlib
import re
from copy import copy
from random import Random
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.db import connection

from accounts import workspaces
from accounts.ledger import credits
from config.core.clock import utc_now
from config.core.ids import uuid7
from pipeline import search
from pipeline.ingest import erase_raw_item
from pipeline.models import GeneratedItem, RawItem, Source
from pipeline.review import decisions
from tests.pipeline.steps import make_items, push_raw

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

ENGLISH = {
    "Solar farm feeds the first homes": "Panels on the former airfield supply 4,000 households since Monday.",
    "Libraries open on Sundays": "Readers can borrow novels and films all weekend, the city's culture office says.",
    "New ferries cross the bay": "Two battery-powered boats carry commuters between the docks in eleven minutes.",
    "Beekeepers fear a wet spring": "Colonies starve when blossoms are washed out, an association warns.",
    "Hospital hires night nurses": "The clinic pays a bonus because wards were closed for lack of staff.",
}
GERMAN = {
    "Häuser aus Holz werden höher": "Ein Büro plant einen Turm mit achtzehn Stockwerken in der Altstadt.",
    "Bäcker suchen Lehrlinge": "Viele Betriebe finden seit Jahren keinen Nachwuchs mehr für die Backstube.",
    "Die Straßenbahn fährt bis zum Flughafen": "Reisende erreichen das Terminal künftig ohne Umsteigen.",
    "Mehr Störche im Moor": "Vogelschützer zählten in den Wiesen achtzig Nester.",
    "Schwimmbad bleibt geschlossen": "Die Gemeinde saniert Becken und Duschen bis zum Sommer.",
}
FRENCH = {
    "Un été sans forêt fermée": "Les promeneurs retrouvent les sentiers du massif après deux saisons d'incendies.",
    "Le théâtre municipal rouvre": "La salle accueille de nouveau des spectacles après les travaux.",
    "Les vignerons craignent le gel": "Des bougies brûlent la nuit entre les rangs pour sauver les bourgeons.",
    "Une école de cuisine s'installe": "Les élèves apprennent la pâtisserie dans une ancienne gare.",
    "Vélos en libre-service": "La métropole ajoute six cents bicyclettes électriques aux stations.",
}
JAPANESE = {
    "東京都が新しい公園を開く": "都心の再開発地区に子どもの遊び場と図書館が完成した。",
    "京都の寺で桜が満開": "観光客が朝から庭園を訪れ、写真を撮っていた。",
    "新幹線の運賃が変わる": "鉄道会社は来年四月から値上げすると発表した。",
    "漁師が珍しい深海魚を発見": "水族館は展示の準備を進めている。",
    "大学病院に人工知能を導入": "医師の診断を支える仕組みで、待ち時間が短くなる。",
}
STORIES = {"en": ENGLISH, "de": GERMAN, "fr": FRENCH, "ja": JAPANESE}
QUERIES = [
    ("solar farm", "Solar farm feeds the first homes"),
    ("library sunday", "Libraries open on Sundays"),
    ("battery boats", "New ferries cross the bay"),
    ("beekeep", "Beekeepers fear a wet spring"),
    ("night nurses", "Hospital hires night nurses"),
    ("häuser holz", "Häuser aus Holz werden höher"),
    ("lehrlinge backst", "Bäcker suchen Lehrlinge"),
    ("STRASSENBAHN flugh", "Die Straßenbahn fährt bis zum Flughafen"),
    ("storche", "Mehr Störche im Moor"),
    ("Becken sanie", "Schwimmbad bleibt geschlossen"),
    ("foret", "Un été sans forêt fermée"),
    ("THÉÂTRE", "Le théâtre municipal rouvre"),
    ("bougies gel", "Les vignerons craignent le gel"),
    ("l'école patiss", "Une école de cuisine s'installe"),
    ("velos libre", "Vélos en libre-service"),
    ("公園 図書館", "東京都が新しい公園を開く"),
    ("桜", "京都の寺で桜が満開"),
    ("運賃", "新幹線の運賃が変わる"),
    ("深海", "漁師が珍しい深海魚を発見"),
    ("人工知能", "大学病院に人工知能を導入"),
]
"""What is looked for, and the title of what is meant."""


@pytest.fixture
def made(workspace):
    return make_items(workspace)[0]


def add(made, *stories, **fields):
    """Copies of an item with other words: title, body, language."""
    rows = []
    for title, body, language in stories:
        row = copy(made)
        row.pk, row.variant_group = uuid7(), uuid7()
        row.title, row.body, row.language = title, body, language
        for name, value in fields.items():
            setattr(row, name, value)
        rows.append(row)
    GeneratedItem.everywhere.bulk_create(rows)
    return rows


def titles(workspace, text, **options):
    found = search.find_items(workspace.pk, text, **options)
    there = GeneratedItem.everywhere.in_bulk(found)
    return [there[key].title for key in found]


def test_the_right_item_is_the_first(workspace, made):
    """Among three hundred that have its words in their text, each with other ones."""
    random = Random(1)
    add(
        made, *[(title, body, language) for language, told in STORIES.items() for title, body in told.items()]
    )
    for language, told in STORIES.items():
        words = re.split(r"[\s、。]+", " ".join([*told, *told.values()]))
        joint = "" if language == "ja" else " "
        add(
            made,
            *((f"Digest {number}", joint.join(random.sample(words, k=6)), language) for number in range(75)),
        )
    firsts = [(text, (titles(workspace, text) or [""])[0], meant) for text, meant in QUERIES]
    missed = [one for one in firsts if one[1] != one[2]]
    assert len(QUERIES) - len(missed) >= 19, missed


@pytest.mark.parametrize(
    ("title", "body", "text", "is_found"),
    [
        ("Tram line", "It opens in May.", "tram", True),
        ("Tram line", "It opens in May.", "TRAM may", True),
        ("Tram line", "It opens in May.", "tram june", False),
        ("Tram line", "", "tra", True),
        ("Tram line", "", "tra line", False),
        ("Tram line", "", "ram", False),
        ("Crème brûlée", "", "creme brulee", True),
        ("Creme brulee", "", "crème brûlée", True),
        ("O'Neill's AT&T, 3.5 %", "", "o'neill at&t 3.5", True),
        ("กรุงเทพมหานครเปิดรถไฟฟ้าสายใหม่", "", "รถไฟฟ้า", True),
        ("Une école", "", "l'école", True),
        ("Today’s ferry leaves", "", "today’s fer", True),
        ("The “ferry” leaves", "", "“ferry", True),
        ("서울지하철노선", "", "지하철", True),
        ("北京地铁开通", "", "地铁", True),
        ("北京地铁开通", "", "铁地", False),
        ("हिन्दी समाचार", "", "हिन्दी", True),
        ("Новости Москвы", "", "новости", True),
        ("", "<p class='lead'>Bold <b>move</b></p>", "move", True),
        ("", "<p class='lead'>Bold <b>move</b></p>", "class", False),
    ],
)
def test_words_are_found(workspace, made, title, body, text, is_found):
    (row,) = add(made, (title, body, "xx"))
    assert (row.pk in search.find_items(workspace.pk, text)) is is_found


@pytest.mark.parametrize(
    "text",
    [
        "'",
        '"',
        "\\",
        "a' | 'b",
        'a" OR "b',
        "a:* & !b",
        "NEAR(a b)",
        "{title}:a",
        "*",
        "-",
        "( )",
        "“",
        "፩",
        "፩ ፪",
    ],
)
def test_signs_ask_for_nothing(workspace, made, text):
    add(made, ("Tram line", "It opens in May.", "en"))
    assert titles(workspace, text) == []


@pytest.mark.parametrize(
    ("text", "has_words"), [("a", True), ("桜", True), ("?!", False), (" ", False), ("", False)]
)
def test_some_texts_have_no_words(text, has_words):
    assert search.has_words(text) is has_words


def test_a_title_counts_for_more_than_a_text(workspace, made):
    add(made, ("Other", "A ferry, a ferry and one more ferry.", "en"), ("The ferry", "It crosses.", "en"))
    assert titles(workspace, "ferry") == ["The ferry", "Other"]


def test_a_whole_word_counts_for_more_than_a_beginning(workspace, made):
    add(made, ("Port", "", "en"), ("Portrait", "Portrait, portrait, portfolio.", "en"))
    assert titles(workspace, "port")[0] == "Port"


def test_nothing_of_another_workspace_and_nothing_of_tests(workspace, made):
    other = workspaces.create("Others")
    theirs = add(made, ("Secret ferry", "", "en"), workspace=other)
    add(made, ("Test ferry", "", "en"), test=True)
    add(made, ("Own ferry", "", "en"))
    assert titles(workspace, "ferry") == ["Own ferry"]
    assert titles(workspace, "ferry", test=True) == ["Test ferry"]
    assert search.find_items(other.pk, "ferry") == [row.pk for row in theirs]
    # An id is no word.
    assert titles(workspace, f"w{other.pk.hex}0") == titles(workspace, f"i{theirs[0].pk.hex}0") == []


def test_an_edit_is_found_at_once(workspace, made):
    assert titles(workspace, "zeppelin") == []
    decisions.edit(made, {"title": "A zeppelin lands"}, by="test", now=utc_now())
    assert titles(workspace, "zeppelin") == ["A zeppelin lands"]
    decisions.edit(made, {"title": "A balloon lands"}, by="test", now=utc_now(), expected_version=None)
    assert titles(workspace, "zeppelin") == []


def test_what_is_erased_is_no_longer_stored(workspace, made):
    decisions.edit(made, {"title": "A zeppelin lands"}, by="test", now=utc_now())
    decisions.erase(made, now=utc_now())
    assert titles(workspace, "zeppelin") == []
    assert stored() == 0


def test_the_words_go_with_the_row(workspace, made):
    rows = add(made, ("A zeppelin lands", "", "en"))
    assert stored() == 2
    GeneratedItem.everywhere.filter(pk__in=[row.pk for row in rows]).delete()
    assert stored() == 1


@pytest.mark.parametrize(("table", "triggers"), [("generated_item", 3), ("raw_item", 2), ("raw_body", 1)])
def test_the_database_keeps_the_words(db, table, triggers):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM information_schema.triggers WHERE event_object_table = %s"
            if connection.vendor == "postgresql"
            else "SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND tbl_name = %s",
            [table],
        )
        assert cursor.fetchone()[0] == triggers


def test_what_is_filtered_is_searched_alone(workspace, made):
    add(made, ("First ferry", "", "en"), bucket="video")
    add(made, ("Second ferry", "", "en"))
    rows = GeneratedItem.objects.of(workspace)
    assert titles(workspace, "ferry", among=rows.filter(bucket="video")) == ["First ferry"]
    assert titles(workspace, "ferry", among=rows, max_results=1) == ["Second ferry"]


def stored(table: str = "generated_item_words") -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table}")
        return cursor.fetchone()[0]


def pushed(workspace, title, body, **given):
    return push_raw(workspace, title=title, body=body, external_id=given.pop("external_id", title), **given)


def raw_titles(workspace, text, **options):
    found = search.find_raw_items(workspace.pk, text, **options)
    there = RawItem.everywhere.in_bulk(found)
    return [there[key].title for key in found]


def test_the_right_raw_item_is_the_first(workspace):
    credits.adjust(workspace, 1000, "for the tests", "operator", now=utc_now())
    for language, told in STORIES.items():
        for title, body in told.items():
            pushed(workspace, title, body, language=language)
    firsts = [(text, (raw_titles(workspace, text) or [""])[0], meant) for text, meant in QUERIES]
    missed = [one for one in firsts if one[1] != one[2]]
    assert len(QUERIES) - len(missed) >= 19, missed


def test_raw_items_of_nobody_else_and_none_of_tests(workspace):
    other = workspaces.create("Others")
    pushed(other, "Secret ferry", "It crosses.")
    pushed(workspace, "Test ferry", "It crosses.", test=True)
    pushed(workspace, "Own ferry", "It crosses.")
    assert raw_titles(workspace, "ferry") == ["Own ferry"]
    assert raw_titles(workspace, "ferry", test=True) == ["Test ferry"]


def test_a_raw_item_is_found_by_what_it_says_now(workspace):
    pushed(workspace, "A zeppelin lands", "It is long.", external_id="1")
    pushed(workspace, "A balloon lands", "It is round.", external_id="1")
    assert raw_titles(workspace, "zeppelin") == raw_titles(workspace, "long") == []
    assert raw_titles(workspace, "balloon round") == ["A balloon lands"]
    assert stored("raw_item_words") == 1


def test_nothing_of_an_erased_raw_item_stays(workspace):
    row = pushed(workspace, "A zeppelin lands", "It is long.").raw_item
    erase_raw_item.erase(row, now=utc_now())
    assert raw_titles(workspace, "zeppelin") == []
    assert stored("raw_item_words") == 0


def test_a_change_of_anything_else_writes_no_words(workspace):
    row = pushed(workspace, "A zeppelin lands", "It is long.").raw_item
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM raw_item_words")
    row.author = "Somebody"
    row.save()
    assert stored("raw_item_words") == 0


def test_a_second_filling_changes_nothing(workspace):
    """A migration that was killed begins again."""
    pushed(workspace, "A zeppelin lands", "It is long.")
    pushed(workspace, "A balloon lands", "It is round.")
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM raw_item_words WHERE item_id IN (SELECT item_id FROM raw_item_words ORDER BY item_id LIMIT 1)"
        )
    fill = importlib.import_module("pipeline.migrations.0003_raw_item_words").fill
    for _ in range(2):
        fill(apps, SimpleNamespace(connection=connection))
        assert sorted(raw_titles(workspace, "lands")) == ["A balloon lands", "A zeppelin lands"]
        assert stored("raw_item_words") == 2


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("harbour", ["Harbour news", "Old paper"]),
        ("harb", ["Harbour news", "Old paper"]),
        ("NEWS harbour", ["Harbour news"]),
        ("cafe", ["Café blog"]),
        ("example.org", ["Café blog", "Harbour news", "Old paper"]),
        ("harbour.example.org", ["Harbour news", "Old paper"]),
        ("paper feed", ["Old paper"]),
        ("arbour", []),
        ("?", []),
    ],
)
def test_sources_are_found_by_name_and_address(workspace, text, names):
    for name, url in {
        "Old paper": "https://harbour.example.org/feed",
        "Harbour news": "https://news.example.org/rss",
        "Café blog": "https://blog.example.org/rss",
    }.items():
        Source.everywhere.create(workspace=workspace, name=name, type="rss", config={"url": url})
    # Where a selector looks is no address.
    config = {"url": "https://x.example/", "item_selector": "harbour arbour"}
    Source.everywhere.create(workspace=workspace, name="Site", type="scraper", config=config)
    rows = Source.objects.of(workspace)
    found = search.find_sources(rows, text)
    there = rows.in_bulk(found)
    assert [there[key].name for key in found] == names
