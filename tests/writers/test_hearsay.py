"""What the offline writer doesn't take for a fact: hearsay, earlier versions, and what is denied right after."""

from __future__ import annotations

import pytest

from pipeline.engines.base import SourceText
from pipeline.plugins import Refused
from pipeline.text.prose.sentences import statements_in
from pipeline.writers.extractive import brief_of
from pipeline.writers.extractive.telling_sentences import find_facts
from tests.first_day.matrix import ENGINES, PERSONAS, asked
from tests.first_day.texts import Text


def said(text: str) -> list[str]:
    return [text[start:end] for start, end in statements_in(text)]


DENIED = [
    "In an earlier version we wrote that the factory will close in May. That is wrong.",
    "Rumours say that the bank in Mill Street will close in June. This is false.",
    "People wrote on Facebook that the boxes had been emptied by thieves. Nothing of the sort happened.",
    "The mayor wants to sell the old harbour to a hotel. That's not true.",
    "The mayor wants to sell the old harbour. The council voted for it too. Both are untrue.",
    "The bridge was closed for three years last night. It isn’t the case.",
    "The firm paid its workers nothing in March. The claim is simply false, said the union.",
    "Myth: cats see in complete darkness at night.",
    "Some people say that the well in Dock Street is poisoned.",
    "In einer früheren Fassung hatten wir geschrieben, die Fabrik schließe im Mai. Das ist falsch.",
    "Gerüchten zufolge soll die Bank in der Mühlgasse im Juni schließen. Das stimmt nicht.",
    "Die Stadt verkauft den alten Hafen an ein Hotel. Das ist so nicht richtig.",
    "Leute schrieben auf Facebook, dass die Schließfächer leer seien. Nichts dergleichen ist geschehen.",
    "Ein Nachbar behauptete, der Hund habe sechs Kinder gebissen.",
    "Die Brücke ist seit drei Jahren gesperrt. Die Behauptung ist frei erfunden.",
    "Dans une version précédente, nous avons écrit que l’usine fermera en mai. C’est faux.",
    "La rumeur dit que la banque de la rue du Moulin ferme en juin. Ce n’est pas vrai.",
    "La ville vend le vieux port à un hôtel. Il n’en est rien.",
    "Des internautes ont écrit sur Facebook que les coffres avaient été vidés. Rien de tel ne s’est produit.",
    "En una versión anterior escribimos que la fábrica cerrará en mayo. Eso es falso.",
    "Corre el rumor de que el banco de la calle del Molino cierra en junio. No es cierto.",
    "Un vecino afirmó que el perro había mordido a seis niños.",
    "La ciudad vende el viejo puerto a un hotel. Nada de eso es verdad.",
    "In una versione precedente abbiamo scritto che la fabbrica chiuderà a maggio. Non è vero.",
    "Numa versão anterior escrevemos que a fábrica fecha em maio. Isso é falso.",
    "In een eerdere versie schreven we dat de fabriek in mei sluit. Dat klopt niet.",
    "Город продаёт старый порт гостинице. Это неправда.",
    "据传磨坊街的银行将于六月关闭。这不是真的。",
]


@pytest.mark.parametrize("text", DENIED)
def test_what_is_denied_or_told_by_nobody_is_no_fact(text):
    assert said(f"{text} Lind leads the works council of 260 people.") == [
        "Lind leads the works council of 260 people."
    ]


@pytest.mark.parametrize(
    "text",
    [
        "The firm cut the pay of its 300 workers, a paper wrote. {The firm denied the report.}",
        "Die Firma kürze den Lohn, schrieb eine Zeitung. {Die Firma hat den Bericht dementiert.}",
        "Ralf Horn said the dog bit six children. {The owner denied it in court.}",
    ],
)
def test_what_somebody_denies_is_no_fact_and_that_they_do_is_one(text):
    assert said(text.replace("{", "").replace("}", "")) == [text.partition("{")[2].rstrip("}")]


def test_what_was_looked_for_and_not_found_was_a_claim_only():
    text = "Anna Berg claimed that the dog had bitten six children. Police checked and found no bite at all."

    assert said(text) == ["Police checked and found no bite at all."]
    text = "Anna Berg claimed that the dog had bitten six children. There was no sign of a bite, police said."

    assert said(text) == ["There was no sign of a bite, police said."]


