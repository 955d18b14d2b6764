"""``klaw hook``: what coding agents run at the start of a session, with each prompt, and when they have answered.

Whatever happens, an agent is not held up: the exit status is 0, what fails is written to ``hook.log``, and after some
seconds nothing is waited for any more.
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

from klaw_core.cli.kit import NotServedError, Settings, common_options, echo, pass_settings
from klaw_sessions.install import install

if TYPE_CHECKING:
    from klaw_sessions.recall import HookCall, Recall, Shown

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_INDEX_SECONDS = 600.0

_timeout = click.option(
    "--timeout",
    type=click.FloatRange(0.1, 60),
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


@click.group("hook", short_help="Give memory to coding agents without a tool call.")
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
    """Print core memory, and what extensions always add to a prompt, as output of the hook SessionStart.

    The agent's message is read from standard input.
    """
    from klaw_sessions.recall import at_start

    _answer(settings, "SessionStart", timeout, lambda recall, shown, call: at_start(recall, shown, call, budget))


@command.command("user-prompt", short_help="Print the context for a prompt.")
@_budget_of(500)
@click.option(
    "--min-relevance",
    type=click.FloatRange(0, 1),
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
    from klaw_sessions.recall import for_prompt

    _answer(
        settings,
        "UserPromptSubmit",
        timeout,
        lambda recall, shown, call: for_prompt(recall, shown, call, budget, min_relevance),
    )


@command.command("stop", short_help="Index the session's transcript.")
@click.option("--transcript", type=click.Path(), metavar="FILE", help="Index this transcript, and wait.")
@common_options
@pass_settings
def stop(settings: Settings, *, transcript: str | None) -> None:
    """Index the session's new messages in a separate process, so that the agent does not wait. Prints nothing.

    Only transcripts of a configured source are indexed. The agent's message is read from standard input.
    """
    if transcript is not None:
        _run(settings, "Stop", _INDEX_SECONDS, lambda: _index(settings, transcript))
    else:
        _run(settings, "Stop", 3.0, _start_indexing)


def _start_indexing() -> None:
    """Start this very command again, apart from the agent, for the transcript that it names."""
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
        except NotFoundError:  # of an agent whose transcripts are not to be indexed
            return


def _read_call() -> HookCall:
    from klaw_sessions.recall import HookCall

    return HookCall.parse(sys.stdin.read())


def _answer(settings: Settings, event: str, timeout: float, recall: Callable[[Recall, Shown, HookCall], str]) -> None:
    """Print the agent's answer, if there is anything to say."""
    from klaw_sessions.recall import as_answer

    said: list[str] = []
    if _run(settings, event, timeout, lambda: said.append(_recalled(settings, recall))) and said[0]:
        echo(json.dumps(as_answer(event, said[0]), ensure_ascii=False))


def _recalled(settings: Settings, recall: Callable[[Recall, Shown, HookCall], str]) -> str:
    """Ask a server that has the memory open, whose model is loaded; without one, or where it fails, the memory here."""
    from klaw_sessions.recall import Shown, recall_from, recall_from_server

    call = _read_call()
    shown = Shown.of(settings.load_config().cache_dir)
    if (server := settings.find_server()) is not None:
        with suppress(NotServedError):
            return recall(partial(recall_from_server, server), shown, call)
    with settings.open_memory() as memory:
        return recall(partial(recall_from, memory), shown, call)


def _run(settings: Settings, event: str, timeout: float, work: Callable[[], None]) -> bool:
    """Do the work, for at most so many seconds; return whether it is done. What kept it from that is written down."""
    settings.quiet = True
    problems: list[str] = []

    def attempt() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  # whatever it is, the agent goes on
            problems.append(str(error) or type(error).__name__)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(timeout)
    if thread.is_alive():
        problems.append(f"no result within {timeout:g} s")
    if problems:
        _note(settings, event, problems[0])
    return not problems


def _note(settings: Settings, event: str, problem: str) -> None:
    """Write down why a hook failed. Without a configuration that can be read there is only the place that is given."""
    from klaw_core import KlawError
    from klaw_sessions.failures import FailureLog

    try:
        place: Path | None = settings.load_config().data_dir
    except KlawError:
        place = settings.data_dir
    if place is not None:
        FailureLog.of(place).add(event, problem)
