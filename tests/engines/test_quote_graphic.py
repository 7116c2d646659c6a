"""Quote Graphic: which words it takes, what it stops, where everything stands on the picture."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import ImageChops

from pipeline.engines.base import Brief, Claim, Draft, Fact, PersonaCard, SourceText, TopicBrief
from pipeline.engines.quote_graphic import QuoteGraphic
from pipeline.engines.quote_graphic.picture import MIN_SIZE, SIZES
from pipeline.engines.quote_graphic.quotation import (
    MAX_QUOTE_CHARACTERS,
    Quotation,
    quotation_body,
    quotation_in,
)
from pipeline.engines.quote_graphic.speakers import speech_in
from pipeline.plugins import Refused
from pipeline.render.colour import contrast, mix
from pipeline.render.draw_layout import draw_picture
from pipeline.render.picture_types import (
    MARGIN,
    AvailableMedia,
    Disc,
    DrawnText,
    Panel,
    Photo,
    PicturePlan,
    Portrait,
    Wash,
)
from pipeline.render.typography.clusters import MissingGlyphs
from pipeline.render.typography.text_layout import TextDoesNotFit, ink_box, visible_box
from pipeline.writers.extractive import brief_of as brief_of_source
from tests.engines.material import blocks, said

ENGINE = QuoteGraphic()
ANN = PersonaCard("Ann Whitfield", handle="ann", brand={"primary": "#1d3557", "accent": "#e63946"})
URL = "https://www.example.com/news"
VOTE = "The council voted 14 to 9 on Tuesday for the tram line to the harbour."
MAYOR = "“We have waited long enough for this line,” said Mayor Ellen Okafor on Tuesday."
HIRSCH = "Nobody has told us how customers are supposed to reach the door."
QUOTE = "“We have waited long enough for this line”\n– Mayor Ellen Okafor"
ARABIC = "قرر المجلس في 12 نوفمبر 2026 أن يبدأ مشروع Tram 2030 (المرحلة الأولى) بتكلفة 1,500 مليون."


def brief_of(
    *quotes: str, title: str = "Tram approved", url: str = URL, text: str = ""
) -> tuple[Brief, SourceText]:
    text = text or "\n".join(quotes)
    places = [(quote, text.index(quote)) for quote in quotes]
    facts = tuple(
        Fact(f"f{place}", quote, quote, start, start + len(quote))
        for place, (quote, start) in enumerate(places)
    )
    return Brief(title, "en", url, facts), SourceText(title, text, url)


def draft_of(body: str, language: str = "en", **content: Any) -> Draft:
    return Draft("Title", body, "text", {"caption": body, "slides": [], **content}, (), language)


def outcomes(
    body: str, *quotes: str, text: str = "", persona: PersonaCard = ANN, **content: Any
) -> dict[str, str]:
    """What isn't passed, by code."""
    brief, source = brief_of(*(quotes or (VOTE, MAYOR)), text=text)
    fact = brief.facts[0]
    claim = Claim(fact.quote, fact.quote, fact.start, fact.end)
    draft = dataclasses.replace(draft_of(body, **content), claims=(claim,))
    checks = ENGINE.check(draft, brief, source, persona)
    return {check.code: check.message for check in checks if check.outcome != "passed"}


def offline(*quotes: str, persona: PersonaCard = ANN, variants: int = 1, **changes: Any) -> list[str]:
    brief, _ = brief_of(*quotes, **changes)
    return [draft.body for draft in ENGINE.offline(brief, persona, variants=variants, seed="s")]


def picture_of(
    body: str = QUOTE, persona: PersonaCard = ANN, language: str = "en", **media: Any
) -> PicturePlan:
    (picture,) = ENGINE.plan(draft_of(body, language), persona, AvailableMedia(**media)).pictures
    return picture


# --- Its words -------------------------------------------------------------------------------------------------------


def test_speech_with_its_speaker_comes_first() -> None:
    assert offline(VOTE, MAYOR) == [QUOTE]


def test_short_speech_comes_before_long_sentences() -> None:
    long = "The council approved a budget of 74 million euros for the new tram line on Tuesday evening."
    short = '"We have waited long enough for this," said Mayor Ellen Okafor.'

    assert "Ellen Okafor" in offline(long, short)[0]


def test_sentence_is_attributed_to_the_sources_site() -> None:
    assert offline(VOTE) == [f"{VOTE}\n– example.com"]


