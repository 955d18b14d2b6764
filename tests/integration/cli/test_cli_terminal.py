"""Nothing that a note, a name, a message or an argument holds can drive the terminal, whatever the command and form."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

WORDS_ONLY = '[memory.embedding]\ntype = "none"\n\n[[memory.retrieval]]\ntype = "fts5"\n'
ESC, CSI, BEL = "\x1b", "\x9b", "\x07"
#: What would drive a terminal, or change what stands where.
HOSTILE = (
    f"{ESC}]0;title{BEL}{ESC}[2J{ESC}]8;;http://evil{ESC}\\link{ESC}]8;;{ESC}\\{CSI}31m\x85\x7f\x08\x0b\x0c\r"
    "\u202e\u2066\u200e\u061c\u2028\u2029\ufff9"
)
#: What rich makes: colours, and links to files.
STYLE = re.compile(
    r"\x1b\[[0-9;]*m|\x1b\]8;id=\d+;file://[^\x1b\x07]*\x1b\\|\x1b\]8;;\x1b\\|\x1b\[\?25[lh]|\x1b\[[012]?[KA]"
)
BAD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb]")


def on_a_terminal(arguments, environment, typed=b""):
    """Run klaw with a terminal on all three streams; return what reached it."""
    mine, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "klaw_core", *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    os.write(mine, typed)
    data = b""
    try:
        while part := os.read(mine, 65536):
            data += part
    except OSError:  # the other end is closed
        pass
    os.close(mine)
    process.wait(300)
    return data.decode()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A directory of notes, a chat and memories that are all hostile, indexed; return its environment."""
    root = tmp_path_factory.mktemp("hostile")
    notes = root / "notes"
    notes.mkdir()
    (notes / f"na{ESC}[2J\nme\x9b31m.md").write_text(
        f"---\ntitle: a{CSI}b\n---\n# Head {HOSTILE}\n\nharbour {HOSTILE} =cmd|' /C calc'!A0\n"
    )
    (notes / "formula.md").write_text('=HYPERLINK("http://evil","harbour")\n')
    (notes / "quote.md").write_text("harbour\r# A heading\r\n- item\n")
    environment = {
        **os.environ,
        "KLAW_DATA_DIR": str(root / "data"),
        "KLAW_CONFIG": os.devnull,
        "HOME": str(root),
        "TERM": "xterm-256color",
        "COLUMNS": "200",
    }
    environment.pop("NO_COLOR", None)
    chat = root / "data" / "conversations" / "telegram_1"
    chat.mkdir(parents=True)
    message = {"id": f"m{ESC}[2J", "ts": "2026-02-24T12:00:00Z", "role": "user", "content": f"harbour {HOSTILE}"}
    (chat / "2026-02-24.jsonl").write_text(json.dumps(message) + "\nbroken \x1b[2J line\n")

    def run(*arguments):
        subprocess.run(
            [sys.executable, "-m", "klaw_core", *arguments], env=environment, capture_output=True, check=True
        )

    (root / "config.toml").write_text(WORDS_ONLY)
    environment["KLAW_CONFIG"] = str(root / "config.toml")
    run("index", str(notes))
    run("save", f"harbour {HOSTILE}")
    return environment, notes


COMMANDS = [
    *(["search", "harbour", *more] for more in ([], ["--full"], ["--explain"], ["--json"])),
    *(["search", "harbour", "--format", form] for form in ("text", "json", "md", "csv", "files")),
    *(["list", "--format", form] for form in ("text", "json", "md", "csv", "files")),
    *(["logs", "--chat", "telegram_1", *more] for more in ([], ["--json"])),
    *([command, *more] for command in ("status", "doctor", "recent", "index") for more in ([], ["--json"])),
    ["export", "-"],
    ["get", HOSTILE.replace("\0", "")],
    ["search", "harbour", f"--{ESC}[2J"],
    [f"no-such-{ESC}]0;x{BEL}"],
    ["search", f"{ESC}[2J harbour", "--source", HOSTILE],
    ["config", "get", f"memory.{ESC}[2J"],
    ["forget", HOSTILE],
    ["--debug", "get", HOSTILE],
]


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    "arguments", COMMANDS, ids=lambda words: " ".join(words).encode("unicode_escape").decode()[:40]
)
def test_no_control_characters_reach_the_terminal(hostile, arguments):
    environment, _ = hostile
    shown = on_a_terminal(arguments, environment)
    assert shown.strip(), "there was something to show"
    left = STYLE.sub("", shown.replace("\r\n", "\n"))
    if arguments[0] == "index":
        left = left.replace("\r", "")  # the bar begins its line again
    assert BAD.findall(left) == [], left


