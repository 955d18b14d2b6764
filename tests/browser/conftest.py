"""A browser, or Node in place of one, and a server to look at: ``nox -s browser`` says what is needed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from datetime import UTC, datetime

import pytest
from attrs import frozen

from klaw_core import Chat, Memory, Message, load_config

#: Playwright's limits, in milliseconds: a busy machine may take minutes.
PATIENCE = 300_000
collect_ignore = ["test_page.py", "test_states.py"] if "KLAW_NODE_MODULES" in os.environ else ["test_scripts.py"]

CHROMIUM = os.environ.get("KLAW_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
PUMP = """\
---
title: Heat pump
tags: [energy/heating]
status: open
---
# Heat pump

See [the boat](boat.md#boat), [[Kiln]] and <https://example.org>.

| Firm | Noise |
|---|--:|
| Nordic | 34 dB |

- [x] Ask the neighbours
- [ ] Measure

```python
cop = heat / power
```

> [!note] Register it

![plan](https://example.org/plan.png)
"""
NOTES = {
    "kiln.md": "# Kiln\n\nThe kiln is fired to\ntwelve hundred degrees.\n",
    "pump.md": PUMP,
    "boat.md": "# Boat\n\nThe boat lies in Split.\n",
    "script.md": "# Zebra\n\n<script>document.title = 'owned'</script> <img src=x onerror=alert(1)> zebra\n",
}


@frozen
class Served:
    url: str
    token: str

    def open(self, page, view=""):
        """Open the page as the address that ``klaw serve`` prints does, then a view."""
        page.goto(f"{self.url}/#token={self.token}")
        page.wait_for_selector("#views a")
        if view:
            page.evaluate("hash => { location.hash = hash }", view)
        return page


@pytest.fixture(scope="session")
def browser():
    """Return Chromium; the whole session is of no use without one."""
    if CHROMIUM is None:
        pytest.exit("there is no chromium: .ci/chromium installs one, or name one in KLAW_CHROMIUM", 1)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=PATIENCE)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser):
    """Return a function that makes a page: ``context`` says how it is looked at."""
    with ExitStack() as stack:

        def visit(**context):
            opened = stack.enter_context(browser.new_context(**context))
            opened.set_default_timeout(PATIENCE)
            return opened.new_page()

        yield visit


@pytest.fixture(params=["desktop", "phone", "narrow", "dark"])
def look(request):
    """Return how a page is looked at."""
    return {
        "desktop": {"viewport": {"width": 1200, "height": 800}},
        "phone": {"viewport": {"width": 390, "height": 800}, "has_touch": True, "is_mobile": True},
        "narrow": {"viewport": {"width": 320, "height": 640}, "has_touch": True, "is_mobile": True},
        "dark": {"viewport": {"width": 1200, "height": 800}, "color_scheme": "dark"},
    }[request.param]


@pytest.fixture
def page(visit):
    """Return a page; what it says on its console is an error."""
    page = visit()
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    yield page
    assert not said


@pytest.fixture(scope="session")
def served(tmp_path_factory):
    """Return a server over notes, a conversation, core memory and facts, if those are installed."""
    root = tmp_path_factory.mktemp("page") / "a_directory_whose_name_is_as_wide_as_a_telephone_is_or_wider_than_that"
    root.mkdir()
    notes = root / "notes"
    notes.mkdir()
    for name, text in NOTES.items():
        (notes / name).write_text(text, "utf-8")
    environment = {
        **os.environ,
        "KLAW_EMBEDDER": "none",
        "XDG_CONFIG_HOME": str(root / "config"),
        "XDG_CACHE_HOME": str(root / "cache"),
    }
    with Memory.open(load_config(data_dir=root / "data", environment={"KLAW_EMBEDDER": "none"})) as memory:
        memory.index(notes)
        meta = Chat("telegram", "42").meta
        for minute, (role, text) in enumerate([("user", "Where is the boat?"), ("assistant", "In Split.")]):
            memory.conversations.append(Message(role, text, datetime(2026, 2, 20, 9, minute, tzinfo=UTC), meta=meta))
        memory.save("The spare key is with Eve.")
        memory.core.update("user", "name", "Ida")
        memory.extension("facts").remember("Ida lives in Lyon", slot="home", value="Lyon")
        memory.extension("facts").remember("Ida lives in Turku", slot="home", value="Turku")
    command = [sys.executable, "-m", "klaw_core", "serve", "--port", "0", "--json", "--data-dir", str(root / "data")]
    process = subprocess.Popen(command, env=environment, cwd=root, stdout=subprocess.PIPE, text=True)
    try:
        said = ""
        while "}" not in said:
            said += process.stdout.readline() or pytest.fail("the server does not start")
        yield Served(json.loads(said)["url"], (root / "data" / "serve.token").read_text().strip())
    finally:
        process.terminate()
        process.wait(300)
        process.stdout.close()
