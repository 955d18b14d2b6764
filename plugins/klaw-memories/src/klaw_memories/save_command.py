"""``klaw save``: save a text as a memory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime
from shlex import quote
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

import click

from klaw_core.cli.kit import FreeText, Settings, common_options, pass_settings, when

if TYPE_CHECKING:
    from klaw_core import Memory
    from klaw_memories.saved import Saved


@click.command("save", short_help="Save a text as a memory.")
@click.argument("text", nargs=-1, type=FreeText())
@click.option("--source", metavar="LABEL", help="Source shown in results.  [default: manual]")
@click.option("--chat", "chat_id", metavar="NAME", help="Chat it comes from: CHANNEL_ID, e.g. telegram_123456.")
@click.option("--date", "created_at", metavar="WHEN", callback=when, help="When it was said. [default: now]")
@click.option(
    "--tag", "tags", multiple=True, metavar="NAME", help="A tag, for `klaw search --where tags=NAME`; repeatable."
)
@click.option("--supersedes", metavar="PATH", help="Replace this saved memory, which stays in `klaw history`.")
@click.option("--edit", is_flag=True, help="Write TEXT, or change the text of --supersedes, in an editor.")
@common_options
@pass_settings
def command(
    settings: Settings,
    *,
    text: tuple[str, ...],
    source: str | None,
    chat_id: str | None,
    created_at: datetime | None,
    tags: tuple[str, ...],
    supersedes: str | None,
    edit: bool,
) -> None:
    """Save TEXT as a memory and print its path; use - to read TEXT from standard input.

    A new version (--supersedes) keeps the source, the chat and the tags of the old one unless others are given. The
    editor is that of VISUAL or EDITOR.
    """
    if not text and not edit:
        raise click.UsageError("a text is missing; --edit opens an editor")
    if chat_id is not None:
        from klaw_core import Chat

        Chat.parse(chat_id)  # a name that no other command takes
    words = sys.stdin.read() if text == ("-",) else " ".join(text)
    with settings.open_memory() as memory:
        old = None if supersedes is None else _replaceable(memory, supersedes)  # before a person writes a text
        if edit:
            edited = _edited(words or ("" if old is None else old.text))
            if edited is None:
                _tell_unchanged(settings)
                return
            words = edited
        if old is not None:
            source, chat_id, tags = source or old.source, chat_id or old.chat_id, tags or old.tags
            supersedes = old.id
        with _kept(words) if edit else nullcontext():
            saved = memory.save(
                words,
                source=source or "manual",
                chat_id=chat_id,
                created_at=created_at,
                tags=tags,
                supersedes=supersedes,
            )
    from klaw_core import to_json
    from klaw_core.cli.kit import echo, notify, print_json

    if settings.json:
        print_json(to_json(saved))
    else:
        echo(saved.path)
    if saved.notice:
        notify(settings, saved.notice)


def _replaceable(memory: Memory, name: str) -> Saved:
    from klaw_memories.saved_extension import SavedExtension

    return memory.extension(SavedExtension).replaceable(name)


@contextmanager
def _kept(text: str) -> Iterator[None]:
    """Keep in a private file what a person wrote in an editor if the block fails, and name the file in the error."""
    from klaw_core import KlawError

    try:
        yield
    except KlawError as error:
        try:
            with NamedTemporaryFile("w", encoding="utf-8", prefix="klaw-save-", suffix=".md", delete=False) as file:
                file.write(text.encode("utf-8", "replace").decode())
        except OSError:  # the disk is full, perhaps
            click.echo(text, err=True)
            raise error from None
        where = f"your text is in {file.name}: klaw save - < {quote(file.name)}"
        error.hint = "; ".join(filter(None, (error.hint, where)))
        raise


def _edited(text: str) -> str | None:
    """Return the text as changed in an editor; None if it was not."""
    from klaw_core import KlawError

    try:
        edited = click.edit(text, extension=".md")
    except click.ClickException as error:
        hint = "name an editor that runs here: export EDITOR=nano; VISUAL goes before EDITOR"
        raise KlawError(f"nothing saved: {error.message}", hint=hint) from error
    changed = None if edited is None else edited.rstrip("\n")
    return None if changed == text.rstrip("\n") else changed


def _tell_unchanged(settings: Settings) -> None:
    from klaw_core.cli.kit import notify, print_json

    if settings.json:
        print_json(None)
    notify(settings, "nothing saved: the text was not changed")