def test_forget_shows_a_note_without_its_control_characters(hostile):
    environment, notes = hostile
    (path,) = (path for path in notes.iterdir() if path.name.startswith("na"))
    shown = on_a_terminal(["get", str(path)], environment)
    assert "harbour" in shown
    assert BAD.findall(STYLE.sub("", shown.replace("\r\n", "\n"))) == []
    asked = on_a_terminal(["forget", str(path)], environment, b"n\n")
    assert "Forget" in asked or "nothing is indexed" in asked
    assert BAD.findall(STYLE.sub("", asked.replace("\r\n", "\n"))) == []


def piped(arguments, environment):
    done = subprocess.run(
        [sys.executable, "-m", "klaw_core", *arguments], env=environment, capture_output=True, check=False
    )
    return done.stdout.decode()


@pytest.mark.parametrize("form", ["text", "md", "files"])
def test_no_control_characters_reach_a_pipe(hostile, form):
    """A reader of the pipe may show it on a terminal, or to a model. CSV keeps the cells as they are."""
    environment, _ = hostile
    for more in (["--full"], ["--explain"], ["--full", "--explain"]):
        text = piped(["search", "harbour", "--format", form, *more], environment)
        assert "harbour" in text or form == "files"
        assert BAD.findall(text) == [], more


@pytest.mark.needs("klaw-conversations")
def test_json_escapes_control_characters_of_a_text(hostile):
    environment, _ = hostile
    for arguments in (["search", "harbour", "--json"], ["logs", "--chat", "telegram_1", "--json"]):
        text = piped(arguments, environment)
        assert BAD.findall(text) == []
        records = json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines()]
        assert any(CSI in record["content"] and "\u202e" in record["content"] for record in records)


def test_csv_contains_no_formula(hostile):
    import csv

    environment, _ = hostile
    for command in (["search", "harbour"], ["list"]):
        rows = list(csv.reader(piped([*command, "--format", "csv"], environment).splitlines()))
        assert len(rows) > 1
        assert not [cell for row in rows for cell in row if cell[:1] in {"=", "+", "@"} or cell.startswith("-h")]
    text = piped(["search", "harbour", "--format", "csv"], environment)
    assert "'=HYPERLINK" in text


def test_files_have_one_line_each_and_markdown_quotes_every_line(hostile):
    environment, _ = hostile
    lines = piped(["search", "harbour", "--format", "files"], environment).splitlines()
    assert lines
    assert all(re.match(r"(no.*/|saved/|conversations/)", line) for line in lines), lines
    text = piped(["search", "heading harbour item", "--format", "md", "--full"], environment)
    assert "> # A heading" in text
    assert "\r" not in text


def test_every_module_prints_through_the_cleaned_streams():
    """No command writes past them: only these rooms touch a stream themselves."""
    rooms = {
        "client_files.py",
        "streams.py",
        "startup.py",
        "output.py",
        "group.py",
        "export.py",
        "progress.py",
        "forget.py",
        "warm.py",
    }
    package = Path(__file__).parents[3] / "klaw_core" / "cli"
    pattern = re.compile(r"sys\.(__)?(stdout|stderr)|\bprint\(|click\.(secho|echo|prompt|confirm)|os\.write")
    found = {path.name for path in package.glob("*.py") if pattern.search(path.read_text())}
    assert found <= rooms
