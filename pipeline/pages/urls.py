"""Defines the URL patterns of the pages for a workspace's content, from its sources to its outlets."""

from django.urls import path, register_converter

from accounts.pages.page_routes import page_path, register_ids
from pipeline.pages import defaults, home, manual_publish, search, usage
from pipeline.pages.calendar import fill_week as calendar_fill_week
from pipeline.pages.calendar import items_for_slot as calendar_slot
from pipeline.pages.calendar import move as calendar_move
from pipeline.pages.calendar import page as calendar_page
from pipeline.pages.calendar import schedule_item as calendar_schedule_item
from pipeline.pages.failures import actions as failure_actions
from pipeline.pages.failures import page as failure_page
from pipeline.pages.inbound import views as inbound_views
from pipeline.pages.items import actions as item_actions
from pipeline.pages.items import detail as item_detail
from pipeline.pages.items import edit as item_edit
from pipeline.pages.items import listing as item_listing
from pipeline.pages.items import publish as item_publish
from pipeline.pages.items import recurrence_form as item_recurrence_form
from pipeline.pages.items import rewrite as item_rewrite
from pipeline.pages.items import saved_views as item_saved_views
from pipeline.pages.items.storyboard import views as item_storyboard
from pipeline.pages.new import views as new_views
from pipeline.pages.newsletters import subscribers as newsletter_subscribers
from pipeline.pages.outlets import actions as outlet_actions
from pipeline.pages.outlets import connect as outlet_connect
from pipeline.pages.outlets import detail as outlet_detail
from pipeline.pages.outlets import listing as outlet_listing
from pipeline.pages.outlets import oauth as outlet_oauth
from pipeline.pages.personas import branding as persona_branding
from pipeline.pages.personas import drafts as persona_drafts
from pipeline.pages.personas import editor as persona_editor
from pipeline.pages.personas import listing as persona_listing
from pipeline.pages.queues import edit as queue_edit
from pipeline.pages.queues import views as queue_views
from pipeline.pages.queues import workspace_hold
from pipeline.pages.review import actions as review_actions
from pipeline.pages.review import edit as review_edit
from pipeline.pages.review import page as review_page
from pipeline.pages.series import views as series_views
from pipeline.pages.sources import actions as source_actions
from pipeline.pages.sources import brand_lanes, bulk_add
from pipeline.pages.sources import create as source_create
from pipeline.pages.sources import listing as source_listing
from pipeline.pages.sources import views as source_views
from pipeline.pages.topics import views as topic_views

register_ids(
    "src", "raw", "gen", "out", "pub", "per", "top", "ind", "pdr", "sub", "mlg", "que", "pln", "ser", "viw"
)


class PlatformKind:
    """A path converter for the kind of a platform, which doesn't check that there is such a platform."""

    prefix = "kind"
    regex = "[a-z0-9_-]{1,40}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return str(value)


register_converter(PlatformKind, "kind")

_SOURCE = "sources/<src:src>"
_PERSONA = "personas/<per:per>"
_TOPIC = f"{_PERSONA}/topics/<top:top>"
_OUTLET = "outlets/<out:out>"
_QUEUE = "queues/<que:que>"
_SERIES = "series/<ser:ser>"
_ITEM = "items/<gen:gen>"
_VIEW = "items/views/<viw:viw>"
_PUBLICATION = "publications/<pub:pub>"
_LETTER = "outlets/<out:out>"
_DELIVERIES = "sources/<src:src>/deliveries"