@pytest.mark.parametrize(
    "text",
    [
        "Rumours that the bank in Mill Street will close in June are false.",
        "Gerüchte, dass die Bank im Juni schließt, sind falsch, sagte der Leiter.",
        "It is wrong to leave a dog in a hot car. A window must stay open.",
        "The council sold the pool to a hotel in 2019. It was a mistake, said the mayor.",
        "The tunnel opens in May. That is true, said the mayor.",
        "The ferry sank at noon off the coast. Divers found no survivors.",
        "In an earlier version the parser read such names as numbers. Version 2 refuses them.",
        "The fire claimed six lives in one night. A fire claimed two barns in May.",
        "Many people come to the market on Saturday. Some say hello to the fishmonger.",
        "Viele schreiben Briefe an die Stadt. Einige Nachbarn sagten zu.",
        "Das ist nicht falsch, sagte der Bürgermeister. Der Bau beginnt im Mai.",
        "The council rejected the offer of the hotel. The harbour stays open.",
    ],
)
def test_what_only_sounds_like_it_stays(text):
    assert " ".join(said(text)) == text


@pytest.mark.parametrize(
    "engine", [one for one in ENGINES if "text" in one.made_from], ids=lambda one: one.kind
)
def test_no_engine_repeats_what_the_source_denies(engine):
    body = (
        "In an earlier version we wrote that the factory in Brackwater will close in May. That is wrong. "
        "The factory moves 40 of its 260 jobs to Brno next year. Rumours say that the bank in Mill Street will close "
        "in June. This is false. The bank serves 3,100 customers in the district of Mill Street. The works council "
        "asked for a plan that names each of the forty jobs. The town lends the factory two million pounds for the "
        "move. A new road to the harbour is built until autumn, with a lane for cyclists."
    )
    outcome = asked(
        Text("denied", "Correction", "en", body, "text"), engine, "https://news.example/x", PERSONAS[0]
    )

    assert [one for one in outcome.drafts if "May" in one.body or "June" in one.body] == []


@pytest.mark.parametrize(
    "back",
    [
        *(
            "ABGESAGT!",
            "Abgesagt.",
            "Der Termin ist verschoben worden.",
            "Fällt leider aus!",
            "Ausverkauft!",
            "Leider abgesagt",
        ),
        *(
            "CANCELLED!",
            "The event has been cancelled.",
            "Postponed until 3 May.",
            "SOLD OUT",
            "Update: called off.",
        ),
        *(
            "ANNULÉ !",
            "C’est annulé.",
            "L’événement est reporté.",
            "¡Cancelado!",
            "Aplazado hasta mayo.",
            "Annullato.",
            "È stato rinviato.",
        ),
        *(
            "Geannuleerd.",
            "Gaat niet door.",
            "ODWOŁANE!",
            "Zrušeno.",
            "İptal edildi.",
            "Inställt!",
            "Отменено.",
            "已取消。",
        ),
    ],
)
@pytest.mark.parametrize("gap", [" ", "\n"])
def test_what_is_cancelled_is_told_with_that_only(back, gap):
    event = "Weihnachtsbaumverkauf am Hafen, Nordmanntanne ab 24 €/m."
    after = "Lind leads the works council of 260 people."

    assert said(f"{event}{gap}{back}\n\n{after}") == [f"{event}{gap}{back}", after]
    assert said(f"{event}\n\n{back}\n\n{after}") == [after]


@pytest.mark.parametrize(
    "after",
    [
        "Postponed projects cost the city four million a year.",
        "He called off the dogs and went home to his wife and children.",
        "Tickets for the second evening are not sold out yet, said the owner of the hall.",
    ],
)
def test_what_is_told_of_something_else_takes_nothing_back(after):
    assert said(f"The market opens at noon. {after}") == ["The market opens at noon.", after]


@pytest.mark.parametrize(
    "engine", [one for one in ENGINES if "text" in one.made_from], ids=lambda one: one.kind
)
def test_no_engine_announces_what_is_cancelled(engine):
    body = (
        "Weihnachtsbaumverkauf der Feuerwehr am Samstag, Nordmanntanne ab 24 €/m. ABGESAGT! Der Kirchenchor singt am "
        "Sonntag um 17 Uhr in der Kirche. Die Bücherei am Markt leiht seit Montag auch Werkzeug aus. Im Hallenbad kostet "
        "der Eintritt ab Januar 4 Euro für Kinder. Die neue Linie zum Hafen fährt alle zwanzig Minuten bis Mitternacht."
    )
    outcome = asked(Text("off", "Termine", "de", body, "text"), engine, "https://news.example/x", PERSONAS[0])

    told = [one.body for one in outcome.drafts if "Nordmanntanne" in one.body or "Weihnachtsbaum" in one.body]
    assert [one for one in told if "ABGESAGT" not in one] == []
    previews = [str(one.content.get("preheader", "")) for one in outcome.drafts]
    assert [one for one in previews if "baumverkauf" in one and "ABGESAGT" not in one] == []


def test_a_text_of_hearsay_has_nothing_to_say():
    assert find_facts("Rumours say that the bank will close in June. This is false.") == ()
    source = SourceText("Bank", "Rumours say that the bank will close.", language="en")
    with pytest.raises(Refused):
        ENGINES[0].offline(brief_of(source), PERSONAS[0], variants=1, seed="")
