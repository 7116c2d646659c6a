"""Presents the best posts and rankings, each group with its numbers and a link to its posts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from django.utils.dates import WEEKDAYS
from django.utils.translation import gettext_lazy

from analytics.reports.number_format import format_change, format_number
from analytics.reports.page_report import read_source_names
from analytics.reports.rankings import DIMENSIONS, HOURS
from config.core.ids import encode
from pipeline import plugins
from pipeline.engines.base import Engine
from pipeline.models import GeneratedItemStatus, Topic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from accounts.pages.page_access import Place
    from analytics.queries import Question
    from analytics.reports.punctuality_and_top_posts import Performance, TopPost

MIN_RANKED_POSTS: Final = 5
"""The fewest posts with a known number of which the best are shown."""
MAX_RANKED_POSTS: Final = 5
"""The most posts that are shown as the best."""
_TITLES: Final = {
    "format": gettext_lazy("Best formats"),
    "topic": gettext_lazy("Best topics"),
    "source": gettext_lazy("Best sources"),
    "weekday": gettext_lazy("Best days"),
    "time": gettext_lazy("Best times"),
}
_COLUMNS: Final = {
    "format": gettext_lazy("Format"),
    "topic": gettext_lazy("Topic"),
    "source": gettext_lazy("Source"),
    "weekday": gettext_lazy("Day"),
    "time": gettext_lazy("Time"),
}
_TOO_FEW: Final = {
    "format": gettext_lazy("formats"),
    "topic": gettext_lazy("topics"),
    "source": gettext_lazy("sources"),
    "weekday": gettext_lazy("days"),
    "time": gettext_lazy("times"),
}


@dataclass(frozen=True)
class ShownGroup:
    """A group of a ranking, formatted for the page."""

    name: str
    link: str
    """The address of its posts or of the topic, or empty if there is none."""
    posts: int
    median: str
    change: str
    """The change against the median of all posts, or empty if that is 0."""
    is_above: bool


@dataclass(frozen=True)
class ShownRanking:
    """The ranking of one dimension, formatted for the page."""

    id: str
    title: str
    column: str
    groups: tuple[ShownGroup, ...]
    link: str
    """The address where posting times are set, or empty if the ranking isn't about times."""


@dataclass(frozen=True)
class Highlights:
    """The best posts, each with its formatted value, and the rankings."""

    posts: tuple[tuple[TopPost, str], ...]
    rankings: tuple[ShownRanking, ...]
    unranked: str
    """The dimensions of which too little is known, with commas between them, for a sentence."""


def build_highlights(place: Place, question: Question, results: Performance, metric: str) -> Highlights:
    """Return what is known well enough to be ranked, nothing with fewer than `MIN_RANKED_POSTS` posts."""
    if results.known < MIN_RANKED_POSTS:
        return Highlights((), (), "")
    ranked = {name: groups for name, groups in results.rankings.items() if groups}
    labels = _labels(
        place, question, {name: [group.key for group in groups] for name, groups in ranked.items()}
    )
    # A group whose topic or source was deleted since has no label, and one group alone is no ranking.
    labelled = {
        name: [group for group in groups if group.key in labels[name]] for name, groups in ranked.items()
    }
    shown_groups = {name: groups for name, groups in labelled.items() if len(groups) > 1}
    return Highlights(
        posts=tuple((post, format_number(post.value, metric)) for post in results.best[:MAX_RANKED_POSTS]),
        rankings=tuple(
            ShownRanking(
                f"best-{name}",
                str(_TITLES[name]),
                str(_COLUMNS[name]),
                tuple(
                    ShownGroup(
                        *labels[name][group.key],
                        group.posts,
                        format_number(group.median, metric),
                        "" if group.change is None else format_change(group.change),
                        is_above=(group.change or 0) > 0,
                    )
                    for group in groups
                ),
                place.url_of("queues_page") if name in {"weekday", "time"} else "",
            )
            for name, groups in shown_groups.items()
        ),
        unranked=", ".join(str(_TOO_FEW[name]) for name in DIMENSIONS if name not in shown_groups),
    )


# --- Names and links -------------------------------------------------------------------------------------------------

Labels = dict[Any, tuple[str, str]]
"""The name and the link, or an empty text, of each group by its key."""


def _labels(place: Place, question: Question, keys: Mapping[str, list[Any]]) -> dict[str, Labels]:
    """Return the name and the link of each group by dimension and key."""
    return {name: _LABELLERS[name](place, question, keys_of_name) for name, keys_of_name in keys.items()}


def _format_labels(place: Place, _question: Question, names: list[str]) -> Labels:
    # Content offers the formats of this instance's plug-ins.
    offered = {engine.name for engine in plugins.every("engines", Engine)}
    return {name: (name, _content_link(place, engine=name) if name in offered else "") for name in names}


def _topic_labels(place: Place, question: Question, ids: list[Any]) -> Labels:
    """Return titles and links; a topic that no persona's page lists, or a viewer can't open, has no link."""
    topics = Topic.objects.of(question.workspace_id).filter(pk__in=ids)
    return {
        topic.pk: (
            topic.title,
            place.url_of("topic", per=topic.persona_id, top=topic.pk)
            if place.may_edit and topic.persona_id and topic.source_id is None and topic.deleted_at is None
            else "",
        )
        for topic in topics.only("title", "persona_id", "source_id", "deleted_at")
    }


def _source_labels(place: Place, question: Question, ids: list[Any]) -> Labels:
    return {
        key: (name, _content_link(place, source=encode("src", key)))
        for key, name in read_source_names(question, ids).items()
    }


def _content_link(place: Place, **filters: str) -> str:
    query = urlencode({**filters, "status": GeneratedItemStatus.PUBLISHED})
    return f"{place.url_of('items_page')}?{query}"


def _weekday_labels(_place: Place, _question: Question, weekdays: list[int]) -> Labels:
    return {weekday: (str(WEEKDAYS[weekday]), "") for weekday in weekdays}


def _time_labels(_place: Place, _question: Question, hours: list[int]) -> Labels:
    return {hour: (f"{hour:02}:00–{(hour + HOURS) % 24:02}:00", "") for hour in hours}


_LABELLERS: Final[Mapping[str, Callable[[Place, Question, list[Any]], Labels]]] = {
    "format": _format_labels,
    "topic": _topic_labels,
    "source": _source_labels,
    "weekday": _weekday_labels,
    "time": _time_labels,
}