def test_speech_comes_before_the_head_of_a_press_release_which_comes_last() -> None:
    head = "ALDERHAM, 24 November 2026 – The council buys the old mill for a library."
    said = "“We wait for this library since May,” said Cllr. Dan Rowe."

    assert offline(head, said) == ["“We wait for this library since May”\n– Cllr. Dan Rowe"]
    assert offline(head, VOTE, variants=2) == [f"{one}\n– example.com" for one in (VOTE, head)]


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_what_nobody_said_has_no_quotation_marks(size: tuple[int, int]) -> None:
    picture = picture_of(f"{VOTE}\n– example.com", size=size)

    assert [said(item) for item in blocks(picture)][:2] == [VOTE, "example.com"]
    assert picture.alt_text == f"{VOTE} – example.com"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://127.0.0.1:8977/page.html",
        "http://[2001:db8::7]:8080/x",
        "http://192.0.2.17/reports/4",
        "http://localhost/x",
        "http://printer.local/x",
        "http://wiki/x",
    ],
)
def test_nobody_is_named_for_what_nobody_said(url: str) -> None:
    with pytest.raises(
        Refused,
        match=r"^The text has no quotation that makes sense on its own and says who said it, and .*\.$",
    ):
        offline(VOTE, url=url)
    assert offline(VOTE, MAYOR, url=url, variants=2) == [QUOTE]


@pytest.mark.parametrize(
    ("sentence", "words", "speaker"),
    [
        ("«Мы печём хлеб ночью, — сказала Анна Белова. — Днём жарко».", "Мы печём хлеб ночью", "Анна Белова"),
        ("»Bienen mögen die Städte«, sagte Petra Lang.", "Bienen mögen die Städte", "Petra Lang"),
        ("«No queremos cadenas», dijo la alcaldesa, Inés Roca.", "No queremos cadenas", "Inés Roca"),
        ("“It cost us nothing,” said the mayor, Ivo Prat.", "It cost us nothing", "Ivo Prat"),
        ("इंजीनियर मीना राव ने कहा, “हमने काम पूरा किया।”", "हमने काम पूरा किया।", "इंजीनियर मीना राव"),
        ("店主の佐藤健一さんは「店で選ぶ人が減った」と話す。", "店で選ぶ人が減った", "店主の佐藤健一さん"),
        ('이민지 관장은 "오래 기다린 일"이라고 말했다.', "오래 기다린 일", "이민지 관장"),
        (
            'Müdür Ayşe Yılmaz, "Bunu yıllardır istiyordu" dedi.',
            "Bunu yıllardır istiyordu",
            "Müdür Ayşe Yılmaz",
        ),
        ('"הקוראים ביקשו זאת שנים", אמרה המנהלת רות לוי.', "הקוראים ביקשו זאת שנים", "המנהלת רות לוי"),
        ("We tested them. — Ida Berg, waste office", "We tested them.", "Ida Berg, waste office"),
        ("“We tested them.”\n\n— Ida Berg", "We tested them.", "Ida Berg"),
        ("„Nie mamy na to” , powiedział burmistrz Jan Kot.", "Nie mamy na to", "burmistrz Jan Kot"),
        ('„Nie mamy na to", powiedziała w środę Anna Nowak.', "Nie mamy na to", "Anna Nowak"),
        ("„Čekali jsme,“ řekl starosta Ing. Jan Novák.", "Čekali jsme", "starosta Ing. Jan Novák"),
        ("«Περιμέναμε», δήλωσε η δήμαρχος Άννα Παππά.", "Περιμέναμε", "η δήμαρχος Άννα Παππά"),
        ("«Περιμέναμε», είπε ο Νίκος Παππάς.", "Περιμέναμε", "Νίκος Παππάς"),
        ("„Sokáig vártunk”, mondta Kovács Anna polgármester.", "Sokáig vártunk", "Kovács Anna"),
        ("”Vi har väntat”, säger kommunalrådet Anna Berg.", "Vi har väntat", "kommunalrådet Anna Berg"),
        ("“我们等了很久，”市长李华说。", "我们等了很久", "市长李华"),
        ("「我們等了很久。」市長李華強調。", "我們等了很久。", "市長李華"),
        ("«\u00a0On attend\u00a0», a déclaré lundi la maire, Anne Roy.", "On attend", "Anne Roy"),
        ("«\u202fOn attend\u202f», a expliqué Anne Roy.", "On attend", "Anne Roy"),
        ("‹Wir warten›, sagte am Montag Anna Weber.", "Wir warten", "Anna Weber"),
        ("『待ちました』と市長の佐藤さんは話した。", "待ちました", "市長の佐藤さん"),
        ("'We have waited,' said Dan Rowe.", "We have waited", "Dan Rowe"),
        ("”Odotimme kauan”, sanoo Liisa Virta.", "Odotimme kauan", "Liisa Virta"),
        ("„Am așteptat”, a declarat primarul Ion Pop.", "Am așteptat", "primarul Ion Pop"),
        ("“Bekledik” dedi Başkan Ayşe Yılmaz.", "Bekledik", "Başkan Ayşe Yılmaz"),
        ("Speaking on Monday, Cllr. Dan Rowe said: “We wait.”", "We wait.", "Cllr. Dan Rowe"),
        ("“We wait,” said Tarn Foods' managing director, Colin Ashdown.", "We wait", "Colin Ashdown"),
        ("“We wait,” said Wells' mayor, Dinah Cole.", "We wait", "Dinah Cole"),
        ("“We wait,” says Kestrel Labs' CEO, Ruth Adeyemi.", "We wait", "Ruth Adeyemi"),
        ("“We wait,” said Acme’s CEO Ruth Adeyemi.", "We wait", "Ruth Adeyemi"),
        ("“We wait,” said the firm's CEO, Ruth Adeyemi.", "We wait", "Ruth Adeyemi"),
        ("“We wait,” said Acme chief executive Ruth Adeyemi.", "We wait", "Ruth Adeyemi"),
        ("“We wait,” said Ellen Berg MD, Acme Inc.", "We wait", "Ellen Berg MD"),
        ("“We wait,” said Colin Ashdown, Tarn Foods' managing director.", "We wait", "Colin Ashdown"),
        ("“We wait,” Wells' mayor, Dinah Cole, said.", "We wait", "Dinah Cole"),
        ("Wells' mayor, Dinah Cole, said: “We wait.”", "We wait.", "Dinah Cole"),
        ("„Wir warten“, sagte Siemens' Chefin, Anna Berg.", "Wir warten", "Anna Berg"),
        (
            "„Wir warten“, sagte Hamburgs Bürgermeister Karl Berg.",
            "Wir warten",
            "Hamburgs Bürgermeister Karl Berg",
        ),
        ("« On attend », a déclaré le directeur de Tarn Foods, Colin Ashdown.", "On attend", "Colin Ashdown"),
        ("«Esperamos», dijo el alcalde de Cádiz, Bruno García.", "Esperamos", "Bruno García"),
        ("«Aspettiamo», spiega la direttrice dell’Acme, Anna Neri.", "Aspettiamo", "Anna Neri"),
        ("“We wachten”, zegt de directeur van Tarn Foods, Dina Kool.", "We wachten", "Dina Kool"),
        ("“We wachten”, zegt Wells' burgemeester, Dina Kool.", "We wachten", "Dina Kool"),
        ("Alan Strickland, angler: “We wait. So do they.”", "We wait. So do they.", "Alan Strickland"),
    ],
)
def test_speech_is_found_as_languages_write_it(sentence: str, words: str, speaker: str) -> None:
    assert [(one.words, one.speaker) for one in speech_in(sentence)] == [(words, speaker)]


