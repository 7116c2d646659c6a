"""Numbers and quotations that a source does or doesn't hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.grounding import find_misquotations, find_quoted_texts, find_unsupported_number_texts


@pytest.mark.parametrize(
    ("draft", "source"),
    [
        ("1,000 people", "1000 people"),
        ("1000 people", "1,000 people"),
        ("1\u202f000 people", "1,000 people"),
        ("1.000 Leute", "1000 Leute"),
        ("1'000'000 Franken", "1,000,000 francs"),
        ("1.234.567,50 €", "€1,234,567.5"),
        ("3.50 dollars", "3,5 Dollar"),
        ("007", "7"),
        ("0.5", "0.50"),
        ("٤٢ loaves", "42 loaves"),
        ("version 2.0.1", "version 2.0.1"),
        ("no number", "none either"),
        ("See https://a.com/2019/x", "no number"),
        ("14 to 9", "It was 9 against 14."),
        ("Traffic will fall by a third.", "Traffic will fall by a third during the works."),
        ("It fell by a third.", "By a third since 2019 it fell."),
        ("Um ein Drittel weniger.", "Es wurde um ein Drittel seit Mai weniger."),
    ],
)
def test_numbers_of_the_source_are_grounded(draft: str, source: str) -> None:
    assert find_unsupported_number_texts(draft, source) == ()


@pytest.mark.parametrize(
    ("draft", "source", "strange"),
    [
        ("48 percent", "38 percent", ("48 percent",)),
        ("10 thousand of 1000", "1,000", ("10 thousand",)),
        ("1.5", "15", ("1.5",)),
        ("15", "1.5", ("15",)),
        ("1,000", "1", ("1,000",)),
        ("2 and 3 and 4", "3", ("2", "4")),
        ("2019", "see https://a.com/2019", ("2019",)),
        ("2.0.1", "2.0.2", ("2.0.1",)),
        ("9" * 80, "9" * 79, ("9" * 80,)),
        ("It fell by a third.", "A third runner fell.", ("third",)),
        ("It fell by a third.", "It fell by a quarter during the works.", ("third",)),
    ],
)
def test_other_numbers_are_named(draft: str, source: str, strange: tuple[str, ...]) -> None:
    assert find_unsupported_number_texts(draft, source) == strange


def test_a_word_of_another_language_is_no_number() -> None:
    source = (
        "Nowy most otwarto w piątek. Miasto zapłaciło za niego 40 milionów złotych, a prace trwały trzy lata."
    )
    assert find_unsupported_number_texts("Ten most otwarto w piątek.", source) == ()
    assert find_unsupported_number_texts(
        "Ten cranes stand in the harbour.", "The cranes stand in the harbour."
    ) == ("Ten",)


@given(st.text(alphabet=st.one_of(st.characters(), st.sampled_from("0123456789.,' "))))
def test_text_is_grounded_in_itself(text: str) -> None:
    assert find_unsupported_number_texts(text, text) == ()
    assert find_misquotations(text, text) == ()


@pytest.mark.parametrize("space", ["\n", " \n", "  ", "\u00a0\n  "])
def test_a_unit_behind_the_end_of_a_line_belongs_to_its_number(space: str) -> None:
    wrapped = f"Der Verein sammelte im Jahr 14.000{space}Euro für die Feuerwehr."

    assert find_unsupported_number_texts("Der Verein sammelte 14.000 Euro.", wrapped) == ()
    assert find_unsupported_number_texts(f"14.000{space}Euro für die Feuerwehr.", wrapped) == ()
    assert find_unsupported_number_texts("14.000 Liter für die Feuerwehr.", wrapped) == ("14.000 Liter",)


def test_quotations_are_found_in_all_marks() -> None:
    text = (
        "“We have waited.” „Wir warteten lang.“ «On a attendu.» 「長い間ずっと待っていました」 "
        '"It was so long." “So few.”'
    )

    assert find_quoted_texts(text) == (
        "We have waited.",
        "Wir warteten lang.",
        "On a attendu.",
        "長い間ずっと待っていました",
        "It was so long.",
        "So few.",
    )


@pytest.mark.parametrize(
    ("draft", "source", "strange"),
    [
        ("“We have waited long”", 'She said: "We  have\nwaited long enough."', ()),
        ("“We haven’t waited,” she said.", "We haven't waited", ()),
        ("“We have waited longer”", "We have waited long", ("We have waited longer",)),
        ("“so-called”", "nothing", ()),
        ("a “big deal” for all", "nothing", ()),
        ("“We lied,” she said.", "nothing", ("We lied,",)),
        ("”Vi har väntat länge”, säger hon.", "Vi väntar.", ("Vi har väntat länge",)),
        ("”Vi har väntat länge”, säger hon.", "Hon säger: ”Vi har väntat länge.”", ()),
        ("Hän sanoo: »Me odotimme kauan»", "Me odotamme.", ("Me odotimme kauan",)),
        ("«Мы готовы», — сказала она.", "Мы ждали.", ("Мы готовы",)),
        ("Она сказала: «Мы готовы»", "Мы ждали. Мы готовы.", ()),
        ("Газета «Новый день» вышла.", "Мы ждали.", ()),
        ("市長は「私は行きません」と述べた。", "市長は行く。", ("私は行きません",)),
        ("ראש העיר אמר: ״חיכינו זמן רב״", "ראש העיר חיכה.", ("חיכינו זמן רב",)),
        ("דובר צה״ל אמר וגם מנכ״ל החברה", "המועצה הצביעה.", ()),
        ("市長は「安全」と述べた。", "市長は行く。", ()),
        ("市長は『もう嫌だ』と話した。", "市長は行く。", ("もう嫌だ",)),
        ("”Aldrig mer”, säger hon.", "Hon väntar.", ("Aldrig mer",)),
        ("״לא נבנה את הקו״, אמרה דנה.", "דנה חיכתה.", ("לא נבנה את הקו",)),
        ('ארה"ב הודיעה: "לא נבנה את הקו".', 'ארה"ב חיכתה.', ("לא נבנה את הקו",)),
        ('״צה"ל בנה את הקו״, אמרה.', 'דנה: "צה״ל בנה את הקו".', ()),
    ],
)
def test_quotations_have_to_stand_in_the_source(draft: str, source: str, strange: tuple[str, ...]) -> None:
    assert tuple(one.text for one in find_misquotations(draft, source)) == strange


def test_a_quotation_that_is_cut_in_one_part_ends_there() -> None:
    source = "„We paid for it. Nobody asked us. It was in May,“ she said. “It rained,” he said."
    draft = "„We paid for it. Nobody asked us.…\n|\nIt rained in the end of the month, “It rained,” he said."
    assert find_quoted_texts(draft) == ("We paid for it. Nobody asked us.…", "It rained,")
    assert find_misquotations(draft, source) == ()
    # What is cut is compared too.
    (cut,) = find_misquotations(draft.replace("paid", "begged"), source)
    assert cut.text == "We begged for it. Nobody asked us.…"
