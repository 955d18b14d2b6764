"""Every option of every command of a plugin has an effect, or is refused by name; so has every pair.

As ``test_options_of_commands.py``, for the commands of all installed plugins: a new one needs an entry. Commands that
serve until they are stopped are run up to that point.
"""

from __future__ import annotations

import json
from datetime import timedelta
from itertools import product
from types import SimpleNamespace

import click
import pytest
from click.testing import CliRunner
from command_lines import FACT, Command, commands, not_listed, of_plugins, prepare
from worlds import CHAT, MOMENT, OTHER_CHAT, make_template, problems

from klaw_core import IndexReport, Message
from klaw_core.cli.program import cli
from klaw_sync import MemoryKey
from klaw_watch import BackgroundRun

#: Options and pairs of them that are tried without ``--campaigns``.
ALONE, SAMPLE = 25, 15

_LISTED = {"--format json": ["json"], "--format md": ["md"], "--json": []}
_SAME = {("--format json", "--json"): "they mean the same", ("--json", "--format json"): "they mean the same"}
_FILTERS = {
    "--subject": ["Bo"],
    "--category": ["event"],
    "--slot": ["harbour"],
    "--project": ["pier"],
    "--where": ["tags=sea"],
    "--as-of": ["2026-03-01"],
    "--known-at": ["2026-01-01"],
}
_KNOWN = {(name, "--known-at"): "nothing was known then" for name in (*_FILTERS, "--all", "--limit", "--format md")}
_LAST = {("--all", "--limit"): "the last fact is true now"}
_FIRST = dict.fromkeys(
    [("--slot", "--limit"), ("--as-of", "--limit"), ("--limit", "--project")], "the best fact is the same"
)
_EQUAL = {
    **dict.fromkeys(
        [(name, "--budget") for name in ("--chat", "--as-of", "--known-at", "--seen")], "core memory fills it"
    ),
    **dict.fromkeys([("--seen", "--as-of"), ("--seen", "--known-at")], "that fact is not shown"),
    ("--as-of", "--known-at"): "nothing was known then",
    ("--chat", "--explain"): "the items are the same",
    ("--explain", "--json"): "JSON lists the items",
}
_LITTLE = {("--min-relevance", "--budget"): "nothing fits"}
_SMALL = dict.fromkeys([("--limit", "--bilingual"), ("--limit", "--half")], "one question is left")
_WORK = {("--daily", "--json"): "there is no other work", ("--dry-run", "--weekly"): "there is none"}
_DESCRIBED = {
    "--dimension": ["8"],
    "--window": ["16"],
    "--pooling": ["cls"],
    "--query-prefix": ["query:"],
    "--document-prefix": ["text:"],
    "--license": ["MIT"],
    "--cross-encoder": [],
}
_INSTALLED = {"--scope": ["project"], "--print": [], "--json": []}
_MCP = {"--read-only": [], "--allow-forget": [], "--collection": ["charts"]}
_EVALUATED = {"--half": ["report"], "--limit": ["1"], "--keep": ["ROOT/here/kept"], "--json": []}
_SHOWN = {"--plot": ["plot.svg"], "--fail-under": ["ndcg@10=1.1"], "--relevance": []}
_OF_DATASET = {
    "--pooled": [],
    "--part": ["dev"],
    "--bilingual": ["ROOT/squad.json"],
    "--format": ["beir"],
    "--unit": ["turn"],
}
_CALL = json.dumps({"session_id": "s", "prompt": "where is the harbour chart?", "transcript_path": "ROOT/t.jsonl"})

