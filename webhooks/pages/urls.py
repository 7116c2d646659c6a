"""Lists the routes of the webhooks' settings."""

from accounts.pages.page_routes import page_path, register_ids
from webhooks.pages import delivery_log, endpoints, receivers, recovery

register_ids("whe", "dlv")

_ROOT = "settings/webhooks"
_ENDPOINT = f"{_ROOT}/<whe:whe>"
_DELIVERY = f"{_ENDPOINT}/deliveries/<dlv:dlv>"

urlpatterns = [
    page_path(_ROOT, endpoints.webhooks, "webhooks"),
    page_path(f"{_ROOT}/add", endpoints.webhook_add, "webhook_add"),
    page_path(_ENDPOINT, delivery_log.webhook, "webhook"),
    page_path(f"{_ENDPOINT}/edit", endpoints.webhook_edit, "webhook_edit"),
    page_path(f"{_ENDPOINT}/secret", endpoints.webhook_secret, "webhook_secret"),
    page_path(f"{_ENDPOINT}/rotate", endpoints.webhook_rotate, "webhook_rotate"),
    page_path(f"{_ENDPOINT}/pause", endpoints.webhook_pause, "webhook_pause"),
    page_path(f"{_ENDPOINT}/resume", endpoints.webhook_resume, "webhook_resume"),
    page_path(f"{_ENDPOINT}/test", endpoints.webhook_test, "webhook_test"),
    page_path(f"{_ENDPOINT}/delete", endpoints.webhook_delete, "webhook_delete"),
    page_path(f"{_ENDPOINT}/receiver", receivers.webhook_receiver, "webhook_receiver"),
    page_path(f"{_ENDPOINT}/recover", recovery.webhook_recover, "webhook_recover"),
    page_path(f"{_ENDPOINT}/recover/stop", recovery.webhook_recover_stop, "webhook_recover_stop"),
    page_path(_DELIVERY, delivery_log.webhook_delivery, "webhook_delivery"),
    page_path(f"{_DELIVERY}/outcome", delivery_log.webhook_outcome, "webhook_outcome"),
    page_path(f"{_DELIVERY}/resend", delivery_log.webhook_resend, "webhook_resend"),
]
