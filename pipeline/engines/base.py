"""What every engine offers: what it can be made from, its price, its rules for a draft.

The dataclasses here carry content from a raw item to a generated item: writers make them, engines judge them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pipeline.plugins import Refused
from pipeline.render.typography.clusters import undrawable_clusters
from pipeline.render.typography.supported_scripts import unshown_text
from pipeline.text import content_buckets
from pipeline.text.links import spellings_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from pipeline.render.audio.narration import NarrationScript
    from pipeline.render.picture_plan import AvailableMedia, Layout
    from pipeline.render.video.material import FilmMaterial, VideoSpan
    from pipeline.render.video.storyboard import Storyboard

Bucket = content_buckets.BucketName
BUCKETS = content_buckets.BUCKETS
ANGLES = ("number", "contrast", "question", "story", "how-to", "myth", "warning")


@dataclass(frozen=True)
class Story:
    """One of several raw items in one text: `text[start:end]` are its title and its words. `id` is the raw item's."""

    id: str
    title: str
    url: str
    start: int
    end: int


@dataclass(frozen=True)
class SourceText:
    """A raw item as a writer sees it: plain words, markup already taken off. With `stories`, several in one text.

    `material` are the videos and pictures that came with it, where an engine asks for them.
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
    """What it holds where nobody sees it, in comments and hidden nodes: no material, and looked through for orders."""


@dataclass(frozen=True)
class PersonaCard:
    """Who speaks. `brand` is the brand kit; `required_structures` are `{"kind", "most" | "text"}` (`persona_rules.KINDS`).

    What is a fact of it stands in `who_you_are` and `approved_lines`; `voice` and `reference_posts` say how it sounds.
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
    """It bears the workspace's name: it speaks for the brand, and is nobody who said something."""


@dataclass(frozen=True)
class Fact:
    """A statement of the source: `quote` is verbatim, `text[start:end]` of the source's text, in code points."""

    id: str
    text: str
    quote: str
    start: int
    end: int
    kind: str = "sentence"
    score: float = 0.0
    seconds: tuple[float, float] | None = None
    """From when to when it is said, of what is spoken in a video."""
    is_cut: bool = False
    """Its sentence goes on in the source."""


@dataclass(frozen=True)
class TopicBrief:
    """A brief without a source document: what to speak of, how to come at it, and what was said already."""

    topic: str
    angle: str = ""
    said: tuple[str, ...] = ()
    """The newest titles of the persona, not to be repeated."""


APPROVED = "approved"
"""The `kind` of a fact that is an approved line: it may be published word for word."""
OF_TOPIC = "topic"
"""The `kind` of a fact that stands in the notes of a brand lane's topic, and of the topic's title."""
EVIDENCE = "evidence"
"""The `kind` of a fact that stands in a text that backs such a topic."""


@dataclass(frozen=True)
class Brief:
    """What a draft may say: the facts that were found verbatim in the source, best first.

    With a `lane` there was no source document: the facts are the persona's and its topic's own sentences.
    """

    title: str
    language: str
    url: str
    facts: tuple[Fact, ...]
    summary: str = ""
    is_suspect: bool = False
    """The source holds what reads like orders to a machine; nothing made from it goes out without a person."""
    orders: tuple[str, ...] = ()
    """The sentences that gave orders to a machine. They were left out, so that no fact is one of them."""
    lane: TopicBrief | None = None
    headings: tuple[Fact, ...] = ()
    """The source's own headings, in their order; they are no statements. Found by the writer without a model."""
    characters: int = 0
    """How long the source's text is; 0 where the writer didn't count."""

    whole: Fact | None = None
    """All of a text that a post may hold, where nothing of it has to be left out. Found by the writer without a model."""

    stories: tuple[Story, ...] = ()
    """The raw items that the facts are from, where there are several, in the order in which they are told."""

    material: FilmMaterial | None = None
    """Of an engine that films it: see `Engine.told`."""

    without_model: str = ""
    """Why the facts are the writer's own reading although a model was asked: a sentence for the reviewer, else empty."""

    def is_heading(self, fact: Fact) -> bool:
        return any(one.start <= fact.start and fact.end <= one.end for one in self.headings)

    def facts_of(self, story: Story) -> tuple[Fact, ...]:
        return tuple(fact for fact in self.facts if story.start <= fact.start < story.end)


@dataclass(frozen=True)
class Claim:
    """What a draft says and where the source says it; offsets in code points of the source's text.

    `derived` declares numbers that follow from the source's, as `43 % = 92 / 214`, several with `;` between.
    """

    text: str
    quote: str
    start: int
    end: int
    derived: str = ""


@dataclass(frozen=True)
class Check:
    """One rule and how the draft did; `failed` stops the item, `warning` is shown to the reviewer."""

    code: str
    outcome: Literal["passed", "warning", "failed"]
    message: str


def judge(code: str, passed: str, fault: str | None) -> Check:
    """One check: `fault` is the sentence for a failure, None where all is well."""
    return Check(code, "passed", passed) if fault is None else Check(code, "failed", fault)