urlpatterns = [
    page_path(_DELIVERIES, inbound_views.source_deliveries, "source_deliveries"),
    page_path(f"{_DELIVERIES}/<ind:ind>", inbound_views.source_delivery, "source_delivery"),
    page_path(
        f"{_DELIVERIES}/<ind:ind>/replay", inbound_views.source_delivery_replay, "source_delivery_replay"
    ),
    page_path("sources/<src:src>/dry-run", inbound_views.source_dry_run, "source_dry_run"),
    page_path("sources/<src:src>/secret", inbound_views.source_secret, "source_secret"),
    page_path("sources/<src:src>/secret/rotate", inbound_views.source_secret_rotate, "source_secret_rotate"),
    page_path("", home.home, "home"),
    page_path("search", search.everything, "everything"),
    page_path("new/", new_views.making, "making"),
    page_path("new/<raw:raw>", new_views.made, "made"),
    page_path("items/", item_listing.items_page, "items_page"),
    page_path("items/views/save", item_saved_views.item_view_save, "item_view_save"),
    page_path(f"{_VIEW}/rename", item_saved_views.item_view_rename, "item_view_rename"),
    page_path(f"{_VIEW}/delete", item_saved_views.item_view_delete, "item_view_delete"),
    page_path(_ITEM, item_detail.item_page, "item_page"),
    page_path(f"{_ITEM}/approve", item_actions.item_approve, "item_approve"),
    page_path(f"{_ITEM}/reject", item_actions.item_reject, "item_reject"),
    page_path(f"{_ITEM}/restore", item_actions.item_restore, "item_restore"),
    page_path(f"{_ITEM}/retry", item_actions.item_retry, "item_retry"),
    page_path(f"{_ITEM}/regenerate", item_actions.item_regenerate, "item_regenerate"),
    page_path(f"{_ITEM}/rewrite", item_rewrite.item_rewrite, "item_rewrite"),
    page_path(f"{_ITEM}/rewrite/cancel", item_rewrite.item_rewrite_cancel, "item_rewrite_cancel"),
    page_path(f"{_ITEM}/rewrite/undo", item_rewrite.item_rewrite_undo, "item_rewrite_undo"),
    page_path(f"{_ITEM}/recurring", item_recurrence_form.item_recurring, "item_recurring"),
    page_path(f"{_ITEM}/recurring/stop", item_recurrence_form.item_recurring_stop, "item_recurring_stop"),
    page_path(f"{_ITEM}/choose", item_actions.item_choose, "item_choose"),
    page_path(f"{_ITEM}/cancel", item_actions.item_cancel, "item_cancel"),
    page_path(f"{_ITEM}/publish", item_publish.item_publish, "item_publish"),
    page_path(f"{_ITEM}/edit", item_edit.item_edit, "item_edit"),
    page_path(f"{_ITEM}/storyboard", item_storyboard.item_storyboard, "item_storyboard"),
    page_path(f"{_ITEM}/back", item_edit.item_back, "item_back"),
    page_path(f"{_PUBLICATION}/retry", item_actions.publication_retry, "publication_retry"),
    page_path(f"{_PUBLICATION}/reconcile", item_actions.publication_reconcile, "publication_reconcile"),
    page_path(f"{_PUBLICATION}/remove", item_actions.publication_remove, "publication_remove"),
    page_path("review/", review_page.review, "review"),
    page_path("review/rows", review_page.review_rows, "review_rows"),
    page_path("review/news", review_page.review_news, "review_news"),
    page_path("review/decide", review_actions.review_decide, "review_decide"),
    page_path("review/undo", review_actions.review_undo, "review_undo"),
    page_path("review/<gen:gen>", review_page.review_card, "review_card"),
    page_path("review/<gen:gen>/edit", review_edit.review_edit, "review_edit"),
    page_path("sources/", source_listing.sources, "sources_page"),
    page_path("sources/add", source_create.source_add, "source_add"),
    page_path("sources/add/choose", source_create.source_choose, "source_choose"),
    page_path("sources/add/lane", brand_lanes.lane_add, "lane_add"),
    page_path("sources/add/several", bulk_add.sources_several, "sources_several"),
    page_path("sources/export", bulk_add.sources_export, "sources_export"),
    page_path("sources/add/several/undo", bulk_add.sources_several_undo, "sources_several_undo"),
    page_path(_SOURCE, source_views.source, "source_page"),
    page_path(f"{_SOURCE}/edit", source_actions.source_edit, "source_edit"),
    page_path(f"{_SOURCE}/pause", source_actions.source_pause, "source_pause"),
    page_path(f"{_SOURCE}/formats", source_actions.source_formats, "source_formats"),
    page_path(f"{_SOURCE}/poll", source_actions.source_poll, "source_poll_now"),
    page_path(f"{_SOURCE}/delete", source_actions.source_delete, "source_delete"),
    page_path(f"{_SOURCE}/restore", source_actions.source_restore, "source_restore"),
    page_path(f"{_SOURCE}/entries/<raw:raw>/admit", source_actions.source_admit, "source_admit"),
    page_path("personas/", persona_listing.personas, "personas"),
    page_path("personas/new", persona_listing.persona_create, "persona_create"),
    page_path("personas/draft", persona_drafts.persona_draft_ask, "persona_draft_ask"),
    page_path("personas/drafts/<pdr:pdr>", persona_drafts.persona_draft, "persona_draft"),
    page_path("personas/drafts/<pdr:pdr>/retry", persona_drafts.persona_draft_retry, "persona_draft_retry"),
    page_path(f"{_PERSONA}/draft", persona_drafts.persona_draft_for, "persona_draft_for"),
    page_path(_PERSONA, persona_editor.persona, "persona"),
    page_path(f"{_PERSONA}/look", persona_branding.persona_look, "persona_look"),
    page_path(f"{_PERSONA}/versions", persona_editor.persona_versions, "persona_versions"),
    page_path(f"{_PERSONA}/back", persona_editor.persona_back, "persona_back"),
    page_path(f"{_PERSONA}/delete", persona_listing.persona_delete, "persona_delete"),
    page_path(f"{_PERSONA}/restore", persona_listing.persona_restore, "persona_restore"),
    page_path(f"{_PERSONA}/topics", topic_views.topics, "topics"),
    page_path(f"{_PERSONA}/topics/add", topic_views.topic_add, "topic_add"),
    page_path(_TOPIC, topic_views.topic, "topic"),
    page_path(f"{_TOPIC}/pause", topic_views.topic_pause, "topic_pause"),
    page_path(f"{_TOPIC}/delete", topic_views.topic_delete, "topic_delete"),
    page_path(f"{_TOPIC}/restore", topic_views.topic_restore, "topic_restore"),
    page_path("outlets/", outlet_listing.outlets, "outlets_page"),
    page_path("outlets/add", outlet_listing.outlet_add, "outlet_add"),
    page_path("outlets/add/<kind:kind>", outlet_connect.outlet_connect, "outlet_connect"),
    page_path("outlets/connect/<kind:kind>", outlet_oauth.start, "outlet_oauth_start"),
    path("outlets/connect/<kind:kind>/callback", outlet_oauth.callback, name="outlet_oauth_callback"),
    page_path(_OUTLET, outlet_detail.outlet, "outlet_page"),
    page_path(f"{_OUTLET}/edit", outlet_detail.outlet_edit, "outlet_edit"),
    page_path(f"{_OUTLET}/reconnect", outlet_connect.outlet_reconnect, "outlet_reconnect"),
    page_path(f"{_OUTLET}/secret", outlet_connect.outlet_secret, "outlet_secret"),
    page_path(f"{_OUTLET}/switch", outlet_actions.outlet_switch, "outlet_switch"),
    page_path(f"{_OUTLET}/default", outlet_actions.outlet_default, "outlet_default"),
    page_path(f"{_OUTLET}/disconnect", outlet_actions.outlet_disconnect, "outlet_disconnect"),
    page_path("manual-posts", manual_publish.manual_posts, "manual_posts"),
    page_path(f"{_PUBLICATION}/package", manual_publish.package, "package"),
    page_path(f"{_LETTER}/subscribers", newsletter_subscribers.subscribers, "subscribers"),
    page_path(f"{_LETTER}/subscribers/add", newsletter_subscribers.subscriber_add, "subscriber_add"),
    page_path(
        f"{_LETTER}/subscribers/import", newsletter_subscribers.subscribers_import, "subscribers_import"
    ),
    page_path(
        f"{_LETTER}/subscribers/export", newsletter_subscribers.subscribers_export, "subscribers_export"
    ),
    page_path(
        f"{_LETTER}/subscribers/<sub:sub>/remove",
        newsletter_subscribers.subscriber_remove,
        "subscriber_remove",
    ),
    page_path(f"{_LETTER}/mailings/<mlg:mlg>/stop", newsletter_subscribers.mailing_stop, "mailing_stop"),
    page_path(
        f"{_LETTER}/mailings/<mlg:mlg>/resume", newsletter_subscribers.mailing_resume, "mailing_resume"
    ),
    page_path("calendar/", calendar_page.calendar, "calendar"),
    page_path("calendar/slot", calendar_slot.free_slot, "calendar_slot"),
    page_path("calendar/items/<gen:gen>", calendar_schedule_item.calendar_schedule, "calendar_schedule"),
    page_path("calendar/fill", calendar_fill_week.calendar_fill, "calendar_fill"),
    page_path("calendar/plans/<pln:pln>/undo", calendar_fill_week.calendar_undo, "calendar_undo"),
    page_path("calendar/<pub:pub>", calendar_move.calendar_move, "calendar_move"),
    page_path("calendar/<pub:pub>/back", calendar_move.calendar_move_back, "calendar_move_back"),
    page_path("failures/", failure_page.failures, "failures"),
    page_path("failures/clear", failure_actions.failures_clear, "failures_clear"),
    page_path("failures/undo", failure_actions.failures_undo, "failures_undo"),
    page_path("queues/", queue_views.queues_page, "queues_page"),
    page_path("queues/add", queue_edit.queue_add, "queue_add"),
    page_path("queues/begin", queue_views.queue_begin, "queue_begin"),
    page_path("queues/hold", workspace_hold.queues_hold, "queues_hold"),
    page_path("queues/release", workspace_hold.queues_release, "queues_release"),
    page_path(_QUEUE, queue_edit.queue_edit, "queue_edit"),
    page_path(f"{_QUEUE}/pause", queue_views.queue_pause, "queue_pause"),
    page_path(f"{_QUEUE}/delete", queue_views.queue_delete, "queue_delete"),
    page_path("series/", series_views.series_page, "series_page"),
    page_path("series/add", series_views.series_add, "series_add"),
    page_path(_SERIES, series_views.series_one, "series_one"),
    page_path(f"{_SERIES}/edit", series_views.series_edit, "series_edit"),
    page_path(f"{_SERIES}/pause", series_views.series_pause, "series_pause"),
    page_path(f"{_SERIES}/make", series_views.series_make, "series_make"),
    page_path(f"{_SERIES}/delete", series_views.series_delete, "series_delete"),
    page_path(f"{_SERIES}/restore", series_views.series_restore, "series_restore"),
    page_path("settings/usage", usage.usage, "usage"),
    page_path("settings/content", defaults.defaults, "defaults"),
]
