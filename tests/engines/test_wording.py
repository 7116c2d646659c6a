"""The edits that a verbatim sentence may undergo."""

from __future__ import annotations

import pytest

from pipeline.engines.base import Brief, Claim, Draft, PersonaCard, SourceText
from pipeline.engines.checks.grounded import check_grounding
from pipeline.text.prose.anaphora import leaves_speaker_open, points_back
from pipeline.text.prose.verbatim_edits import (
    begins_whole,
    clause_cuts,
    collapse,
    drop_asides,
    first_words,
    is_balanced,
    is_beheaded,
    is_clean,
    is_self_contained,
    leans_back,
    opens_dangling,
    paragraph_of,
    trim_conjunction,
)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("But opponents warned.", "Opponents warned."),
        ("However, opponents warned.", "Opponents warned."),
        ("So the council voted.", "The council voted."),
        ("So, the council voted.", "The council voted."),
        ("Butter is dear.", "Butter is dear."),
        ("But", "But"),
    ],
)
def test_leading_conjunction_is_trimmed(sentence: str, expected: str) -> None:
    assert trim_conjunction(sentence) == expected


@pytest.mark.parametrize(
    "sentence",
    [
        "“And opponents warned,” he said.",
        '"But for my neighbours, I\'d have lost the oven and everything that I own," said the baker, Tess Ould.',
        '"So what do they expect us to do, sleep in the loft?" asked Tess Ould.',
        '"But we offered 6.5% in May," Cross said.',
        "So far they've raised £71,400.",
        "So far 212 people have given £9,400 to the appeal.",
        "So many slates are missing that swallows nest in the loft.",
        "So strong was the wind that the pier broke.",
        "But for the frogs, nobody would mind the mud.",
        "But only if it rains.",
        "However hard the wind blew, nobody left.",
        "Or so the council says.",
        "So viele Züge wurden verpasst, dass die Bahn 61.000 Euro zahlt.",
        "So kostet die Reparatur 61.000 Euro.",
        "Also bleibt das Bad bis Mai zu.",
        "Or blanc et fer noir, la lanterne brille depuis 1802.",
        "But contre son camp à la 89e minute.",
        "And med rødkål koster 40 kroner.",
    ],
)
def test_a_first_word_that_belongs_to_the_sentence_is_never_cut(sentence: str) -> None:
    assert trim_conjunction(sentence) == sentence


@pytest.mark.parametrize(
    ("words", "quote", "is_cut"),
    [
        ("Far they've raised £71,400.", "So far they've raised £71,400.", True),
        ("For the frogs, nobody would mind the mud.", "But for the frogs, nobody would mind the mud.", True),
        ("Opponents warned of it.", "But opponents warned of it.", False),
        ("So far they've raised £71,400.", "So far they've raised £71,400.", False),
    ],
)
def test_a_cut_of_a_word_that_belongs_to_the_sentence_is_seen(words: str, quote: str, is_cut: bool) -> None:
    assert is_beheaded(words, quote) is is_cut
    assert begins_whole(words, quote) is not is_cut


def test_a_draft_with_such_a_cut_fails() -> None:
    source = SourceText("Appeal", "So far they've raised £71,400 for the oven.", language="en")
    words = "Far they've raised £71,400 for the oven."
    claim = Claim(words, source.text, 0, len(source.text))
    draft = Draft(words, words, "text", {"parts": [words]}, (claim,), "en")
    checks = check_grounding(draft, Brief("Appeal", "en", "", ()), source, PersonaCard("Ann"))

    assert [one.code for one in checks if one.outcome == "failed"] == ["support"]


@pytest.mark.parametrize(
    "sentence",
    [
        "So far 212 people have given £9,400 to the appeal.",
        "So many slates are missing that swallows nest in the loft.",
        "But for the frogs, nobody would mind the mud.",
        "So viele Züge wurden verpasst, dass die Bahn 61.000 Euro zahlt.",
    ],
)
def test_a_first_word_that_is_no_connective_points_at_nothing(sentence: str) -> None:
    assert is_self_contained(sentence) is True


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Eight stops (two below ground), and more.", "Eight stops, and more."),
        ("He said [sic] so (twice).", "He said so."),
        ("It is 1(one)2 here.", "It is 1 2 here."),
        ("Left open (here.", "Left open (here."),
    ],
)
def test_asides_are_dropped(sentence: str, expected: str) -> None:
    assert drop_asides(sentence) == expected