COMMANDS = [
    Command("models add mine", {"--from": ["ROOT/model"], **_DESCRIBED}),
    Command("models add mine --from ROOT/model", {**_DESCRIBED, "--json": []}),
    Command("compact --chat telegram_1", {"--keep": ["1"], "--json": []}),
    Command("compress", {"--daily": [], "--weekly": [], "--dry-run": [], "--list": [], "--json": []}, _WORK),
    Command(
        "context where is the harbour of Ada",
        {
            "--chat": ["telegram_1"],
            "--budget": ["60"],
            "--as-of": ["2026-03-01"],
            "--known-at": ["2026-01-01"],
            "--seen": ["facts/FACT"],
            "--trust": ["foreign"],
            "--explain": [],
            "--json": [],
        },
        _EQUAL,
    ),
    Command(
        "facts edit FACT Ada has a green crane",
        {
            "--slot": ["home=Lyon"],
            "--subject": ["Bo"],
            "--category": ["event"],
            "--importance": ["0.9"],
            "--tag": ["sea"],
            "--from": ["2026-01-01"],
            "--to": ["2026-12-01"],
            "--json": [],
        },
    ),
    Command("facts end FACT", {"--to": ["2026-12-01"], "--reason": ["moved"], "--json": []}),
    Command("facts extract", {"--chat": ["telegram_1"], "--limit": ["1"], "--dry-run": [], "--json": []}),
    Command("facts history", {"--subject": ["Bo"], "--plot": ["plot.svg"], **_LISTED}, _SAME),
    Command("facts import ROOT/MEMORY.md", {"--from": ["mem0"], "--dry-run": [], "--json": []}),
    Command("facts list", {**_FILTERS, "--all": [], "--limit": ["1"], **_LISTED}, {**_SAME, **_KNOWN, **_LAST}),
    Command("facts search harbour", {**_FILTERS, "--limit": ["1"], **_LISTED}, {**_SAME, **_KNOWN, **_FIRST}),
    Command("facts pin FACT", {"--off": [], "--json": []}),
    Command("people list", _LISTED, _SAME),
    Command("facts retract FACT", {"--reason": ["never"], "--json": []}),
    Command("facts review", {"--accept": [], "--json": []}),
    Command(
        "remember Bo sails to Oslo",
        {
            "--slot": ["sails=Oslo"],
            "--subject": ["Bo"],
            "--category": ["event"],
            "--from": ["2026-01-01"],
            "--importance": ["0.9"],
            "--tag": ["sea"],
            "--project": ["cutter"],
            "--pin": [],
            "--json": [],
        },
    ),
    Command(
        "eval ROOT/squad.json --config ROOT/none.toml",
        {"--questions": ["ROOT/questions.jsonl"], **_OF_DATASET, **_SHOWN, **_EVALUATED},
        _SMALL,
    ),
    Command(
        "eval ROOT/squad.json --compare ROOT/a.toml ROOT/b.toml", {"--relevance": [], "--keep": ["ROOT/here/kept"]}
    ),
    Command(
        "eval --questions ROOT/questions.jsonl --config ROOT/none.toml", {**_OF_DATASET, **_SHOWN, **_EVALUATED}, _SMALL
    ),
    Command(
        "eval ROOT/locomo.json --config ROOT/none.toml", {"--pooled": [], "--unit": ["turn"], "--format": ["beir"]}
    ),
    Command("eval facts ROOT/locomo.json --config ROOT/none.toml", {"--arm": ["chunks"], **_EVALUATED}),
    Command("eval poison --config ROOT/none.toml --limit 1", {"--limit": ["2"], "--json": []}),
    Command("mcp", {**_MCP, "--tool": ["memory_facts"]}),
    Command("mcp install claude-code --yes", {"--remove": [], **_MCP, **_INSTALLED}),
    Command("mcp install claude-code --print", {"--yes": [], "--remove": [], **_MCP, "--json": []}),
    Command("hook install claude-code --yes", {"--remove": [], **_INSTALLED}),
    Command("hook install claude-code --print", {"--yes": [], "--remove": [], "--json": []}),
    Command("hook session-start --timeout 60", {"--budget": ["50"]}, stdin=_CALL),
    Command("hook user-prompt --timeout 60", {"--budget": ["50"], "--min-relevance": ["0.99"]}, _LITTLE, stdin=_CALL),
    Command("hook stop", {"--transcript": ["ROOT/notes/later.md"]}, stdin=_CALL),
    Command("hook pre-compact", {"--transcript": ["ROOT/notes/later.md"]}, stdin=_CALL),
    Command(
        "serve",
        {
            "--host": ["localhost"],
            "--port": ["0"],
            "--tls-cert": ["ROOT/MEMORY.md"],
            "--tls-key": ["ROOT/MEMORY.md"],
            "--behind-proxy": [],
            "--allow-host": ["notes.example"],
            "--oauth": ["https://notes.example"],
            "--read-only": [],
            "--unit": [],
            "--json": [],
        },
    ),
    Command("serve --unit --read-only", {"--json": []}),
    Command("serve --host 0.0.0.0", {"--tls-cert": ["ROOT/MEMORY.md"], "--behind-proxy": []}),
    Command("serve token", {"--agent": ["ann"], "--json": []}),
    Command("watch", {"--unit": [], "--json": []}),
    Command("watch --unit", {"--json": []}),
    Command(
        "sync run ROOT/folder", {"--dry-run": [], "--json": []}, {("--dry-run", "--json"): "the numbers are equal"}
    ),
    Command("sync init ROOT/other --data-dir ROOT/fresh", {"--json": []}),
    Command("sync code", {"--json": []}),
    Command("sync status", {"--json": []}),
    Command("sync conflicts", {"--json": []}),
    Command("sync doctor ROOT/folder", {"--json": []}),
]

