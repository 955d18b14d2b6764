"""No secret passes a tool of a model, MCP, or an operation of the server: each parameter is found by reflection."""

import asyncio
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import klaw_facts  # noqa: F401  # the tests need it
from klaw_core import KlawError

sys.path.append(str(Path(__file__).parent))

from planted_secrets import KINDS, OTHER, World, alone

OPT_IN = ("memory_forget",)
#: What the other required parameters are given, by name.
ORDINARY = {"path": "notes/tea.md", "chat": "telegram_1", "section": "user", "key": "city", "value": "Lyon"}
ORDINARY |= {"name": "memory_save", "content": OTHER, "role": "user", "texts": ["tea", "x"], "arguments": {}}
ORDINARY |= dict.fromkeys(("query", "message", "fact", "text"), "tea")


def ordinary(name, schema):
    """Return an ordinary value of a required parameter."""
    if "enum" in schema:
        return schema["enum"][0]
    if name not in ORDINARY:
        pytest.fail(f"no call written: no ordinary value of {name}")
    return ORDINARY[name]


def spoiled(where, schema, text):
    """Return values that contain a text, whether the schema allows them or not."""
    match schema.get("type"):
        case "string":
            return [text, *alone(text)]
        case "array":
            return [[text], [{"key": "note", "operator": "=", "value": text}], [{"key": text}]]
        case "object":
            return [{"content": text}, {"fact": text}, {text: 1}, {"query": text, "deep": [text]}]
        case "integer" | "number" | "boolean":
            return [text]
    return pytest.fail(f"no call written for {where}: {schema}")


def calls_of(properties, required):
    """Yield each parameter, and how to make arguments in which it contains a text."""
    for name, schema in properties.items():
        others = {other: ordinary(other, properties[other]) for other in required if other != name}

        def arguments(where, text, name=name, schema=schema, others=others):
            return [{**others, name: value} for value in spoiled(where, schema, text)]

        yield name, arguments


def feed(world, door, properties, required, call):
    """Put a secret of each kind into each parameter; ``call`` takes arguments, and returns what it says to a model."""
    for name, arguments in calls_of(properties, required):
        for kind in KINDS:
            text = world.planter.plant(kind, f"{door}.{name}")
            for given in arguments(f"{door}.{name}", text):
                world.said.append(json.dumps(call(given), ensure_ascii=False))
    for strange in (None, [1], "x", {"unknown": 1}):
        text = world.planter.plant("github", f"{door}()")
        world.said.append(json.dumps(call({text: strange}), ensure_ascii=False))


@pytest.fixture
def world(tmp_path):
    made = World.open(tmp_path)
    yield made
    made.close()


def test_no_secret_passes_a_tool(world):
    memory = world.memory
    tools = memory.toolbox(allow=OPT_IN)
    assert {"memory_save", "memory_remember", "memory_core_update", "memory_get", "memory_forget"} <= tools.keys()
    for name, tool in tools.items():
        feed(
            world,
            name,
            tool.properties,
            tool.required,
            lambda given, name=name: memory.call_tool(name, given, allow=OPT_IN),
        )
    text = world.planter.plant("github", "the name of a tool")
    world.said.append(json.dumps(memory.call_tool(text, {})))
    world.settle()
    assert world.leaks() == set()


def test_no_secret_passes_mcp(world):
    server = pytest.importorskip("klaw_mcp.server")
    from mcp import types

    from klaw_mcp.tools import Policy, Toolbox

    extra = tuple(world.memory.toolbox(allow=OPT_IN))
    toolbox = Toolbox(lambda: world.memory, Policy(allow_forget=True, extra=extra))
    handlers = server.Handlers(toolbox, SimpleNamespace(meet=lambda _context: None))
    for name, tool in toolbox.tools().items():
        feed(world, f"mcp {name}", tool.properties, tool.required, lambda given, name=name: toolbox.call(name, given))
    topic = types.PromptReference(type="ref/prompt", name="recall")
    public = {name for name in vars(server.Handlers) if not name.startswith("_")}
    asked = {"read_resource", "get_prompt", "list_resources", "complete"}
    assert public - asked == {
        *("call_tool", "get_memory", "server", "list_tools", "list_templates", "list_prompts"),
        *("toolbox", "notices", "instructions"),
    }, "no call written"
    world.memory.index()
    for kind in KINDS:
        text = world.planter.plant(kind, "mcp")
        for make in (
            lambda text=text: handlers.get_prompt(None, SimpleNamespace(name="recall", arguments={"topic": text})),
            lambda text=text: handlers.get_prompt(None, SimpleNamespace(name=text, arguments={"topic": text})),
            lambda text=text: handlers.read_resource(None, SimpleNamespace(uri=text)),
            lambda text=text: handlers.read_resource(None, SimpleNamespace(uri=f"klaw:///{text}")),
            lambda text=text: handlers.list_resources(None, SimpleNamespace(cursor=text)),
            lambda text=text: handlers.complete(None, SimpleNamespace(ref=None, argument=SimpleNamespace(value=text))),
            lambda text=text: handlers.complete(None, SimpleNamespace(ref=topic, argument=SimpleNamespace(value=text))),
        ):
            world.said.append(answer(make))
    for item in world.memory.documents(limit=1000):
        uri = server.uri_of(item.path)
        world.said.append(answer(lambda uri=uri: handlers.read_resource(None, SimpleNamespace(uri=uri))))
    world.settle()
    assert world.leaks() == set()


def answer(make):
    """Return what a client of MCP is told."""
    from mcp.shared.exceptions import MCPError

    try:
        return asyncio.run(make()).model_dump_json()
    except MCPError as error:
        return str(error)


def test_no_secret_passes_an_operation_of_the_server(world):
    table = pytest.importorskip("klaw_serve.table")
    from klaw_serve.operations import OperationError
    from klaw_serve.tenants import Tenant

    tenant = Tenant("", world.memory, SimpleNamespace(on=lambda _event: None, send=lambda *_: None))
    for name, operation in table.OPERATIONS.items():

        def call(given, operation=operation, name=name):
            try:
                said = operation.call(tenant, given)
            except (OperationError, KlawError) as error:
                return [str(error), getattr(error, "hint", "")]
            return said if name in {"memory.tool", "memory.context", "memory.tools"} else ""

        feed(world, name, operation.properties, operation.required, call)
    world.settle()
    assert world.leaks() == set()
