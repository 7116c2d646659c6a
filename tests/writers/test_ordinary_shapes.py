"""What the writer without a model takes of minutes, press releases, letters, by-laws: nothing that only looks like a sentence."""

from __future__ import annotations

import pytest

from pipeline.engines.base import PersonaCard, SourceText
from pipeline.engines.blog_article import PLUGIN as BLOG
from pipeline.engines.checks.newsletters import choose_preheader
from pipeline.text.plain_text import seen_text
from pipeline.text.prose.verbatim_edits import clause_cuts, trim_conjunction
from pipeline.writers.extractive import PLUGIN
from pipeline.writers.extractive.telling_sentences import find_facts

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


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (
            "Will the pier be rebuilt? Not before 2029, says the harbour board. Who will pay for it? Mostly the county, which has set aside £8.4m.",
            [],
        ),
        ("¿Qué queda del edificio de 1926? Poco, reconoce el arquitecto Luis Mora.", []),
        ("Est-ce la fin ? Pas tout à fait : deux boulangers restent dans la rue.", []),
        ("Chi ci lavorerà? Undici persone, di cui otto di Pescia.", []),
        ("Who pays for the pier?\n\nMostly the county of Ash.", []),
        (
            "Who pays for the pier?\n\nTess Ould, the mayor, says that the county of Ash pays.",
            ["Who pays for the pier?", "Tess Ould, the mayor, says that the county of Ash pays."],
        ),
        (
            "Who pays for the pier? The county of Ash has set aside £8.4m for it.",
            ["Who pays for the pier?", "The county of Ash has set aside £8.4m for it."],
        ),
    ],
)
def test_an_answer_without_a_verb_goes_with_its_question(text, left):
    assert facts(f"{text}\n\n{DECIDED}") == left + DECIDED.split("\n\n")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            '"Nobody on this council wanted to be the one to shut it," said Cllr Dermot Hayes, who chairs the committee.',
            '"But I will not sign my name under a building that leaks."',
        ),
        (
            "„Wir wollten das Bad nie schließen“, sagte Bürgermeister Jan Holm.",
            "„Aber das Dach ist undicht und fällt bald.“",
        ),
        (
            "« Personne ne voulait fermer », dit le maire, Jean Roux.",
            "« Mais le toit fuit depuis trois ans. »",
        ),
        (
            '"Nadie quería cerrarla", dijo la alcaldesa, Ana Ruiz.',
            '"Pero el techo gotea desde hace tres años."',
        ),
    ],
)
def test_speech_is_not_told_without_its_turn(first, second):
    assert first not in facts(f"{first} {second}\n\n{DECIDED}")


def test_what_another_says_against_it_leaves_speech_as_it_is():
    first = '"Nobody on this council wanted to shut it," said Cllr Dermot Hayes.'
    assert first in facts(f'{first} "But the roof leaks," said Tess Ould.\n\n{DECIDED}')


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


@pytest.mark.parametrize(
    ("line", "never"),
    [
        ("It took approx. 40 men and max. 3 cranes to build it, see Fig. 2 on the board.", "3 cranes"),
        ("They are still in court with the town over damages of est. £2.1 m. plus costs.", "£2.1"),
        ("Repairs will cost c. £3,800 (incl. VAT).", "£3,800"),
        ("The police have given us the crime ref. 4471/B.", "4471"),
        (
            "Book at the box office, (555) 010-4477, Tue.-Sat. 11 a.m.-5 p.m. No refunds after Dec. 4.",
            "11 a.m.",
        ),
        ("जिला अधिकारी डॉ. अमित वर्मा के अनुसार पुल दो महीने बंद रहेगा।", "अमित"),
        ("«A ponte abre em maio», disse o eng. Rui Falcão, diretor da obra.", "Rui"),
        ("– Most wytrzyma ok. 6 lat – mówi dyr. Ewa Lis z zarządu dróg.", "6 lat"),
        ("Rovers 3 (Okoye 12, 90+4; Lund 55 pen.) United 2 (Baptiste 31, 78).", "United"),
    ],
)
def test_no_fact_begins_or_ends_at_a_short_form(line, never):
    found = facts(f"{DECIDED}\n\n{line}")
    assert not any(one.startswith(never) for one in found)
    assert not any(
        one.endswith((" est.", " c.", " ref.", " eng.", " dyr.", " ok.", " max.", " pen.)")) for one in found
    )


