"""``klaw hook install``: add the hooks to an agent's settings."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from attrs import frozen

from klaw_core import Config, ConfigError
from klaw_core.cli.kit import (
    Settings,
    common_options,
    confirm_client_file,
    data,
    notify,
    own_command,
    pass_settings,
    print_json,
    read_client_file,
    write_client_file,
)
from klaw_tools import jsonc

_BOM = "\ufeff"
# Recognises a hook of Klaw, which is replaced or removed, even if the user has written it.
_OURS = re.compile(r"\bklaw\w*\b.*\bhook (?:session-start|user-prompt|pre-compact|stop)\b", re.DOTALL)


#: The commands of hooks by event, in the words of the agents.
EVENTS = {"SessionStart": "session-start", "UserPromptSubmit": "user-prompt", "Stop": "stop"}
_SECONDS = 10


@frozen
class HookClient:
    """An agent with hooks, and its settings files: for all projects (in its home, or named by a variable), and for one.

    ``next_step`` is what the user must do before the hooks run, ``events`` are the commands by event.
    """

    home: str
    variable: str
    file: str
    next_step: str
    events: Mapping[str, str] = EVENTS

    @property
    def user(self) -> Path:
        """The settings file for all projects."""
        home = os.environ.get(self.variable)
        return (Path(home) if home else Path.home() / self.home) / self.file

    @property
    def project(self) -> Path:
        """The settings file for the project in the current directory."""
        return Path.cwd() / self.home / self.file


CLIENTS = {
    "claude-code": HookClient(
        ".claude",
        "CLAUDE_CONFIG_DIR",
        "settings.json",
        "restart claude-code to use the hooks",
        {**EVENTS, "PreCompact": "pre-compact"},
    ),
    "codex": HookClient(
        ".codex", "CODEX_HOME", "hooks.json", "restart codex, then trust the hooks with its command /hooks"
    ),
}


@click.command("install", short_help="Write an agent's settings.")
@click.argument("client", type=click.Choice(tuple(CLIENTS)))
@click.option(
    "--scope",
    type=click.Choice(("user", "project")),
    default="user",
    show_default=True,
    help="For all your projects, or for this one.",
)
@click.option("--remove", is_flag=True, help="Remove Klaw's hooks instead.")
@click.option("--print", "only_print", is_flag=True, help="Print the hooks instead of writing them.")
@click.option("-y", "--yes", is_flag=True, help="Write without confirmation.")
@common_options
@pass_settings
def install(settings: Settings, *, client: str, scope: str, remove: bool, only_print: bool, yes: bool) -> None:
    """Add the hooks to the settings of CLIENT, with absolute paths and this data directory.

    The command shows the change and asks for confirmation. It keeps the other settings, and a backup of the file.
    """
    if only_print and yes:
        raise click.UsageError("--print writes nothing, so leave --yes out")
    chosen = CLIENTS[client]
    file = chosen.user if scope == "user" else chosen.project
    hooks = {} if remove else _hooks(settings, chosen.events)
    if only_print:
        _print(settings, file, hooks)
        return
    before = read_client_file(file)
    text = with_hooks(file, before, hooks)
    if not yes and text != before:
        confirm_client_file(file, "removed: Klaw's hooks" if remove else _shown(hooks))
    kept = None if text == before else write_client_file(file, text, before)
    if settings.json:
        print_json({"file": str(file), "backup": None if kept is None else str(kept), "hooks": hooks})
        return
    if text == before:
        data().line(f"unchanged: {file} {'does not have' if remove else 'already has'} Klaw's hooks")
        return
    data().line(f"written: {file}" + (f" (copy of the old file: {kept})" if kept else ""))
    if not remove:
        _advise(settings, settings.load_config(), client)


def _print(settings: Settings, file: Path, hooks: Mapping[str, Any]) -> None:
    """Print the hooks alone: other settings in the file are often secret, and it may be unreadable."""
    if settings.json:
        print_json({"file": str(file), "hooks": hooks})
    else:
        data().block(_shown(hooks) if hooks else "removed: Klaw's hooks")


def _shown(hooks: Mapping[str, Any]) -> str:
    return json.dumps({"hooks": hooks}, indent=2, ensure_ascii=False)


def _hooks(settings: Settings, events: Mapping[str, str]) -> dict[str, list[dict[str, Any]]]:
    """Return the hooks by event. Their exit status is always 0, because agents treat 2 as a refusal."""
    return {
        event: [{"hooks": [{"type": "command", "command": _shell(settings, name), "timeout": _SECONDS}]}]
        for event, name in events.items()
    }


def _shell(settings: Settings, name: str) -> str:
    return f"{shlex.join(own_command(settings, 'hook', name))} || true"


def with_hooks(file: Path, before: str, hooks: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return the text of a settings file with these hooks of Klaw, and no others of Klaw; all else stays as it is.

    What a person has changed in a hook of Klaw, apart from its command, stays. Raise ConfigError if the text has
    another form.
    """
    bare = before.removeprefix(_BOM)
    try:
        after = _changed(bare, hooks)
        _require_same_others(bare, after)
    except (ValueError, AttributeError, TypeError, KeyError) as error:
        hint = "add the output of `klaw hook install --print` by hand" if hooks else "remove Klaw's hooks by hand"
        raise ConfigError([f"{file} is not JSON of the expected form: {error}"], hint=hint) from error
    return before[: len(before) - len(bare)] + after


