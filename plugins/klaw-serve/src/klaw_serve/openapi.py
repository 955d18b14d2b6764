"""The OpenAPI 3.1 document of the REST API, generated from the table of operations."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, Final

from klaw_serve.operations import Json, Operation

_JSON: Final = "application/json"
_ERROR: Final[Json] = {
    "type": "object",
    "required": ["error"],
    "properties": {"error": {"type": "string"}, "hint": {"type": "string"}},
}
_PROBLEMS: Final = {
    "400": "The arguments are invalid.",
    "401": "The token is missing or wrong.",
    "404": "Not found.",
    "408": "The request took too long.",
    "409": "The server cannot do this now.",
    "413": "The body is too large.",
    "429": "Too many requests.",
}


def document(operations: Mapping[str, Operation]) -> Json:
    """Return the document."""
    paths: dict[str, Json] = {}
    for operation in operations.values():
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Klaw",
            "version": version("klaw-serve"),
            "description": "Memory for agents. The same paths below /agents/NAME are that agent's own memory.",
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": {**paths, **_others()},
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": _ERROR},
        },
    }


def _described(operation: Operation) -> Json:
    in_path = [name for name in operation.properties if f"{{{name}}}" in operation.path]
    others = [name for name in operation.properties if name not in in_path]
    parameters = [_parameter(operation, name, "path") for name in in_path]
    found: Json = {
        "operationId": operation.name,
        "summary": operation.summary,
        "responses": {str(operation.status): _response("The answer.", {}), **_problems()},
    }
    if operation.method in {"GET", "DELETE"}:
        parameters += [_parameter(operation, name, "query") for name in others]
    elif others:
        required = [name for name in operation.required if name in others]
        schema = {
            "type": "object",
            "properties": {name: dict(operation.properties[name]) for name in others},
            "additionalProperties": False,
            **({"required": required} if required else {}),
        }
        found["requestBody"] = {"required": bool(required), "content": {_JSON: {"schema": schema}}}
    return {**found, **({"parameters": parameters} if parameters else {})}


def _parameter(operation: Operation, name: str, place: str) -> Json:
    required = place == "path" or name in operation.required
    return {"name": name, "in": place, "required": required, "schema": dict(operation.properties[name])}


def _response(description: str, schema: Json) -> Json:
    return {"description": description, "content": {_JSON: {"schema": schema}}}


def _problems() -> Json:
    return {status: _response(text, {"$ref": "#/components/schemas/Error"}) for status, text in _PROBLEMS.items()}


def _others() -> dict[str, Any]:
    """Return the paths that are not operations."""
    text = {"description": "The answer.", "content": {"text/plain": {"schema": {"type": "string"}}}}
    stream = {
        "description": "Server-sent events: index, progress, forget, message.",
        "content": {"text/event-stream": {}},
    }
    call = {
        "type": "object",
        "required": ["method"],
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "id": {"type": ["string", "number", "null"]},
            "method": {"type": "string"},
            "params": {"type": "object"},
        },
    }
    alive = {"operationId": "health", "summary": "Report that the server is running.", "security": []}
    return {
        "/health": {"get": {**alive, "responses": {"200": _response("It lives.", {"type": "object"})}}},
        "/metrics": {
            "get": {
                "operationId": "metrics",
                "summary": "Counts for Prometheus.",
                "responses": {"200": text, **_problems()},
            }
        },
        "/api/events": {
            "get": {
                "operationId": "events",
                "summary": "A stream of events, from now on.",
                "responses": {"200": stream, **_problems()},
            }
        },
        "/rpc": {
            "post": {
                "operationId": "rpc",
                "summary": "Call any operation with JSON-RPC 2.0.",
                "requestBody": {"required": True, "content": {_JSON: {"schema": call}}},
                "responses": {
                    "200": _response("The reply.", {}),
                    "204": {"description": "The call was a notification."},
                    **_problems(),
                },
            }
        },
    }