KILN = "The kiln is fired to twelve hundred degrees before the glaze goes on."
BOAT = "The boat lies in the harbour of Split until the storm is over."


def _add(memory):
    """Add what the commands of plugins read."""
    texts = ("My name is Ada.", "I live in Lyon.", "I work at the shipyard.", "We decided to paint the boat red.")
    for chat in (CHAT, OTHER_CHAT):
        for number, text in enumerate(texts):
            moment = MOMENT + timedelta(days=5, minutes=number)
            memory.conversations.append(Message("user", text, moment, f"f{number}", meta=chat.meta))
    for number in range(20):
        memory.core.update("user", f"note{number}", "likes the harbour of a small town in the north")
    facts = memory.extension("facts")
    shared = {"subject": "Bo", "category": "event", "slot": "harbour", "tags": ("sea",), "valid_from": MOMENT}
    later = MOMENT + timedelta(days=90)
    others = [{}, {"valid_from": later}, {"subject": "Cy"}, {"category": "config"}, {"tags": ()}, {"slot": "port"}, {}]
    for number, other in enumerate(others):
        fact = facts.remember(f"the harbour has number {number}", **{**shared, "value": str(number), **other})
    facts.keeper.end(fact.id, later, "moved")
    (memory.config.data_dir / "sync").mkdir()
    MemoryKey("00112233445566aa", bytes(range(32))).save(memory.config.data_dir / "sync" / "key")
    FACT[:] = [facts.remember("Ada's harbour has a crane", slot="crane", value="red").id]


def _write(root):
    """Write the files that are arguments of commands."""

    def write(name, value):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(value if isinstance(value, str) else json.dumps(value))

    write("MEMORY.md", "- Ada sails on Sundays.\n- Bo paints boats.\n")
    write("t.jsonl", "")
    for name in ("none", "a", "b"):
        write(
            f"{name}.toml",
            '[memory.embedding]\ntype = "none"\n' + "[memory.chunking]\nmax_tokens = 300\n" * (name == "b"),
        )
    asked = [
        {"id": f"q{n}", "question": text, "answers": []} for n, text in enumerate(["How hot?", "Where does it lie?"])
    ]
    paragraphs = [{"context": text, "qas": [question]} for text, question in zip((KILN, BOAT), asked, strict=True)]
    write(
        "squad.json",
        {"data": [{"title": title, "paragraphs": [item]} for title, item in zip("ab", paragraphs, strict=True)]},
    )
    write(
        "questions.jsonl",
        "".join(f'{{"question": "the harbour of note{n}", "path": "notes/note{n}.md"}}\n' for n in (1, 4)),
    )
    said = [{"speaker": "AB"[n % 2], "dia_id": f"D1:{n}", "text": text} for n, text in enumerate((KILN, BOAT), start=1)]
    talk = {"speaker_a": "A", "speaker_b": "B", "session_1": said, "session_1_date_time": "1:56 pm on 8 May, 2023"}
    asked = [
        {"question": text, "evidence": [f"D1:{n}"], "category": 4} for n, text in ((1, "the kiln"), (2, "the boat"))
    ]
    write(
        "locomo.json",
        [{"sample_id": name, "conversation": talk, "qa": asked} for name in ("conv-1", "conv-2", "conv-3")],
    )
    write("model/model.onnx", "a graph")
    write("model/tokenizer.json", "{}")
    write("model/1_Pooling/config.json", {"pooling_mode_mean_tokens": True})
    write("model/config.json", {"hidden_size": 16, "max_position_embeddings": 64})


