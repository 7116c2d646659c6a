"""Defines the interface of engines: what each can be made from, its price, and its rules for a draft.

The dataclasses here carry content from a raw item to a generated item: writers make them, engines check them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pipeline.plugins import Refused
from pipeline.render.typography.clusters import undrawable_clusters
from pipeline.render.typography.supported_scripts import unshown_text
from pipeline.text import bucket_traits
from pipeline.text.links import spellings_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from pipeline.render.audio.narration import NarrationScript
    from pipeline.render.picture_types import AvailableMedia, Layout
    from pipeline.render.video.material import FilmMaterial, VideoSpan
    from pipeline.render.video.storyboard import Storyboard

Bucket = bucket_traits.BucketName
BUCKETS = bucket_traits.BUCKETS
ANGLES = ("number", "contrast", "question", "story", "how-to", "myth", "warning")


@dataclass(frozen=True)
class Story:
    """One of several raw items in one text: `text[start:end]` is its title and text, `id` its own id."""

    id: str
    title: str
    url: str
    start: int
    end: int


@dataclass(frozen=True)
class SourceText:
    """A raw item as a writer sees it, in plain text; with `stories` it is several raw items in one text.

    `material` has the videos and pictures that came with the raw item, if an engine asks for them.
    """

    title: str
    text: str
    url: str = ""
    author: str = ""
    language: str = ""
    published_at: datetime | None = None
    stories: tuple[Story, ...] = ()
    material: FilmMaterial | None = None
    hidden: str = ""
    """The text of comments and hidden nodes: no draft uses it, but it is searched for orders to a machine."""


@dataclass(frozen=True)
class PersonaCard:
    """The persona that speaks, as engines and writers get it.

    `brand` is the brand kit; `required_structures` are `{"kind", "most" | "text"}`, of the `KINDS` of
    `checks.persona_rules`. `who_you_are` and `approved_lines` hold facts about the persona; `voice` and
    `reference_posts` show how it sounds.
    """

    name: str
    handle: str = ""
    language: str = "en"
    links: tuple[str, ...] = ()
    who_you_are: str = ""
    voice: str = ""
    banned_words: tuple[str, ...] = ()
    required_structures: tuple[Mapping[str, Any], ...] = ()
    reference_posts: tuple[str, ...] = ()
    approved_lines: tuple[str, ...] = ()
    brand: Mapping[str, Any] = field(default_factory=dict)
    is_brand: bool = False
    """Whether it has the workspace's name: it speaks for the brand, and is no person who can be quoted."""


@dataclass(frozen=True)
class Fact:
    """A statement of the source: `quote` is verbatim `text[start:end]` of the source's text, in code points."""

    id: str
    text: str
    quote: str
    start: int
    end: int
    kind: str = "sentence"
    """The kind of statement or of its origin, such as `sentence`, `spoken` or `APPROVED`."""
    score: float = 0.0
    """The fact's rank: a higher score is better."""
    seconds: tuple[float, float] | None = None
    """The start and the end of the statement in a video, in seconds."""
    is_cut: bool = False
    """Whether the statement's sentence goes on in the source."""


@dataclass(frozen=True)
class TopicBrief:
    """The topic of a brief without a source document, with the angle from which it is told."""

    topic: str
    angle: str = ""
    said: tuple[str, ...] = ()
    """The persona's newest titles, which aren't to be repeated."""


APPROVED = "approved"
"""The `kind` of a fact that is an approved line: it may be published word for word."""
OF_TOPIC = "topic"
"""The `kind` of a fact from the notes of a brand lane's topic, and of the topic's title."""
EVIDENCE = "evidence"
"""The `kind` of a fact from a text that backs such a topic."""


@dataclass(frozen=True)
class Brief:
    """The facts that a draft may state, found verbatim in the source, best first.

    With a `lane` there is no source document: the facts are sentences of the persona and of its topic.
    """

    title: str
    language: str
    url: str
    facts: tuple[Fact, ...]
    summary: str = ""
    is_suspect: bool = False
    """Whether the source reads like orders to a machine; then only a person may publish what is made from it."""
    orders: tuple[str, ...] = ()
    """The sentences that gave orders to a machine; they were left out, so no fact is one of them."""
    lane: TopicBrief | None = None
    headings: tuple[Fact, ...] = ()
    """The source's headings, in their order, which aren't statements; only the writer without a model finds them."""
    characters: int = 0
    """The length of the source's text, or 0 if the writer didn't count it."""

    whole: Fact | None = None
    """The whole text, if it is short and clean enough for a post; only the writer without a model finds it."""

    stories: tuple[Story, ...] = ()
    """The raw items that the facts are from, if there are several, in the order in which they are told."""

    material: FilmMaterial | None = None
    """The source's videos and pictures, added by `Engine.told` of an engine that films them."""

    without_model: str = ""
    """The reason, for the reviewer, why no facts of a model are used although a model was asked; empty otherwise."""

    def is_heading(self, fact: Fact) -> bool:
        """Return whether the fact lies within one of the source's headings."""
        return any(heading.start <= fact.start and fact.end <= heading.end for heading in self.headings)

    def facts_of(self, story: Story) -> tuple[Fact, ...]:
        """Return the facts of one story."""
        return tuple(fact for fact in self.facts if story.start <= fact.start < story.end)


