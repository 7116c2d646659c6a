"""New and the personas in a browser: an item from words and from a link, a persona with its look and its topics."""

from __future__ import annotations

import pytest

from pipeline.models import GeneratedItem, HostSlot, Persona, PersonaDraft, RawItem, Topic
from tests.browser.people import follow, go_to, log_in, look_over
from tests.pipeline.steps import TEXT

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("loopback"),
]
ARTICLE = f"""<!doctype html><html lang="en"><head><title>Tram line approved</title></head><body><nav>Home</nav>
<article><h1>Tram line approved</h1><p>{TEXT}</p><p>{TEXT.replace("tram", "metro")}</p></article></body></html>"""


@pytest.mark.parametrize("phone", [False, True])
def test_an_item_from_words(open_window, newsroom, work_until, phone):
    page = open_window(phone=phone)
    log_in(page, newsroom.alice)
    go_to(page, "Create")
    look_over(page, "new")
    page.get_by_label("Link or text").fill(TEXT)
    page.get_by_role("button", name="Continue").click()
    page.get_by_text("Costs 3 credits.").wait_for()
    look_over(page, "new-make")
    page.get_by_label("Title", exact=True).fill("Tram line approved")
    # Another choice has another price, which is shown at once.
    page.get_by_label("Variants per format").select_option("2")
    page.get_by_text("Costs 6 credits.").wait_for()
    assert RawItem.everywhere.count() == 0
    page.get_by_role("button", name="Create").click()
    page.get_by_text("Generating. Updates automatically.").wait_for()
    look_over(page, "made-under-way")
    work_until(lambda: not GeneratedItem.everywhere.filter(status__in=["queued", "generating"]).exists())
    # It changes by itself.
    page.get_by_text("Created.", exact=True).wait_for()
    assert page.get_by_role("article").count() == 4
    for picture in page.get_by_role("img").all():
        picture.scroll_into_view_if_needed()
    page.wait_for_function("() => [...document.images].every(one => one.complete && one.naturalWidth > 0)")
    look_over(page, "made")


def test_a_late_price_undoes_no_choice(open_window, newsroom):
    page = open_window()
    log_in(page, newsroom.alice)
    go_to(page, "Create")
    page.get_by_label("Link or text").fill(TEXT)
    page.get_by_role("button", name="Continue").click()
    page.get_by_text("Costs 3 credits.").wait_for()
    late = []

    def hold_first(route):
        if route.request.headers.get("hx-target") != "price" or late:
            route.continue_()
        else:
            late.append((route, route.fetch()))

    page.route("**/*", hold_first)
    tweet, short = (page.locator(f'input[value="{name}"]') for name in ("Persona Tweet", "Short Post"))
    is_ticked = tweet.is_checked()
    # The answer has the formats anew.
    page.evaluate("() => { document.querySelector('[name=blocked]').value = ''; }")
    with page.expect_request(lambda request: request.headers.get("hx-target") == "price"):
        page.get_by_role("textbox", name="Text").fill(f"{TEXT} A seventh crane.")
    while not late:
        page.wait_for_timeout(50)
    # The answer arrives after another choice, and before that one is asked for.
    tweet.set_checked(not is_ticked)
    with page.expect_response(lambda response: response.request.headers.get("hx-target") == "price"):
        late[0][0].fulfill(response=late[0][1])
    page.wait_for_timeout(1000)
    assert (tweet.is_checked(), short.is_checked()) == (not is_ticked, True)


def test_an_item_from_a_link(open_window, newsroom, work_until, httpserver):
    httpserver.expect_request("/robots.txt").respond_with_data("", status=404)
    httpserver.expect_request("/news/tram").respond_with_data(
        ARTICLE, content_type="text/html; charset=utf-8"
    )
    page = open_window()
    log_in(page, newsroom.alice)
    go_to(page, "Create")
    page.get_by_label("Link or text").fill(httpserver.url_for("/news/tram"))
    page.get_by_role("button", name="Continue").click()
    assert "six hours of debate" in page.get_by_role("textbox", name="Text").input_value()
    assert page.get_by_label("Title", exact=True).input_value() == "Tram line approved"
    page.get_by_role("button", name="Create").click()
    page.get_by_text("Generating. Updates automatically.").wait_for()
    work_until(lambda: not GeneratedItem.everywhere.filter(status__in=["queued", "generating"]).exists())
    page.get_by_text("Created.", exact=True).wait_for()
    assert RawItem.everywhere.get().url == httpserver.url_for("/news/tram")


