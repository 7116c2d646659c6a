"""Lists the routes of the pages Analytics and Pipeline, and of the CSV."""

from accounts.pages.page_routes import page_path
from analytics.pages import page
from analytics.pages.pipeline_page import pipeline_page

urlpatterns = [
    page_path("analytics", page.analytics, "analytics_page"),
    page_path("pipeline", pipeline_page, "pipeline_page"),
    page_path("analytics.csv", page.analytics_csv, "analytics_csv"),
]
