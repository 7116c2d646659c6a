"""Lists the root URLs; each app's `pages/urls.py` and `api/urls.py` lists those of the app."""

from django.conf import settings
from django.contrib import admin
from django.templatetags.static import static
from django.urls import include, path, re_path
from django.utils.functional import lazy
from django.views.generic import RedirectView

from accounts.api.not_found import ANY_METHOD, NoSuchAddress
from accounts.pages.landing import operators_log_in
from config.admin_site.failures import failing_page
from config.admin_site.mail_previews import mail_as_html, mails_page
from config.admin_site.running_tasks import work_page
from config.admin_site.views import dead_rows, unregister_log_in_models, workspace_overview
from config.api_docs import guides
from config.api_docs.views import OpenApiView, openapi_public, reference
from config.demo import views as demo_views
from config.operations import health
from config.operations import metrics as metrics_page
from pipeline.inbound.views import inbound, returned_mail
from pipeline.pages.newsletters import public as newsletters
from pipeline.pages.public_feed import feed, feed_page
from pipeline.pages.serve_media import media
from pipeline.pages.short_links import short_link
from pipeline.pages.websub import hub_calls

# Lazy: in production the file's name is known only after `collectstatic`.
_brand_mark_url = lazy(static, str)("brand/mark.svg")
# Here, because by now every app has registered its models with the site.
admin.site.login = operators_log_in  # type: ignore[method-assign]
unregister_log_in_models()

# `secrets.token_urlsafe` of 16 and of 24 bytes, which can't be guessed: having the address is the permission.
SECRET_22 = r"[A-Za-z0-9_-]{22}"
TOKEN_32 = r"[A-Za-z0-9_-]{32}"
# Digits and small letters, as `pipeline/outlets/short_links.py` draws them.
CODE_12 = r"[0-9a-z]{12}"

urlpatterns = [
    # First, because an address is compared with each pattern in turn, and the API is called most.
    path("v1/", include("accounts.api.urls")),
    path("v1/", include("pipeline.api.urls")),
    path("v1/", include("analytics.api.urls")),
    path("", include("accounts.pages.urls")),
    path("account/", include("allauth.urls")),
    path("", include("pipeline.pages.urls")),
    path("", include("webhooks.pages.urls")),
    path("", include("analytics.pages.urls")),
    re_path(r"^v1/openapi\.json/?$", OpenApiView.as_view({"get": "retrieve"}), name="document"),
    # Matches line breaks too: every address under /v1 requires a token before it answers 404.
    re_path(r"^v1(?:/(?P<path>[\s\S]*))?$", NoSuchAddress.as_view(ANY_METHOD)),
    re_path(rf"^hooks/(?P<token>{TOKEN_32})/?$", inbound, name="inbound"),
    re_path(rf"^hooks/websub/(?P<token>{TOKEN_32})$", hub_calls, name="websub"),
    re_path(rf"^hooks/mail/(?P<secret>{TOKEN_32})$", returned_mail, name="returned_mail"),
    re_path(rf"^subscribe/confirm/(?P<token>{TOKEN_32})$", newsletters.confirm, name="confirm_letter"),
    re_path(rf"^subscribe/(?P<secret>{SECRET_22})$", newsletters.subscribe, name="subscribe"),
    re_path(rf"^u/(?P<token>{TOKEN_32})$", newsletters.unsubscribe, name="unsubscribe"),
    re_path(rf"^feeds/(?P<secret>{SECRET_22})\.(?P<form>atom|rss|json)$", feed, name="feed"),
    re_path(rf"^posts/(?P<secret>{SECRET_22})$", feed_page, name="feed_page"),
    re_path(rf"^l/(?P<code>{CODE_12})$", short_link, name="short_link"),
    re_path(rf"^media/(?P<secret>{SECRET_22})/(?P<name>[^/\x00]{{1,120}})$", media, name="media"),
    path("openapi.json", openapi_public),
    path("docs", guides.index, name="docs"),
    path("docs/reference", reference, name="reference"),
    re_path(r"^docs/examples/(?P<name>[a-z0-9._-]+)\.json$", guides.example, name="docs_example"),
    path("docs/<path:slug>", guides.guide, name="guide"),
    # Before the admin's own addresses, which end with a catch-all.
    path("admin/failing/", admin.site.admin_view(failing_page), name="admin_failing"),
    path("admin/tasks/", admin.site.admin_view(work_page), name="admin_tasks"),
    path("admin/dead/", admin.site.admin_view(dead_rows), name="admin_dead_rows"),
    path(
        "admin/workspaces/<str:public_id>/",
        admin.site.admin_view(workspace_overview),
        name="workspace_overview",
    ),
    path("admin/mails/", admin.site.admin_view(mails_page), name="admin_mails"),
    path("admin/mails/<slug:name>.html", admin.site.admin_view(mail_as_html), name="admin_mail"),
    path("admin/", admin.site.urls),
    path("favicon.ico", RedirectView.as_view(url=_brand_mark_url)),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", metrics_page.metrics),
]
handler404 = "accounts.pages.landing.page_not_found"
# allauth's handler; Django has none for 429.
handler429 = "accounts.pages.landing.too_many_requests"
handler500 = "accounts.pages.landing.server_error"
if settings.IS_DEVELOPMENT:
    urlpatterns += [
        path(demo_views.PATH.removeprefix("/"), demo_views.feed),
        path(demo_views.RECEIVER_PATH.removeprefix("/"), demo_views.receiver),
    ]