#: Options that these tests do not try, and why.
ELSEWHERE = {
    "facts review --refuse": "the other side of --accept",
    "hook session-start --timeout": "ends only what is slow",
    "hook user-prompt --timeout": "the same",
    "compact --chat": "is required",
    "sync run --missing": "needs a journal that was lost; the same",
    "sync run --again": "runs until it is interrupted; klaw-sync has its own tests",
    "sync remove --json": "needs another machine; klaw-sync has its own tests",
    "sync remove --new-key": "needs another machine; klaw-sync has its own tests",
    "sync join --json": "needs the code of another machine; klaw-sync has its own tests",
    "models try --chunks": "needs a model; klaw-models has its own tests",
    "eval --compare": "each pair of configurations is another command here",
}


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    root = tmp_path_factory.mktemp("options")
    _write(root)
    yield from make_template(root, _add)


@pytest.fixture(autouse=True)
def _environment(template, monkeypatch):
    """Let commands that serve until they are stopped return, and print what they would serve."""
    prepare(template.parent, monkeypatch)
    monkeypatch.setattr("klaw_serve.run.serve", _serve)
    monkeypatch.setattr("klaw_mcp.stdio.run", _offer)
    monkeypatch.setattr("klaw_watch.watcher.Watcher", Watching)
    monkeypatch.setattr("klaw_watch.command.Flag", lambda: SimpleNamespace(wait=lambda: None, set=lambda: None))
    monkeypatch.setattr("signal.signal", lambda *_: None)
    starting = SimpleNamespace(DEVNULL=None, Popen=lambda command, **_: click.echo(command[3:]))
    monkeypatch.setattr("klaw_sessions.command.subprocess", starting)


def _serve(memory, listening, limits, *, read_only, on_ready):
    with memory:
        click.echo(f"{listening} {limits} {read_only}")
        on_ready("http://127.0.0.1:1", "token")


def _offer(open_memory, make_policy):
    from klaw_mcp.tools import toolbox

    with open_memory() as memory:
        policy = make_policy()
        click.echo(f"{sorted(toolbox(memory, policy))} {policy.collections}")


class Watching:
    """A watcher of files that never change."""

    state = SimpleNamespace(scanning="", watched=1, problem="")

    def __init__(self, _memory, on_run):
        self.on_run = on_run

    def start(self):
        self.on_run(BackgroundRun(("start",), IndexReport(added=1), None))

    def wait_ready(self):
        pass

    def stop(self, _seconds):
        return True


def _alone():
    return [(command, option) for command in COMMANDS for option in command.others]


def test_every_option_alone_has_an_effect_or_is_refused(template, cases):
    assert problems(_alone(), template, cases, ALONE) == []


def test_every_option_next_to_another_has_an_effect_or_is_refused(template, cases):
    assert problems([pair for command in COMMANDS for pair in command.pairs()], template, cases, SAMPLE) == []


def test_an_option_of_a_group_is_refused_in_front_of_a_subcommand(template):
    """It had no effect: the subcommand has options of its own."""
    values = {option: value for command in COMMANDS for option, value in command.others.items() if option != "--json"}
    groups = [(name, group) for name, group in commands(of_plugins()) if isinstance(group, click.Group)]
    assert {name for name, _ in groups} >= {"mcp", "serve"}
    for name, group in groups:
        own = [option for parameter in group.params if (option := parameter.opts[-1]) in values]
        for option, subcommand in product(own, group.commands):
            given = [part.replace("ROOT", str(template.parent)) for part in values[option]]
            done = CliRunner().invoke(cli, [name, option, *given, subcommand], prog_name="klaw")
            assert f"{option} is an option of `klaw {name}`, not of `klaw {name} {subcommand}`" in done.stderr


def test_every_option_of_every_command_of_a_plugin_is_listed():
    assert [option for option in not_listed(COMMANDS, of_plugins()) if option not in ELSEWHERE] == []
