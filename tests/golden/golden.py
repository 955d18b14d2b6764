"""What Klaw prints and answers, as text files in ``expected``: python tests/golden/golden.py [--write].

Each file is one room of a small memory that is made anew for it. A change of what a person or a program sees is a
change of these files, which a reader of the change sees too.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from difflib import unified_diff
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import click
from click.testing import CliRunner

sys.path.append(str(Path(__file__).parent))
from cases import COMMANDS, MCP_TOOLS, REST, TOOLS
from world import World, made, masked

from klaw_core.cli.extensions import installed
from klaw_core.cli.json_forms import to_json
from klaw_core.cli.program import cli

EXPECTED = Path(__file__).with_name("expected")
UPDATE = "python tests/golden/golden.py --write"
OPT_IN = ("memory_forget",)


def leaves(group: click.Group = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command that does something, with its words: those of a group too that works without a command."""
    context = click.Context(group)
    names = [*group.list_commands(context), *(installed() if group is cli else ())]
    for name in dict.fromkeys(names):
        command = group.get_command(context, name)
        assert command is not None, name
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name))
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield (*path, name), command


def shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


def run(call: str) -> str:
    """Run a command line; return it with what it printed, errors marked by ``!``."""
    line, piped, stdin = call.partition("<")
    words = shlex.split(line)
    result = CliRunner().invoke(cli, words, input=stdin if piped else None, prog_name="klaw")
    if isinstance(result.exception, Exception):
        raise result.exception
    errors = "".join(f"! {each}\n" for each in result.stderr.splitlines())
    status = f"exit {result.exit_code}\n" if result.exit_code else ""
    return f"$ klaw {call}\n{_laid_out(result.stdout)}{errors}{status}"


def _laid_out(text: str) -> str:
    """Return a line of JSON in several lines, so that a difference is one of some lines."""
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return shown(found) + "\n" if isinstance(found, dict | list) else text


def helps(_world: World) -> str:
    texts = [run("--help"), *(run(f"{' '.join(path)} --help") for path, _ in leaves())]
    return "\n".join(texts)


def verb(name: str, _world: World) -> str:
    return "\n".join(map(run, COMMANDS[name]))


def tools(world: World) -> str:
    with world.open() as memory:
        offered = [to_json(tool) for tool in memory.toolbox(allow=OPT_IN).values()]
        answers = [
            f"{name} {shown(given)}\n{shown(memory.call_tool(name, given, allow=OPT_IN))}" for name, given in TOOLS
        ]
    return "\n\n".join((shown(offered), *answers)) + "\n"


def rest(world: World) -> str:
    return asyncio.run(_rest(world))


async def _rest(world: World) -> str:
    import httpx2

    from klaw_serve.app import make_service
    from klaw_serve.options import Limits, Listening
    from klaw_serve.tokens import Tokens

    memory = world.open()
    headers = {"Authorization": f"Bearer {Tokens(memory.config.data_dir).make()}"}
    service = make_service(memory, Listening(), Limits())
    texts = []
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(service.app), base_url="http://127.0.0.1:8490", headers=headers
    ) as client:
        texts.append(shown((await client.get("/openapi.json")).json()))
        for method, path, body in REST:
            answer = await client.request(method, path, json=body)
            given = "" if body is None else f" {shown(body)}"
            texts.append(f"{method} {path}{given}\n{answer.status_code} {_laid_out(answer.text)}".rstrip())
    service.end_streams()
    service.calls.close()
    service.calls.tenants.close()
    return "\n\n".join(texts) + "\n"


def mcp(world: World) -> str:
    return asyncio.run(_mcp(world))


async def _mcp(world: World) -> str:
    from mcp.shared.exceptions import MCPError

    from klaw_mcp.server import Handlers
    from klaw_mcp.tools import Policy, Toolbox

    with world.open() as memory:
        handlers: Any = Handlers(
            Toolbox(lambda: memory, Policy(allow_forget=True)), SimpleNamespace(meet=lambda _context: None)
        )
        document = "klaw:///notes/kiln.md"
        calls: list[tuple[str, Callable[..., Awaitable[Any]], Mapping[str, Any] | None]] = [
            ("tools/list", handlers.list_tools, None),
            *(("tools/call", handlers.call_tool, {"name": name, "arguments": given}) for name, given in MCP_TOOLS),
            ("resources/list", handlers.list_resources, None),
            ("resources/templates/list", handlers.list_templates, None),
            ("resources/read", handlers.read_resource, {"uri": document}),
            ("resources/read", handlers.read_resource, {"uri": "klaw:///nowhere"}),
            ("prompts/list", handlers.list_prompts, None),
            ("prompts/get", handlers.get_prompt, {"name": "recall", "arguments": {"topic": "kiln"}}),
            ("prompts/get", handlers.get_prompt, {"name": "nothing", "arguments": {}}),
        ]
        texts = []
        for method, handler, given in calls:
            try:
                answer = (await handler(None, SimpleNamespace(**given) if given else None)).model_dump(mode="json")
            except MCPError as error:
                answer = {"error": error.error.model_dump(mode="json")}
            texts.append(f"{method}{' ' + shown(given) if given else ''}\n{shown(answer)}")
    return "\n\n".join(texts) + "\n"


#: Every file: what computes it.
FILES: Mapping[str, Callable[[World], str]] = {
    "help": helps,
    "tools": tools,
    "rest": rest,
    "mcp": mcp,
    **{f"commands/{name}": partial(verb, name) for name in COMMANDS},
}


def found(name: str, world: World) -> str:
    """Return what a file should contain now."""
    world.renew()
    return masked(FILES[name](world), world)


def difference(name: str, text: str) -> str:
    """Return how a text differs from its file; empty if it does not."""
    path = EXPECTED / f"{name}.txt"
    before = path.read_text("utf-8") if path.exists() else ""
    lines = unified_diff(before.splitlines(), text.splitlines(), f"{name}.txt", "now", lineterm="")
    return "\n".join(lines)


def main() -> int:
    """Write the files, or show how they differ; return the exit code."""
    differences = []
    with TemporaryDirectory() as directory, made(Path(directory)) as world:
        for name in FILES:
            text = found(name, world)
            differences.append(difference(name, text))
            if "--write" in sys.argv[1:]:
                path = EXPECTED / f"{name}.txt"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, "utf-8")
    for text in filter(None, differences):
        print(text)  # noqa: T201  # a program's output
    return 0 if "--write" in sys.argv[1:] else int(any(differences))


if __name__ == "__main__":
    sys.exit(main())
