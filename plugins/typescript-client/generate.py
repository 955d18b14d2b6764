"""Write the arguments of all operations of ``klaw serve`` as TypeScript: python generate.py [--write].

The types come from the document that ``klaw serve`` offers at ``/openapi.json``. Without ``--write``, say whether
``src/operations.ts`` is up to date; the exit status is 1 if it is not.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from klaw_serve.openapi import document
from klaw_serve.table import OPERATIONS

FILE = Path(__file__).parent / "src" / "operations.ts"
_HEAD = """// Generated from /openapi.json by generate.py: do not edit.

/** The arguments of each operation, by its name. */
export interface Arguments {
"""
_NAMES = """}

/** The names of all operations. */
export const METHODS = [
"""
_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")

Json = Mapping[str, Any]


def typescript(description: Json) -> str:
    """Return ``operations.ts`` for an OpenAPI document."""
    operations = [each for path in description["paths"].values() for each in path.values()]
    called = [each for each in operations if "." in each["operationId"]]  # what JSON-RPC has, too
    described = "".join(line for each in called for line in _operation(each))
    names = "".join(f"  {json.dumps(each['operationId'])},\n" for each in called)
    return f"{_HEAD}{described}{_NAMES}{names}] as const satisfies readonly (keyof Arguments)[];\n"


def _operation(operation: Json) -> Iterator[str]:
    """Yield the lines of an operation's arguments."""
    given = [(each["name"], each["schema"], each["required"]) for each in operation.get("parameters", ())]
    if "requestBody" in operation:
        body = operation["requestBody"]["content"]["application/json"]["schema"]
        given += [(name, schema, name in body.get("required", ())) for name, schema in body["properties"].items()]
    yield f"  /** {operation['summary']} */\n"
    if not given:
        yield f"  {json.dumps(operation['operationId'])}: Record<never, never>;\n"
        return
    yield f"  {json.dumps(operation['operationId'])}: {{\n"
    for name, schema, required in given:
        if schema.get("description"):
            yield f"    /** {schema['description']} */\n"
        yield f"    {_key(name)}{f': {_type(schema)}' if required else f'?: {_type(schema)} | undefined'};\n"
    yield "  };\n"


def _type(schema: Json) -> str:
    """Return the type of what a JSON Schema accepts."""
    if "enum" in schema:
        return " | ".join(json.dumps(each) for each in schema["enum"])
    kinds = schema.get("type", [])
    return _union(_of_kind(kind, schema) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def _union(found: Iterable[str]) -> str:
    return " | ".join(dict.fromkeys(found)) or "unknown"


def _of_kind(kind: str, schema: Json) -> str:
    if kind == "array":
        item = _type(schema.get("items", {}))
        return f"readonly ({item})[]" if " | " in item else f"readonly {item}[]"
    if kind != "object":
        return _PLAIN[kind]
    if "properties" not in schema:
        return "Record<string, unknown>"
    required = schema.get("required", ())
    inner = (
        f"{_key(name)}{'' if name in required else '?'}: {_type(each)}" for name, each in schema["properties"].items()
    )
    return f"{{ {'; '.join(inner)} }}"


def _key(name: str) -> str:
    return name if _IDENTIFIER.fullmatch(name) else json.dumps(name)


def main(arguments: list[str]) -> int:
    """Write the file, or compare it; return the exit status."""
    wanted = typescript(document(OPERATIONS))
    if arguments == ["--write"]:
        FILE.write_text(wanted, "utf-8", newline="\n")
        return 0
    if FILE.read_text("utf-8") != wanted:
        sys.stderr.write(f"{FILE.name} does not fit klaw serve: python {Path(__file__).name} --write\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
