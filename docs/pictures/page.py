"""Draw the pictures of the page of ``klaw serve``: the demo's notes, a search, and a document, in a real browser.

Run it with ``nox -s pictures``. Needs Klaw with the extras ``default``, ``serve`` and ``facts``, Playwright, and a
Chromium: Debian's ``chromium``, or the one that KLAW_CHROMIUM names.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.resources import as_file, files
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

QUESTION = "why did we not want a message broker?"
WIDTH, HEIGHT = 1100, 760  # pixels
DEADLINE_MS = 60_000


def main() -> None:
    """Write ``page-light.png`` and ``page-dark.png`` to the directory given, or next to this program."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    chromium = os.environ.get("KLAW_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("there is no chromium: apt-get install chromium, or name one in KLAW_CHROMIUM")
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        with as_file(files("klaw_core.demo") / "notes") as notes:
            shutil.copytree(notes, home / "notes")
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
        klaw = [sys.executable, "-m", "klaw_core"]
        for arguments in (["init"], ["index", "notes"]):
            subprocess.run([*klaw, *arguments], cwd=home, env=environment, check=True, capture_output=True)  # noqa: S603 - klaw itself
        command = [*klaw, "serve", "--port", "0", "--json"]
        server = subprocess.Popen(command, cwd=home, env=environment, stdout=subprocess.PIPE, text=True)  # noqa: S603 - klaw itself
        try:
            url, token = _address(server, home)
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
                for scheme in ("light", "dark"):
                    _draw(browser, f"{url}/#token={token}", scheme, target / f"page-{scheme}.png")
                browser.close()
        finally:
            server.terminate()
            server.wait()


def _address(server: subprocess.Popen[str], home: Path) -> tuple[str, str]:
    """Return the address that the server prints, and its token."""
    said = ""
    while "}" not in said:
        line = server.stdout.readline() if server.stdout else ""
        if not line:
            sys.exit("klaw serve ended")
        said += line
    (token,) = home.rglob("serve.token")
    return json.loads(said)["url"], token.read_text("utf-8").strip()


def _draw(browser: Browser, address: str, scheme: str, target: Path) -> None:
    """Ask the question on the page, and write a picture of the answer with the explanation of the first result."""
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    page.set_default_timeout(DEADLINE_MS)
    page.goto(address)
    page.wait_for_selector("#views a")
    page.fill("#query", QUESTION)
    page.press("#query", "Enter")
    page.wait_for_selector(".result")
    page.click(".result details summary")
    page.screenshot(path=target)
    context.close()


if __name__ == "__main__":
    main()