@dataclass(frozen=True)
class Claim:
    """A statement of a draft and its passage in the source; offsets in code points of the source's text.

    `derived` declares numbers computed from the source's, as `43 % = 92 / 214`, several separated by `;`.
    """

    text: str
    quote: str
    start: int
    end: int
    derived: str = ""


@dataclass(frozen=True)
class Check:
    """The outcome of one rule; `failed` stops the item, `warning` is shown to the reviewer."""

    code: str
    outcome: Literal["passed", "warning", "failed"]
    message: str


def make_check(code: str, passed: str, fault: str | None) -> Check:
    """Return the check: failed with the sentence `fault`, or passed with `passed` if `fault` is `None`."""
    return Check(code, "passed", passed) if fault is None else Check(code, "failed", fault)


@dataclass(frozen=True)
class Draft:
    """The words of one variant; `content` has the fields that the API's contract lists for the bucket.

    `refusals` are codes and sentences of checks that a model's answer failed by faults that the draft doesn't show.
    """

    title: str
    body: str
    body_format: Literal["text", "markdown", "html"]
    content: Mapping[str, Any]
    claims: tuple[Claim, ...]
    language: str
    angle: str = ""
    refusals: Mapping[str, str] = field(default_factory=dict)
    added: tuple[str, ...] = ()
    """Text that needs no evidence because the engine adds it (`Engine.marked`), such as "Source: news24.example"."""


def drawable_brief(brief: Brief) -> Brief:
    """Return the brief without what the fonts can't draw; unchanged if no fact would be left."""
    facts = tuple(fact for fact in brief.facts if not undrawable_clusters(fact.quote))
    if not facts:
        return brief
    headings = tuple(heading for heading in brief.headings if not undrawable_clusters(heading.quote))
    title = "" if undrawable_clusters(brief.title) else brief.title
    whole_text = None if brief.whole and undrawable_clusters(brief.whole.quote) else brief.whole
    return replace(brief, facts=facts, headings=headings, title=title, whole=whole_text)


