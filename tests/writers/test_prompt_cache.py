"""The beginning of a prompt is the same bytes wherever it can be, and what is kept of it counts in the cost."""

from __future__ import annotations

import json

import pytest

from pipeline import plugins
from pipeline.engines.base import Brief, Engine, Fact, PersonaCard
from pipeline.engines.linkedin_post import PLUGIN as LINKEDIN_POST
from pipeline.engines.short_post import PLUGIN as SHORT_POST
from pipeline.generate.model import client as model_client
from pipeline.writers.claude import Claude, prompts
from pipeline.writers.prices import Tokens, cost_micro_usd
from tests.writers.messages_server import MessagesServer, ok
from tests.writers.metering import Declined, Meter, count

WRITER = Claude()
ENGINES = [engine for engine in plugins.every("engines", Engine) if engine.draft_schema() is not None]
PERSONA = PersonaCard(
    "Harrow Herald",
    handle="herald",
    language="en",
    links=("https://herald.example.com/",),
    who_you_are="A small paper for the people of Harrow, written by two editors who ride every line themselves.",
    voice="Dry and short. Numbers before adjectives. One joke a week, never in the first line. Readers are neighbours.",
    banned_words=("game changer", "exciting", "delve"),
    required_structures=({"kind": "max_hashtags", "most": 1},),
    reference_posts=tuple(
        f"Reference post {number}: the {number} o'clock tram left on time, for the {number}th day in a row, and "
        "the driver waved at the school as drivers here have always done. We counted the passengers: more stood "
        "than sat, nobody complained, and the one who usually does has bought a bicycle for the summer months."
        for number in range(1, 6)
    ),
)


def brief(words):
    return Brief("T", "en", "https://news.example.org/a", (Fact("f1", words, words, 0, len(words)),))


@pytest.fixture
def server():
    with MessagesServer() as running:
        said = "The council voted 14 to 9."
        variant = {"angle": "number", "text": said, "claims": [{"text": said, "fact": "f1", "derived": ""}]}
        post = {name: value for name, value in variant.items() if name != "text"}
        post |= {"paragraphs": [said], "hashtags": []}
        running.answer = lambda request: ok({"variants": [post if "paragraphs" in request.raw else variant]})
        yield running


@pytest.fixture
def client(server):
    with model_client.connect_account(api_key="key", base_url=server.url, timeout=20) as connected:
        yield connected


def draft(
    client, words="The council voted 14 to 9.", *, engine=SHORT_POST, persona=PERSONA, variants=1, seed="s"
):
    return WRITER.draft(engine, brief(words), persona, variants=variants, seed=seed, client=client)


def prefix(engine, persona=PERSONA):
    return json.dumps(prompts.draft_system(engine, persona), ensure_ascii=False)


def test_prefix_is_the_same_bytes_over_raw_items_runs_and_variants(server, client):
    for words, variants, seed in (("One fact is here.", 1, "a"), ("Another is there.", 3, "b")):
        draft(client, words, variants=variants, seed=seed)

    first, second = server.requests
    for part in ("system", "output_config", "model"):
        assert json.dumps(first.body[part]) == json.dumps(second.body[part])


def test_engines_share_the_house_rules_byte_by_byte_and_personas_what_stands_before_them():
    heads = {
        prompts.draft_system(engine, PERSONA)[0]["text"].partition(engine.rules())[0] for engine in ENGINES
    }
    tails = {json.dumps(prompts.draft_system(engine, PERSONA)[1]) for engine in ENGINES}
    assert (len(heads), len(tails)) == (1, 1)
    other = PersonaCard("Another", voice="Loud.")
    assert [
        prompts.draft_system(one, PERSONA)[0] == prompts.draft_system(one, other)[0] for one in ENGINES
    ] == [True] * len(ENGINES)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda one: one.kind)
def test_prefix_of_a_persona_with_its_posts_reaches_the_least_that_is_kept(engine):
    """1,024 is the least of most models; where it is more, nothing is kept, and nothing more is paid."""
    schema = json.dumps(prompts.variants_schema(engine.draft_schema()))
    system = prompts.draft_system(engine, PERSONA)
    assert count(schema) + sum(count(block["text"]) for block in system) >= 1_024


