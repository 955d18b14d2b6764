"""The scripts of the page of ``klaw serve``, run in Node on a document of jsdom: for machines without a browser."""

from __future__ import annotations

import json
import os
import subprocess
from importlib.resources import files
from pathlib import Path

MODULES = os.environ["KLAW_NODE_MODULES"]  # a test would not see it: the root conftest removes the user's settings


def test_the_scripts_show_every_view_and_do_what_a_person_asks(served):
    given = {
        "url": f"{served.url}/",
        "token": served.token,
        "page": str(files("klaw_serve.page")),
        "modules": MODULES,
    }
    command = ["node", "--test", "--test-reporter=spec", str(Path(__file__).with_name("scripts.test.mjs"))]
    done = subprocess.run(command, env={**os.environ, "KLAW_PAGE": json.dumps(given)}, check=False)
    assert done.returncode == 0
