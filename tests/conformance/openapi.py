"""Serve a memory and let schemathesis make requests of its OpenAPI document.

No answer may be a defect (5xx), and no exception may reach the log.

python tests/conformance/openapi.py [EXAMPLES]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from klaw_core import Memory, load_config


def main(examples: str = "20") -> int:
    """Run both; return schemathesis's exit status, or 1 if an exception reached the log."""
    with tempfile.TemporaryDirectory() as root:
        notes = Path(root, "notes")
        notes.mkdir()
        (notes / "boat.md").write_text("# Boat\n\nThe boat lies in Split.\n", "utf-8")
        data = Path(root, "data")
        with Memory.open(load_config(data_dir=data, environment={"KLAW_EMBEDDER": "none"})) as memory:
            memory.index(notes)
        command = [sys.executable, "-m", "klaw_core", "serve", "--port", "0", "--json", "--data-dir", str(data)]
        environment = {**os.environ, "KLAW_EMBEDDER": "none"}
        log = Path(root, "log")
        with log.open("wb") as errors:
            server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            assert server.stdout is not None
            said = ""
            while "}" not in said:
                said += server.stdout.readline()
            url, token = json.loads(said)["url"], (data / "serve.token").read_text().strip()
            asked = [
                *("schemathesis", "run", f"{url}/openapi.json", "-H", f"Authorization: Bearer {token}"),
                *("--checks", "not_a_server_error", "--max-examples", examples, "--exclude-path", "/api/events"),
            ]
            failed = subprocess.run(asked, check=False).returncode
            said = log.read_text("utf-8", "replace")
            if "Traceback" in said:
                sys.stderr.write(said[-5_000:])
                return 1
            return failed
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
