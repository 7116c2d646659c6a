"""The language that a source states, where its text is plainly in another one."""

from __future__ import annotations

import pytest

from pipeline.text.language_detection import other_language
from pipeline.text.plain_text import seen_text
from tests.first_day.texts import texts

KNOWN = ("en", "de", "fr", "es", "it", "pl", "ru", "ja", "zh", "ko", "ar", "th")
SHORT = {"ja_short", "zh_notice"}
# Frequent words of neighbours, of which some have no list of their own, in texts that were stated correctly.
RELATED = {
    "da": (
        "Byrådet i Aarhus har besluttet at bygge en ny bro over åen. Den bliver færdig efter sommeren og koster mange penge.",
        "no nb nn sv",
    ),
    "no": (
        "Bystyret i Bergen har vedtatt å bygge en ny bro over elva. Den blir ferdig etter sommeren og koster mange penger.",
        "da sv",
    ),
    "sv": (
        "Kommunen har beslutat att bygga en ny bro över ån. Den blir klar efter sommaren, säger borgmästaren i staden.",
        "da no",
    ),
    "hr": (
        "Gradsko vijeće je odlučilo da se na rijeci sagradi novi most. Radovi će početi u proljeće, a završit će se do kraja godine.",
        "sr bs sl",
    ),
    "id": (
        "Dewan kota memutuskan untuk membangun jembatan baru di atas sungai. Pekerjaan di lokasi dimulai pada bulan Mei tahun ini.",
        "ms",
    ),
    "ms": (
        "Majlis bandar raya memutuskan untuk membina jambatan baharu di atas sungai. Kerja di tapak bermula pada bulan Mei tahun ini.",
        "id",
    ),
    "gl": (
        "O concello decidiu construír unha nova ponte sobre o río. As obras comezarán en maio e rematarán antes do final do ano.",
        "es pt",
    ),
    "ca": (
        "L'ajuntament ha decidit construir un pont nou sobre el riu. Les obres començaran al maig i s'acabaran abans de final d'any.",
        "es fr",
    ),
    "pt": (
        "A câmara municipal decidiu construir uma nova ponte sobre o rio. A obra começa em maio e fica pronta antes do fim do ano.",
        "es gl",
    ),
    "sk": (
        "Mestské zastupiteľstvo rozhodlo, že sa na rieke postaví nový most. Stavba sa začne v máji a skončí sa do konca roka.",
        "cs pl",
    ),
    "uk": (
        "Міська рада вирішила збудувати новий міст через річку. Роботи почнуться у травні і закінчаться до кінця року.",
        "ru be",
    ),
    "af": (
        "Die stadsraad het besluit om 'n nuwe brug oor die rivier te bou. Die werk begin in Mei en word voor die einde van die jaar voltooi.",
        "nl",
    ),
    "et": (
        "Linnavolikogu otsustas ehitada üle jõe uue silla. Tööd algavad mais ja lõpevad enne aasta lõppu, ütles linnapea.",
        "fi",
    ),
    "eu": (
        "Udalak zubi berri bat eraikitzea erabaki du ibaiaren gainean. Lanak maiatzean hasiko dira eta urtea amaitu aurretik bukatuko dira.",
        "",
    ),
    "sw": (
        "Baraza la jiji limeamua kujenga daraja jipya juu ya mto. Kazi itaanza mwezi wa Mei na itakamilika kabla ya mwisho wa mwaka.",
        "",
    ),
    "ga": (
        "Shocraigh an chomhairle droichead nua a thógáil thar an abhainn. Cuirfear tús leis an obair i mí na Bealtaine agus beidh sé réidh roimh dheireadh na bliana.",
        "",
    ),
    "vi": ("Thành phố mở tuyến phà mới từ tháng sáu. Giá vé là hai mươi nghìn đồng cho mỗi người lớn.", ""),
}  # fmt: skip


@pytest.mark.parametrize("text", texts(), ids=lambda text: text.name)
def test_every_other_language_is_told_apart_from_a_texts_own(text):
    words = seen_text(text.body, text.body_format)
    found = {stated: other_language(stated, words) for stated in KNOWN}

    shown = "" if text.name in SHORT else text.language
    near = {"zh", "ja", "ko"} if text.language in {"zh", "ja", "ko"} else set()
    # Stated scripts that are no Latin ones say less of themselves: a name may be written in several.
    sure = [one for one in KNOWN if one != text.language and one not in near]
    latin = [one for one in sure if one in {"en", "de", "fr", "es", "it", "pl"}]
    told = sure if text.language in {"en", "de", "fr", "es", "it", "pl"} else latin
    assert found == {stated: shown if stated in told else "" for stated in KNOWN}


@pytest.mark.parametrize("language", RELATED)
def test_a_text_is_never_told_apart_from_its_own_language_or_one_that_is_near(language):
    text, near = RELATED[language]
    stated = [language, f"{language}-XX", *near.split()]
    found = {one: other_language(one, " ".join([text] * 4)) for one in stated}
    assert found == dict.fromkeys(stated, "")


@pytest.mark.parametrize("language", ["de", "nl", "sv"])
def test_a_short_text_and_one_in_two_languages_prove_nothing(language):
    english = "The council wants to build a bridge over the river, and it is to be ready in the summer of that year."
    german = "Der Rat will eine Brücke über den Fluss bauen, und sie soll im Sommer des Jahres fertig sein, wie es heißt."
    assert other_language(language, english) == ""
    assert other_language("de", f"{english} " * 4 + f"{german} " * 4) == ""
    assert other_language("en", f"{german} " * 4 + f"{english} " * 4) == ""


@pytest.mark.parametrize("stated", ["", "en", "en-GB", "EN_us"])
def test_what_is_not_stated_or_is_so_is_no_fault(stated):
    [text] = [one for one in texts() if one.name == "en_news"]
    assert other_language(stated, text.body) == ""