def _changed(text: str, hooks: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    own = _own(jsonc.parse(text))
    for event, groups in hooks.items():
        wanted = [hook for group in groups for hook in group["hooks"]]
        there = own.pop(event, [])
        for (path, old), hook in zip(there, wanted, strict=False):
            text = jsonc.with_value(text, path, {**hook, **old, "command": hook["command"]})
        own[event] = there[len(wanted) :]
        for group in groups[len(there) :]:
            text = jsonc.with_element(text, ("hooks", event), group)
    for _, places in reversed(own.items()):
        for path, _ in reversed(places):
            text = _without(text, path)
    return text


def _own(settings: Any) -> dict[str, list[tuple[tuple[str | int, ...], Mapping[str, Any]]]]:
    """Return the places and values of Klaw's hooks by event."""
    return {
        event: [
            (("hooks", event, at, "hooks", number), hook)
            for at, group in enumerate(groups)
            for number, hook in enumerate(group["hooks"])
            if _OURS.search(str(hook.get("command", "")))
        ]
        for event, groups in settings.get("hooks", {}).items()
    }


def _without(text: str, path: Sequence[str | int]) -> str:
    """Return a text without a hook, and without its group if that has no others."""
    *group, _, _number = path
    value = jsonc.parse(text)
    for key in group:
        value = value[key]
    return jsonc.without(text, path if len(value["hooks"]) > 1 else group)


def _require_same_others(before: str, after: str) -> None:
    """Raise ValueError if a change concerns more than Klaw's hooks."""
    if _others(jsonc.parse(after)) != _others(jsonc.parse(before)):
        raise ValueError("'hooks' cannot be changed without a change of another setting")


def _others(settings: Any) -> str:
    """Return the text of settings without Klaw's hooks, and without what is empty on the way to them."""
    table = {
        event: kept
        for event, groups in settings.get("hooks", {}).items()
        if (kept := [rest for group in groups if (rest := _without_ours(group))])
    }
    # As a text, because a number may be none (NaN), which equals nothing.
    return repr({**settings, "hooks": table})


def _without_ours(group: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a group of hooks without Klaw's, or None if it has no others."""
    kept = [hook for hook in group["hooks"] if not _OURS.search(str(hook.get("command", "")))]
    if not kept and group["hooks"]:
        return None
    return {**group, "hooks": kept}


def _advise(settings: Settings, config: Config, client: str) -> None:
    """Print the next steps, and how to index the agent's transcripts if they are not indexed."""
    notify(settings, CLIENTS[client].next_step)
    if not any(source.type == client for source in config.sources):
        place = f"memory.sources[{len(config.sources)}].type"
        notify(settings, f"to index its transcripts as well: klaw config set '{place}' {client}")
