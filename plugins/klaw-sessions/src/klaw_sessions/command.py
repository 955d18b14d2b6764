"""``klaw hook``: the hooks of coding agents: a session starts, a prompt, an answer ended, the context is compacted.

A hook never blocks the agent: its exit status is always 0, errors are written to ``hook.log``, and it has a timeout of
a few seconds.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from klaw_core.cli.kit import NotServedError, NumberRange, Settings, common_options, echo, pass_settings
from klaw_sessions.install import install

if TYPE_CHECKING:
    from klaw_sessions.recall import HookCall, Recall, ShownSources

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_INDEX_SECONDS = 600.0

_timeout = click.option(
    "--timeout",
    type=NumberRange(0.1, 60),
    default=3.0,
    show_default=True,
    metavar="SECONDS",
    help="Print nothing if it takes longer.",
)


def _budget_of(tokens: int) -> Callable[[Decorated], Decorated]:
    return click.option(
        "--budget",
        type=click.IntRange(50, 20_000),
        default=tokens,
        show_default=True,
        metavar="TOKENS",
        help="Print at most this many tokens.",
    )


@click.group("hook", short_help="Recall for coding agents, without being asked.")
@common_options
@pass_settings
def command(_settings: Settings) -> None:
    """Pass relevant memory to a coding agent without a tool call. The agent runs these commands as hooks.

    `klaw hook install claude-code` adds the hooks to the agent's settings.
    """


command.add_command(install)


@command.command("session-start", short_help="Print the context for a new session.")
@_budget_of(1000)
@_timeout
@common_options
@pass_settings
def session_start(settings: Settings, *, budget: int, timeout: float) -> None:
    """Print core memory and the texts of extensions for every prompt, as output of the hook SessionStart.

    The agent's message is read from standard input.
    """
    from klaw_sessions.recall import recall_for_session

    _answer(
        settings, "SessionStart", timeout, lambda recall, shown, call: recall_for_session(recall, shown, call, budget)
    )


@command.command("user-prompt", short_help="Print the context for a prompt.")
@_budget_of(500)
@click.option(
    "--min-relevance",
    type=NumberRange(0, 1),
    default=0.3,
    show_default=True,
    help="Leave out chunks with a lower relevance.",
)
@_timeout
@common_options
@pass_settings
def user_prompt(settings: Settings, *, budget: int, min_relevance: float, timeout: float) -> None:
    """Print the chunks and facts that are relevant to a prompt, as output of the hook UserPromptSubmit.

    Items that the session was shown before, and messages of the session itself, are left out. The agent's message is
    read from standard input.
    """
    from klaw_sessions.recall import recall_for_prompt

    _answer(
        settings,
        "UserPromptSubmit",
        timeout,
        lambda recall, shown, call: recall_for_prompt(recall, shown, call, budget, min_relevance),
    )


_transcript = click.option("--transcript", type=click.Path(), metavar="FILE", help="Index this transcript, and wait.")


@command.command("stop", short_help="Index the session's transcript.")
@_transcript
@common_options
@pass_settings
def stop(settings: Settings, *, transcript: str | None) -> None:
    """Index the session's new messages in a separate process, so that the agent does not wait. Prints nothing.

    Only transcripts of a configured source are indexed. The agent's message is read from standard input.
    """
    _index_session(settings, "Stop", transcript)


@command.command("pre-compact", short_help="Index the transcript before it is compacted.")
@_transcript
@common_options
@pass_settings
def pre_compact(settings: Settings, *, transcript: str | None) -> None:
    """Index the session's new messages, as `klaw hook stop`, before the agent replaces them with a summary.

    The session is shown again what it was shown before: the hook of its start deletes the record of that.
    """
    _index_session(settings, "PreCompact", transcript)


def _index_session(settings: Settings, event: str, transcript: str | None) -> None:
    if transcript is not None:
        _run(settings, event, _INDEX_SECONDS, lambda: _index(settings, transcript))
    else:
        _run(settings, event, 3.0, _start_indexing)


def _start_indexing() -> None:
    """Start this command again in the background, for the transcript that the agent names."""
    call = _read_call()
    if call.transcript:
        subprocess.Popen(  # noqa: S603  # our own program
            [sys.executable, "-m", "klaw_core", *sys.argv[1:], "--transcript", call.transcript],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def _index(settings: Settings, transcript: str) -> None:
    from klaw_core import NotFoundError

    with settings.open_memory() as memory:
        try:
            memory.index(paths=[transcript])
        except NotFoundError:  # the transcripts of this agent are not a configured source
            return


def _read_call() -> HookCall:
    from klaw_sessions.recall import HookCall

    return HookCall.parse(sys.stdin.read())


def _answer(
    settings: Settings, event: str, timeout: float, recall: Callable[[Recall, ShownSources, HookCall], str]
) -> None:
    """Print the agent's answer, if it is not empty."""
    from klaw_sessions.recall import hook_output

    output: list[str] = []
    if _run(settings, event, timeout, lambda: output.append(_recalled(settings, recall))) and output[0]:
        echo(json.dumps(hook_output(event, output[0]), ensure_ascii=False))


def _recalled(settings: Settings, recall: Callable[[Recall, ShownSources, HookCall], str]) -> str:
    """Recall from a server that has the memory open; if there is none or it fails, from the memory itself."""
    from klaw_sessions.recall import ShownSources, recall_from, recall_from_server

    call = _read_call()
    shown = ShownSources.of(settings.load_config().cache_dir)
    if (server := settings.find_server()) is not None:
        with suppress(NotServedError):
            return recall(partial(recall_from_server, server), shown, call)
    with settings.open_memory() as memory:
        return recall(partial(recall_from, memory), shown, call)


def _run(settings: Settings, event: str, timeout: float, work: Callable[[], None]) -> bool:
    """Do the work within the timeout, and return whether it succeeded. Record the reason if it failed."""
    settings.quiet = True
    problems: list[str] = []

    def attempt() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  # no error may stop the agent
            problems.append(str(error) or type(error).__name__)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(timeout)
    if thread.is_alive():
        problems.append(f"no result within {timeout:g} s")
    if problems:
        _record_failure(settings, event, problems[0])
    return not problems


def _record_failure(settings: Settings, event: str, problem: str) -> None:
    """Record why a hook failed: in the configured data directory, or in the given one if the configuration fails."""
    from klaw_core import KlawError
    from klaw_sessions.failures import FailureLog

    try:
        data_dir: Path | None = settings.load_config().data_dir
    except KlawError:
        data_dir = settings.data_dir
    if data_dir is not None:
        FailureLog.of(data_dir).add(event, problem)
