"""Which numbers of a sentence may stand large, and with which words."""

from __future__ import annotations

import pytest

from pipeline.render.find_figures import figures_in

# As it is written, with what of it stands large; None where it says when, who or where, and nothing of how much.
WRITTEN = [
    ("43 000 Kubikmeter Wasser", "43 000"),
    ("43\u2009000 m Draht", "43\u2009000"),
    ("43\u202f000 kg", "43\u202f000"),
    ("43\u00a0000 kg", "43\u00a0000"),
    ("1'200'000 Franken", "1'200'000"),
    ("1’200 Franken", "1’200"),
    ("1.200.000 Euro", "1.200.000"),
    ("1,200,000 people", "1,200,000"),
    ("12,50 Euro", "12,50"),
    ("12.5 litres", "12.5"),
    ("€ 1 200 a month", "€ 1 200"),
    ("€18.4 million", "€18.4"),
    ("1 200 € im Monat", "1 200 €"),
    ("$5-10 a day", "$5-10"),
    ("US$ 5 million", "US$ 5"),
    ("CHF 500", "CHF 500"),
    ("£2m", "£2"),
    ("3–5 Prozent der Leute", "3–5"),
    ("3 – 5 Prozent", "3 – 5"),
    ("5 to 10 per cent", "5 to 10"),
    ("3–5 % more", "3–5 %"),
    ("38% in a year", "38%"),
    ("38 % de plus", "38 %"),
    ("−12 Grad", "−12"),
    ("-12 °C", "-12 °C"),
    ("minus 12 Grad", "minus 12"),
    ("1 in 5 people", "1 in 5"),
    ("7 out of 10 cats", "7 out of 10"),
    ("2 500 m² Fläche", "2 500"),
    ("3½ pounds", "3½"),
    ("2 to 3 million dollars", "2 to 3"),
    ("350 000 книг", "350 000"),
    ("١٢٠٠ كتاب", "١٢٠٠"),
    ("５００ページ", "５００"),
    ("１２００円", "１２００円"),
    ("3万人", "3万"),
    ("15.1.2027", None),
    ("2026-11-25", None),
    ("12 October", None),
    ("10:30 Uhr", None),
    ("0 800 123 456", None),
    ("+49 30 123456", None),
    ("020-7946", None),
    ("Room 12B", None),
    ("B12", None),
    ("2021", None),
]


@pytest.mark.parametrize(("written", "shown"), WRITTEN)
@pytest.mark.parametrize("before", ["", "It says: "])
def test_what_stands_large_is_what_the_source_wrote(written, shown, before):
    text = f"{before}{written}."

    found = figures_in(text)

    assert [one.value for one in found] == ([] if shown is None else [shown])
    assert all(text[one.start :].startswith(one.value) for one in found)


def test_each_figure_of_a_sentence():
    found = figures_in("It made 1,100 loaves and 44 rolls, 60 cakes and 3.", "en")

    assert [(one.value, one.of) for one in found] == [("1,100", "loaves"), ("44", "rolls"), ("60", "cakes")]


@pytest.mark.parametrize("space", [" ", "\n", " \n", "\u00a0", "  "])
def test_a_unit_in_the_next_line_stands_beside_its_number(space):
    found = figures_in(f"Der Verein sammelte 14.000{space}Euro und 20{space}Bücher.", "de")

    assert [(one.value, one.of) for one in found][:1] == [("14.000", "Euro")]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("The ride lasts about 1 hr 50 min.", [("1 hr 50 min", "")]),
        ("It takes 1 hour and 50 minutes to walk.", [("1 hour and 50 minutes", "")]),
        ("It weighs 3 lb 4 oz.", [("3 lb 4 oz", "")]),
        ("He is 5 ft 11 tall.", []),
        ("It takes 3 days and 200 euros.", [("3", "days"), ("200", "euros")]),
        ("It costs $5 for under-18s.", [("$5", "for under-18s")]),
        ("Entry is €5 for children and €9 for adults.", [("€5", "for children"), ("€9", "for adults")]),
        ("It gave $5 for those who had lost what they owned.", []),
        ("The fare is £2.40 per person.", [("£2.40", "per person")]),
    ],
)
def test_a_quantity_is_shown_whole_and_a_price_with_what_it_is_for(text, shown):
    assert [(one.value, one.of) for one in figures_in(text, "en")] == shown


