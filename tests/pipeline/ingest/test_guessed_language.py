"""The language that nobody said: guessed once when a raw item comes in, stored, and used for what engines add."""

from __future__ import annotations

import pytest

from pipeline.engines.blog_article.markdown import phrases_in
from pipeline.engines.shared.fixed_words import source_word
from pipeline.models import RawItem, WorkspaceDefaults
from pipeline.text.language_detection import guess_language
from pipeline.text.newsletter_sections import read_more
from pipeline.text.plain_text import plain_text
from tests.first_day.texts import texts
from tests.pipeline.steps import items_of, push_raw, reread, run_generations

SENTENCES = {
    "bg": "Общинският съвет реши да построи нов мост над реката, който ще бъде готов след лятото и ще се отвори на 3 май.",
    "cs": "Zastupitelstvo rozhodlo, že se postaví nový most přes řeku. Stavba bude hotová po létě a zaplatí ji kraj.",
    "da": "Byrådet i Aarhus har besluttet at bygge en ny bro over åen. Den bliver færdig efter sommeren og koster meget.",
    "el": "Το δημοτικό συμβούλιο αποφάσισε να χτίσει μια νέα γέφυρα πάνω από το ποτάμι.",
    "fi": "Kaupunginvaltuusto päätti rakentaa uuden sillan joen yli. Silta on valmis kesän jälkeen, mutta se on kallis.",
    "he": "מועצת העיר החליטה לבנות גשר חדש מעל הנהר.",
    "hi": "नगर परिषद ने नदी पर एक नया पुल बनाने का फैसला किया।",
    "hu": "A városi tanács úgy döntött, hogy új hidat épít a folyó fölé. A híd nyár után készül el, de az állam is fizet.",
    "nl": "De gemeenteraad heeft besloten om een nieuwe brug over de rivier te bouwen. Die wordt na de zomer geopend.",
    "no": "Bystyret i Bergen har vedtatt å bygge en ny bro over elva. Den blir ferdig etter sommeren og koster mye.",
    "pt": "A câmara municipal decidiu construir uma nova ponte sobre o rio. A obra fica pronta no verão, disse o presidente.",
    "ro": "Consiliul local a decis să construiască un nou pod peste râu. Lucrarea va fi gata după vară și este din buget.",
    "sv": "Kommunen har beslutat att bygga en ny bro över ån. Den blir klar efter sommaren, säger borgmästaren.",
    "tr": "Belediye meclisi nehir için yeni bir köprü yapılmasına karar verdi. Köprü yazdan sonra açılacak ve bu da çok iyi.",
    "vi": "Thành phố mở tuyến phà mới từ tháng sáu. Giá vé là hai mươi nghìn đồng.",
    "az": "Şəhər yeni bərə xəttini iyun ayında açır. Bilet keçən ildən ucuzdur.",
    "zh": "市议会决定在河上建一座新桥。这座桥夏天以后开放。",
    "zh-Hant": "市議會決定在河上建一座新橋。這座橋夏天以後開放。",
    "uk": "Міська рада вирішила збудувати новий міст через річку. Його відкриють після літа.",
}
LABELLED = ("de", "es", "fr", "it", "pl", "ru", "pt", "nl", "sv", "da")
LONG = {text.language: text for text in texts() if text.language in LABELLED and text.name != "de_recipe"}


@pytest.mark.parametrize("text", texts(), ids=lambda text: text.name)
def test_the_language_of_ordinary_texts_is_guessed(text):
    assert guess_language(f"{text.title}\n{plain_text(text.body, text.body_format)}") == text.language


@pytest.mark.parametrize("language", SENTENCES)
def test_two_sentences_show_a_language(language):
    assert guess_language(SENTENCES[language]) == language


FEW_SENTENCES = [
    (
        "fr",
        "La boulangerie d'Orme reste fermée jusqu'en mars. « Mais sans four, on ne fait pas de pain », dit Julie Roux.",
    ),
    ("fr", "L'école rouvre lundi. Il n'y a plus d'eau chaude. On a prévenu chaque famille."),
    ("fr", "Nous cherchons trois bénévoles. Écrivez-nous avant vendredi. Merci d'avance !"),
    ("de", "Wir suchen drei Helfer. Bitte schreibt uns bis Freitag. Wir freuen uns auf euch!"),
    ("de", "Am Montag öffnet die Schule wieder. Es gibt noch kein warmes Wasser."),
    ("en", "The bakery stays shut until March. The oven broke. “No oven, no bread,” says Julie Rowe."),
    ("es", "El lunes abre la escuela. Todavía no hay agua caliente."),
    ("it", "Cerchiamo tre volontari. Scriveteci entro venerdì. Grazie mille!"),
    ("pt", "Procuramos três voluntários. Escreva-nos até sexta-feira. Muito obrigado!"),
    ("nl", "De bakkerij blijft tot maart dicht. De oven is stuk. „Zonder oven geen brood”, zegt Julia Roos."),
    ("da", "Vi søger tre frivillige. Skriv til os inden fredag. Mange tak!"),
    ("sv", "Vi söker tre volontärer. Skriv till oss före fredag. Tack så mycket!"),
    ("fi", "Leipomo on kiinni maaliskuuhun asti. ”Ilman uunia ei tule leipää”, sanoo Julia Rautio."),
    ("hu", "A pékség márciusig zárva tart. „Kemence nélkül nincs kenyér” – mondta Rácz Júlia."),
]


