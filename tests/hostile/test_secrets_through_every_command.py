"""No secret passes a command: each argument and option is found by reflection, and so is each importer and hook."""

import json
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import klaw_facts  # noqa: F401  # the tests need it

sys.path.append(str(Path(__file__).parent))

from planted_secrets import KINDS, NOW, OTHER, World, alone

from klaw_core import Memory, load_config
from klaw_core.cli.program import cli
from klaw_doctor.importers import importers

#: Commands that are not run here, and why.
NOT_RUN = {
    **dict.fromkeys(("serve", "mcp", "watch"), "runs until it is stopped; its operations are fed in another test"),
    **dict.fromkeys(
        ("sync run", "sync init", "sync join"), "writes encrypted files to the folder that the caller names"
    ),
    "demo": "indexes its own notes",
    "migrate": "copies a memory to a server",
    **dict.fromkeys(("eval", "models try"), "measures on datasets"),
    "init": "writes a configuration",
    **dict.fromkeys(("models add", "models verify", "models list", "models remove"), "files of models"),
    **dict.fromkeys(("mcp install", "hook install"), "writes the settings of another program"),
    **dict.fromkeys(("config set", "config trust"), "writes the configuration, as given"),
    "plugins new": "writes a new directory, with a name of letters, digits and hyphens",
}
#: Arguments and options that are not fed, and why.
NOT_FED = {
    **dict.fromkeys(("common_config_file", "common_data_dir"), "chooses files, before there is a memory"),
    **dict.fromkeys(("export file", "facts history plot"), "the file that the caller names"),
    "hook pre-compact transcript": "a path of the agent; only transcripts of configured sources are read",
    "hook stop transcript": "a path of the agent; only transcripts of configured sources are read",
}
#: What the other required arguments are given, by command and name, or by name.
ORDINARY = {
    "query": "tea",
    "question": "tea",
    "directory": "notes",
    "text": OTHER,
    "path": "notes/tea.md",
    "target": "notes/tea.md",
    "section": "user",
    "key": "city",
    "value": "Lyon",
    "chat": "telegram_1",
    "message": "tea",
    "new_name": "other",
    "name": "notes",
    "batch": "b-1",
    "people merge name": "owner",
    "others": "telegram_1/Ada",
    "facts name": "f-",
    "config key": "memory.embedding.type",
    "proposal": "p-1",
    "machine": "laptop",
}


def commands(group=cli, path=(), context=None):
    """Yield the path and the command of each command that is installed."""
    context = context or click.Context(group, info_name="klaw", resilient_parsing=True)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None:
            continue
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name), click.Context(command, info_name=name, parent=context))
            if command.invoke_without_command:
                yield " ".join((*path, name)), command
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(commands())
FED = [name for name in COMMANDS if name not in NOT_RUN]


def texts_of(name, command):
    """Return the parameters of a command that are written as text: all but flags."""
    found = [each for each in command.params if not getattr(each, "is_flag", False)]
    return [each for each in found if each.name not in NOT_FED and f"{name} {each.name}" not in NOT_FED]


def ordinary(name, parameter):
    """Return an ordinary value of a required parameter."""
    if isinstance(parameter.type, click.Choice):
        return parameter.type.choices[0]
    if parameter.name in {"file", "files"}:
        Path("tea.md").write_text(f"- {OTHER}\n", "utf-8")
        return "tea.md"
    for key in (f"{name} {parameter.name}", f"{name.partition(' ')[0]} {parameter.name}", parameter.name):
        if key in ORDINARY:
            return ORDINARY[key]
    return pytest.fail(f"no call written for klaw {name}: no ordinary value of {parameter.name}")


def spoiled(world, parameter, text):
    """Return what to write for a parameter so that it contains a text."""
    if isinstance(parameter.type, click.Path) or parameter.name in {"places", "files"}:
        file = world.home / f"given-{len(world.planter.places)}.md"
        file.write_text(f"# Keys\n\n- {text}\n- {OTHER}\n", "utf-8")
        return [str(file), text]
    if parameter.name == "slot":
        return [f"city={text}", text]
    return [text, *alone(text)]


