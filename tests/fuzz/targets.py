"""What is fuzzed: functions of any bytes, in which nothing but a KlawError may be raised, and answers must be sound.

``fuzz.py`` lets coverage guide the bytes; ``tests/hostile`` draws them with hypothesis.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from attrs import frozen

from klaw_core import KlawError, Memory
from klaw_core.cli.effective import effective, toml
from klaw_core.config.load import load_config
from klaw_core.config.options import build_options
from klaw_core.plugins.discover import discover
from klaw_core.plugins.registry import Registry
from klaw_doctor.export import export
from klaw_doctor.importing import import_
from klaw_journals.chats import Chat
from klaw_journals.messages import Message
from klaw_memories.core_memory import CoreMemory
from klaw_testing.extension import shipped_extensions

FAKES = Path(__file__).parents[1] / "packaging" / "fakes"
CHAT = Chat("telegram", "1")
MODES = ("hybrid", "fts", "vector")
WORDS = {"embedding": {"type": "none"}, "retrieval": [{"type": "fts5"}]}
BOTH = {"embedding": {"type": "hashing"}, "retrieval": [{"type": "sqlite-vec"}, {"type": "fts5"}]}
NOTES = {
    "auth.md": "# Auth\n\nWe decided to use OIDC, because tokens expire.\n",
    "зима.md": "# Зима\n\nПамять агента живёт в одном файле.\n",
    "zh.md": "内存保存在一个文件里。检索先看关键词，再看向量。\n",
    "code.md": "```python\nfoo-bar = C++ if cat's else None\n```\n",
}
EXPORT = b'{"kind":"klaw-export","version":1}'


@frozen
class Target:
    """A function of any bytes, working in a directory of its own, and bytes to begin with."""

    run: Callable[[bytes], None]
    seeds: tuple[bytes, ...]
    close: Callable[[], None] = lambda: None


def registry() -> Registry:
    """Return what is installed, and the embedder ``hashing`` of the tutorial."""
    if str(FAKES / "klaw-hello") not in sys.path:
        sys.path.append(str(FAKES / "klaw-hello"))
    return discover(points=[*entry_points(group="klaw"), EntryPoint("hello", "klaw_hello", "klaw")])


def open_memory(home: Path, **tables: Any) -> Memory:
    """Open a memory in ``home/data`` that nothing of the user's reaches."""
    config = load_config(
        data_dir=home / "data",
        environment={"KLAW_CONFIG": os.devnull},
        overrides={"memory": {"store": {"type": "sqlite"}, **tables}},
    )
    return Memory.open(config, registry=registry())


@contextmanager
def refused() -> Iterator[None]:
    """Let a refusal pass that is in one line and can be printed; whatever else is raised is a finding."""
    try:
        yield
    except KlawError as error:
        if not error.message.strip() or not str(error).encode("utf-8", "backslashreplace"):
            raise AssertionError(f"{type(error).__name__} says nothing") from error


def text_of(data: bytes) -> str:
    """Return a text of these bytes in which anything can stand, half of a surrogate pair included."""
    return data.decode("utf-8", "surrogateescape")


def markdown(home: Path) -> Target:
    """A note of any bytes is indexed and searched, or skipped; its passages are pieces of it."""
    note = home / "notes" / "note.md"
    note.parent.mkdir(parents=True)
    memory = open_memory(home, **BOTH)

    def run(data: bytes) -> None:
        note.write_bytes(data)
        report = memory.index(note.parent)
        assert report.lacking == 0, report.notices
        assert report.added + report.changed + report.unchanged + len(report.skipped) == 1
        for result in memory.search(text_of(data)[:200].replace("\0", " ") + " x", mode="hybrid"):
            passage = memory.get(result.path, result.start_line, result.end_line - result.start_line + 1)
            assert result.content.strip() in passage.content

    return Target(run, (*(text.encode() for text in NOTES.values()), b"- a\n" * 9, b"\xff\xfe# \0"), memory.close)