@pytest.mark.parametrize("phone", [False, True])
def test_a_persona_drafted_from_a_site_and_posts(open_window, newsroom, work_until, httpserver, phone):
    httpserver.expect_request("/robots.txt").respond_with_data("", status=404)
    about = '<meta property="og:site_name" content="Harbour Desk"><meta name="description" content="News of the ferries.">'
    httpserver.expect_request("/").respond_with_data(
        ARTICLE.replace("<head>", f"<head>{about}"), content_type="text/html; charset=utf-8"
    )
    page = open_window(phone=phone)
    log_in(page, newsroom.alice)
    go_to(page, "Settings", "Personas")
    page.get_by_role("link", name="New persona").click()
    page.get_by_role("link", name="Draft from a site or posts").wait_for()
    look_over(page, "persona-create")
    follow(page, page.get_by_role("link", name="Draft from a site or posts"))
    page.get_by_label("A page or a feed").fill("http://127.0.0.1:9/")
    page.get_by_label("Past posts").fill("Fog on the river.\n\nWho left a cello on the night boat?")
    look_over(page, "persona-draft-ask")
    page.get_by_role("button", name="Create draft").click()
    page.get_by_text("Queued").wait_for()
    look_over(page, "persona-draft-under-way")
    work_until(lambda: PersonaDraft.everywhere.filter(status="failed").exists())
    # It changes by itself, and says what to do next.
    page.get_by_text("or paste some posts instead.").wait_for()
    page.get_by_role("button", name="Retry").wait_for()
    look_over(page, "persona-draft-failed")
    follow(page, page.get_by_role("link", name="Draft from another source"))
    page.get_by_label("A page or a feed").fill(httpserver.url_for("/"))
    page.get_by_label("Past posts").fill("Fog on the river.\n\nWho left a cello on the night boat?")
    page.get_by_role("button", name="Create draft").click()
    page.get_by_text("Queued").wait_for()
    HostSlot.everywhere.all().delete()
    work_until(lambda: PersonaDraft.everywhere.filter(status="done").exists())
    page.get_by_text("Without AI").wait_for()
    assert page.get_by_label("Name").input_value() == "Harbour Desk"
    look_over(page, "persona-draft")
    assert not Persona.everywhere.filter(name="Harbour Desk").exists()
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Harbour Desk created.").wait_for()
    made = Persona.everywhere.get(name="Harbour Desk")
    assert made.who_you_are == "Harbour Desk\nNews of the ferries."
    assert made.reference_posts == ["Fog on the river.", "Who left a cello on the night boat?"]


@pytest.mark.parametrize("phone", [False, True])
def test_a_persona_from_its_name_to_its_topics(open_window, newsroom, tmp_path, phone):
    from PIL import Image

    portrait = tmp_path / "me.jpg"
    Image.new("RGB", (400, 300), "#c2410c").save(portrait, "JPEG")
    page = open_window(phone=phone)
    log_in(page, newsroom.alice)
    go_to(page, "Settings", "Personas")
    look_over(page, "personas")
    page.get_by_role("link", name="New persona").click()
    page.get_by_label("Name").fill("Ada Harbour")
    page.get_by_role("button", name="Create").click()
    page.get_by_role("heading", name="Ada Harbour").wait_for()
    page.get_by_label("2. Voice").fill("Calm, short, with names.")
    page.get_by_label("3. Banned words").fill("synergy\nleverage")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Saved as version 2.").wait_for()
    look_over(page, "persona")
    page.get_by_role("link", name="Design").click()
    page.get_by_label("Use own colours").check()
    page.get_by_label("Background").fill("#0f5257")
    page.get_by_label("Portrait").set_input_files(portrait)
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Saved as version 3.").wait_for()
    page.get_by_role("img", name="Portrait").wait_for()
    page.get_by_label("Sample text").fill(TEXT)
    page.get_by_role("button", name="Test").click()
    page.get_by_role("article", name="Persona Tweet").get_by_role("img").wait_for()
    look_over(page, "persona-look")
    follow(page, page.get_by_role("link", name="Topics"))
    look_over(page, "topics-empty")
    page.get_by_role("main").get_by_role("link", name="Add a topic").click()
    page.get_by_label("Topic").fill("Winter timetable")
    page.get_by_label("Angles").fill("For tourists\nFor commuters")
    look_over(page, "topic")
    page.get_by_role("button", name="Add").click()
    page.get_by_text("Winter timetable added.").wait_for()
    page.get_by_role("button", name="Pause Winter timetable").click()
    page.get_by_text("Paused").first.wait_for()
    look_over(page, "topics")
    page.get_by_role("button", name="Delete Winter timetable").click()
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("link", name="Winter timetable").wait_for()
    assert Topic.everywhere.get().deleted_at is None
    follow(page, page.get_by_role("link", name="Versions"))
    look_over(page, "persona-versions")
    page.get_by_role("button", name="Restore 1").click()
    page.get_by_text("Saved as version 4.").wait_for()
    ada = Persona.everywhere.get(name="Ada Harbour")
    assert (ada.voice, ada.brand, ada.version) == ("", {}, 4)
