"""What is published and was made of an entry that changed since: said where the item shows, with what to do."""

from __future__ import annotations

import pytest

from pipeline.labels import FLAGS
from pipeline.models import GeneratedItem
from tests.pages.answers import at
from tests.pipeline import steps
from tests.pipeline.steps import NOON, push_raw


def flag(workspace, reason, **changes):
    raw = push_raw(workspace).raw_item
    steps.run_generations(raw)
    item = steps.items_of(raw)[0]
    GeneratedItem.everywhere.filter(pk=item.pk).update(
        status="published", flagged=reason, published_at=NOON, **changes
    )
    return item


@pytest.mark.parametrize("reason", ["source_changed", "source_withdrawn"])
def test_it_stands_beside_the_item_with_what_to_do(editor, newsroom, reason):
    item = flag(newsroom, reason)
    text = editor.get(at(newsroom, "made", raw=item.raw_item_id)).content.decode()
    assert text.count(str(FLAGS[reason])) == 1
    assert f'href="{at(newsroom, "item_page", gen=item.pk)}"' in text


def test_first_page_lists_what_is_flagged(editor, newsroom, charlie):
    from accounts import workspaces

    home = at(newsroom, "home")
    assert "Source changed after publishing" not in editor.get(home).content.decode()
    item = flag(newsroom, "source_changed", title="Tram line approved")
    flag(workspaces.memberships_of(charlie)[0].workspace, "source_changed", title="Theirs alone")
    answer = editor.get(home)
    (row,) = answer.context["seen"].flagged
    assert (row.title, row.at, row.reason) == ("Tram line approved", NOON, str(FLAGS["source_changed"]))
    assert 'id="flagged"' in answer.content.decode()
    GeneratedItem.everywhere.filter(pk=item.pk).update(deleted_at=NOON)
    assert editor.get(home).context["seen"].flagged == []