def test_second_draft_reads_what_the_first_has_written_and_pays_a_tenth(server, client):
    server.meter = Meter(minimum=1_024)

    [cold], [warm] = (draft(client, words).calls for words in ("One fact is here.", "Another is there."))

    assert cold.cache_write_5m_tokens == warm.cache_read_tokens > 1_024
    assert (cold.cache_read_tokens, warm.cache_write_5m_tokens) == (0, 0)
    for call in (cold, warm):
        tokens = Tokens(
            input=call.input_tokens,
            cache_write_5m=call.cache_write_5m_tokens,
            cache_read=call.cache_read_tokens,
            output=call.output_tokens,
        )
        assert call.cost_micro_usd == cost_micro_usd(tokens, "claude-haiku-5-5")
    whole = Tokens(input=cold.input_tokens + cold.cache_write_5m_tokens, output=cold.output_tokens)
    assert warm.cost_micro_usd < cost_micro_usd(whole, "claude-haiku-5-5") < cold.cost_micro_usd


def test_below_the_least_length_nothing_is_kept_and_nothing_more_is_paid(server, client):
    server.meter = Meter(minimum=4_096)

    calls = [draft(client).calls[0] for _ in range(2)]

    assert [(one.cache_write_5m_tokens, one.cache_read_tokens) for one in calls] == [(0, 0)] * 2


def reach(engine):
    """Tokens of the form of the answer and the rules: the part that all personas share."""
    schema = json.dumps(prompts.variants_schema(engine.draft_schema()))
    return count(schema) + count(prompts.draft_system(engine, PERSONA)[0]["text"])


def test_rules_of_the_two_shortest_engines_alone_are_below_the_least_that_is_kept():
    short = {engine.kind for engine in ENGINES if reach(engine) < 1_024}
    assert short == {"short_post", "persona_tweet"}


@pytest.mark.parametrize(("engine", "is_kept"), [(LINKEDIN_POST, True), (SHORT_POST, False)])
def test_another_persona_reads_the_rules_where_they_are_long_enough_and_writes_its_own(
    server, client, engine, is_kept
):
    server.meter = Meter(minimum=1_024)
    draft(client, engine=engine)
    [call] = draft(client, engine=engine, persona=PersonaCard("Another", voice="Loud.")).calls
    rules, _ = server.requests[0].body["system"]
    assert (call.cache_read_tokens > count(rules["text"])) == is_kept
    # Together with the persona they reach it in both cases.
    assert call.cache_write_5m_tokens > 0


# --- The service's cache, as the local server keeps it -----------------------------------------------------------------


def asked(*system, model="claude-haiku-5-5", form=None, task="Write."):
    blocks = [
        {"type": "text", "text": words, **({"cache_control": mark} if mark else {})} for words, mark in system
    ]
    message = {"role": "user", "content": [{"type": "text", "text": task}]}
    return {"model": model, "system": blocks, "messages": [message], "output_config": {"format": form}}


FIVE, HOUR = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}
LONG = "rule " * 3_000


def cached(usage):
    return usage["cache_creation_input_tokens"] > 0, usage["cache_read_input_tokens"] > 0


@pytest.mark.parametrize(("mark", "seconds"), [(FIVE, 300), (HOUR, 3_600)], ids=["5m", "1h"])
def test_what_is_kept_lives_so_long_and_anew_with_each_reading(mark, seconds):
    at = {"now": 0.0}
    meter = Meter(clock=lambda: at["now"])
    request = asked((LONG, mark))
    told = []
    for moment in (0.0, seconds - 1, 2 * seconds - 2, 3 * seconds):
        at["now"] = moment
        told.append(cached(meter.usage(request, "")))
    assert told == [(True, False), (False, True), (False, True), (True, False)]


@pytest.mark.parametrize(
    "other",
    [
        asked((f"{LONG}!", FIVE)),
        asked((LONG, FIVE), model="claude-sonnet-5-5"),
        asked((LONG, FIVE), form={"type": "json_schema", "schema": {}}),
    ],
    ids=["a byte", "the model", "the form of the answer"],
)
def test_another_beginning_is_not_found(other):
    meter = Meter()
    meter.usage(asked((LONG, FIVE)), "")
    assert cached(meter.usage(other, "")) == (True, False)


def test_another_task_finds_the_beginning_and_tokens_add_up():
    meter = Meter()
    first = meter.usage(asked((LONG, FIVE)), "Yes.")
    second = meter.usage(asked((LONG, FIVE), task="Write two of them."), "Yes.")
    assert cached(second) == (False, True)
    assert second["cache_read_input_tokens"] == first["cache_creation_input_tokens"]
    assert second["input_tokens"] == count("Write two of them.")
    assert second["output_tokens"] == 2


def test_five_marks_and_marks_in_the_wrong_order_are_declined():
    with pytest.raises(Declined):
        Meter().usage(asked(*[(LONG, FIVE)] * 5), "")
    with pytest.raises(Declined):
        Meter().usage(asked((LONG, FIVE), (LONG, HOUR)), "")
