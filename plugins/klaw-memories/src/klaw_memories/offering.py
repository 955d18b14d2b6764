"""Offer to add the USER.md of a directory to core memory. It goes into every prompt, so a person decides."""

from __future__ import annotations

import sys
from pathlib import Path
from shlex import quote

import click

from klaw_core.cli.kit import Settings, counted, notify
from klaw_journals.opening import open_journals
from klaw_memories.core_memory import CoreMemory
from klaw_memories.user_md import find_user_md, parse_user_md, read_user_md


def offer_user_md(settings: Settings, directory: Path, *, yes: bool = False, may_ask: bool = False) -> None:
    """Add the USER.md of a directory to core memory if ``yes`` or the person at the terminal agrees; or else name it.

    Only once: nothing is offered after an import. Raise StoreError, StoreCorruptError.
    """
    file = find_user_md(directory)
    if file is None:
        return
    with open_journals(settings) as journals:
        core = CoreMemory(journals.text("core_memory"))
        if core.has_user_md:
            return
        keys = list(parse_user_md(read_user_md(file)))
        asked = f"{file} describes the user ({', '.join(keys)}); add it to core memory, which is in every prompt?"
        if yes or (may_ask and sys.stdin.isatty() and click.confirm(asked, err=True)):
            added = core.init_from_user_md(read_user_md(file))
            notify(settings, f"{counted(len(added), 'fact')} of {file} added to core memory")
        else:
            notify(
                settings, f"{file} describes the user; to add it to core memory: klaw core import {quote(str(file))}"
            )
