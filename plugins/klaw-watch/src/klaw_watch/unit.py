"""The systemd unit that runs a watcher for a user."""

from __future__ import annotations

from collections.abc import Sequence


def unit(command: Sequence[str], data_dir: str) -> str:
    """Return the text of the unit. It restarts a crashed watcher, and a reload makes it check everything."""
    return f"""[Unit]
Description=Klaw keeps its index up to date ({_escaped(data_dir)})

[Service]
ExecStart={" ".join(map(_quoted, command))}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=5
TimeoutStopSec=5
Nice=10

[Install]
WantedBy=default.target
"""


def _quoted(word: str) -> str:
    """Return a word in systemd's syntax, with quotes if necessary and doubled special characters."""
    word = _escaped(word).replace("$", "$$")
    if word and not any(character.isspace() or character in "\"'\\;" for character in word):
        return word
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _escaped(text: str) -> str:
    return text.replace("%", "%%").replace("\n", " ")