@pytest.mark.parametrize(
    "sentence",
    [
        "常連客の一人は「ここで初めて漫画を買った」と話す。",
        "»Bienen mögen die Städte«, sagt sie.",
        "«Мы печём хлеб ночью, — сказал он. — Днём жарко».",
        "The bridge opens in May. — More tomorrow",
        "“我们等了很久。”他们说。",
        "“We wait,” said Foods' boss.",
        "“We wait,” said James' mother.",
        "“We wait,” zegt Anna's moeder.",
    ],
)
def test_who_is_not_named_is_no_speaker(sentence: str) -> None:
    assert list(speech_in(sentence)) == []


@pytest.mark.parametrize(
    ("language", "text", "body"),
    [
        (
            "en",
            "Alan Strickland, angler: “The weir has been there since 1780-odd. My father taught me to fish below it.”",
            "“The weir has been there since 1780-odd. My father taught me to fish below it.”\n– Alan Strickland",
        ),
        (
            "zh",
            "“老桥的木头，用手一摸就看得出来。”负责修缮的工匠周德明说。",
            "“老桥的木头，用手一摸就看得出来。”\n– 负责修缮的工匠周德明",
        ),
        (
            "zh",
            "老桥的修缮工程从三月开始。“老桥的木头，用手一摸就看得出来。”负责修缮的工匠周德明说。",
            "“老桥的木头，用手一摸就看得出来。”\n– 负责修缮的工匠周德明",
        ),
    ],
    ids=["label", "chinese", "chinese behind a sentence"],
)
def test_one_quotation_with_its_speaker_is_enough(language: str, text: str, body: str) -> None:
    source = SourceText("", text, language=language)

    (draft,) = ENGINE.offline(brief_of_source(source), ANN, variants=1, seed="s")
    assert draft.body == body