@dataclass(frozen=True)
class Draft:
    """The words of one variant; `content` is typed by bucket as the API's contract lists.

    `refusals` are the failed checks, code and sentence, of an answer whose fault its words no longer show.
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
    """Stretches that the engine adds itself, such as "Source: news24.example": they say nothing, so nothing has to
    prove them. See `Engine.marked`."""


def drawable_brief(brief: Brief) -> Brief:
    """The brief without the facts, headings and title that no font here draws; as it is where none would be left."""
    facts = tuple(fact for fact in brief.facts if not undrawable_clusters(fact.quote))
    if not facts:
        return brief
    headings = tuple(one for one in brief.headings if not undrawable_clusters(one.quote))
    title = "" if undrawable_clusters(brief.title) else brief.title
    whole = None if brief.whole and undrawable_clusters(brief.whole.quote) else brief.whole
    return replace(brief, facts=facts, headings=headings, title=title, whole=whole)


def variant_schema(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of one variant: an engine's own fields, and the angle and claims that each variant has.

    Everything is required. Lengths, ranges and patterns have no place in it: the grammar of structured output
    doesn't enforce them, and the vendor declines them; `Engine.check` does.
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
    """The claims of an answer, each with the quote of the fact that it cites. Raises `Refused` for an unknown one."""
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
    """One engine output. Pure: no clock, no network, no chance but what is seeded from `seed`."""

    kind: ClassVar[str]
    name: ClassVar[str]
    """As the API says it, e.g. `Short Post`."""
    bucket: ClassVar[Bucket]
    version: ClassVar[int]
    credits: ClassVar[int]
    """The price of one variant."""
    made_from: ClassVar[tuple[str, ...]]
    """What it needs, as the API says it: `text`, `image`, `video`, `topic`, `series` (several raw items together)."""
    draft_tokens: ClassVar[int] = 2_000
    """What a model may use to answer for all variants, its thinking included."""
    shows_photo: ClassVar[bool] = False
    """Whether a photo of the raw item may be its ground."""
    sizes: ClassVar[tuple[tuple[int, int], ...]] = ()
    """In which `plan` lays it out, in pixels, the preferred one first; none for what isn't drawn."""
    least_lines: ClassVar[int] = 1
    """How many approved lines one draft without a model is made of at least; 0 where none can be made of them."""
    takes_stretches: ClassVar[bool] = False
    """Whether it takes sentences as they follow one another, a question with its answer."""

    @abstractmethod
    def why_not(self, source: SourceText) -> str | None:
        """None where it can be made from this; else one sentence that says what is missing."""

    def unshown(self, source: SourceText) -> str | None:
        """None where it draws no words, or the fonts here can draw some of these; else why not, and the remedy."""
        if not content_buckets.TRAITS[self.bucket].is_drawn:
            return None
        why = unshown_text(source.text)
        return why.sentence if why is not None else None

    @abstractmethod
    def offline(self, brief: Brief, persona: PersonaCard, *, variants: int, seed: str) -> tuple[Draft, ...]:
        """Drafts from verbatim sentences only, at most `variants`, all different; fewer where the source has less.

        Raises `Refused` where not even one can be made.
        """

    @abstractmethod
    def check(
        self, draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard
    ) -> tuple[Check, ...]:
        """Every rule of this engine with its outcome, passed ones too."""

    def draft_schema(self) -> Mapping[str, Any] | None:
        """What a model answers for one variant, made with `variant_schema`; None where no model is asked.

        It must be the same each time: the vendor compiles it once and keeps it for a day.
        """
        return None

    def rules(self) -> str:
        """What a model has to know of this engine to write for it; the same each time, nothing of the source."""
        return ""

    def draft_from(self, answer: Mapping[str, Any], brief: Brief, persona: PersonaCard, angle: str) -> Draft:
        """The draft that one answered variant stands for; `answer` keeps to `draft_schema`.

        Raises `Refused` with a sentence for what no schema says, and the model is told once.
        """
        raise NotImplementedError

    def labels(self, language: str) -> tuple[str, ...]:
        """The fixed words that it puts into drafts in this language, as they stand there."""
        del language
        return ()

    def marked(self, draft: Draft, brief: Brief, persona: PersonaCard) -> Draft:
        """The draft with what was added to the source's words: labels, the site's name, whom to follow."""
        handle = persona.handle.strip().lstrip("@\uff20")
        signs = [*spellings_of(brief.url), f"@{handle}", handle, persona.name.strip()]
        return replace(draft, added=(*self.labels(draft.language), *signs))

    def told(self, brief: Brief, source: SourceText) -> Brief:
        """The brief as this engine needs it; the writers see what comes back, and nobody stores it.

        Of an engine that draws its words, what the fonts here can't draw is no material.
        """
        del source
        return drawable_brief(brief) if content_buckets.TRAITS[self.bucket].is_drawn else brief

    def shares(self, one: Draft, other: Draft) -> bool:
        """Whether two variants would show the same, whatever their words: only one of them is kept."""
        del one, other
        return False

    def spans(self, draft: Draft) -> tuple[VideoSpan, ...]:
        """The parts of videos that are to be filmed: somebody looks for their shots before `film` is asked."""
        del draft
        return ()

    def drawn(self, draft: Draft) -> object:
        """What of a draft stands in its pictures: an edit that changes it has them drawn again."""
        return draft.body

    def plan(self, draft: Draft, persona: PersonaCard, media: AvailableMedia) -> Layout | None:
        """What is to be drawn at `media.size`, one of `sizes`; None where nothing is.

        Raises `Refused` with a sentence for words that can't be drawn.
        """
        del draft, persona, media
        return None

    def script(self, draft: Draft, persona: PersonaCard) -> NarrationScript | None:
        """What is spoken in the film of a draft; None for a silent one.

        It is spoken before `film` is asked, which finds the words with their times in `media.narration`. Without a
        voice that is None, and the film is laid on `narration.silent`, with captions.
        """
        del draft, persona
        return None

    def film(self, draft: Draft, persona: PersonaCard, media: AvailableMedia) -> Storyboard | None:
        """What is to be filmed, of an engine whose bucket is `video`; None where nothing is.

        What it says is heard where the storyboard's `audio.voice` is `media.narration.voice`. Raises `Refused` with a sentence for words that can't be filmed.
        """
        del draft, persona, media
        return None
