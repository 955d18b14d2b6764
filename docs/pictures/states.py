"""Draw ten states of the page of ``klaw serve`` in both colours, and write down what each of them shows.

Run it with ``nox -s pictures`` after a change of the page that is meant, and look at the pictures. They are in
``docs/pictures/states``, with ``outline.json``; `tests/browser/test_states.py` compares the page with both. Needs the
packages of ``nox -s browser`` and a Chromium: Debian's ``chromium``, or the one that KLAW_CHROMIUM names.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

PLACE = Path(__file__).with_name("states")
SIZE = {"width": 960, "height": 640}  # pixels
COLOURS = ("light", "dark")
DAY = datetime(2026, 2, 20, 9, tzinfo=UTC)
PUMP = """\
---
tags: [energy/heating, house]
status: open
---
# Heat pump

At night the pump may be at most **35 dB(A)**, see [the offers](offers.md) and [[Radiators]].

## Offers

| Firm | Price | Noise |
|:-----|------:|------:|
| Nordic | 14,200 | 34 dB |
| Alpina | 12,900 | 38 dB |

- [x] Ask the neighbours
- [ ] Measure the ==pipes== in the cellar

> [!note] Register it before it is installed.

```python
cop = heat / power
```
"""
NOTES = {
    "heat-pump.md": PUMP,
    "boat.md": "# Boat\n\nThe boat lies in Split, berth 14. The ferry from Kiel takes twenty hours.\n",
    "bread.md": "# Bread\n\nRye flour, water, salt; a night in the fridge, an hour in the oven.\n",
}
CHAT = [
    ("user", "Where is the boat?"),
    ("assistant", "In Split, berth 14."),
    ("user", "How long does the ferry take?"),
    ("assistant", "About twenty hours from Kiel."),
]
#: Every visible element with text of its own, and every field, in order: what a reader is shown, by no font.
OUTLINE = """() => [...document.querySelectorAll('body *')].flatMap((each) => {
  if (!each.checkVisibility() || each.closest('dialog, #toasts, noscript')) return [];
  const tag = each.tagName.toLowerCase();
  if (/^(input|select|textarea)$/.test(tag)) return [`${tag}: ${each.value || each.placeholder}`];
  const texts = [...each.childNodes].filter((node) => node.nodeType === 3);
  const own = texts.map((node) => node.data.trim()).filter(Boolean);
  return own.length ? [`${tag}: ${own.join(' … ')}`] : [];
})"""


def _found(path: str, text: str, heading: str, relevance: float) -> dict[str, Any]:
    """Return a result of a search. Results are written here: their relevance is no matter of the page."""
    part = {"component": "fts5", "rank": 1, "raw": 12.5, "weight": 1.0, "value": 0.0164}
    place = {
        "path": path,
        "heading": [heading],
        "start_line": 1,
        "end_line": 8,
        "origin": "notes",
        "collection": "memory",
    }
    about = {"created_at": "2026-02-20T09:00:00Z", "chat_id": None, "metadata": {}, "explain": [part], "score": 0.0164}
    judged = {"relevance": relevance, "is_weak": relevance < 0.15}  # noqa: PLR2004
    return {**place, **about, **judged, "content": text}


def _answer(*relevances: float) -> dict[str, Any]:
    texts = {
        "notes/boat.md": NOTES["boat.md"],
        "notes/heat-pump.md": PUMP.partition("# Heat pump")[2],
        "notes/bread.md": NOTES["bread.md"],
    }
    titles = ("Boat", "Heat pump", "Bread")
    results = [
        _found(path, text, title, relevance)
        for (path, text), title, relevance in zip(texts.items(), titles, relevances, strict=False)
    ]
    good = any(not each["is_weak"] for each in results)
    notices = [] if good or not results else ["no good match: most likely none of these results answers the question"]
    return {"results": results, "notices": notices}


def _click(selector: str) -> Callable[[Page], None]:
    return lambda page: page.click(selector)


def _open_filters(page: Page) -> None:
    page.click(".filters summary")
    page.evaluate("document.activeElement.blur()")


def _see(_page: Page) -> None:
    """Do nothing more."""


#: Of each state the address, what is there as soon as it is shown, what is done then, and the answer to its question.
STATES: Mapping[str, tuple[str, str, Callable[[Page], None], Any]] = {
    "start": ("#/search", "section[aria-label=Recent] .rows a", _see, None),
    "results": (
        "#/search?q=how long does the ferry take",
        ".result",
        _click(".result summary"),
        _answer(0.93, 0.41, 0.04),
    ),
    "weak": ("#/search?q=best pizza in Naples", ".others", _see, _answer(0.03, 0.02, 0.01)),
    "nothing": ("#/search?q=quokka&path=notes/&tag=zoo", ".none button", _open_filters, _answer()),
    "document": ("#/document?path=notes/heat-pump.md&from=9&to=14", "body:has(article .chunk) .links h2", _see, None),
    "source": ("#/document?path=notes/heat-pump.md&from=9&to=14", ".links h2", _click("[data-key=s]"), None),
    "memory": ("#/document?path={saved}", "article", _click("[data-key=e]"), None),
    "chat": ("#/chat?name=telegram_42&day=2026-02-20&from=4&to=4", ".timeline .chunk", _see, None),
    "empty": ("#/search", "h2:has-text('This memory is empty')", _see, None),
    "token": ("#token=wrong", "[role=alert]", _see, None),
}


@contextmanager
def serve(root: Path) -> Iterator[tuple[str, str, str]]:
    """Serve a memory whose texts and dates are always the same; yield address, token and a saved memory's path."""
    from klaw_core import Chat, Memory, Message, load_config

    environment = {"KLAW_EMBEDDER": "none"}
    notes = root / "notes"
    notes.mkdir()
    for name, text in NOTES.items():
        (notes / name).write_text(text, "utf-8")
        os.utime(notes / name, (DAY.timestamp(), DAY.timestamp()))
    with Memory.open(load_config(data_dir=root / "data", environment=environment)) as memory:
        memory.index(notes)
        for minute, (role, text) in enumerate(CHAT):
            said_at = DAY.replace(minute=minute)
            memory.conversations.append(Message(role, text, said_at, meta=Chat("telegram", "42").meta))
        old = memory.save("The spare key is with Eve.", created_at=DAY)
        new = "The spare key is with Jaana, on the second floor."
        saved = memory.save(new, created_at=DAY.replace(day=24), tags=["house"], supersedes=old.path).path
        memory.index()
    own = {"XDG_CONFIG_HOME": str(root / "config"), "XDG_CACHE_HOME": str(root / "cache")}
    command = [sys.executable, "-m", "klaw_core", "serve", "--port", "0", "--json", "--data-dir", str(root / "data")]
    server = subprocess.Popen(  # noqa: S603 - klaw itself
        command, cwd=root, env={**os.environ, **environment, **own}, stdout=subprocess.PIPE, text=True
    )
    try:
        said = ""
        while "}" not in said:
            line = server.stdout.readline() if server.stdout else ""
            if not line:
                sys.exit("klaw serve ended")
            said += line
        yield json.loads(said)["url"], (root / "data" / "serve.token").read_text("utf-8").strip(), saved
    finally:
        server.terminate()
        server.wait()
        if server.stdout:
            server.stdout.close()