@pytest.mark.parametrize(
    "under", [" — Ida Berg, waste office", "\n— Ida Berg, waste office", "\n\n— Ida Berg, waste office"]
)
def test_what_somebody_signed_is_told_with_their_name_only(under: str) -> None:
    quote = "We tested them for a year in Elm Road. It took four drivers and two vans."
    text = f"{VOTE}\n\n{quote}{under}\n\nThe grey bin is emptied every second week of the year."
    brief = brief_of_source(SourceText("New bins", text, URL, language="en"))

    assert [fact.quote for fact in brief.facts if "tested" in fact.quote] == [f"{quote}{under}"]
    bodies = [draft.body for draft in ENGINE.offline(brief, ANN, variants=3, seed="s")]
    assert bodies[0] == f"“{quote}”\n– Ida Berg, waste office"
    assert [body for body in bodies[1:] if "tested" in body] == []


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("pl", "„Nie mamy pieniędzy na nowy most.” – powiedziała burmistrz Anna Nowak"),
        ("cs", "„Čekali jsme na ten most velmi dlouho,“ řekla starostka Mgr. Jana Nová"),
        ("el", "«Περιμέναμε πολύ καιρό τη γέφυρα», δήλωσε η δήμαρχος Άννα Παππά"),
        ("hu", "„Sokáig vártunk erre a hídra”, mondta Kovács Anna"),
        ("sv", "”Vi har väntat länge på bron”, säger Anna Berg"),
        ("fr", "«\u202fNous avons attendu ce pont longtemps.\u202f», a déclaré Anne Roy"),
        ("zh", "“我们等这座桥已经等了很久很久，今天终于等到了。”市长李华说"),
        ("zh-Hant", "「我們等這座橋已經等了很久很久，今天終於等到了。」市長李華說"),
    ],
)
def test_what_is_quoted_in_a_text_is_shown_without_an_address_and_passes(language: str, said: str) -> None:
    ending = "。" if language.startswith("zh") else ". "
    source = SourceText("", f"{said}{ending}2027{ending}", language=language)
    brief = brief_of_source(source)
    (draft,) = ENGINE.offline(brief, ANN, variants=1, seed="s")

    assert quotation_in(draft.body).by in said
    failed = {one.code for one in ENGINE.check(draft, brief, source, ANN) if one.outcome == "failed"}
    # The fonts for Chinese aren't installed everywhere.
    assert failed <= ({"glyphs", "fits"} if language.startswith("zh") else set())


def test_line_without_a_source_is_the_personas_own() -> None:
    brief, _ = brief_of(VOTE)
    lane = dataclasses.replace(brief, lane=TopicBrief("tram"))

    assert ENGINE.offline(lane, ANN, variants=1, seed="s")[0].body.endswith("\n– Ann Whitfield")


def test_a_brands_own_line_is_signed_by_nobody_as_if_a_person_had_said_it() -> None:
    brief, source = brief_of(VOTE, MAYOR, url="")
    lane = dataclasses.replace(brief, lane=TopicBrief("tram"))
    brand = PersonaCard("Demo", is_brand=True)

    spoken, own = ENGINE.offline(lane, brand, variants=2, seed="s")
    assert (spoken.body, own.body) == (f"{QUOTE}", f"“{VOTE}”")
    assert ENGINE.draft_from(answer(VOTE), lane, brand, "story").body == own.body
    assert [check.code for check in ENGINE.check(own, lane, source, brand) if check.outcome == "failed"] == []
    assert "attribution" in outcomes(own.body)
    # A person's own line is signed.
    failed = {check.code for check in ENGINE.check(own, lane, source, ANN) if check.outcome == "failed"}
    assert "attribution" in failed


def test_caption_has_the_address_and_the_claim_its_place() -> None:
    brief, _ = brief_of(VOTE, MAYOR)
    (draft,) = ENGINE.offline(brief, ANN, variants=1, seed="s")

    assert draft.content == {"caption": f"{QUOTE}\n{URL}", "slides": []}
    assert draft.claims == (
        Claim("We have waited long enough for this line", MAYOR, len(VOTE) + 1, len(VOTE) + 1 + len(MAYOR)),
    )


def test_variants_are_different_quotations() -> None:
    assert len(set(offline(VOTE, MAYOR, HIRSCH, variants=3))) == 3


@pytest.mark.parametrize(
    "sentence",
    [
        "He said it would be built before the year was out.",
        "But nobody has told us how customers reach the door.",
        "Yes.",
        "x" * (MAX_QUOTE_CHARACTERS + 1),
        "“That is enough for us all.”",
    ],
    ids=["dangling", "connected", "short", "long", "nobody said it"],
)
def test_sentence_that_is_no_quotation_is_left_out(sentence: str) -> None:
    with pytest.raises(Refused, match=r"^The source has no sentence of 20 to 220 characters.*\.$") as refusal:
        offline(sentence)
    assert refusal.value.code == "nothing_to_say"


def test_title_alone_is_declined() -> None:
    assert ENGINE.why_not(SourceText("Tram", "", URL)) == (
        "This item has only a title: a quotation needs words of the source itself."
    )


