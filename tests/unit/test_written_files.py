"""Klaw writes files atomically, in one module. Every other call that writes is listed here, with its reason."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from klaw_core import ConfigError
from klaw_core.cli.client_files import read_client_file, write_client_file

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
#: Blocks in which no other process or thread changes the file between reading and writing it.
TURNS = {"locked", "turn", "_saving"}
#: The functions that replace a file outside of such a block, and why no change of another process can be lost.
ALONE = {
    "klaw_core/cli/client_files.py write_client_file": "refused if the file is not what it was when it was read",
    "klaw_core/cli/entry_cache.py _write_cache": "a cache, wholly made again",
    "klaw_core/cli/init.py _make_project_memory": "a new file, with a text that is always the same",
    "klaw_embed_llamacpp/verification.py _remember": "a cache, wholly made again",
    "klaw_embed_openai/batches.py _keep": "a file of this run's own",
    "klaw_journals/file_journals.py replace": "its callers have the lock of `changing`",
    "klaw_notes/workspace_list.py _write": "its callers have the lock",
    "klaw_serve/running.py announce": "the one process that has the lock of the server",
    "klaw_serve/warm/state.py write": "the one process that has the lock of the helper",
    "klaw_sessions/failures.py add": "a log, of which a line may be lost when it is shortened",
    "klaw_sessions/recall.py add": "what a session was shown, which it may be shown twice",
    "klaw_sync/keys.py save": "its callers have the lock of the directory",
    "klaw_watch/state.py write": "the one watcher, which has its lock",
}


def replaced(source: str) -> Iterator[str]:
    """Yield the function of each atomic replacement that is in no block of :data:`TURNS`."""
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    blocks = [node for node in ast.walk(tree) if isinstance(node, ast.With | ast.AsyncWith) and _takes_turns(node)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and "write_atomically" in map(_name, [node.func, *node.args]):
            outer = [each for each in (*functions, *blocks) if each.lineno <= node.lineno <= (each.end_lineno or 0)]
            if not any(each in blocks for each in outer):
                yield max((each for each in functions if each in outer), key=lambda each: each.lineno).name


def _takes_turns(block: ast.With | ast.AsyncWith) -> bool:
    places = [item.context_expr for item in block.items]
    return any(_name(each.func if isinstance(each, ast.Call) else each) in TURNS for each in places)


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


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


def everywhere(find: Callable[[str], Iterator[str]]) -> set[str]:
    """Return the modules and functions that ``find`` finds in all packages."""
    found = set()
    for path in [*ROOT.glob("klaw_*/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py")]:
        shown = path.relative_to(ROOT).as_posix().partition("/src/")[2] or path.relative_to(ROOT).as_posix()
        if not shown.startswith(("klaw_core/files/", "klaw_testing/")):
            found |= {f"{shown} {function}" for function in find(path.read_text("utf-8"))}
    return found


def test_every_file_is_written_atomically_or_has_a_reason():
    assert everywhere(written) == {*EXCEPTIONS}


def test_every_file_is_replaced_in_turn_or_has_a_reason():
    """Two commands at once that read a file, change it, and replace it would lose the change of one of them."""
    assert everywhere(replaced) == {*ALONE}


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


def test_a_file_of_another_program_that_has_changed_meanwhile_is_not_replaced(tmp_path):
    """A person may be asked in between, and the program writes its file without a lock."""
    file = tmp_path / "settings.json"
    file.write_text('{"theirs": 1}')
    before = read_client_file(file)
    file.write_text('{"theirs": 2}')
    with pytest.raises(ConfigError, match="changed by another program"):
        write_client_file(file, '{"theirs": 1, "klaw": true}', before)
    assert file.read_text() == '{"theirs": 2}'
    assert write_client_file(file, '{"klaw": true}', '{"theirs": 2}').read_text() == '{"theirs": 2}'
