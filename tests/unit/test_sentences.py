"""Sentences that a reader has to read twice do not come back into pages, help texts and messages."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests" / "house"))
from sentences import KINDS, LIMITS, found, sentences, shown  # noqa: E402  # beside the other programs of the house


def test_no_kind_has_grown():
    limits = json.loads(LIMITS.read_text("utf-8"))
    assert limits.keys() == KINDS.keys()
    grown = {kind: places for kind, places in found().items() if len(places) > limits[kind]}
    assert grown == {}, "shorten the new ones; python tests/house/sentences.py --list shows all"


LONG = " ".join(["word"] * 36)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("long", f"{LONG}."),
        ("semicolons", "One; two; three; four."),
        ("which", "A chunk which has a key, which is a number."),
        ("what", "What the model did not answer waits for the next run."),
        ("old", "It stands beside the file."),
    ],
)
def test_each_kind_is_recognised_and_plain_sentences_are_not(kind, text):
    assert KINDS[kind](text)
    assert not KINDS[kind]("Klaw reads the file. What is it?")


def test_a_page_is_read_without_its_code_tables_and_addresses():
    page = "# Title\n\nOne `a; b; c; d` [two](http://x/y). Three:\n\n- four\n- five\n\n"
    page += f"```sh\n{LONG}\n```\n\n| {LONG} |\n|---|\n"
    assert list(sentences(page)) == ["One Code two.", "Three:", "four", "five"]


def test_of_a_module_help_texts_and_messages_are_read():
    source = '"""Module text here, not shown."""\n@click.command()\ndef a():\n    """Help text for all people."""\n'
    source += '    print("a message to show here.")\n'
    assert set(shown(source)) == {"Help text for all people.", "a message to show here."}