@pytest.mark.parametrize(
    ("sentence", "words", "speaker"),
    [
        ('"It is late," said Ellen Okafor.', "It is late", "Ellen Okafor"),
        ("“It is late!” Dr. Miriam Castle, who studies transport, said.", "It is late!", "Dr. Miriam Castle"),
        ("“It is late!” Dr. Miriam Castle said.", "It is late!", "Dr. Miriam Castle"),
        ("Ellen van der Berg said: “It is late.”", "It is late.", "Ellen van der Berg"),
        ("“It is late,” coach Dan Wu said after the match.", "It is late", "coach Dan Wu"),
        ("“It is late,” the head nurse Ann-Marie O’Neill said.", "It is late", "the head nurse Ann-Marie O’Neill"),
        ("“It is late,” and then Dan Wu said no.", "", ""),
        ("„Es ist spät“, sagte Bürgermeisterin Anna Schmidt am Dienstag.", "Es ist spät", "Bürgermeisterin Anna Schmidt"),
        ("« Il est tard », a déclaré Anne Hidalgo.", "Il est tard", "Anne Hidalgo"),
        ('"It is late," coach Dan Wu said.', "It is late", "coach Dan Wu"),
        ("“It is late!” fire chief Mary O’Neil told reporters.", "It is late!", "fire chief Mary O’Neil"),
        ("“It is late,” the head coach Ann van der Berg says.", "It is late", "the head coach Ann van der Berg"),
        ("«Уже поздно», — тренер Иван Петров сказал.", "Уже поздно", "тренер Иван Петров"),
        ('"It is late," later Dan Wu said.', "", ""),
        ('"It is late," his brother Dan Wu said.', "", ""),
        ('"It is late," and coach Dan Wu said so.', "", ""),
        ('"It is late," smiled Dan Wu. He said it twice.', "", ""),
        ("The “tram to nowhere” critics Dan Wu said.", "", ""),
        ("In May coach Dan Wu said: “It is late.”", "", ""),
        ("On Monday Dan Wu said: “It is late.”", "", ""),
        ("“It is late,” said Cllr. Dan Rowe.", "It is late", "Cllr. Dan Rowe"),
        ("“It is late,” said Cllr.", "", ""),
        ("“It is late,” said J. R. Moss.", "It is late", "J. R. Moss"),
        ("“It is late,” said J. from Ohio.", "It is late", "J. from Ohio"),
        ("“It is late,” said J.", "", ""),
        ("“It is late,” said the mayor, Dr. Ivo Prat.", "It is late", "Dr. Ivo Prat"),
        ("„Es ist spät“, sagte der Biologe Dr. Jan Ruhl.", "Es ist spät", "der Biologe Dr. Jan Ruhl"),
        ("„Es ist spät“, sagte Prof. Dr. med. Anke Ruhl.", "Es ist spät", "Prof. Dr. med. Anke Ruhl"),
        ("„Es ist spät“, sagte Prof. Dr.", "", ""),
        ("«Es tarde», afirmó la alcaldesa, Dña. Inés Roca.", "Es tarde", "Dña. Inés Roca"),
        ("« Il est tard », a dit Me Dupont.", "Il est tard", "Me Dupont"),
        ("It is late. — Prof. Dr. Anke Ruhl", "It is late.", "Prof. Dr. Anke Ruhl"),
        ('"It is late," she said.', "", ""),
        ('"It is late." The mayor left.', "", ""),
        ('"It is late," said the woman at the door.', "", ""),
        ('The "old harbour" line opens.', "", ""),
    ],
)  # fmt: skip
def test_speaker_is_who_the_sentence_names(sentence: str, words: str, speaker: str) -> None:
    assert [(one.words, one.speaker) for one in speech_in(sentence)] == ([(words, speaker)] if words else [])


# --- A model's words -------------------------------------------------------------------------------------------------


def answer(quote: str, speaker: str = "") -> dict[str, Any]:
    return {"angle": "story", "quote": quote, "speaker": speaker, "claims": [{"text": quote, "fact": "f0"}]}


@pytest.mark.parametrize(
    "quote", ["We have waited long enough for this line", "“We have waited long enough for this line”"]
)
def test_model_gives_quotation_and_speaker(quote: str) -> None:
    brief, source = brief_of(MAYOR)
    draft = ENGINE.draft_from(answer(quote, "Mayor Ellen Okafor"), brief, ANN, "number")

    assert (draft.body, draft.angle) == (QUOTE, "number")
    assert [c for c in ENGINE.check(draft, brief, source, ANN) if c.outcome != "passed"] == []


def test_without_a_speaker_the_source_is_named() -> None:
    brief, _ = brief_of(VOTE)

    assert ENGINE.draft_from(answer(VOTE), brief, ANN, "story").body == f"{VOTE}\n– example.com"


@pytest.mark.parametrize(
    ("language", "said", "body"),
    [
        (
            "fr",
            "« Nous attendons depuis deux ans », dit Julie Roux.",
            "«\u202fNous attendons depuis deux ans\u202f»",
        ),
        ("da", "»Vi har ventet på broen i to år«, siger Julie Roed.", "»Vi har ventet på broen i to år«"),
        ("nb", "«Vi har ventet på broen i to år», sier Julie Roed.", "«Vi har ventet på broen i to år»"),
    ],
)
def test_what_is_said_stands_in_the_marks_of_its_language(language, said, body):
    brief = brief_of_source(SourceText("", said, URL, language=language))
    [draft] = ENGINE.offline(brief, ANN, variants=1, seed="1")
    assert draft.body.partition("\n")[0] == body
    assert quotation_body(quotation_in(draft.body), language) == draft.body