def line_of(name, command, parameter, value):
    """Return the words of a command line: one parameter has a value, and the required others an ordinary one."""
    options, arguments = [], []
    for each in command.params:
        given = value if each is parameter else ordinary(name, each) if each.required else None
        if given is None:
            continue
        if isinstance(each, click.Option):
            options += [f"{each.opts[-1]}={given}"] if each.opts[-1].startswith("--") else [each.opts[-1], given]
        else:
            arguments.append(given)
    return [*name.split(), *options, "--", *arguments]


@pytest.fixture
def world(tmp_path, monkeypatch):
    made = World.open(tmp_path)
    made.memory.extension("facts").remember("I own a red boat")
    made.close()
    config = tmp_path / "config.toml"
    config.write_text('[memory.embedding]\ntype = "none"\n[memory.conversations]\nredact_notes = true\n')
    for name, value in {"KLAW_CONFIG": config, "KLAW_DATA_DIR": tmp_path / "data", "HOME": tmp_path / "home"}.items():
        monkeypatch.setenv(name, str(value))
    for name in ("CACHE", "CONFIG", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return made


def klaw(world, *words, stdin=""):
    """Run a command; what it writes to stderr, and how it fails, is said."""
    result = CliRunner().invoke(cli, ["--data-dir", str(world.home / "data"), *words], prog_name="klaw", input=stdin)
    world.said += [result.stderr, repr(result.exception)]
    return result


def settle(world):
    """Do what later commands do with what was stored."""
    klaw(world, "index")
    for words in (
        ["context", "my key, token, password", "--budget", "20000"],
        ["facts", "list"],
        ["doctor"],
        ["status"],
    ):
        world.said.append(klaw(world, *words).output)
    hook = {"session_id": "1", "prompt": "What is my key, my token, my password?"}
    world.said.append(klaw(world, "hook", "user-prompt", "--timeout", "60", stdin=json.dumps(hook)).output)


def test_every_command_is_run_or_left_out_for_a_reason():
    assert NOT_RUN.keys() <= COMMANDS.keys()
    assert not [name for name in COMMANDS if name.startswith("hook ") and name not in {*FED, "hook install"}]


@pytest.mark.parametrize("name", FED)
def test_no_secret_passes_a_command(world, cases, name):
    command = COMMANDS[name]
    kinds = list(KINDS)
    for number, parameter in enumerate(texts_of(name, command)):
        for step in range(cases.number(1, 4)):
            kind = kinds[(7 * FED.index(name) + 5 * number + step) % len(kinds)]
            text = world.planter.plant(kind, f"klaw-{name.replace(' ', '-')}.{parameter.name}")
            for value in spoiled(world, parameter, text):
                klaw(world, *line_of(name, command, parameter, value))
    settle(world)
    assert world.leaks() == set()


@pytest.mark.parametrize("event", ["session-start", "user-prompt", "pre-compact", "stop"])
def test_no_secret_passes_a_hook(world, cases, event):
    patience = ("--timeout", "60") if event in {"session-start", "user-prompt"} else ()
    every = cases.every(5)
    for kind in [*KINDS][len(event) % every :: every]:
        text = world.planter.plant(kind, f"hook-{event}")
        for message in (
            json.dumps({"session_id": text, "prompt": text, "transcript_path": "", "source": text}),
            json.dumps({"session_id": "1", "prompt": f"{OTHER} {text}", "cwd": text}, ensure_ascii=False),
            text,
            json.dumps([text]),
        ):
            world.said.append(klaw(world, "hook", event, *patience, stdin=message).output)
    settle(world)
    assert world.leaks() == set()


@pytest.mark.parametrize("kind", ["github", "password", "private-key", "url", "russian"])
def test_no_secret_passes_a_command_that_reads_standard_input(world, kind):
    for words in (["save", "-"], ["remember", "-"], ["core", "set", "user", "note", "-"]):
        klaw(world, *words, stdin=world.planter.plant(kind, f"klaw-{words[0]}"))
    settle(world)
    assert world.leaks() == set()


def exports(world):
    """Return the files of each importer, in which every text has a secret of each kind."""

    def say(where):
        return "\n".join(world.planter.plant(kind, where) for kind in KINDS)

    moment, directory = NOW.isoformat(), world.home / "exports"
    directory.mkdir()
    node = {"id": "1", "parent": None, "children": []}
    message = {"id": "m1", "author": {"role": "user"}, "content": {"parts": [say("chatgpt")]}, "create_time": 1.7e9}
    chat = {"uuid": "1", "name": say("claude.name"), "created_at": moment}
    said = {"uuid": "m1", "sender": "human", "text": say("claude"), "created_at": moment}
    session = {
        "type": "message",
        "id": "1",
        "timestamp": moment,
        "message": {"role": "user", "content": say("openclaw")},
    }
    files = {
        "chatgpt/conversations.json": [
            {"id": "1", "title": say("chatgpt.title"), "create_time": 1.7e9, "current_node": "1"}
            | {"mapping": {"1": {**node, "message": message}}}
        ],
        "claude/conversations.json": [{**chat, "chat_messages": [said]}],
        "claude/projects.json": [
            {"uuid": "p", "name": say("claude.project"), "docs": [{"uuid": "d", "content": say("doc")}]}
        ],
        "claude/memories.json": [{"account_uuid": "a", "conversations_memory": say("claude.memory")}],
        "mem0/memories.json": [{"id": "1", "memory": say("mem0"), "metadata": {"note": say("mem0.note")}}],
        "openclaw/s.jsonl": session,
        "openclaw/MEMORY.md": f"# Keys\n\n{say('openclaw.md')}\n",
        "basic-memory/a.md": f"---\ntitle: keys\n---\n{say('basic')}\n",
    }
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content, ensure_ascii=False), "utf-8")
    return {path.name: path for path in directory.iterdir()}


