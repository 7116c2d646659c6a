"""What an engine puts there itself is no statement: it needs no proof, and no draft is alike for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline import plugins
from pipeline.engines.base import Engine, PersonaCard, SourceText
from pipeline.engines.checks.grounded import remove_added_words
from pipeline.generate.checks import run_checks
from pipeline.plugins import Refused
from pipeline.text.similarity import opening_words
from pipeline.writers.extractive import Extractive

TEXT = """\
The harbour of Lindholm gets a new ferry line in spring. The council voted for it on Tuesday evening after two hours of
debate. Four boats will cross the bay every twenty minutes from six in the morning until midnight.

"We waited for this line for eleven years," said Ruth Okafor, who runs the fish market at the northern quay. The city pays
12 million crowns for the boats, and the region pays for the two new piers. Each boat carries 140 passengers and 40
bicycles, and it needs six minutes at the quay to charge its batteries.

Fishermen had asked for quieter engines since the old boats frightened the herring. Engineers of the university measured
the noise under water last summer and found that electric boats are hardly heard at a distance of 200 metres. The council
wants to publish those measurements in June.

Tickets will cost as much as a bus ride, and whoever owns a monthly pass pays nothing more. Schools get free rides on
weekday mornings. The first boat leaves the northern quay on 3 May, and the mayor wants to be on board with the children
of the harbour school. Critics say that the piers come too late for this summer's visitors.
"""
URLS = [
    "",
    "https://harbour.example/ferry",
    "https://news24.example/harbour",
    "http://127.0.0.1:8012/article",
    "http://[::1]:8012/article",
    "https://web01.intranet/2026/x",
    "https://www.radio1.local/a",
    "https://s3.test/a",
    "https://münchen24.example/a",
]
PERSONAS = [
    PersonaCard("Harbour Desk", ""),
    PersonaCard("Harbour Desk", "harbour24"),
    PersonaCard("3sat", "@3sat"),
]
ENGINES = sorted(plugins.every("engines", Engine), key=lambda one: one.name)


def refused(engine, brief, source, persona):
    """Whatever failed of the engine's own drafts, or None where it says that it can't be made."""
    if engine.why_not(source) is not None:
        return None
    try:
        drafts = engine.offline(brief, persona, variants=1, seed="1")
    except Refused:
        return None
    return [
        f"{check.code}: {check.message}"
        for draft in drafts
        for check in run_checks(engine, draft, brief, source, persona)
        if check.outcome == "failed"
    ]


@pytest.mark.parametrize("persona", PERSONAS, ids=lambda one: one.handle or "none")
@pytest.mark.parametrize("url", URLS)
def test_its_own_signature_fails_no_engine(url, persona):
    source = SourceText("The harbour gets a new ferry line", TEXT, url, language="en")
    brief = Extractive().brief(source).brief
    found = {engine.name: refused(engine, brief, source, persona) for engine in ENGINES}
    assert {name: faults for name, faults in found.items() if faults} == {}
    assert sum(faults == [] for faults in found.values()) >= 8


def test_a_number_is_a_number_whoever_is_called_so():
    engine = plugins.get("engines", "short_post", Engine)
    source = SourceText("The harbour gets a new ferry line", TEXT, "https://news24.example/x", language="en")
    brief = Extractive().brief(source).brief
    persona = PersonaCard("77", "77")
    (draft,) = engine.offline(brief, persona, variants=1, seed="1")

    def outcome(body):
        told = replace(draft, body=body)
        return {one.code: one.outcome for one in run_checks(engine, told, brief, source, persona)}["numbers"]

    assert outcome("The region pays for 77 boats.") == "failed"
    assert outcome("The region pays for news24.example boats.") == "passed"
    assert outcome("The region pays for news24 boats.") == "failed"


OTHER = """\
A bakery in Brentwick bakes with wheat from its own roof. Mira Holm and her two sons sowed 60 square metres above the oven
house last autumn and cut the first ears in July. The flour was enough for 44 loaves, which were sold out by noon.

"Nobody lives from a roof," said Mira Holm on the day of the harvest. "But everybody who bought a loaf wanted to see the
field." School classes climb the stairs twice a week and learn which weeds are eaten. The family wants to grow rye next
year, because it needs less water than wheat and stands longer in the wind.

The roof had to be strengthened with steel beams before the soil came up in 300 sacks. A neighbour lent the crane, and the
town paid a third of the costs because the soil holds back the rain. Other owners of flat roofs have asked for the plans.
"""


@pytest.mark.parametrize(
    "engine", [one for one in ENGINES if "text" in one.made_from], ids=lambda one: one.name
)
def test_two_unrelated_texts_begin_differently(engine):
    begins = []
    for title, text in (("The harbour gets a new ferry line", TEXT), ("Wheat on the roof", OTHER)):
        source = SourceText(title, text, "https://news24.example/x", language="en")
        brief = Extractive().brief(source).brief
        (draft, *_) = engine.offline(brief, PERSONAS[1], variants=1, seed="1")
        begins.append(
            (
                opening_words(remove_added_words(draft.body, engine.marked(draft, brief, PERSONAS[1]))),
                draft.body,
            )
        )
    (_, earlier), (begin, _) = begins
    assert begin
    assert begin != opening_words(earlier)