def test_words_that_the_source_quotes_keep_their_marks_without_a_speaker() -> None:
    said = "“We have waited long enough for this line,” one of them said."
    brief, _ = brief_of(said)
    draft = ENGINE.draft_from(answer("We have waited long enough for this line"), brief, ANN, "story")

    assert draft.body == "“We have waited long enough for this line”\n– example.com"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("“We have waited too long for this line”\n– Mayor Ellen Okafor", "quote"),
        ("“We have waited enough for this line”\n– Mayor Ellen Okafor", "quote"),
        ("“The council voted 14 to 9”\n– example.com", "quote"),
        ("“have waited long enough for this line”\n– Mayor Ellen Okafor", "quote"),
        ("“We have waited long enough for this line”\n– Mayor Paul Hirsch", "attribution"),
        ("“We have waited long enough for this line”", "attribution"),
        (f"“{'We have waited long enough. ' * 9}”\n– Mayor Ellen Okafor", "quote_length"),
        ("“”\n– Mayor Ellen Okafor", "content"),
    ],
    ids=["edited", "shortened", "no end", "no beginning", "another's", "nobody's", "too long", "empty"],
)
def test_what_the_source_does_not_say_is_stopped(body: str, code: str) -> None:
    assert code in outcomes(body)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("The tram is dead.", "The source doesn't say this word for word: “The tram is dead.”."),
        ("the tram is dead.", "The quotation leaves out the beginning or the end of its sentence."),
    ],
)
def test_negation_is_not_cut_off(words: str, message: str) -> None:
    assert outcomes(f"“{words}”\n– example.com", "It is not true that the tram is dead.")["quote"] == message


def test_speaker_who_is_named_elsewhere_is_a_warning() -> None:
    text = f"{VOTE} {'Trams run on rails. ' * 40}{MAYOR}"
    brief, source = brief_of(VOTE, text=text)
    draft = dataclasses.replace(draft_of(f"“{VOTE}”\n– Mayor Ellen Okafor"))
    (check,) = (one for one in ENGINE.check(draft, brief, source, ANN) if one.code == "attribution")

    assert (check.outcome, check.message) == (
        "warning",
        "The source names Mayor Ellen Okafor far from the quotation: see whether it is theirs.",
    )


SPOKEN = {
    "en": (
        "Ruth Calloway",
        "Ian Pratt",
        "“The bridge is safe for every bus,” said Ruth Calloway, the engineer, on Monday. Her critic Ian Pratt wants it closed.",
    ),
    "en, title": (
        "Ruth Calloway",
        "Ian Pratt",
        "“The bridge is safe for every bus,” said Dr. Ruth Calloway. Her critic Ian Pratt wants it closed.",
    ),
    "en, surname": (
        "Ruth Calloway",
        "Ian Pratt",
        "Ruth Calloway built it; Ian Pratt wants it closed. “The bridge is safe for every bus,” Calloway said.",
    ),
    "en, colon": (
        "Ruth Calloway",
        "Ian Pratt",
        "Ruth Calloway said on Monday:\n\n“The bridge is safe for every bus.”\n\nIan Pratt wants it closed.",
    ),
    "en, label": (
        "Ruth Calloway",
        "Ian Pratt",
        "Ruth Calloway: “The bridge is safe for every bus.”\n\nIan Pratt: “It shakes when two buses meet.”",
    ),
    "en, after": (
        "Ruth Calloway",
        "Ian Pratt",
        "“The bridge is safe for every bus.” Ruth Calloway said so on Monday. Ian Pratt wants it closed.",
    ),
    "en, goes on": (
        "Ruth Calloway",
        "Ian Pratt",
        "“We tested it,” said Ruth Calloway. “The bridge is safe for every bus.” Ian Pratt wants it closed.",
    ),
    "de": (
        "Ruth Keller",
        "Jan Prätorius",
        "„Die Brücke ist sicher für jeden Bus“, sagte die Ingenieurin Ruth Keller. Jan Prätorius will sie schließen.",
    ),
    "fr": (
        "Ruth Caron",
        "Jean Prat",
        "« Le pont est sûr pour tous les bus », a déclaré Ruth Caron lundi. Son critique Jean Prat veut le fermer.",
    ),
    "es": (
        "Ruth Calvo",
        "Juan Prat",
        "«El puente es seguro para todos», dijo la ingeniera Ruth Calvo. Su crítico Juan Prat quiere cerrarlo.",
    ),
}


def attribution(text: str, words: str, by: str, author: str = "") -> str:
    brief, source = brief_of(text.split("\n", maxsplit=1)[0], text=text)
    source = dataclasses.replace(source, author=author)
    checks = ENGINE.check(draft_of(f"“{words}”\n– {by}"), brief, source, ANN)
    return next(check.outcome for check in checks if check.code == "attribution")