def test_cuts_stand_at_clause_edges_longest_first() -> None:
    assert clause_cuts("The line is late, as expected; work goes on: slowly.") == (
        "The line is late, as expected; work goes on…",
        "The line is late, as expected…",
        "The line is late…",
    )


def test_no_cut_changes_what_is_said() -> None:
    assert clause_cuts("The pill is safe, unless taken with wine, but costly.") == ()
    assert clause_cuts("“We won, at last, today,” said Ann.") == ()
    assert clause_cuts("The mayor said, “We waited for two years.”") == ()
    assert clause_cuts("समूह की अध्यक्ष सुनीता देवी ने कहा, “हमने इंतज़ार किया।”") == ()
    assert clause_cuts("“We won it at last,” said the baker, Tess Ould.") == ()
    assert clause_cuts("„Wir haben gewonnen“, sagte Anna Berg.") == ()
    assert clause_cuts("“We won it at last,” said Tess Ould, a baker.") == (
        "“We won it at last,” said Tess Ould…",
    )
    assert clause_cuts("It cost 1,500 (or so, they say) then.") == ()


@pytest.mark.parametrize(
    "sentence",
    [
        "He left.",
        "“It's so,” she said.",
        "'That’s it'",
        "These rose.",
        "But yes.",
        "They’re in.",
        "Er sagte nichts.",
        "Elle a dit non.",
        "Il a dit non.",
        "Hij zei niets.",
        "Он сказал нет.",
        "הוא אמר לא.",
    ],
)
def test_dangling_openings_are_seen_through_quotation_marks(sentence: str) -> None:
    assert opens_dangling(sentence) is True
    assert is_self_contained(sentence) is False


@pytest.mark.parametrize(
    "sentence",
    [
        "Heat rose.",
        "“We won,” said Ann.",
        "Italy voted.",
        "42 came.",
        "今日は晴れ。",
        "Es gibt 40 Bäume.",
        "Il y a 40 arbres.",
        "Il faut 40 arbres.",
        "Han Kang won.",
        "Elle Macpherson won.",
    ],
)
def test_other_openings_stand_alone(sentence: str) -> None:
    assert opens_dangling(sentence) is False
    assert is_self_contained(sentence) is True


LEANING = [
    "Of these, eleven were children.",
    "Of them, two stayed.",
    "The other two were unhurt.",
    "Both were taken to hospital.",
    "Both cranes lift forty tonnes.",
    "The figure rose to 40 percent.",
    "Eleven of them were children.",
    "Two were hurt.",
    "A year later the bridge was closed.",
    "Davon waren elf Kinder.",
    "Elf davon waren Kinder.",
    "Die anderen beiden blieben unverletzt.",
    "Beide wurden ins Krankenhaus gebracht.",
    "Diese Zahl stieg auf 40.",
    "Die Hälfte von ihnen kam zu Fuß.",
    "Das entspricht 40 Prozent.",
    "Sie wurde 1974 gebaut.",
    "Parmi eux, onze étaient des enfants.",
    "Onze d’entre eux étaient des enfants.",
    "Les deux autres sont indemnes.",
    "Ce chiffre a augmenté.",
    "Ses 40 chambres sont pleines.",
    "De ellos, once eran niños.",
    "Once de ellos eran niños.",
    "Los otros dos resultaron ilesos.",
    "Ambos fueron trasladados.",
    "Esta cifra subió a 40.",
    "Di questi, undici erano bambini.",
    "Gli altri due sono illesi.",
    "Entrambi sono stati portati in ospedale.",
    "Questa cifra è salita.",
    "Destes, onze eram crianças.",
    "Ambos foram levados.",
    "Os outros dois ficaram ilesos.",
    "Daarvan waren elf kinderen.",
    "De andere twee bleven ongedeerd.",
    "Z nich jedenaście to dzieci.",
    "Oba zostały zamknięte.",
    "Из них одиннадцать — дети.",
    "Оба были доставлены в больницу.",
    "Эта цифра выросла.",
    "З них одинадцять — діти.",
    "其中十一人是儿童。",
    "这一数字上升到40。",
    "このうち11人は子どもだった。",
    "이 중 11명은 어린이였다.",
    "Bunların on biri çocuktu.",
    "Από αυτούς, έντεκα ήταν παιδιά.",
    "Av dem var elva barn.",
    "Begge ble kjørt til sykehus.",
    "منهم أحد عشر طفلا.",
    "מתוכם אחד עשר ילדים.",
    "इनमें ग्यारह बच्चे थे।",
    "Das ist das Vierfache des alten Preises.",
    "Son prix a doublé.",
    "Der Rest ging nach Hause.",
    "On the same day the bank closed.",
    "Остальные вернулись домой.",
    "其余的人回家了。",
]

