"""What the writer without a model takes of minutes, press releases, letters, by-laws: nothing that only looks like a sentence."""

from __future__ import annotations

import pytest

from pipeline.engines.base import PersonaCard, SourceText
from pipeline.engines.blog_article import PLUGIN as BLOG
from pipeline.text.plain_text import seen_text
from pipeline.text.verbatim_edits import clause_cuts, trim_conjunction
from pipeline.writers.extractive import PLUGIN, find_facts

DECIDED = "The council agreed to pay 2,000 pounds towards the footbridge at Millrace.\n\nThe meeting closed at 20:45 in the hall."


def facts(text):
    return [fact.text for fact in sorted(find_facts(text), key=lambda fact: fact.start)]


@pytest.mark.parametrize(
    "line",
    [
        "Present: Edwin Marsh (chair), Greta Halloran, Owen Strand, Mira Holm (clerk)",
        "A guided tour through the show “The river and its people”",
        "Carried: 3 to 0.",
        "Office manager | Holm & Sons Ltd.",
        "4.2.0 – 2027-02-03.",
        "Open: Mon–Fri 7:00–14:00, Sat 6:00–15:00",
        "Geöffnet: Mo–Fr 9–17 Uhr",
    ],
)
def test_a_line_that_says_nothing_by_itself_is_no_sentence(line):
    assert facts(f"{line}\n\n{DECIDED}") == DECIDED.split("\n\n")


def test_the_number_of_a_paragraph_is_no_word_of_it():
    law = (
        "(1) Hunde sind an einer Leine zu führen.\n(2) Auf der Wiese am Wehr dürfen Hunde ohne Leine laufen."
    )
    assert facts(law) == [
        "Hunde sind an einer Leine zu führen.",
        "Auf der Wiese am Wehr dürfen Hunde ohne Leine laufen.",
    ]


@pytest.mark.parametrize("close", ["Yours faithfully,", "Kind regards", "Mit freundlichen Grüßen"])
def test_what_the_writer_of_a_letter_says_of_herself_stays_hers(close):
    letter = (
        "I am 81 years old and walk to the chemist twice a week. A bench costs 340 pounds and lasts for twenty years. "
        f"My late husband proposed to me on the one by the well.\n\n{close}\nDorothy Pell"
    )
    assert facts(letter) == ["A bench costs 340 pounds and lasts for twenty years."]


@pytest.mark.parametrize(
    "sentence",
    [
        "Kiel, 14. Februar 2027 – Die Reederei nimmt am 3. Mai die erste Fähre in Betrieb.",
        "Cedar Falls, 3 March 2027 — The mill opens again after nine years.",
        "By the time she retired in 2004, more than 6,000 children had learned to swim.",
        "Wenn das Wasser steigt, schließt die Stadt das Tor am Hafen.",
    ],
)
def test_what_comes_before_the_statement_is_not_left_alone(sentence):
    assert clause_cuts(sentence) == ()


def test_a_sentence_is_still_cut_behind_its_statement():
    assert clause_cuts("The mill opens again in March, nine years after the fire.") == (
        "The mill opens again in March…",
    )


def test_the_first_word_has_a_capital_letter():
    assert (
        trim_conjunction("please note that the office is closed.") == "Please note that the office is closed."
    )
    assert trim_conjunction("iPhone owners wait.") == "iPhone owners wait."
    assert trim_conjunction("https://a.example is down.") == "https://a.example is down."


RELEASE = """PRESSEMITTEILUNG – zur sofortigen Veröffentlichung

Die Reederei Fördeline nimmt am 3. Mai die erste Wasserstofffähre der Ostsee in Betrieb. Das Schiff fasst 150 Fahrgäste und \
20 Fahrräder und fährt zwischen Kiel und Laboe. Der Bau auf der Werft in Stralsund dauerte 19 Monate und kostete 11,3 Millionen \
Euro. Das Land Schleswig-Holstein fördert das Schiff mit 40 Prozent.

Die Reederei betreibt seit 1964 neun Fähren. Im vergangenen Jahr fuhren 2,1 Millionen Menschen mit den Fähren der Reederei. Im \
Sommer legen die Schiffe in Kiel alle zwanzig Minuten ab, im Winter jede Stunde. Eine Fahrt kostet 3,20 Euro, Kinder zahlen die \
Hälfte. Fahrräder kosten 1,50 Euro."""


@pytest.mark.parametrize(
    ("title", "named"),
    [
        ("Die erste Wasserstofffähre", "in „Die erste Wasserstofffähre“.*"),
        ("„Wir sparen Diesel“", "in „Wir sparen Diesel“.*"),
    ],
)
def test_an_excerpt_names_its_source_in_the_marks_of_its_language(title, named):
    source = SourceText(title, seen_text(RELEASE, "markdown"), language="de")
    [draft] = PLUGIN.draft(BLOG, PLUGIN.brief(source).brief, PersonaCard("Desk"), variants=1, seed="1").drafts
    assert draft.body.partition("\n")[0].endswith(named)
    assert "PRESSEMITTEILUNG" not in draft.body