def test_no_secret_passes_an_importer(world):
    files = exports(world)
    assert importers().keys() == files.keys(), "no call written for these importers"
    for name, path in files.items():
        result = klaw(world, "import", "--from", name, str(path))
        assert result.exit_code == 0, result.output
        world.said.append(result.output)
    settle(world)
    assert world.leaks() == set()


def test_no_secret_passes_the_import_of_an_export(world, tmp_path):
    other = World.open(tmp_path / "other", redacts=False)
    other.planter = world.planter
    memory = other.memory
    from public_calls import CHAT, _documents, _lines, _messages

    for kind in KINDS:
        text = world.planter.plant(kind, "export")
        memory.save(text, source=text, chat_id=text)
        memory.core.update("user", f"note {len(world.planter.places)}", text)
        memory.conversations.append_many(_messages(text))
        memory.conversations.add_summary(CHAT, text)
        for make in _documents(text):
            attempt(lambda make=make: memory.add([make()]))
        for line in _lines(text):
            attempt(lambda line=line: memory.extension("facts").journal.append([line]))
    memory.export(tmp_path / "export.jsonl")
    other.close()
    kinds = {json.loads(line).get("kind") for line in (tmp_path / "export.jsonl").read_text("utf-8").splitlines()}
    assert {"saved", "core", "message", "summary", "document", "fact"} <= kinds, "no record written of a kind"
    result = klaw(world, "import", str(tmp_path / "export.jsonl"))
    assert result.exit_code == 0, result.output
    world.said.append(result.output)
    settle(world)
    assert world.leaks() == set()


def attempt(call):
    """Make a call that may be refused."""
    from klaw_core import KlawError

    try:
        call()
    except KlawError:
        return


def test_no_secret_of_a_converted_note_is_in_the_cache(world, tmp_path):
    """A converter returns the text of a file; the cache has it without secrets if notes are redacted."""
    pytest.importorskip("klaw_documents")
    notes = tmp_path / "pages"
    notes.mkdir()
    for kind in KINDS:
        text = world.planter.plant(kind, "converted")
        (notes / f"{kind}.html").write_text(
            f"<html><body><h1>Keys</h1><p>{text}</p><p>{OTHER}</p></body></html>", "utf-8"
        )
    result = klaw(world, "index", "--include", "*.html", str(notes))
    assert result.exit_code == 0, result.output
    settle(world)
    with Memory.open(load_config()) as memory:
        assert memory.search("Lyon tea", mode="fts")
    assert world.leaks() == set()