def test_what_breaks_off_behind_a_short_form_is_no_fact():
    assert facts(f"{DECIDED}\n\nThe fee of the hall is about 20 pounds, incl.\n\n- tea") == DECIDED.split(
        "\n\n"
    )


def test_the_marks_of_notes_are_in_no_fact():
    noted = "The lake rose by two metres.[1] It fell again in May.[2][3] About 40 houses were hit.[citation needed] The road is open."
    assert facts(noted) == [
        "The lake rose by two metres.",
        "It fell again in May.",
        "About 40 houses were hit.",
        "The road is open.",
    ]


def test_marks_of_notes_in_markdown_are_no_words():
    body = "The lake rose by two metres[^1] and fell again in May.[^b]\n\nAn array is `x[^1]`.\n\n[^1]: Says the board."
    seen = seen_text(body, "markdown")
    assert "rose by two metres and fell again in May.\n" in seen
    assert "x[^1]" in seen


LIBRARY = (
    "市立図書館は来月から延長する。町が二千人の住民に聞いた。駐車場（北側）は午後10時15分まで使える。館長は仕事の帰りに寄ってほしいと話した。図書館は1964年に開いた。"
    "蔵書は約12万冊ある。来年の春には新しい児童室も開く予定だ。工事の費用は約3億円で、県が半分を負担する。市民からは歓迎の声が上がっている。"
    "図書館の前のバス停も新しくなる。カフェは午前9時に開く。毎週土曜日には子ども向けの読み聞かせの会が開かれる。自転車は無料で止められる。"
)


def test_japanese_has_no_space_behind_its_full_stop():
    source = SourceText("図書館が延長", LIBRARY, language="ja", url="https://a.example/")
    brief = PLUGIN.brief(source).brief
    [draft] = PLUGIN.draft(BLOG, brief, PersonaCard("Desk"), variants=1, seed="1").drafts
    assert draft.content["meta_description"].count("。") > 1
    assert "。 " not in draft.content["meta_description"]
    preheader, _ = choose_preheader([(fact.quote, fact) for fact in brief.facts], "図書館")
    assert preheader.count("。") > 1
    assert "。 " not in preheader


NEWS = "The old mill by the weir opens to visitors again after nine years of work."


@pytest.mark.parametrize(
    "said",
    [
        "The post Storm takes roof off bandstand appeared first on Ashby News.",
        "We may earn a commission.",
        "Forward-looking statements: This release contains statements that involve risks and uncertainties.",
        "If you buy something through our links, we may earn a small commission.",
        "Subscribe to our newsletter!",
        "MAYA: We'll be right back after this.",
        "HOST (Maya): Welcome back to Slow Trains.",
        "Der Beitrag Sturm deckt Pavillon ab erschien zuerst auf Ashby News.",
        "Abonnieren Sie unseren Newsletter!",
        "L’article Le vieux moulin rouvre est apparu en premier sur Ashby News.",
        "Suscríbete a nuestro boletín semanal.",
        "[^1]: There's no release in the week of 21 December.",
        "[^1]: There's no release in the week of 21 December. The next one follows in January of 2027.",
        "On Mon, 16 Nov 2026 at 10:03, Jo Hart <jo@example.org> wrote:\n> Is the roof insured by the council?\n>\n> It was in 1998.",
        "Am 16.11.2026 um 10:03 schrieb Jo Hart:\n\n> Ist das Dach bei der Stadt versichert?\n> Es war es 1998.",
    ],
)
def test_what_a_site_a_host_or_a_note_says_is_no_fact(said):
    assert facts(f"{NEWS}\n\n{said}") == [NEWS]


@pytest.mark.parametrize(
    "said",
    [
        "The post of head gardener appeared in the budget for the first time.",
        "Brokers earn a commission of 3 % on each house.",
        "The club welcomes new members to its hall on Friday.",
        "Visitors who sign up for the newsletter at the desk pay half.",
    ],
)
def test_what_only_sounds_like_it_stays(said):
    assert said in facts(f"{NEWS}\n\n{said}")


@pytest.mark.parametrize(
    "dateline",
    [
        "HALLOW, Nov. 17 — ",
        "LEEDS, England, Nov. 25, 2026 /NewsWire/ -- ",
        "LONDON (Reuters) - ",
        "MÜNCHEN, 17. November 2026 – ",
    ],
)
def test_a_dateline_is_no_part_of_its_sentence(dateline):
    assert facts(f"{dateline}{NEWS} It costs 4 pounds.")[0] == NEWS
    assert facts("Москва — Столица России и её самый большой город.") == [
        "Москва — Столица России и её самый большой город."
    ]