def variant_schema(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of one variant: the engine's own fields, and every variant's angle and claims.

    Every field is required. The vendor declines lengths, ranges and patterns, which `Engine.check` checks.
    """
    claim = {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "The words of the draft that say it."},
            "fact": {"type": "string", "description": "The id of the fact that they rest on."},
            "derived": {
                "type": "string",
                "description": "Empty, but where these words say a number that no fact says: `43 % = 92 / 214`.",
            },
        },
        "required": ["text", "fact", "derived"],
        "additionalProperties": False,
    }
    properties = {
        "angle": {"type": "string", "enum": list(ANGLES)},
        **fields,
        "claims": {"type": "array", "items": claim},
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def claims_of(answer: Mapping[str, Any], brief: Brief) -> tuple[Claim, ...]:
    """Return the answer's claims with their facts' quotes. Raises `Refused` if a claim cites an unknown fact."""
    facts = {fact.id: fact for fact in brief.facts}
    unknown = sorted({claim["fact"] for claim in answer["claims"]} - set(facts))
    if unknown:
        message = f"No fact has the id {', '.join(repr(name) for name in unknown)}."
        raise Refused(message, code="unknown_fact")
    cited = [(claim, facts[claim["fact"]]) for claim in answer["claims"]]
    return tuple(
        Claim(
            text=claim["text"],
            quote=fact.quote,
            start=fact.start,
            end=fact.end,
            derived=claim.get("derived", "").strip(),
        )
        for claim, fact in cited
    )


class Engine(ABC):
    """One engine output. An engine is pure: no clock, no network, and chance only from `seed`."""

    kind: ClassVar[str]
    name: ClassVar[str]
    """The engine output's name in the API, e.g. `Short Post`."""
    bucket: ClassVar[Bucket]
    version: ClassVar[int]
    credits: ClassVar[int]
    """The price of one variant."""
    made_from: ClassVar[tuple[str, ...]]
    """The material that it needs, in the API's names: `text`, `image`, `video`, `topic`, or `series` of raw items."""
    is_starting: ClassVar[bool] = False
    """Whether a new workspace uses it: one engine of each bucket does, and needs no model."""
    draft_tokens: ClassVar[int] = 2_000
    """The tokens that a model may use to answer for all variants, thinking included."""
    shows_photo: ClassVar[bool] = False
    """Whether a photo of the raw item may be the background."""
    sizes: ClassVar[tuple[tuple[int, int], ...]] = ()
    """The sizes in which `plan` or `film` lays it out, in pixels, the preferred one first; none if it isn't drawn."""
    least_lines: ClassVar[int] = 1
    """The fewest approved lines for one draft without a model, or 0 if no draft can be made of them."""
    takes_stretches: ClassVar[bool] = False
    """Whether it takes sentences in sequence, such as a question with its answer."""

    @abstractmethod
    def why_not(self, source: SourceText) -> str | None:
        """Return one sentence that says what the source lacks, or `None` if the engine can use it."""

    def unshown(self, source: SourceText) -> str | None:
        """Return why the fonts can't draw a single sentence, with the remedy, or `None` if they can draw one."""
        if not bucket_traits.TRAITS[self.bucket].is_drawn:
            return None
        unshown = unshown_text(source.text)
        return unshown.sentence if unshown is not None else None

    @abstractmethod
    def offline(self, brief: Brief, persona: PersonaCard, *, variants: int, seed: str) -> tuple[Draft, ...]:
        """Return up to `variants` different drafts, best first, of verbatim sentences only, made without a model.

        There are fewer drafts if the source has too few sentences. Raises `Refused` if no draft can be made.
        """

    @abstractmethod
    def check(
        self, draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard
    ) -> tuple[Check, ...]:
        """Return every rule of this engine with its outcome, passed ones too."""

    def draft_schema(self) -> Mapping[str, Any] | None:
        """Return the schema of one variant, made with `variant_schema`, or `None` if no model is asked.

        It must be the same each time, because the vendor compiles it once and keeps it for a day.
        """
        return None

    def rules(self) -> str:
        """Return the instructions to a model for this engine: the same text each time, with nothing of the source."""
        return ""

    def draft_from(self, answer: Mapping[str, Any], brief: Brief, persona: PersonaCard, angle: str) -> Draft:
        """Return the draft of one answered variant; `answer` conforms to `draft_schema`.

        Raises `Refused` if the answer has a fault that no schema expresses; the model gets its sentence once.
        """
        raise NotImplementedError

    def labels(self, language: str) -> tuple[str, ...]:
        """Return the fixed texts that the engine puts into drafts in this language, word for word."""
        del language
        return ()

    def marked(self, draft: Draft, brief: Brief, persona: PersonaCard) -> Draft:
        """Return the draft with `added`: labels, the site's name, and the persona's name and handle."""
        handle = persona.handle.strip().lstrip("@\uff20")
        added = [*spellings_of(brief.url), f"@{handle}", handle, persona.name.strip()]
        return replace(draft, added=(*self.labels(draft.language), *added))

    def told(self, brief: Brief, source: SourceText) -> Brief:
        """Return the brief as this engine needs it: writers get it, and it isn't stored.

        An engine that draws its words gets no facts that the fonts can't draw.
        """
        del source
        return drawable_brief(brief) if bucket_traits.TRAITS[self.bucket].is_drawn else brief

    def shares(self, one: Draft, other: Draft) -> bool:
        """Return whether two variants would show the same, whatever their words; then only one is kept."""
        del one, other
        return False

    def spans(self, draft: Draft) -> tuple[VideoSpan, ...]:
        """Return the parts of videos to be filmed, whose shots are detected before `film` is called."""
        del draft
        return ()

    def drawn(self, draft: Draft) -> object:
        """Return the part of a draft that its pictures show: they are drawn again if an edit changes it."""
        return draft.body

    def plan(self, draft: Draft, persona: PersonaCard, media: AvailableMedia) -> Layout | None:
        """Return the pictures to draw at `media.size`, one of `sizes`, or `None` if nothing is drawn.

        Raises `Refused` if the words can't be drawn.
        """
        del draft, persona, media
        return None

    def script(self, draft: Draft, persona: PersonaCard) -> NarrationScript | None:
        """Return the text that a voice speaks in the film of a draft, or `None` for a film without a voice.

        It is spoken before `film` is called, and `media.narration` then has the words with their times. If there
        is no voice, `media.narration` is `None`, and the film follows `narration.silent`, with captions.
        """
        del draft, persona
        return None

    def film(self, draft: Draft, persona: PersonaCard, media: AvailableMedia) -> Storyboard | None:
        """Return the storyboard to film, for an engine whose bucket is `video`, or `None` if nothing is filmed.

        The narration is heard if the storyboard's `audio.voice` is `media.narration.voice`. Raises `Refused` if
        the words can't be filmed.
        """
        del draft, persona, media
        return None