ALONE = [
    "The harbour has three cranes.",
    "In this town of Harrow the mills stand still.",
    "One of the largest cranes fell.",
    "Both Ann and Bob voted against it.",
    "Ten people were hurt in Łuków.",
    "To save money the council closed the baths.",
    "On Monday the city opened the bridge.",
    "The other day care centres in Leeds reopened.",
    "The total cost of the bridge is 4 million.",
    "The number of births rose.",
    "Several people were hurt on Monday.",
    "Some 40 people were hurt.",
    "Two men were hurt.",
    "In diesem Jahr feiert der Verein sein Jubiläum.",
    "Diese Woche öffnet das Museum.",
    "Die Stadt baut eine Brücke.",
    "Die Zahl der Geburten stieg.",
    "Sie können die Karten an der Kasse kaufen.",
    "Es gibt 40 Bäume.",
    "Zwei Männer wurden verletzt.",
    "Cette année, la ville construit un pont.",
    "Ce samedi, le musée ouvre.",
    "La ville a deux ponts.",
    "Le nombre de naissances a augmenté.",
    "C’est la ville qui paie le pont.",
    "Este año la ciudad construye un puente.",
    "Dos hombres resultaron heridos.",
    "Los vecinos de la calle protestan.",
    "No hay dinero para el puente.",
    "Quest’anno la città costruisce un ponte.",
    "La città ha due ponti.",
    "Este ano a cidade constrói uma ponte.",
    "O carro é vermelho.",
    "A cidade tem duas pontes.",
    "Deze week opent het museum.",
    "De gemeente bouwt een brug.",
    "Het museum is open.",
    "Z Warszawy do Krakowa jedzie pociąg.",
    "W tym roku miasto buduje most.",
    "В этом году город строит мост.",
    "На этой неделе откроется музей.",
    "Город строит мост.",
    "市议会决定建一座新桥。",
    "今年夏天桥开放。",
    "この夏、橋が開く。",
    "이번 주 박물관이 문을 연다.",
    "Bu yıl belediye köprü yapıyor.",
    "Kommunen bygger en bro.",
    "Det finns 40 personer på mötet.",
    "Den nya bron kostar 4 miljoner.",
    "هذا العام تبني المدينة جسرا.",
    "इस साल शहर पुल बनाता है।",
    "Ten new trams came in May.",
    "One city in Poland voted on it.",
    "All of the cranes are green.",
    "Most people in Harrow walk to work.",
    "De gauche à droite, les maires se saluent.",
]


@pytest.mark.parametrize("sentence", LEANING)
def test_a_sentence_that_begins_with_what_another_one_said_does_not_stand_alone(sentence: str) -> None:
    assert points_back(sentence) is True
    assert is_self_contained(sentence) is False