def jsonl(home: Path) -> Target:
    """Any bytes in the journals: what is sound is indexed, the rest is counted, and no byte of it is lost."""
    data_dir = home / "data"
    files = [
        data_dir / "saved.jsonl",
        data_dir / "conversations" / "telegram_1" / "2026-02-24.jsonl",
        data_dir / "summaries" / "telegram_1" / "summaries.jsonl",
    ]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
    memory = open_memory(home, **WORDS)

    def run(data: bytes) -> None:
        for file in files:
            file.write_bytes(data)
        with refused():
            memory.index()
        with refused():
            list(memory.search("hello"))
        with refused():
            memory.conversations.window(CHAT)
            list(memory.conversations.read(CHAT))
            memory.conversations.summaries(CHAT)
        with refused():
            memory.doctor()
        with refused():
            export(shipped_extensions(data_dir), data_dir, home / "export.jsonl")
        assert all(file.read_bytes().startswith(data) for file in files)

    seeds = (
        b'{"id":"m","ts":"2020-01-01T00:00:00Z","role":"user","content":"hello"}\n',
        b'{"path":"saved/2026-02-24/0","text":"hello","source":"manual","created_at":"2026-02-24T22:00:00Z"}\n',
        b'{"a":[[[{}]]],"b":1e999,"c":"\\ud800"}\nNaN\n\xff',
    )
    return Target(run, seeds, memory.close)


def imports(home: Path) -> Target:
    """Any bytes as an export: it is taken as a whole, or refused with nothing changed."""
    home.mkdir(parents=True)
    sample = home / "sample"
    CoreMemory(sample / "core_memory.json").update("user", "name", "Anna")
    export(shipped_extensions(sample), sample, home / "sample.jsonl")
    whole = (home / "sample.jsonl").read_bytes()
    file, here = home / "import.jsonl", home / "here"

    def run(data: bytes) -> None:
        shutil.rmtree(here, ignore_errors=True)
        file.write_bytes(data)
        try:
            import_(shipped_extensions(here), file, workspaces=True)
        except KlawError:
            changed = [path for path in here.rglob("*") if path.is_file()] if here.exists() else []
            assert not changed, changed

    return Target(run, (whole, whole[:-9], EXPORT, whole * 2))


def queries(home: Path) -> Target:
    """Any text is a query, of passages in every mode and of messages, or is refused."""
    for name, text in NOTES.items():
        path = home / "notes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    memory = open_memory(home, **BOTH)
    memory.index(home / "notes")
    memory.conversations.append(Message("user", "hello there", datetime(2026, 2, 24, tzinfo=UTC), meta=CHAT.meta))

    def run(data: bytes) -> None:
        text = text_of(data)
        for mode in MODES:
            with refused():
                answer = memory.search(text, mode=mode)  # type: ignore[arg-type]  # one of the modes
                unexpected = [notice for notice in answer.notices if notice not in answer.hints]
                assert unexpected == [], unexpected
                assert all(math.isfinite(result.score) for result in answer)
        with refused():
            memory.conversations.search(text)
        for path in (text, f"notes/{text}"):
            with refused():
                assert memory.get(path).content in {*NOTES.values(), *(note.rstrip("\n") for note in NOTES.values())}

    return Target(
        run, (b"C++ OR (foo-bar*", 'NEAR/2 память 检索 "a'.encode(), b"../../etc/passwd", b"a OR " * 99), memory.close
    )


def configs(home: Path) -> Target:
    """Any bytes as the user's file and as a project's: a configuration that can be shown, or every problem named."""
    home.mkdir(parents=True)
    user, project = home / "config.toml", home / "klaw.toml"
    installed = registry()

    def run(data: bytes) -> None:
        for file, other in ((user, project), (project, user)):
            other.write_bytes(b"")
            file.write_bytes(data)
            with refused():
                config = load_config(config_file=user, directory=home, environment={"HOME": "/", "K": "v"})
                for setting in effective(config, installed):
                    toml(setting.value)
                for selection in config.selections():
                    build_options(installed.component(selection.kind, selection.type), selection, [])
                repr(config)

    seeds = (
        b'[memory.chunking]\ntype = "markdown"\nmax_tokens = 300\n',
        b'[[memory.retrieval]]\ntype = "fts5"\nweight = 1e999\n[memory.embedding]\napi_key = "${K}"\n',
        b'[plugins]\ndisabled = ["x"]\n[[memory.sources]]\ntype = "workspace"\npath = "/"\n',
        b"a.b.c = {d = [1, 2.5, 1979-05-27T07:32:00Z]}",
    )
    return Target(run, seeds)