@contextmanager
def opened(browser: Browser, served: tuple[str, str, str], name: str, colour: str, **more: Any) -> Iterator[Page]:
    """Yield the page in a state."""
    url, token, saved = served
    address, selector, act, answer = STATES[name]
    context = browser.new_context(
        viewport=SIZE,  # type: ignore[arg-type]  # as its documentation has it
        color_scheme=colour,  # type: ignore[arg-type]
        **{"locale": "en-GB", "timezone_id": "UTC", "reduced_motion": "reduce", **more},
    )
    context.set_default_timeout(300_000)  # milliseconds: a busy machine may take minutes
    page = context.new_page()
    if answer is not None:
        page.route("**/api/search?*", lambda route: route.fulfill(json=answer))
    try:
        base = f"{url}/agents/nobody/" if name == "empty" else f"{url}/"
        page.goto(base + (address if name == "token" else f"#token={token}"))
        if name != "token":
            page.wait_for_selector("#views a")
            page.evaluate("hash => { location.hash = hash }", address.format(saved=saved))
        page.wait_for_selector(selector)
        act(page)
        page.evaluate("document.activeElement.blur()")  # a caret blinks
        yield page
    finally:
        context.close()


def main() -> None:
    """Write the pictures and the outlines."""
    chromium = os.environ.get("KLAW_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("there is no chromium: apt-get install chromium, or name one in KLAW_CHROMIUM")
    PLACE.mkdir(exist_ok=True)
    outlines = {}
    with tempfile.TemporaryDirectory() as root, serve(Path(root)) as served, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name in STATES:
            for colour in COLOURS:
                with opened(browser, served, name, colour) as page:
                    page.screenshot(path=PLACE / f"{name}-{colour}.png")
                    outlines[name] = page.evaluate(OUTLINE)
        browser.close()
    (PLACE / "outline.json").write_text(json.dumps(outlines, ensure_ascii=False, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
