"""Klaw writes files atomically, in one module. Every other call that writes is listed here, with its reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Methods that write a file; the modules of ``klaw_core.files`` use the calls of ``os``.
WRITES = {"write_text", "write_bytes", "savefig", "copyfile", "copy2", "copytree", "fdopen"}
#: The module and the function of each other place, and why it needs no atomic replacement.
EXCEPTIONS = {
    "klaw_eval/poisoning.py _write_files": "notes in a temporary directory",
    "klaw_eval/poisoning.py _import": "an export in a temporary directory",
    "klaw_core/cli/config.py _checked": "a copy in a temporary directory, to check it",
    "klaw_core/cli/client_files.py write_file": "a pipe or a terminal, which nothing can replace",
    "klaw_core/cli/demo.py _place": "sample notes, which the next run writes again",
    "klaw_core/cli/reindex.py _plan": "a copy in a temporary directory, to check it",
    "klaw_doctor/commands/import_.py _whole": "a copy in a temporary directory",
    "klaw_doctor/export.py _replace": "a temporary file, which replaces the other one when it is complete",
    "klaw_doctor/importers.py converted": "an export in a temporary directory",
    "klaw_documents/command.py convert": "a copy in a temporary directory",
    "klaw_documents/worker.py main": "the standard streams",
    "klaw_eval/contexts.py _opened": "an index in a directory that gets its name when it is complete",
    "klaw_eval/notes.py write_notes": "an index, which a file marks when it is complete",
    "klaw_eval/trials.py _write": "a part of a memory in a temporary directory",
    "klaw_eval/plotting.py plot": "a picture in memory",
    "klaw_http/download.py download": "a new file, whose hash is checked before it gets its name",
    "klaw_mcp/stdio.py claim_streams": "the standard streams",
    "klaw_models/fetching.py fill_copy": "a model in a directory that gets its name when it is complete",
    "klaw_models/fetching.py fill_described": "a model in a directory that gets its name when it is complete",
    "klaw_models/fetching.py take": "a model in a directory that gets its name when it is complete",
    "klaw_models/fetching.py write_manifest": "a model in a directory that gets its name when it is complete",
    "klaw_notes/okf.py _write": "a bundle in a directory that gets its name when it is complete",
    "klaw_store_sqlitevec/copies.py _copy": "a copy of a database, which is removed unless it is complete",
}


def written(source: str) -> Iterator[str]:
    """Yield the function of each call that writes a file, or the empty text."""
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _writes(node):
            inside = [each for each in functions if each.lineno <= node.lineno <= (each.end_lineno or 0)]
            yield max(inside, key=lambda each: each.lineno).name if inside else ""


def _writes(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in WRITES:
        return name != "fdopen" or _has_mode(call)
    return name in {"open", "into_file"} and _has_mode(call)


def _has_mode(call: ast.Call) -> bool:
    given = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "mode")]
    texts = [each.value for each in given if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return any(set(text) <= set("rwxabt+") and set(text) & set("wxa+") for text in texts)


def test_every_file_is_written_atomically_or_has_a_reason():
    found = set()
    for path in [*ROOT.glob("klaw_*/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py")]:
        shown = path.relative_to(ROOT).as_posix().partition("/src/")[2] or path.relative_to(ROOT).as_posix()
        if not shown.startswith(("klaw_core/files/", "klaw_testing/")):
            found |= {f"{shown} {function}" for function in written(path.read_text("utf-8"))}
    assert found == {*EXCEPTIONS}


@pytest.mark.parametrize(
    "call",
    [
        'path.write_text("a")',
        "path.write_bytes(b'a')",
        'open(path, "w")',
        'path.open("ab")',
        'path.open(mode="x")',
        'open(path, "r+b")',
        "figure.savefig(file)",
        "shutil.copyfile(a, b)",
    ],
)
def test_a_call_that_writes_is_found(call):
    assert [*written(f"def f():\n    {call}\n")] == ["f"]


@pytest.mark.parametrize("call", ["open(path)", 'path.open("rb")', "path.read_text()", 'memory.open("a b")'])
def test_a_call_that_reads_is_not(call):
    assert [*written(call)] == []
