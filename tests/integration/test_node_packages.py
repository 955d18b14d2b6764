"""Packages of npm have Klaw's version, and exact versions of others; the client's types are those of the server."""

import json
import re
import runpy
from importlib.metadata import version
from pathlib import Path

import attrs
import pytest

from klaw_core import (
    Contribution,
    DocumentRecord,
    Excerpt,
    Finding,
    ForgetReport,
    IndexReport,
    Progress,
    SearchResult,
    SkippedEntry,
    Status,
)
from klaw_core.values.documents import ListedDocument
from klaw_core.values.runs import SourceStatus
from klaw_facts.values import Fact
from klaw_notes.links.graph import BrokenLink, DocumentLinks, Edge
from klaw_serve.openapi import document
from klaw_serve.table import OPERATIONS

PLUGINS = Path(__file__).parents[2] / "plugins"
PACKAGES = sorted(path.parent.name for path in PLUGINS.glob("*/package.json"))
CLIENT = PLUGINS / "typescript-client"


@pytest.fixture(scope="module")
def generator():
    if not CLIENT.is_dir():
        pytest.skip("the client is not in this checkout")
    return runpy.run_path(str(CLIENT / "generate.py"))


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_has_the_version_of_klaw_and_exact_versions_of_what_its_tests_need(name):
    package = json.loads((PLUGINS / name / "package.json").read_text("utf-8"))
    assert package["version"] == version("klaw")
    assert package["license"] == "Apache-2.0"
    needed = {**package.get("devDependencies", {}), **package.get("dependencies", {})}
    assert needed
    own = {each: needed.pop(each) for each in list(needed) if needed[each].startswith("file:")}
    assert {each for each, place in own.items() if not (PLUGINS / name / place[5:] / "package.json").is_file()} == set()
    assert {each: found for each, found in needed.items() if not re.fullmatch(r"\d+\.\d+\.\d+", found)} == {}


def test_packages_that_need_the_same_package_need_one_version_of_it():
    found = {}
    for name in PACKAGES:
        package = json.loads((PLUGINS / name / "package.json").read_text("utf-8"))
        for each, wanted in package["devDependencies"].items():
            found.setdefault(each, set()).add(wanted)
    assert {each: wanted for each, wanted in found.items() if len(wanted) > 1} == {}


def test_the_clients_types_are_those_of_the_server(generator):
    written = (CLIENT / "src" / "operations.ts").read_text("utf-8")
    assert written == generator["typescript"](document(OPERATIONS)), "run generate.py --write"


def test_every_operation_has_a_type_for_its_answer():
    answers = (CLIENT / "src" / "answers.ts").read_text("utf-8")
    assert set(re.findall(r'^  "(memory\.\w+)": ', answers, re.MULTILINE)) == set(OPERATIONS)


#: What the server answers with, and what it adds to the fields of these classes.
_ANSWERS = {
    BrokenLink: (),
    Contribution: (),
    DocumentLinks: (),
    DocumentRecord: (),
    Edge: (),
    Excerpt: (),
    Fact: ("relevance", "is_weak"),
    Finding: (),
    ForgetReport: (),
    IndexReport: (),
    ListedDocument: (),
    Progress: (),
    SearchResult: ("is_weak",),
    SkippedEntry: (),
    SourceStatus: (),
    Status: (),
}


@pytest.mark.parametrize("made", _ANSWERS, ids=lambda made: made.__name__)
def test_the_type_of_an_answer_has_the_fields_of_its_class(made):
    text = (CLIENT / "src" / "answers.ts").read_text("utf-8")
    (body,) = re.findall(rf"^export interface {made.__name__} {{\n(.*?)^}}", text, re.MULTILINE | re.DOTALL)
    written = re.findall(r"^  (\w+)\??: ", body, re.MULTILINE)
    assert sorted(written) == sorted([*(field.name for field in attrs.fields(made)), *_ANSWERS[made]])


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        ({"type": "string", "enum": ["a", "b"]}, '"a" | "b"'),
        ({"type": "integer"}, "number"),
        ({"type": "array", "items": {"type": "string"}}, "readonly string[]"),
        ({"type": "array", "items": {"type": ["string", "number"]}}, "readonly (string | number)[]"),
        ({"type": "object"}, "Record<string, unknown>"),
        (
            {"type": "object", "properties": {"a-b": {"type": "null"}, "c": {}}, "required": ["c"]},
            '{ "a-b"?: null; c: unknown }',
        ),
    ],
)
def test_a_schema_becomes_a_type(generator, schema, wanted):
    assert generator["_type"](schema) == wanted


def test_arguments_are_optional_unless_the_server_needs_them(generator):
    parameter = {
        "name": "text",
        "in": "query",
        "required": True,
        "schema": {"type": "string", "description": "A text."},
    }
    body = {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}, "b": {"type": "boolean"}}}
    paths = {
        "/x": {"get": {"operationId": "memory.x", "summary": "Do x.", "parameters": [parameter]}},
        "/y": {
            "post": {
                "operationId": "memory.y",
                "summary": "Do y.",
                "requestBody": {"content": {"application/json": {"schema": body}}},
            }
        },
        "/health": {"get": {"operationId": "health", "summary": "No operation."}},
    }
    found = generator["typescript"]({"paths": paths})
    assert '  /** Do x. */\n  "memory.x": {\n    /** A text. */\n    text: string;\n  };\n' in found
    assert '  "memory.y": {\n    a: string;\n    b?: boolean | undefined;\n  };\n' in found
    assert "health" not in found


def test_a_stale_file_is_named_with_the_command_that_writes_it(generator, tmp_path, monkeypatch, capsys):
    main = generator["main"]
    monkeypatch.setitem(main.__globals__, "FILE", tmp_path / "operations.ts")
    (tmp_path / "operations.ts").write_text("old")
    assert main([]) == 1
    assert "python generate.py --write" in capsys.readouterr().err
    assert main(["--write"]) == 0
    assert main([]) == 0