@pytest.mark.parametrize("sentence", ALONE)
def test_times_numbers_and_names_at_the_start_lean_on_nothing(sentence: str) -> None:
    assert points_back(sentence) is False


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("it", "Il restauro è costato 2 milioni di euro."),
        ("it-IT", "Il biglietto intero costa 8 euro."),
        ("it", "Il lunedì resta chiuso."),
        ("pt", "Lei que proíbe fogos entra em vigor."),
        ("es", "Son 40 los vecinos de la calle Mayor."),
        ("fr", "Dette publique : 40 milliards de plus en un an."),
        ("fr", "Or blanc et fer noir, la lanterne brille depuis 1802."),
        ("tr", "Son yıllarda nüfus arttı."),
        ("da", "Er der plads til 40 børn?"),
        ("nl", "Er zijn 40 bomen in het park."),
        ("ro", "Este nevoie de 40 de voluntari."),
    ],
)
def test_a_word_is_a_pronoun_in_its_own_language_only(language: str, sentence: str) -> None:
    assert leans_back(sentence, language) is False


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("fr", "Il a dit non."),
        ("fr", "Elle a dit non."),
        ("en", "He left on Monday."),
        ("de", "So kostet die Reparatur 61.000 Euro."),
        ("de", "Davon waren elf Kinder."),
        ("pt", "Ela disse não."),
        # A sentence in another language than its text.
        ("it", "They said that it was not the work of the council."),
    ],
)
def test_a_pronoun_of_the_text_s_language_points_back(language: str, sentence: str) -> None:
    assert leans_back(sentence, language) is True


@pytest.mark.parametrize(
    "sentence",
    [
        "We are told that he has ordered new seed.",
        "Owners of the H2-S can skip this step.",
        "We open there on Sat 5 Dec @ 10am with tea and cake.",
        "Inspectors looked at it on Thursday and found nothing.",
        "So far they've raised £71,400.",
        "In 2019 they moved to Leeds.",
        "Retailers there expect sales to fall by a third.",
        '"Nobody asked us about the mill," said his colleague, Anna de la Cruz.',
        "„Niemand hat uns gefragt“, sagte seine Kollegin Anna Berg.",
        "« Personne ne nous a demandé », a déclaré son collègue, Jean Dupont.",
        '"Nadie nos preguntó", dijo su colega, Ana Ruiz.',
        "Besitzer des H2-S können diesen Schritt überspringen.",
        "Les propriétaires du H2-S peuvent sauter cette étape.",
    ],
)
def test_a_word_in_the_middle_that_stands_for_nothing_in_its_sentence_leans_back(sentence: str) -> None:
    assert is_self_contained(sentence) is False


@pytest.mark.parametrize(
    "sentence",
    [
        "The farmer said that he had ordered new seed.",
        "Anna says that she will go.",
        "Nobody knows how many bees there are.",
        "Residents say that there were 40 dogs.",
        "The hall in Leeds is open, and people meet there.",
        "When she retired in 2004, Ann Berg had taught 6,000 children.",
        "In his first year, Mayor Berg sold the hall.",
        "The town built a bath and paid 4 million for it.",
        '"We open there on Saturday," said Ann Berg.',
        "Bussen stopper her klokken 9.",
        "Call this number: 0800.",
    ],
)
def test_what_a_word_stands_for_may_be_named_in_its_sentence(sentence: str) -> None:
    assert is_self_contained(sentence) is True


@pytest.mark.parametrize(
    ("sentence", "is_open"),
    [
        ("“We won,” she said.", True),
        ("“We won,” he later added.", True),
        ("„Wir haben gewonnen“, sagte er.", True),
        ("« Il pleut », a-t-elle dit.", True),
        ("«Ganamos», dijo ella.", True),
        ("«Мы победили», — сказала она.", True),
        ("“We won,” she told Ann.", True),
        ("“We won,” said Ann Berg.", False),
        ("„Wir haben gewonnen“, sagte Anna Berg.", False),
        ("« Il pleut », a dit Anne.", False),
        ("«Мы победили», — сказала Анна.", False),
    ],
)
def test_speech_of_a_pronoun_does_not_stand_alone(sentence: str, is_open: bool) -> None:
    assert leaves_speaker_open(sentence) is is_open
    assert not (is_open and is_self_contained(sentence))


