"""The text of a systemd unit that runs a command of Klaw for a user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def systemd_unit(description: str, command: Sequence[str], **settings: object) -> str:
    """Return the text of the unit. It starts a crashed command again; ``settings`` are others of its service."""
    service: Mapping[str, object] = {
        "ExecStart": " ".join(map(_quoted, command)),
        "Restart": "on-failure",
        "RestartSec": 5,
        **settings,
    }
    lines = "".join(f"{name}={value}\n" for name, value in service.items())
    return f"[Unit]\nDescription={_escaped(description)}\n\n[Service]\n{lines}\n[Install]\nWantedBy=default.target\n"


def _quoted(word: str) -> str:
    """Return a word in systemd's syntax, with quotes if necessary and doubled special characters."""
    word = _escaped(word).replace("$", "$$")
    if word and not any(character.isspace() or character in "\"'\\;" for character in word):
        return word
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _escaped(text: str) -> str:
    return text.replace("%", "%%").replace("\n", " ")