@pytest.mark.parametrize("case", SPOKEN)
def test_speaker_who_was_swapped_for_another_of_the_source_is_told(case: str) -> None:
    who, other, text = SPOKEN[case]
    words = next(
        words
        for words in (
            "The bridge is safe for every bus",
            "Die Brücke ist sicher für jeden Bus",
            "Le pont est sûr pour tous les bus",
            "El puente es seguro para todos",
        )
        if words in text
    )

    assert attribution(text, words, who) == "passed"
    assert attribution(text, words, who.split()[-1]) == "passed"
    assert attribution(text, words, other) in {"failed", "warning"}
    assert attribution(text, words, other, author=other) in {"failed", "warning"}


def test_speaker_whom_a_clause_names_is_no_matter_of_doubt() -> None:
    _, other, text = SPOKEN["en"]

    assert attribution(text, "The bridge is safe for every bus", other) == "failed"


@pytest.mark.parametrize(
    ("by", "text"),
    [
        ("Ruth Calloway", "Ruth Calloway built it. “The bridge is safe for all,” she said. Ian Pratt left."),
        ("Dr. Calloway", "“The bridge is safe for all,” said Ruth Calloway. Ian Pratt heard Dr. Calloway."),
        ("Ellen Okafor", "“The bridge is safe for all,” said Mayor Okafor. Mayor Ellen Okafor left."),
        ("Ruth Calloway, engineer", "“The bridge is safe for all,” said Ruth Calloway, engineer. Ian left."),
        ("Anna Weber", "Anna Weber kam. „The bridge is safe for all“, sagte die Bürgermeisterin."),
        ("Ruth Calloway", "Ian Pratt: “Is it?”\n\nRuth Calloway: “The bridge is safe for all.”"),
        ("Ruth Calloway", "“The bridge is safe for all,” said Ruth Calloway. “The bridge is safe for all,” said Ian Pratt."),
        ("Colin Ashdown", "“The bridge is safe for all,” said Tarn Foods' managing director, Colin Ashdown."),
        ("Karl Berg", "“The bridge is safe for all,” sagte Geschäftsführer der Tarn AG, Karl Berg."),
        ("王芳", "“The bridge is safe for all,”市长王芳说。李明不同意。"),
    ],
)  # fmt: skip
def test_speaker_may_be_named_as_the_source_does_elsewhere(by: str, text: str) -> None:
    assert attribution(text, "The bridge is safe for all", by) == "passed"


def test_slides_and_strange_links_are_stopped() -> None:
    assert outcomes(QUOTE, slides=[{}])["content"] == "A Quote Graphic has no slides."
    assert outcomes(QUOTE, caption="See https://evil.example/x")["content"].startswith(
        "The caption has a link"
    )


def test_missing_glyphs_are_named() -> None:
    words = "The tram line to 東京 opens on Tuesday."

    assert sorted(outcomes(f"“{words}”\n– example.com", words)) == ["fits", "glyphs"]


def test_body_that_a_person_typed_is_read() -> None:
    assert quotation_in("Ship it now.\n— K") == Quotation("Ship it now.", "K")
    assert quotation_in("«Ship it.\nNow.»") == Quotation("Ship it.\nNow.", "")
    assert quotation_in("– not a name") == Quotation("– not a name", "")
    assert quotation_in("") == Quotation("", "")


# --- The picture -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_picture_says_who_said_what_and_who_shows_it(size: tuple[int, int]) -> None:
    picture = picture_of(size=size)

    assert [said(item) for item in blocks(picture)] == [
        "“",
        "We have waited long enough for this line",
        "Mayor Ellen Okafor",
        "@ann",
        "AW",
        "Ann Whitfield",
    ]
    assert picture.name == f"quote-graphic-{size[0]}x{size[1]}.jpg"
    assert picture.alt_text == "“We have waited long enough for this line” – Mayor Ellen Okafor"
    assert picture.role == ("image" if size == SIZES[0] else "alternative")


def test_handle_stands_at_the_lower_right() -> None:
    (handle,) = (item for item in blocks(picture_of()) if said(item) == "@ann")
    line = handle.block.lines[0]

    assert round(handle.x + line.x + line.width) == 1080 - MARGIN
    assert handle.y > 1350 - MARGIN - 80


def test_right_to_left_is_mirrored() -> None:
    left = picture_of(has_portrait=True)
    right = picture_of(f"“{ARABIC}”\n– رئيسة البلدية", language="ar", has_portrait=True)
    faces = [next(item for item in one.items if isinstance(item, Portrait)) for one in (left, right)]
    marks = [blocks(one)[0] for one in (left, right)]
    edges = [(item.x + visible_box(item.block)[0], item.x + visible_box(item.block)[2]) for item in marks]
    (handle,) = (item for item in blocks(right) if said(item) == "@ann")

    assert faces[0].x + faces[1].x + faces[1].size == 1080
    assert edges[0][0] == pytest.approx(MARGIN, abs=1)
    assert edges[1][1] == pytest.approx(1080 - MARGIN, abs=1)
    assert handle.x + handle.block.lines[0].x == pytest.approx(MARGIN, abs=1)


def quote_block(picture: PicturePlan) -> DrawnText:
    return blocks(picture)[1]