@pytest.mark.parametrize(
    "sentence", ["“We won.", "We (all won.", '"We won" or "lost.', "“We won today.”", '"Ann won today."']
)
def test_open_or_unattributed_quotations_do_not_stand_alone(sentence: str) -> None:
    assert is_self_contained(sentence) is False


def test_collapse_keeps_the_spaces_that_hold_numbers() -> None:
    assert collapse(" a\n\t b  10\u202f000 \u00a0x ") == "a b 10\u202f000 \u00a0x"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one two three", "one two three"),
        ("one two three four", "one two…"),
        ("a cup of 12 oz today", "a cup…"),
        ("a cup of ½ oz today", "a cup…"),
        ("maps, sync, and a menu", "maps, sync…"),
        ("Frau in der Stadtbahn", "Frau…"),
        ("les rues de la ville", "les rues…"),
        ("of the and to in a", "of…"),
        ("字" * 20, "字" * 12 + "…"),
        ("", ""),
    ],
)
def test_first_words_fit(text: str, expected: str) -> None:
    assert first_words(text, 13) == expected


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        (
            "Introducing Kestrel 2.4: offline maps, faster sync, and a new look for every screen",
            "Introducing Kestrel 2.4: offline maps, faster sync…",
        ),
        (
            "The bridge over the mill race must be closed for a time",
            "The bridge over the mill race must be closed…",
        ),
        (
            "The ferry to the island of Ness will run in May if there is no ice",
            "The ferry to the island of Ness will run in May…",
        ),
    ],
)
def test_a_title_is_not_cut_behind_an_article_or_the_like(title: str, expected: str) -> None:
    assert first_words(title, len(expected) + 8) == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        (
            "A talk with the composer begins at 7:30 p.m. (doors at 7).",
            "A talk with the composer begins at 7:30 p.m.",
        ),
        ("駐車場（北側）は午後10時15分まで開いています。", "駐車場は午後10時15分まで開いています。"),
        ("约三（注）十人来了。", "约三 十人来了。"),
        ("Rooms 4 (old) 12 and 13 are shut (again).", "Rooms 4 12 and 13 are shut."),
    ],
)
def test_what_an_aside_leaves_behind(sentence: str, expected: str) -> None:
    assert drop_asides(sentence) == expected


@pytest.mark.parametrize("sign", ["\x00", "\x1b", "\u202e", "\u2066", "\ufffd", chr(0xDC00), "\U000e0041"])
def test_breaking_characters_are_not_clean(sign: str) -> None:
    assert is_clean(f"a{sign}b") is False


@pytest.mark.parametrize("sign", ["\n", "\u00ad", "\u200d", "é", "\U0001f600", "\u200f"])
def test_ordinary_characters_are_clean(sign: str) -> None:
    assert is_clean(f"a{sign}b") is True


def test_sentences_stand_one_after_the_other_as_their_script_has_it() -> None:
    assert paragraph_of(["One.", "Two!"]) == "One. Two!"
    assert (
        paragraph_of(["港が開く。", "「本当だ。」", "船が来る！", "Then rest."])
        == "港が開く。「本当だ。」船が来る！Then rest."
    )


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Er sagte: „Wir öffnen am Montag.“", True),
        ("Er sagte: „Wir öffnen am Montag.", False),
        ("Wir öffnen am Montag.“", False),
        ("„Er sagte ‚Ja‘ (zweimal).“", True),
        ("“We open on Monday,” she said.", True),
        ("We open on Monday,” she said.", False),
        ("”Vi öppnar på måndag”, sade hon.", True),
        ("« Nous ouvrons lundi », dit-elle.", True),
        ("« Nous ouvrons lundi", False),
        ("»Wir öffnen am Montag«, sagte sie.", True),
        ("»Avaamme maanantaina», hän sanoi.", True),
        ("市长说「下雨了。」", True),
        ("It opens (on Monday.", False),
        ("It opens) on Monday.", False),
    ],
)
def test_quotation_marks_and_brackets_are_closed(sentence: str, expected: bool) -> None:
    assert is_balanced(sentence) is expected
