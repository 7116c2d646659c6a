"""What strangers wrote into a source leads nobody anywhere from a thread, a LinkedIn post or an article either."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pipeline import plugins
from pipeline.engines.base import Engine
from tests.engines.test_linkedin_post import MORE
from tests.engines.test_nothing_unlisted import ATTACKS, PERSONA, PLAIN, read

if TYPE_CHECKING:
    from collections.abc import Mapping

LONG = (
    PLAIN,
    *MORE,
    "Bakers near the market square open an hour earlier while the works go on.",
    "Cyclists keep both lanes of Customs Road, says the newest version of the drawings.",
    "Residents asked for quieter rails, and engineers promised rubber under each of them.",
    "Insurance for the tunnel costs less than anybody in the finance office had expected.",
    "Two bridges are painted before winter, because rust had been found at both of their ends.",
    # Too long for any post, and long enough for an excerpt of all of it.
    f"The annex names {'one street after another ' * 40}in full.",
)
ENGINES = [plugins.get("engines", kind, Engine) for kind in ("thread", "linkedin_post", "blog_article")]


def filled(schema: Mapping[str, Any], words: str) -> Any:
    """An answer by the schema, with the words wherever a text goes."""
    if schema["type"] == "object":
        return {name: filled(member, words) for name, member in schema["properties"].items()}
    if schema["type"] == "array":
        return [filled(schema["items"], words)] * 3
    return words


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.kind)
@pytest.mark.parametrize(("words", "code"), ATTACKS.values(), ids=ATTACKS)
def test_model_that_repeats_the_sources_words_is_stopped(engine: Engine, words: str, code: str) -> None:
    brief, source = read(*LONG, words)
    schema = engine.draft_schema()
    assert schema is not None
    claims = [{"text": words, "fact": f"f{len(LONG) + 1}"}]
    answer = {**filled(schema, words), "angle": "story", "claims": claims}

    draft = engine.draft_from(answer, brief, PERSONA, "story")

    failed = [one.code for one in engine.check(draft, brief, source, PERSONA) if one.outcome == "failed"]
    assert code in failed


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.kind)
@pytest.mark.parametrize("words", [words for words, _ in ATTACKS.values()], ids=ATTACKS)
def test_words_without_ai_leave_sentence_and_title_out(engine: Engine, words: str) -> None:
    brief, source = read(words, *LONG, title=words)

    drafts = engine.offline(brief, PERSONA, variants=1, seed="s")

    said = f"{drafts[0].title}\n{drafts[0].body}\n{drafts[0].content}"
    assert words not in said
    assert drafts[0].title == "The council voted 14 to 9 on Tuesday to build the tram…"
    assert [one for one in engine.check(drafts[0], brief, source, PERSONA) if one.outcome == "failed"] == []