@pytest.mark.parametrize(("language", "said"), FEW_SENTENCES)
def test_a_few_short_sentences_show_a_language(language, said):
    assert guess_language(said) == language


@pytest.mark.parametrize(
    "names",
    [
        "Los Angeles, La Paz, El Paso, Las Vegas",
        "Café de Flore\nLe Monde\nLa Défense",
        "Die Hard, Das Boot, Der Untergang",
        "Maria da Silva, João dos Santos, Ana de Souza",
        "Anna Berg, Tom de Vries, Ida van Dam, Jan de Wit",
        "Milk, eggs, butter, flour, sugar",
    ],
)
def test_names_and_lists_show_none(names):
    assert guess_language(names) == ""


@pytest.mark.parametrize(
    "words", ["", "12 34", "Tram approved", "BANANA", "Neue Brücke", "Lorem ipsum dolor sit amet"]
)
def test_what_shows_no_language_gives_no_guess(words):
    assert guess_language(words) == ""


def body_in(language):
    if language in LONG:
        return LONG[language].body, LONG[language].title
    return " ".join([SENTENCES[language]] * 1), SENTENCES[language].split(".", maxsplit=1)[0]


@pytest.mark.parametrize("language", LABELLED)
def test_what_engines_add_is_in_the_language_that_was_guessed(language):
    english = phrases_in("en")
    assert phrases_in(language).excerpt != english.excerpt
    assert source_word(language) != source_word("en") or language == "fr"
    assert read_more(language) != read_more("en")


@pytest.mark.parametrize("language", ["de", "es", "fr", "it", "pl", "ru"])
def test_an_article_and_a_letter_are_labelled_in_the_language_of_a_push_that_says_none(workspace, language):
    WorkspaceDefaults.everywhere.filter(workspace=workspace).update(
        engines=["Blog Article", "Newsletter Issue"]
    )
    body, title = body_in(language)
    raw = push_raw(workspace, title=title, body=body, language="").raw_item
    run_generations(raw)

    kept = reread(raw)
    made = {item.engine_output: item for item in items_of(raw) if item.status == "ready"}
    assert (kept.language, kept.language_guessed) == (language, True)
    assert made
    for item in made.values():
        assert item.language == language
        label = phrases_in(language).excerpt if item.engine_output == "Blog Article" else read_more(language)
        assert label.partition("{")[0].strip() in item.body


def test_what_is_said_is_no_guess_and_outlasts_one(workspace):
    told = push_raw(workspace, external_id="1", url="", language="pt-BR").raw_item
    assert (told.language, told.language_guessed) == ("pt-BR", False)

    push_raw(workspace, external_id="1", url="", language="", body=SENTENCES["da"])
    assert (reread(told).language, reread(told).language_guessed) == ("pt-BR", False)


def test_a_next_version_is_guessed_again_where_nobody_said(workspace):
    raw = push_raw(workspace, external_id="1", url="", language="", body=SENTENCES["da"]).raw_item
    push_raw(workspace, external_id="1", url="", language="", body=SENTENCES["nl"])
    assert (reread(raw).language, reread(raw).language_guessed) == ("nl", True)

    push_raw(workspace, external_id="1", url="", language="de", body=SENTENCES["sv"])
    assert (reread(raw).language, reread(raw).language_guessed) == ("de", False)


def test_what_shows_no_language_keeps_none(workspace):
    raw = push_raw(workspace, title="12", body="34 56", language="").raw_item
    kept = RawItem.everywhere.get(pk=raw.pk)
    assert (kept.language, kept.language_guessed) == ("", False)


def test_turkish_is_known_by_its_letters_and_a_turkish_name_makes_none():
    said = "Belediye başkanı salı günü tramvay hattının açıldığını duyurdu. Hat limandan şehir merkezine ulaşıyor."
    assert guess_language(said) == "tr"
    named = "Ekrem İmamoğlu and Kılıçdaroğlu met at the harbour, and the mayor said that it was a good talk."
    assert guess_language(named) == "en"


STATED_WRONGLY = (
    "The source is stated to be in German (de), and its text is in English (en); what isn't the source's own, such as “Read "
    "more”, is in German (de). Send it again with the language en, or with none, under another external_id and address."
)


def test_a_language_that_is_plainly_stated_wrongly_is_a_warning_on_what_is_made(workspace):
    [text] = [one for one in texts() if one.name == "en_news"]
    raw = push_raw(workspace, title=text.title, body=text.body, language="de").raw_item
    run_generations(raw)

    told = [check for item in items_of(raw) for check in item.present_checks if check["code"] == "language"]
    assert items_of(raw)
    assert told == [{"code": "language", "outcome": "warning", "message": STATED_WRONGLY}] * len(
        items_of(raw)
    )

    right = push_raw(
        workspace, title=text.title, body=f"{text.body}\n", language="en", external_id="2"
    ).raw_item
    run_generations(right)
    assert not [check for item in items_of(right) for check in item.checks if check["code"] == "language"]