def test_short_words_are_larger_than_long_ones_and_never_too_small() -> None:
    short = quote_block(picture_of("“Ship it on Friday.”\n– K")).block
    long = quote_block(picture_of(f"“{'We have waited long enough. ' * 8}”\n– K")).block

    assert short.size > 1.5 * long.size
    assert long.size >= MIN_SIZE


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_quotation_takes_at_most_its_share(size: tuple[int, int]) -> None:
    words = "We have waited long enough for it. " * 6

    assert quote_block(picture_of(f"“{words.strip()}”\n– K", size=size)).block.height <= 0.56 * size[1]


def test_other_sizes_are_our_own_fault() -> None:
    with pytest.raises(ValueError, match="not \\(500, 500\\)"):
        picture_of(size=(500, 500))


COLOURS = ["#ffffff", "#000000", "#ffff00", "#808080", "#7a7a7a", "#95d5b2", "#3a86ff", "nonsense", None]


@pytest.mark.parametrize("primary", COLOURS)
@pytest.mark.parametrize("accent", COLOURS)
def test_everything_can_be_read(primary: object, accent: object) -> None:
    picture = picture_of(persona=PersonaCard("Ann", "ann", brand={"primary": primary, "accent": accent}))
    wash = next(item for item in picture.items if isinstance(item, Wash))
    disc = next(item for item in picture.items if isinstance(item, Disc))
    for item in blocks(picture):
        grounds = [disc.colour] if said(item) == "A" else [wash.top, wash.bottom]
        assert min(contrast(item.colour, ground) for ground in grounds) >= 4.5, said(item)


@pytest.mark.parametrize("primary", COLOURS)
@pytest.mark.parametrize("accent", COLOURS)
def test_everything_can_be_read_on_any_photo(primary: object, accent: object) -> None:
    persona = PersonaCard("Ann", "ann", brand={"primary": primary, "accent": accent})
    picture = picture_of(persona=persona, has_photo=True)
    ground = picture.items[0]
    assert isinstance(ground, Photo)
    under_white = mix("#ffffff", ground.veil, ground.strength)
    disc = next(item for item in picture.items if isinstance(item, Disc))
    for item in blocks(picture):
        least = 3.0 if said(item) == "“" else 4.5
        assert contrast(item.colour, disc.colour if said(item) == "A" else under_white) >= least, said(item)
    # What is darker than white is darker under the veil too, and everything that is written is light.
    assert {item.colour for item in blocks(picture)[1:3]} == {"#ffffff"}


def test_photo_is_the_ground_of_every_size() -> None:
    kinds = [picture_of(size=size, has_photo=True).items[0].kind for size in SIZES]

    assert (ENGINE.shows_photo, kinds) == (True, ["photo", "photo"])
    assert picture_of().items[0].kind == "wash"


WORDS = st.text(
    st.sampled_from("abcdeilnorstuw     WM-–/.,!?()’@#0123456789אבגשלם  قردالملة🔥🇩🇪\u0301éÄß\n"),
    min_size=1,
    max_size=MAX_QUOTE_CHARACTERS,
)
NAMES = st.text(st.sampled_from("abcde WMאבג قرد🔥é-.'"), max_size=120)


@settings(max_examples=60, deadline=None)
@given(WORDS, NAMES, NAMES, st.sampled_from(SIZES), st.sampled_from(["en", "de", "ar"]))
def test_everything_stands_inside_the_margins(
    words: str, by: str, name: str, size: tuple[int, int], language: str
) -> None:
    try:
        picture = picture_of(f"“{words}”\n– {by}", PersonaCard(name, "ann", language), language, size=size)
    except (TextDoesNotFit, MissingGlyphs):
        return
    for item in blocks(picture):
        left, top, right, bottom = (
            visible_box(item.block) if said(item) in {"“", "”"} else ink_box(item.block)
        )
        assert item.x + left >= MARGIN - 1
        assert item.x + right <= size[0] - MARGIN + 1
        assert item.y + top >= MARGIN - 1
        assert item.y + bottom <= size[1] - MARGIN + 1
    lines = [item for item in picture.items if isinstance(item, Panel)]
    assert [one for one in lines if one.x < MARGIN or one.x + one.width > size[0] - MARGIN] == []


@settings(max_examples=8, deadline=None)
@given(WORDS, st.sampled_from(SIZES))
def test_no_pixel_leaves_the_margins(words: str, size: tuple[int, int]) -> None:
    try:
        picture = picture_of(f"“{words}”\n– K", size=size)
    except (TextDoesNotFit, MissingGlyphs):
        return
    bare = dataclasses.replace(picture, items=picture.items[:1])
    drawn = ImageChops.difference(draw_picture(picture), draw_picture(bare)).getbbox()

    assert drawn is not None
    assert min(drawn[:2]) >= MARGIN - 1
    assert drawn[2] <= size[0] - MARGIN + 1
    assert drawn[3] <= size[1] - MARGIN + 1
