"""The page of ``klaw serve``, used in a real browser."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Error

VIEWS = json.loads((Path(__file__).parent / "views.json").read_text("utf-8"))
WCAG = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
#: What is wider than the window, named.
WIDE = """[...document.querySelectorAll('body *')].filter(
    each => each.getBoundingClientRect().right > document.documentElement.clientWidth
).map(each => each.outerHTML.slice(0, 200))"""
FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"


def test_every_view_is_accessible_and_fits(served, visit, look):
    page = served.open(visit(**look))
    for view, selector in VIEWS.items():
        page.evaluate("hash => { document.getElementById('main').replaceChildren(); location.hash = hash }", view)
        page.wait_for_selector(selector)
        violations = Axe().run(page, options=WCAG).response["violations"]
        assert not [(view, each["id"], [node["target"] for node in each["nodes"]]) for each in violations]
        assert page.evaluate(FITS), (view, page.evaluate(WIDE))


def test_a_search_by_keyboard_alone(served, page):
    served.open(page)
    page.keyboard.type("kiln degrees")
    page.keyboard.press("Enter")
    page.wait_for_selector(".result mark")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("e")
    page.wait_for_selector(".result.here .explain tbody tr")
    page.keyboard.press("Enter")
    page.wait_for_selector("article .chunk")
    assert "twelve hundred" in page.inner_text("article")
    page.keyboard.press("s")
    page.wait_for_selector(".document .chunk:has-text('# Kiln')")
    page.keyboard.press("s")
    page.wait_for_selector("article")
    page.keyboard.press("Escape")
    page.wait_for_selector(".result")
    page.keyboard.press("6")
    page.wait_for_selector(".tiles")


def test_a_view_that_was_left_does_not_replace_another(served, page):
    served.open(page, "#/status")
    page.wait_for_selector(".tiles")
    held = []
    page.route("**/api/recent*", lambda route: held.append(route))  # noqa: PLW0108  # Playwright looks into it
    with page.expect_request("**/api/recent*"):
        page.evaluate("location.hash = '#/recent'")
    page.evaluate("location.hash = '#/core'")
    page.wait_for_selector(".pair input")
    with suppress(Error):  # its request may have been ended
        held.pop().continue_()
    page.unroute("**/api/recent*")
    page.evaluate("fetch('page/style.css').then((answer) => answer.text())")  # later than what was held
    assert page.locator(".pair input").count()


def test_filters_narrow_a_search(served, page):
    served.open(page, "#/search?q=the")
    page.wait_for_selector(".result")
    page.click("summary:has-text('Filters')")
    page.fill("[name=path]", "notes/boat")
    page.press("[name=path]", "Enter")
    page.wait_for_selector(".count:has-text('1 result')")


def test_weak_matches_are_folded_below_those_that_fit(served, page):
    place = {"path": "notes/a.md", "start_line": 1, "end_line": 2, "heading": [], "collection": "memory"}
    found = {**place, "content": "text", "created_at": "2026-02-24T00:00:00Z", "explain": [], "score": 1.0}
    served.open(page, "#/status")
    for good in (0, 1):
        results = [{**found, "relevance": 0.1, "is_weak": rank >= good} for rank in range(3)]
        answer = {"results": results, "notices": []}
        page.route("**/api/search*", lambda route, _request, answer=answer: route.fulfill(json=answer))
        page.evaluate("good => { location.hash = `#/search?q=kiln${good}` }", good)
        page.wait_for_selector(f".count:has-text('{'1 result' if good else 'No good match'}')")
        page.wait_for_selector(f".others:not([open]) summary:has-text('{3 - good} weak matches')")
        assert page.locator("#results .result").count() == good
        assert page.locator(".none").count() == (not good)
        page.press("body", "w")
        assert page.locator(".others[open] .result").count() == 3 - good
        page.unroute("**/api/search*")


def test_a_script_in_a_note_is_text(served, page):
    served.open(page, "#/search?q=zebra")
    page.wait_for_selector(".result")
    assert "<script>" in page.inner_text(".snippet")
    page.click(".result a")
    page.wait_for_selector("article")
    assert "onerror" in page.inner_text("article")
    assert page.locator("main script, main img").count() == 0
    assert page.title() != "owned"


def test_a_note_is_forgotten_and_taken_back(served, page):
    served.open(page, "#/search?q=boat Split")
    page.click(".result a")
    page.click("text=Forget")
    page.wait_for_selector(".toast:has-text('Forgotten: notes/boat.md')")
    page.click(".toast button")
    page.wait_for_selector(".toast:has-text('Restored.')")


def test_core_memory_is_edited(served, page):
    served.open(page, "#/core")
    page.fill("[aria-label='name']", "Ida Falk")
    page.press("[aria-label='name']", "Enter")
    page.wait_for_selector(".toast:has-text('name saved.')")
    page.fill("[aria-label='New key about the agent']", "tone")
    page.fill("[aria-label='New value about the agent']", "short")
    page.press("[aria-label='New value about the agent']", "Enter")
    page.click("[aria-label='Delete tone']")
    page.wait_for_selector(".toast:has-text('tone deleted.')")
    page.click(".toast:has-text('tone') button")
    page.wait_for_selector("[aria-label='tone']")
    page.reload()
    page.wait_for_selector("[aria-label='tone']")
    assert page.input_value("[aria-label='name']") == "Ida Falk"


def test_the_index_is_brought_up_to_date_and_examined(served, page):
    served.open(page, "#/status")
    page.click("text=Update the index")
    page.wait_for_selector("text=Up to date: ")
    page.click("text=Check everything")
    page.wait_for_selector("main >> text=/No problems found|→/")


def test_results_come_while_a_question_is_typed(served, page):
    served.open(page)
    held = []
    page.route("**/api/search?query=zeb*", lambda route: held.append(route))  # noqa: PLW0108  # Playwright looks into it
    with page.expect_request("**/api/search?query=zeb*"):
        page.fill("#query", "zeb")
    page.fill("#query", "kiln")
    page.wait_for_selector(".result mark:has-text('Kiln')")
    assert page.evaluate("location.hash") == "#/search?q=kiln"
    with suppress(Error):  # its request may have been ended
        held.pop().fulfill(json={"results": [], "notices": ["stale"]})
    page.unroute("**/api/search?query=zeb*")
    page.evaluate("fetch('page/style.css').then((answer) => answer.text())")  # later than what was held
    assert page.locator(".result").count()
    page.fill("#query", "")
    page.wait_for_selector("section[aria-label=Recent] .rows a")


def test_a_filter_is_shown_and_removed(served, visit):
    page = visit()
    served.open(page, "#/search?q=pump&tag=energy/heating&where=status=open")
    page.wait_for_selector(".result")
    page.click("[aria-label='Remove the filter Metadata: status=open']")
    page.wait_for_url("**/#/search?q=pump&tag=energy%2Fheating")
    page.fill("#query", "Split")
    page.wait_for_selector(".none")
    page.click("text=Search without filters")
    page.wait_for_selector(".result")
    page.press("body", "f")
    page.fill("[name=where]", "no condition")
    page.wait_for_selector("[role=alert]:has-text('is not a condition')")


def test_a_document_is_rendered_and_leads_on(served, page):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    served.open(page, "#/document?path=notes/pump.md")
    article = page.locator("article")
    article.wait_for()
    for selector in (
        "td:has-text('34 dB')",
        "pre:has-text('cop = heat')",
        ".task >> nth=1",
        "blockquote strong",
        "a[rel~=noopener]",
    ):
        assert article.locator(selector).count()
    assert page.inner_text("h1") == "Heat pump"
    assert page.inner_text(".properties").split() == [
        "title",
        "Heat",
        "pump",
        "tags",
        "[energy/heating]",
        "status",
        "open",
    ]
    assert not [url for url in asked if not url.startswith(served.url)]
    article.locator("a:has-text('the boat')").click()
    page.wait_for_selector("h1:has-text('Boat')")


def test_a_tree_with_other_tags_and_addresses_makes_nothing_that_runs(served, page):
    nodes = [["script", {}, "document.title = 'owned'"], ["img", {"src": "x", "onerror": "alert(1)"}], ["iframe", {}]]
    addresses = [
        "javascript:alert(1)",
        " JavaScript:alert(1)",
        "//example.org/a",
        "data:text/html,a",
        "\\\\example.org",
    ]
    links = [["a", {"to": to}, to] for to in addresses] + [["image", {"to": to}, to] for to in addresses]
    about = {"path": "notes/a.md", "content": "a", "start_line": 1, "file": None, "notice": "", "created_at": None}
    answer = {
        **about,
        "origin": "notes",
        "tags": [],
        "versions": [],
        "blocks": [["p", {"onclick": "a"}, *nodes, *links]],
    }
    served.open(page)
    page.route("**/api/rendered?*", lambda route: route.fulfill(json=answer))
    page.route("**/api/links?*", lambda route: route.fulfill(json={"to": [], "backlinks": [], "broken": []}))
    page.evaluate("location.hash = '#/document?path=notes/a.md'")
    page.wait_for_selector("article p")
    assert page.locator("article :is(script, img, iframe, [onclick], [onerror])").count() == 0
    targets = page.evaluate("[...document.querySelectorAll('article a')].map((each) => each.getAttribute('href'))")
    assert [each for each in targets if not each.startswith("#/document?")] == []
    assert page.title() != "owned"


def test_a_document_is_copied_and_opened_in_an_editor(served, visit):
    page = visit(permissions=["clipboard-read", "clipboard-write"])
    served.open(page, "#/document?path=notes/boat.md&from=3")
    page.wait_for_selector("article")
    page.press("body", "c")
    page.wait_for_selector(".toast:has-text('Text copied.')")
    assert "lies in Split" in page.evaluate("navigator.clipboard.readText()")
    opener = page.locator("[data-key=o]")
    assert opener.get_attribute("href").startswith("vscode://file/")
    assert opener.get_attribute("href").endswith("/notes/boat.md:3")
    page.click(".more summary")
    page.select_option("[aria-label=Editor]", "Obsidian")
    page.reload()
    page.wait_for_selector("[data-key=o]:has-text('Obsidian')")


def test_a_memory_is_saved_corrected_and_replaced(served, visit):
    page = visit()
    served.open(page)
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    page.fill("textarea", "The meter reads 41.")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("article:has-text('41')")
    first = page.evaluate("location.hash")
    page.keyboard.press("e")
    page.fill("textarea", "The meter reads 42.")
    page.fill("[name=tags]", "house, energy/meter")
    page.click("text=Correct it")
    page.wait_for_selector("article:has-text('42')")
    assert page.locator(".chip").all_inner_texts() == ["house", "energy/meter"]
    page.keyboard.press("e")
    page.fill("textarea", "The meter reads 43.")
    page.click("text=Replace it as of today")
    page.wait_for_selector("article:has-text('43')")
    page.click(".toast:last-child button")
    page.wait_for_selector("article:has-text('42')")
    page.evaluate("hash => { location.hash = hash }", first)
    page.wait_for_selector("[role=note]:has-text('A newer version replaces this text.')")
    assert page.locator(".versions li").count() == 4
    page.click(".versions li.true a")
    page.wait_for_selector("article:has-text('42')")


def test_a_page_that_may_not_write_offers_nothing_that_does(served, page):
    writing = (
        "text=/^(Forget|Edit|Delete|Add|Update the index|Save a memory|Save what you know about it)$/ >> visible=true"
    )

    def as_read_only(route):
        answer = route.fetch()
        route.fulfill(response=answer, body=answer.text().replace("<body>", "<body data-read-only>"))

    views = {
        view: selector for view, selector in VIEWS.items() if view not in {"#/new", "#/document?path=notes/nowhere.md"}
    }
    served.open(page)
    page.wait_for_selector(writing)
    page.route(f"{served.url}/", as_read_only)
    page.reload()
    page.wait_for_selector("#views a")
    for view, selector in {**views, "#/core": ".pair input[readonly]"}.items():
        page.evaluate("hash => { document.getElementById('main').replaceChildren(); location.hash = hash }", view)
        page.wait_for_selector(selector, state="attached")
        assert not page.locator(writing).count(), view
    page.press("body", "n")
    assert not page.locator("textarea").count()


def test_weak_facts_are_folded(served, page):
    served.open(page, "#/facts?q=where does Ida live")
    page.wait_for_selector(".rows a:has-text('Turku')")
    page.evaluate("location.hash = '#/facts?q=best pizza in Naples'")
    page.wait_for_selector("text=/No good match|No fact fits/")
    assert not page.locator(".rows a >> visible=true").count()


def test_an_empty_memory_says_what_to_do_next(served, page):
    page.goto(f"{served.url}/agents/bob#token={served.token}")
    page.wait_for_selector("h2:has-text('This memory is empty')")
    for view, command in {"recent": "klaw index", "chats": "klaw import", "facts": "klaw remember"}.items():
        page.evaluate("view => { location.hash = `#/${view}` }", view)
        page.wait_for_selector(f".empty .command:has-text('{command}')")


def test_a_wrong_token_is_said_to_be_wrong(served, visit):
    page = visit()
    page.goto(f"{served.url}/#token=wrong")
    page.wait_for_selector("[role=alert]:has-text('does not accept the token')")
    assert not page.evaluate("document.querySelectorAll('#views a').length")
    assert not Axe().run(page, options=WCAG).response["violations"]
    page.fill("#token", served.token)
    page.click("button:has-text('Open')")
    page.wait_for_selector("#query")


def test_the_token_is_asked_for_and_leaves_the_address(served, page):
    page.goto(served.url)
    page.fill("#token", served.token)
    page.click("button:has-text('Open')")
    page.wait_for_selector("#query")
    assert served.token not in page.url
    served.open(page)
    assert served.token not in page.url


def test_an_agents_page_shows_that_agents_memory(served, page):
    page.goto(f"{served.url}/agents/ann#token={served.token}")
    page.wait_for_selector("#views a")
    assert "ann" in page.inner_text("#agent")
    page.evaluate("location.hash = '#/search?q=kiln'")
    page.wait_for_selector(".count:has-text('Nothing found')")


def test_a_day_is_that_of_the_reader_and_that_of_a_note_is_the_same_everywhere(served, visit):
    moments = ["2026-02-24T00:00:00.000Z", "2026-02-24", "2026-02-24T02:30:00Z", "2026-02-24T23:30:00Z", ""]
    for zone, days in {
        "America/New_York": ["Feb 24, 2026", "Feb 24, 2026", "Feb 23, 2026", "Feb 24, 2026", ""],
        "Asia/Tokyo": ["Feb 24, 2026", "Feb 24, 2026", "Feb 24, 2026", "Feb 25, 2026", ""],
    }.items():
        page = served.open(visit(timezone_id=zone, locale="en-US"))
        script = page.get_attribute("script[type=module]", "src").rpartition("/")[0]
        found = page.evaluate(
            "async ([from, moments]) => moments.map((await import(from)).date)",
            [f"{served.url}/{script.strip('/')}/dom.js", moments],
        )
        assert found == days, zone