def test_german_hours_and_minutes_are_not_shown_in_part():
    assert figures_in("Die Fahrt dauert 1 Std. 50 Min. im Sommer.", "de") == ()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("The 412-space car park opens.", False),
        ("There are 412 of them.", False),
        ("There are 412 calls.", True),
        ("It costs $412.", True),
        ("It grew by 38%.", True),
        ("It lasts 1 hr 50 min.", True),
    ],
)
def test_a_bare_number_says_nothing(text, shown):
    assert [one.says_what for one in figures_in(text, "en")] == [shown]


COUNTED = {
    "en": {
        "140 seats on Monday": "seats",
        "412 calls about engines": "calls",
        "94 minutes at the quay": "minutes",
        "400 new homes last year": "new homes",
        "11 per cent of all the oxides": "per cent",
        "300 people came": "people",
        "412 calls, twice as many": "calls",
        "330 carpenters, potters and bicycle builders": "",
        "300 men and women": "",
        "400-seat hall has opened": "",
        "140 came to the fair": "",
        "140 of them left": "",
        "140 opened their doors": "",
        "140 visited museums": "",
        "140 is enough": "",
    },
    "de": {
        "43 000 Kubikmeter Wasser": "Kubikmeter",
        "300 neue Bäume gepflanzt": "neue Bäume",
        "120 Millionen Kronen": "Millionen Kronen",
        "500 Gäste am Montag": "Gäste",
        "140 am Montag": "",
        "330 Tischler, Töpfer und Schlosser": "",
        "140 kamen zu spät": "",
        "140 wurden verkauft": "",
        "140 der Häuser": "",
        "140 oder mehr Leute": "",
        "140 unter ihnen": "",
    },
    "fr": {
        "41 500 voyageurs par jour": "voyageurs",
        "500 nouveaux postes": "nouveaux postes",
        "300 élèves le lundi": "élèves",
        "250 maisons vendues": "maisons",
        "140 sont venus": "",
        "300 hommes et femmes": "",
        "140 ont voté": "",
        "140 par jour": "",
        "140 mais pas plus": "",
        "140 lundi": "",
        "140 dans la ville": "",
    },
    "es": {
        "300 nuevos puestos": "nuevos puestos",
        "500 personas en la plaza": "personas",
        "250 libros vendidos": "libros",
        "120 casas rurales": "casas",
        "140 vinieron ayer": "",
        "140 de ellos": "",
        "140 en mayo": "",
        "140 para todos": "",
        "140 después de todo": "",
        "140 más que ayer": "",
    },
    "it": {
        "250 nuovi posti": "nuovi posti",
        "500 persone in piazza": "persone",
        "120 libri venduti": "libri",
        "300 case": "case",
        "140 sono venuti": "",
        "140 di loro": "",
        "140 in maggio": "",
        "140 hanno votato": "",
        "140 dopo la festa": "",
        "140 sempre": "",
    },
    "pt": {
        "250 novos lugares": "novos lugares",
        "500 pessoas na praça": "pessoas",
        "120 livros vendidos": "livros",
        "300 casas": "casas",
        "140 vieram ontem": "",
        "140 deles": "",
        "140 em maio": "",
        "140 para todos": "",
    },
}


@pytest.mark.parametrize(
    ("language", "text", "of"),
    [(language, text, of) for language, cases in COUNTED.items() for text, of in cases.items()],
)
def test_only_the_noun_that_is_counted_stands_beside_it(language, text, of):
    assert [one.of for one in figures_in(text, language)] == [of]
