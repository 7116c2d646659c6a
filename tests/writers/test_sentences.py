"""Where sentences begin and end."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.text.plain_text import seen_text
from pipeline.text.prose.sentences import sentence_ends, split_sentences, statements_in


def split(text: str) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text)]


SAID = "You learn to wait. Is it slow? Water teaches you that"


@pytest.mark.parametrize("marks", ["“”", "„“", "«»", "»«", "「」", '""', "‘’", "״״"])
@pytest.mark.parametrize(
    ("before", "end", "after"),
    [
        ("", ",", " said Tom Ashby, who runs the mill."),
        ("Tom Ashby said: ", ".", ""),
        ("Tom Ashby, 41, told us ", "", ", and then he left."),
        ("", "!", " Tom Ashby shouted."),
        ("As Tom puts it ", "", " (he smiled)."),
    ],
)
def test_what_is_said_in_several_sentences_stays_together(marks, before, end, after):
    spoken = f"{before}{marks[0]}{SAID}{end}{marks[1]}{after}"
    expected = [spoken] if end != "!" else [f"{marks[0]}{SAID}!{marks[1]}", after.strip()]

    assert split(f"It rained. {spoken} The mill is old.") == ["It rained.", *expected, "The mill is old."]


@pytest.mark.parametrize("mark", ['"', "״"])
def test_a_hebrew_abbreviation_neither_opens_nor_closes_speech(mark):
    said = f"דובר צה{mark}ל אמר: {mark}חיכינו לצה{mark}ל זמן רב. הוא ישנה את העיר.{mark}"
    text = f"{said} המועצה הצביעה ביום שני."
    assert [text[start:end] for start, end in split_sentences(text)] == [said, "המועצה הצביעה ביום שני."]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("« On attend. On verra. » Il part.", ["« On attend. On verra. »", "Il part."]),
        ("„Padało.” – powiedziała Anna. Poszła.", ["„Padało.” – powiedziała Anna.", "Poszła."]),
        ("« Il pleut. », dit Anne. Il part.", ["« Il pleut. », dit Anne.", "Il part."]),
        ("“下雨了。”市长李华说。他走了。", ["“下雨了。”市长李华说。", "他走了。"]),
        ("He asked “Why? When?” and left.", ["He asked “Why? When?” and left."]),
        ('A 5" pipe. He said "Go. Now." Gone.', ['A 5" pipe.', 'He said "Go.', 'Now."', "Gone."]),
        ("He said “yes. Then he left.", ["He said “yes.", "Then he left."]),
    ],
)
def test_marks_that_close_late_or_never(text, expected):
    assert split(text) == expected


def test_the_mark_in_a_hebrew_abbreviation_parts_no_quotation():
    first = 'ח"כ דנה לוי ומנכ"לית העירייה בירכו את ראש ממשלת ארה"ב.'
    said = '"חיכינו לקו שנים. צה"ל יעבור דירה. אנחנו שמחים", אמרה לוי.'

    assert split(f"{first} {said}") == [first, said]


@pytest.mark.parametrize("marks", ["“”", "„“", "«»", '""', "״״"])
def test_what_is_said_at_length_states_nothing_without_its_marks(marks):
    within = [f"We waited for ferry {number} on the old pier at night." for number in range(14)]
    told = f"The town met. {marks[0]}{' '.join(within)}{marks[1]} said Ann Lee. It was late."
    stated = [told[start:end] for start, end in statements_in(told)]

    assert [one for one in stated if one in within] == []
    assert [stated[0], stated[-1]] == ["The town met.", "It was late."]
    assert split(told)[2] == within[1]


@pytest.mark.parametrize(
    "sentence",
    [
        "Nowa linia ruszy w Łodzi 1 grudnia 2026 r. o godz. 5.20.",
        "Dr inż. Paweł Żuk z ZDiT zapowiada otwarcie.",
        "ALL VISITORS MUST REGISTER AT THE GATE BEFORE 5 P.M. ON 12 DECEMBER.",
        "Der Markt beginnt um ca. 9 Uhr in der Goethestr. 12.",
        "Müze saat 09.30’da Atatürk Cad. 14 adresinde açılıyor.",
        "A loja abre no dia 3 às 9h na Av. Paulista 1000.",
        "Otevírá se v 9 hod. na nám. Míru.",
        "Es kostet 9,8 Mio. Euro, von denen das Land 40 Prozent zahlt.",
        "Der Bund gibt 1,2 Mrd. Franken.",
        "Etwa 30 Tsd. Menschen kamen, z. B. Familien aus Bern.",
        "Die Preise (inkl. Versand) steigen, vgl. Seite 3.",
        "Строительство обойдётся в 12 тыс. Рублей не хватает.",
        "Библиотека в г. Заречном стоит на ул. Садовой.",
        "Zebranie odbędzie się przy ul. Lipowej.",
        "Parlò il dott. Rossi di Valbruna.",
        "Abierto por la Srta. Ribas, véase pág. Cuatro.",
        "Pursuant to § 12 para. 3 of the General Terms, the Provider amends Annex II, No. 7.",
        "The clinic, founded in 1911 by Sr. Agnes, employs 212 people, incl. 48 nurses.",
        "Under sec. 4 subs. 2 and ch. 9 the fee is due, cf. vol. 2 pp. 14.",
        "Die Satzung wird in Abs. 4 Nr. 2 geändert.",
        "Lt. Beschluss vom 12. 11. gilt das ab Jan. 2027.",
        "Der Vorstand (u. a. Frau Dr. med. Ilse Kranz) tritt am 24. d. M. zusammen.",
        "Nach Art. 5 Abs. 1 Ziff. 3 und Bd. 2 Kap. 7 gilt das im 3. Quartal.",
        "Der Club spielt in der 2. Bundesliga.",
        "Selon l’art. 12 al. 3 et le chap. 4, la taxe est due en janv. 2027 ou en déc. 2028.",
        "Según el art. 4 apdo. 2 y el cap. 7, la tasa vence en ene. 2027.",
        "Secondo l’art. 5 co. 2 lett. 3, la tassa scade il 3 ott. 2027.",
        "Nos termos do art. 7 al. 2, a taxa vence em dez. 2027.",
        "Volgens art. 3 nr. 2 en hfst. 4 geldt dit vanaf okt. 2027.",
        "The mayor, Cllr. Moira Quinn, said that it rains.",
        "Nobody asked Det. Insp. Ann Hill or the Revd. John Marsh.",
        "Lo afirmó la alcaldesa, Dña. Inés Roca.",
        "Das sagt Prof. Dr.-Ing. Anke Ruhl.",
        "Řekl to starosta Ing. Jan Novák z obce.",
        "Oprava stála 23,6 mil. Kč, z toho dal kraj 9 mil. Kč.",
        "Об этом сказал проф. Иванов.",
        "The repair of the old town mill was announced by Cllr.\nMoira Quinn.",
        "Die Stadt zahlt für die neue Halle am Hafen ganze 9,8 Mio.\nEuro.",
        "It took approx. 40 men and max. 3 cranes to build it, see Fig. 2 on page 4.",
        "It took all of the men of the town of Brackwater, approx.\n40, to build it.",
        "The builders are still in court over damages of est. £2.1 m. plus costs.",
        "Repairs will cost c. £3,800 (incl. VAT).",
        "The fee is approx. US$40, or est. EUR 35, or max. CHF 30.",
        "The police have given us the crime ref. 4471/B.",
        "Ask for Rm. 12, Tel. 4477, Ext. 4.",
        "जिला अधिकारी डॉ. अमित वर्मा के अनुसार पुल बंद है।",
        "जिला अधिकारी अधि. अमित वर्मा के अनुसार पुल बंद है।",
        "«A obra acaba em maio», disse o eng. Rui Falcão, diretor da obra.",
        "Most jest gotowy, mówi dyr. Ewa Lis.",
        "Mówi o tym pplk. Jan Lis.",
        "Lo dice la dott.ssa Anna Rossi.",
        "Lo dijo el dir. Juan Ruiz.",
        "Volgens ir. Jan de Wit duurt het max. 3 weken.",
        "Mötet leds av ordf. Anna Berg.",
        "Stavbu řídí ing. arch. Jan Novák.",
        "Zdaniem inżyniera most wytrzyma ok. 6 lat.",
        "Rovers 3 (Okoye 12, 90+4; Lund 55 pen.) United 2 (Baptiste 31, 78).",
        "The hall (built in 1911 by the firm of Ash Bros. Members paid for it) is shut.",
        "Die Halle kostet 2,3 Mio. € und wird 2027 fertig.",
        "The boat of the club was too old for the boat race, said its captn. 40 men rowed.",
    ],
)
def test_short_forms_end_no_sentence(sentence):
    assert split(f"{sentence} It rained.") == [sentence, "It rained."]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Er zahlte 9,8 Mio. Der Rat schwieg.", ["Er zahlte 9,8 Mio.", "Der Rat schwieg."]),
        ("Он приехал в 2027 г. Город ждал.", ["Он приехал в 2027 г.", "Город ждал."]),
        ("It opened in 2026. 40 people came.", ["It opened in 2026.", "40 people came."]),
        ("Vi tar det. Sedan gick vi.", ["Vi tar det.", "Sedan gick vi."]),
        ("It makes 20 MW. The plant is old.", ["It makes 20 MW.", "The plant is old."]),
        ("The path is 10 km. 40 people came.", ["The path is 10 km.", "40 people came."]),
        ("It opens on May 8. 40 people came.", ["It opens on May 8.", "40 people came."]),
        ("The house is Tom’s. He left.", ["The house is Tom’s.", "He left."]),
        ("Er ist 17. Tom ist älter.", ["Er ist 17.", "Tom ist älter."]),
        ("Nobody saw it. 212 people work there.", ["Nobody saw it.", "212 people work there."]),
        ("It shut last year. £40 was paid.", ["It shut last year.", "£40 was paid."]),
        ("Ich gebe es dir. Anna kommt.", ["Ich gebe es dir.", "Anna kommt."]),
        ("Ο κ. Παππάς το είπε. Βρέχει.", ["Ο κ. Παππάς το είπε.", "Βρέχει."]),
        ("It rained. (It was wet.) We left.", ["It rained.", "(It was wet.)", "We left."]),
    ],
)
def test_short_forms_at_the_end_of_one(text, expected):
    assert split(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("One thing. Another thing.", ["One thing.", "Another thing."], id="plain"),
        pytest.param(
            "Dr. Smith met Mrs. Jones. They left.", ["Dr. Smith met Mrs. Jones.", "They left."], id="titles"
        ),
        pytest.param(
            "He arrived at 5 p.m. on Monday. It rained.",
            ["He arrived at 5 p.m. on Monday.", "It rained."],
            id="hour",
        ),
        pytest.param(
            "Open until 8 p.m. Dogs aren't allowed. The 8 p.m. Mass is sung.",
            ["Open until 8 p.m.", "Dogs aren't allowed.", "The 8 p.m. Mass is sung."],
            id="hour-ends",
        ),
        pytest.param(
            "On Friday at 8 p.m. Anna Berg reads. It ends at 9 p.m. Eastern Time.",
            ["On Friday at 8 p.m. Anna Berg reads.", "It ends at 9 p.m. Eastern Time."],
            id="hour-goes-on",
        ),
        pytest.param(
            "Tue.-Sat. 11 a.m.-5 p.m. No refunds after Dec. 4.",
            ["Tue.-Sat. 11 a.m.-5 p.m.", "No refunds after Dec. 4."],
            id="days-and-hours",
        ),
        pytest.param(
            "On Friday it begins at 8 p.m. Doors open at 7:15 p.m. and close at 9p.m. Eastern Time.",
            ["On Friday it begins at 8 p.m.", "Doors open at 7:15 p.m. and close at 9p.m. Eastern Time."],
            id="begins-at-an-hour",
        ),
        pytest.param(
            "It was seen between 1 and 3 a.m. Police asked for two officers.",
            ["It was seen between 1 and 3 a.m.", "Police asked for two officers."],
            id="between-two-hours",
        ),
        pytest.param(
            "The lake rose.[1] It fell again.[2][3] About 40 houses were hit.[citation needed] The road is open.[4]",
            ["The lake rose.", "It fell again.", "About 40 houses were hit.", "The road is open."],
            id="marks-of-notes",
        ),
        pytest.param(
            "The U.S. Senate met. It sat.", ["The U.S. Senate met.", "It sat."], id="short-form-goes-on"
        ),
        pytest.param(
            "She lives in the U.S. The sun shone.",
            ["She lives in the U.S.", "The sun shone."],
            id="short-form-ends",
        ),
        pytest.param(
            "Acme Inc. reported No. 5 in sales.", ["Acme Inc. reported No. 5 in sales."], id="number-sign"
        ),
        pytest.param("Is it? No. Then go.", ["Is it?", "No.", "Then go."], id="no-as-answer"),
        pytest.param(
            "J. K. Rowling wrote it. So did I. Why?",
            ["J. K. Rowling wrote it.", "So did I.", "Why?"],
            id="initials",
        ),
        pytest.param("It cost $3.50. Too much!", ["It cost $3.50.", "Too much!"], id="decimals"),
        pytest.param(
            "She left… and came back. Wait... What?",
            ["She left… and came back.", "Wait...", "What?"],
            id="ellipses",
        ),
        pytest.param(
            "See https://a.com/x?y=1.5 for more. Good.",
            ["See https://a.com/x?y=1.5 for more.", "Good."],
            id="address",
        ),
        pytest.param(
            'He said "It is over." Then he left.',
            ['He said "It is over."', "Then he left."],
            id="closing-quote",
        ),
        pytest.param(
            '"Really?" he said. "Yes!" she cried.',
            ['"Really?" he said.', '"Yes!" she cried.'],
            id="speech-goes-on",
        ),
        pytest.param(
            "“We won.” (And how.) Good.", ["“We won.”", "(And how.)", "Good."], id="closing-bracket"
        ),
        pytest.param(
            "今日は晴れ。明日は雨？「はい。」そう！",
            ["今日は晴れ。", "明日は雨？", "「はい。」", "そう！"],
            id="japanese",
        ),
        pytest.param("यह एक है। वह दो है।", ["यह एक है।", "वह दो है।"], id="devanagari"),
        pytest.param("Am 3. Oktober war frei. Gut.", ["Am 3. Oktober war frei.", "Gut."], id="german-date"),
        pytest.param("The heading\n\nThe text.", ["The heading", "The text."], id="blank-line"),
        pytest.param("The heading\r\n\r\nThe text.", ["The heading", "The text."], id="blank-line-windows"),
        pytest.param("Short heading\nThe text begins.", ["Short heading", "The text begins."], id="heading"),
        pytest.param(
            "- one thing\n- two things\n3. three", ["one thing", "two things", "three"], id="bullets"
        ),
        pytest.param(
            "00:12 hello there\n[00:15] and welcome", ["hello there", "and welcome"], id="time-stamps"
        ),
        pytest.param("It began. 12:30 was late.", ["It began.", "12:30 was late."], id="time-of-day-stays"),
        pytest.param("", [], id="empty"),
        pytest.param(" \n\t\u00a0\n ", [], id="white-space"),
    ],
)
def test_sentences_end_where_readers_end_them(text: str, expected: list[str]) -> None:
    assert split(text) == expected


def test_wrapped_line_goes_on() -> None:
    text = (
        "This line of the report was wrapped by somebody at seventy characters or\nso and goes on. New one."
    )

    assert split(text) == [text[:-9], "New one."]


def test_text_without_marks_is_cut_at_cue_words() -> None:
    text = (
        "today we talk about bread and how it rises in a warm kitchen for hours because the yeast eats the sugar and "
        "then it makes gas so you need to wait until the dough has doubled and only after that you can shape the loaf "
        "and let it rest again before it goes into the oven for forty minutes"
    )

    pieces = split(text)

    assert " ".join(pieces) == text
    assert [piece.split()[0] for piece in pieces] == ["today", "so", "and"]
    assert max(map(len, pieces)) <= 150


def test_text_without_spaces_is_cut_between_letters_only() -> None:
    pieces = split("字" * 400)

    assert [len(piece) for piece in pieces] == [150, 150, 100]
    assert split("x" * 400) == ["x" * 400]
    assert split("1" * 400) == ["1" * 400]


@given(st.text(alphabet=st.one_of(st.characters(), st.sampled_from(" .!?。…\"'\n\r()“”1aA")), max_size=400))
@example("a" * 700 + ". " + "b " * 400)
def test_spans_are_ordered_trimmed_and_lose_no_word(text: str) -> None:
    spans = split_sentences(text)

    assert list(spans) == sorted(spans)
    assert all(first[1] <= second[0] for first, second in pairwise(spans))
    assert all(text[start:end] == text[start:end].strip() != "" for start, end in spans)
    outside = "".join(
        text[before:after]
        for before, after in zip(
            [0, *(end for _, end in spans)], [*(start for start, _ in spans), len(text)], strict=True
        )
    )
    # But for the marks of notes.
    assert [sign for sign in re.sub(r"\[[^\[\]\n]{1,30}\]", "", outside) if sign.isalpha()] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One thing. Another thing.", ["One thing.", "One thing. Another thing."]),
        ("1. Get up. 2. Eat.", ["1. Get up.", "1. Get up. 2. Eat."]),
        ("Mr. Smith met a) them.", ["Mr. Smith met a) them."]),
        # A list's entry and a heading's colon end no paragraph; a long stretch is not cut.
        ("To do:\n\n- one\n- two\n\nDone", ["To do:\n\n- one\n- two", "To do:\n\n- one\n- two\n\nDone"]),
        ("word " * 300 + "end", ["word " * 300 + "end"]),
        ("", []),
    ],
)
def test_where_a_text_may_end(text: str, expected: list[str]) -> None:
    assert [text[:end] for end in sentence_ends(text)] == expected


def stated(body: str, body_format: str = "text") -> list[str]:
    text = seen_text(body, body_format)
    return [" ".join(text[start:end].split()) for start, end in statements_in(text)]


OPEN = "The museum is open from Tuesday to Sunday, from ten to five o'clock and on holidays."
LONG_HEADINGS = [
    ("Opening hours of the museum and its café in the winter months", OPEN),
    (
        "Öffnungszeiten des Museums und seines Cafés in den Wintermonaten",
        "Das Museum öffnet dienstags um zehn Uhr, das Café in seinem Hof erst um elf Uhr.",
    ),
    (
        "Les horaires du musée et de son café pendant les mois d’hiver",
        "Le musée ouvre le mardi à dix heures, son café seulement à onze heures.",
    ),
    (
        "Часы работы музея и кафе в зимние месяцы этого года",
        "Музей открывается во вторник в десять часов, а кафе только в одиннадцать.",
    ),
]


@pytest.mark.parametrize("body_format", ["text", "markdown"])
@pytest.mark.parametrize(("heading", "sentence"), LONG_HEADINGS)
def test_a_heading_does_not_run_into_the_sentence_below_it(
    heading: str, sentence: str, body_format: str
) -> None:
    assert stated(f"{heading}\n{sentence}", body_format)[-1] == sentence
    assert stated(f"Hours\n{sentence}", body_format) == ["Hours", sentence]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"<p><b>Opening hours</b> {OPEN}</p>", ["Opening hours", OPEN]),
        (
            "<p><strong>Öffnungszeiten</strong> Das Museum öffnet um zehn.</p>",
            ["Öffnungszeiten", "Das Museum öffnet um zehn."],
        ),
        ("<p><b>Horaires</b> Le musée ouvre à dix heures.</p>", ["Horaires", "Le musée ouvre à dix heures."]),
        ("<p><b>Anna Berg</b> leads the museum.</p>", ["Anna Berg leads the museum."]),
        ("<p><b>München</b> Hauptbahnhof ist gesperrt.</p>", ["München Hauptbahnhof ist gesperrt."]),
        ("<p>In <b>May</b> The Who came.</p>", ["In May The Who came."]),
    ],
)
def test_bold_words_before_a_sentence_are_a_heading(body: str, expected: list[str]) -> None:
    assert stated(body, "html") == expected


def test_a_wrapped_line_is_no_heading() -> None:
    wrapped = (
        "The council of Brackwater decided on Tuesday evening that the\nMill Street will be closed for the whole of the "
        "coming winter."
    )
    assert stated(wrapped) == [wrapped.replace("\n", " ")]
    full = "On Tuesday evening all members of the council voted for Ms\nAnna Berg as the mayor of the town."
    assert stated(full) == [full.replace("\n", " ")]


@pytest.mark.parametrize(
    "hours",
    [
        "Monday to Friday: 9 am–5 pm\nSaturday: 10 am–2 pm\nSunday: closed",
        "Montag bis Freitag 9–17 Uhr\nSamstag 10–14 Uhr\nSonntag geschlossen",
        "lundi : 9 h – 17 h\nmardi : 9 h – 17 h\nmercredi : fermé",
        "lunes: 9:00–17:00\nmartes: 9:00–17:00\nmiércoles: cerrado",
        "lunedì 9–17\nmartedì 9–17\nmercoledì chiuso",
        "пн: 9:00–17:00\nвт: 9:00–17:00\nср: выходной",
        "Monday 9–17 Tuesday 9–17 Wednesday closed Thursday 9–20",
    ],
)
@pytest.mark.parametrize("body_format", ["text", "markdown"])
def test_a_list_of_opening_hours_is_no_statement(hours: str, body_format: str) -> None:
    assert stated(f"{hours}\n{OPEN}", body_format) == [OPEN]


@pytest.mark.parametrize(
    "sentence",
    [
        "On Monday the museum is closed from 9 to 17 for a party.",
        "Am Montag öffnet das Museum um 9 Uhr.",
        "Monday starts at 9:30 with a talk.",
    ],
)
def test_a_sentence_with_a_day_and_a_time_is_one(sentence: str) -> None:
    assert stated(sentence) == [sentence]


ROOMS = "The museum has 40 rooms and a park."


@pytest.mark.parametrize(
    "talk",
    [
        "Q: When did the work begin?\nA: In May 1998, with two people.\nQ: Who paid?\nA: The town did.",
        "Q: When did the work begin?\n\nA: In May 1998.\n\nWe were two people then.\n\nQ: Who paid?\n\nA: The town did.",
        "Frage: Wann begann die Arbeit?\nAntwort: Im Mai 1998 mit zwei Leuten.",
        "Question : Quand le travail a-t-il commencé ?\nRéponse : En mai 1998, à deux.",
        "P: ¿Cuándo empezó el trabajo?\nR: En mayo de 1998, con dos personas.",
        "Вопрос: Когда началась работа?\nОтвет: В мае 1998 года.",
        "问：工作什么时候开始？\n答：一九九八年五月。",
    ],
)
def test_an_answer_is_no_statement_without_its_question(talk: str) -> None:
    assert stated(f"{ROOMS}\n\n{talk}\n\n{ROOMS[:-1]} today.") == [ROOMS, f"{ROOMS[:-1]} today."]


def test_an_answer_is_a_statement_with_the_name_before_it() -> None:
    talk = "Ida Berg: We opened in May with two people.\nTom Ash: Who paid?\nIda Berg: The town did.\nTom Ash: Thank you."
    said = [ROOMS, "Ida Berg: We opened in May with two people.", f"{ROOMS[:-1]} today."]
    assert stated(f"{ROOMS}\n\n{talk}\n\n{ROOMS[:-1]} today.") == said


def test_a_label_that_stands_once_is_no_speaker() -> None:
    assert stated("Place: the town hall of Brackwater.\nUpdate: The bridge is open.") == [
        "Place: the town hall of Brackwater.",
        "Update: The bridge is open.",
    ]
