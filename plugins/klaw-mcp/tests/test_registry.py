"""``server.json`` is what the registry of MCP servers takes, and names what exists."""

import json
import re
import tomllib
from pathlib import Path

import jsonschema
import pytest

from klaw_mcp.command import command

ROOT = Path(__file__).parents[3]
FILE = Path(__file__).parents[1] / "server.json"
pytestmark = pytest.mark.skipif(not (ROOT / "klaw_core").is_dir(), reason="the name stands in the README of a clone")
_TEXT = {"type": "string", "minLength": 1}
_VERSION = {**_TEXT, "maxLength": 255, "pattern": r"^\d+\.\d+\.\d+$"}
_ARGUMENT = {
    "type": "object",
    "required": ["type"],
    "oneOf": [
        {"properties": {"type": {"const": "named"}}, "required": ["name"]},
        {
            "properties": {"type": {"const": "positional"}},
            "anyOf": [{"required": ["value"]}, {"required": ["valueHint"]}],
        },
    ],
}
#: What the documentation of the registry says of the version 2025-12-11, as far as Klaw's file uses it.
SCHEMA = {
    "type": "object",
    "required": ["$schema", "name", "description", "version", "packages"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"const": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"},
        "name": {"type": "string", "maxLength": 200, "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$"},
        "title": {**_TEXT, "maxLength": 100},
        "description": {**_TEXT, "maxLength": 100},
        "version": _VERSION,
        "packages": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["registryType", "identifier", "version", "transport"],
                "additionalProperties": False,
                "properties": {
                    "registryType": {"const": "pypi"},
                    "identifier": _TEXT,
                    "version": _VERSION,
                    "runtimeHint": {"const": "uvx"},
                    "runtimeArguments": {"type": "array", "items": _ARGUMENT},
                    "packageArguments": {"type": "array", "items": _ARGUMENT},
                    "environmentVariables": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["name"],
                            "properties": {"format": {"enum": ["string", "number", "boolean", "filepath"]}},
                        },
                    },
                    "transport": {"type": "object", "required": ["type"], "properties": {"type": {"const": "stdio"}}},
                },
            },
        },
    },
}


@pytest.fixture(scope="module")
def described() -> dict:
    return json.loads(FILE.read_text("utf-8"))


def test_it_is_what_the_registry_takes(described):
    jsonschema.validate(described, SCHEMA)
    for field, value in (("description", "x" * 101), ("name", "klaw"), ("version", "latest")):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**described, field: value}, SCHEMA)


def test_the_readme_of_the_package_has_the_name_that_proves_who_owns_it(described):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (package,) = described["packages"]
    assert package["identifier"] == project["name"]
    assert re.findall(r"mcp-name: (\S+)", (ROOT / project["readme"]).read_text("utf-8")) == [described["name"]]


def test_it_runs_the_command_of_this_version(described):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (package,) = described["packages"]
    assert {described["version"], package["version"]} == {project["version"]}
    (needed,), (word,) = package["runtimeArguments"], package["packageArguments"]
    extras = re.fullmatch(rf"klaw\[([\w,]+)\]=={re.escape(project['version'])}", needed["value"])
    assert [name for name in extras[1].split(",") if name not in project["optional-dependencies"]] == []
    assert word["value"] == command.name
    assert package["environmentVariables"][0]["name"] in (ROOT / "docs/reference/configuration.md").read_text("utf-8")
