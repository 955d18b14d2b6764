"""No ability is guessed from the name of an attribute: what may lack one is another program's, or says so here."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: The names that are looked up on what may lack them, and what that is.
OTHERS = {
    # what an operating system or a version of Python may lack
    "geteuid": "os",
    "fdatasync": "os",
    "sched_getaffinity": "os",
    "register_at_fork": "os",
    "O_NOFOLLOW": "os",
    "gnu_get_libc_version": "the library for C",
    "lock": "cached_property of Python 3.11",
    # objects of Python and of other libraries
    "__isabstractmethod__": "functions",
    "__wrapped__": "functions",
    "__dict__": "objects with slots",
    "__file__": "modules",
    "__notes__": "exceptions",
    "errno": "exceptions",
    "strerror": "exceptions",
    "reason": "exceptions of urllib",
    "err_code": "exceptions of pypdfium2",
    "extendedresult": "exceptions of APSW",
    "sqlite_errorcode": "exceptions of sqlite3",
    "name": "notes of cattrs",
    "index": "notes of cattrs",
    "encoding": "streams",
    "reconfigure": "streams",
    "rich_proxied_file": "streams",
    "items": "what is made JSON",
    "shape": "what an embedder returned",
    "dtype": "what an embedder returned",
    "get_command": "commands of click",
    "NoArgsIsHelpError": "click",
    "CSafeLoader": "yaml",
    "pad_token_id": "tokenizers of sentence-transformers",
    "xpu": "torch",
    "pooling_mode": "modules of sentence-transformers",
    "value": "enumerations of sentence-transformers",
    "get_embedding_dimension": "sentence-transformers",
    "model_name": "embeddings of LangChain",
    # lines of a journal, whose package klaw-eval does not need
    "message": "lines of a journal",
    "id": "messages",
    # what each thread has of its own
    "own": "a thread's data",
    "tokenizer": "a thread's data",
    # attributes that the documentation of an interface calls optional
    "moved": "options of a component",
    "remote": "an Embedder",
    "texts_per_call": "an Embedder",
    "model": "an Embedder, options of a remote one, and embeddings of LangChain",
    "store": "a state machine of the tests of a store",
}


def guessed(path):
    """Yield the names that a file looks up on objects that may lack them, with their lines."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            may_lack = node.func.id == "hasattr" or (node.func.id == "getattr" and len(node.args) > 2)
            if may_lack and isinstance(name := node.args[1], ast.Constant):
                yield name.value, f"{path.relative_to(path.parents[1])}:{node.lineno}"


def test_no_attribute_is_looked_up_by_name_but_those_of_others(tmp_path):
    files = [*(ROOT / "klaw_core").rglob("*.py"), *(ROOT / "plugins").glob("*/src/**/*.py")]
    found = {name: place for path in files for name, place in guessed(path)}
    assert {name: place for name, place in found.items() if name not in OTHERS} == {}
    assert sorted(OTHERS.keys() - found.keys()) == []
    (bad := tmp_path / "bad.py").write_text("getattr(store, 'isolates', False)\nhasattr(store, 'erasing_once')\n")
    assert [name for name, _ in guessed(bad)] == ["isolates", "erasing_once"]