def core_memory(home: Path) -> Target:
    """Any bytes as core memory: it is known and can be changed, or it is broken and is kept as it is."""
    core = CoreMemory(home / "core_memory.json")
    home.mkdir(parents=True)

    def run(data: bytes) -> None:
        for copy in home.glob("*.broken-*"):
            copy.unlink()
        core.place.path.write_bytes(data)
        try:
            core.get()
        except KlawError:
            assert core.place.path.read_bytes() == data
            return
        core.update("user", "name", "Anna")
        assert core.get().user["name"] == "Anna"
        assert core.render()
        core.init_from_user_md(data.decode("utf-8", "replace"))

    return Target(run, (b'{"user": {"name": "x"}, "agent": {}}', b'{"user": []}', b'{"user": {"a": [1, {"b": null}]}}'))


def model_files(home: Path) -> dict[str, Target]:
    """The files of a model: each of any bytes, with a manifest that names the SHA-256 of just these."""
    from klaw_embed_onnx.embedder import load_encoder
    from klaw_models import OnnxEmbedderManifest, find_model, read_manifest
    from klaw_models.onnx import TextTokenizer

    installed = find_model(OnnxEmbedderManifest, "all-MiniLM-L6-v2", None, home)
    content: dict[str, Any] = json.loads((installed.directory / "model.json").read_text("utf-8"))
    home.mkdir(parents=True, exist_ok=True)

    def manifest(data: bytes) -> None:
        (home / "model.json").write_bytes(data)
        with refused():
            read = read_manifest(home)
            assert all((home / name).is_relative_to(home) for name in read.files)

    def with_file(name: str, data: bytes, dimension: int) -> OnnxEmbedderManifest:
        files: Mapping[str, Any] = {**content["files"], name: {"sha256": hashlib.sha256(data).hexdigest()}}
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(data)
        (home / "model.json").write_text(json.dumps({**content, "files": files, "dimension": dimension}), "utf-8")
        read = read_manifest(home)
        assert isinstance(read, OnnxEmbedderManifest)
        return read

    def tokenizer(data: bytes) -> None:
        read = with_file(installed.tokenizer, data, installed.dimension)
        with refused():
            loaded = TextTokenizer.load(read)
            assert len(loaded.count(["a b", "", "[SEP]"])) == 3
            loaded.windows(["hello world " * 300], query=True)

    def graph(data: bytes) -> None:
        read = with_file(installed.model, data, 2)
        with refused():
            load_encoder(read, threads=1, batch_tokens=64).embed([(1, 2), (3,)])

    words = {"version": "1.0", "model": {"type": "WordLevel", "vocab": {"a": 0, "[UNK]": 1}, "unk_token": "[UNK]"}}
    small = json.dumps({**words, "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"}}).encode()
    return {
        "manifest": Target(manifest, (json.dumps(content).encode(), b'{"format": 1}')),
        "tokenizer": Target(tokenizer, (small, json.dumps(words).encode(), b"{}")),
        "graph": Target(graph, (_tiny_graph(),)),
    }


def _tiny_graph() -> bytes:
    """Return a model of two dimensions; empty where the package onnx is not there to make it."""
    with suppress(ModuleNotFoundError):
        from onnx import TensorProto, helper

        ids = [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "t"])
            for name in ("input_ids", "attention_mask")
        ]
        out = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["b", "t", 2])
        table = helper.make_tensor("table", TensorProto.FLOAT, [8, 2], [0.5] * 16)
        nodes = [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])]
        made = helper.make_graph(nodes, "g", ids, [out], [table])
        model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        return bytes(model.SerializeToString())
    return b""


TARGETS: Mapping[str, Callable[[Path], Target]] = {
    "markdown": markdown,
    "jsonl": jsonl,
    "imports": imports,
    "queries": queries,
    "configs": configs,
    "core_memory": core_memory,
    "manifest": lambda home: model_files(home)["manifest"],
    "tokenizer": lambda home: model_files(home)["tokenizer"],
    "graph": lambda home: model_files(home)["graph"],
}
