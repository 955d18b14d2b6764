"""Read and write files of the user: the configuration of other programs, such as editors, and pictures."""

from __future__ import annotations

import os
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from klaw_core.cli.settings import Settings
from klaw_core.errors import ConfigError
from klaw_core.files.atomic import read_regular, sync_directory, write_all, write_atomically, writing_failed
from klaw_core.files.held import Temporary


def own_command(settings: Settings, *words: str) -> list[str]:
    """Return the command line that runs ``klaw WORDS`` of this installation on this memory.

    Other programs may not pass on PATH or environment variables, so paths are absolute and settings are arguments.
    """
    config = settings.load_config()
    places = ["--data-dir", str(config.data_dir)]
    named = settings.config_file or os.environ.get("KLAW_CONFIG")
    if named:
        places += ["--config", str(Path(named).expanduser().absolute())]
    return [*_program(), *words, *places]


def _program() -> list[str]:
    script = Path(sys.argv[0])
    found = shutil.which(str(script)) if script.name == "klaw" else None
    if found is not None:
        return [str(Path(found).absolute())]
    return [sys.executable, "-m", "klaw_core"]


def read_client_file(file: Path) -> str:
    """Return the text of a configuration file, or ``""`` if it does not exist. Raise ConfigError on a read error."""
    try:
        return read_regular(file).decode()  # with the ends of lines as they are
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([f"{file} cannot be read: {error}"]) from error


def confirm_client_file(file: Path, added: str) -> None:
    """Show what will be added to a file and ask for confirmation; abort unless the answer is yes.

    Raise UsageError if stdin is not a terminal.
    """
    if not sys.stdin.isatty():
        raise click.UsageError("stdin is not a terminal; pass --yes to confirm, or --print to see the change")
    click.echo(f"{file}\n{added}", err=True)
    click.confirm("Write it?", abort=True, err=True)


def write_client_file(file: Path, text: str, before: str) -> Path | None:
    """Write a configuration file; return the path of a backup, or None if the file is new or unchanged.

    Its program writes it too, without a lock, and a person may be asked in between: raise ConfigError if its text is
    not ``before`` any more.
    """
    file = file.resolve()  # dotfiles are often symbolic links
    if read_client_file(file) != before:
        told = f"{file} was changed by another program in the meantime; nothing was written"
        raise ConfigError([told], hint="run the same command again")
    if not file.exists():
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise writing_failed(file, error) from error
        write_atomically(file, text)
        return None
    if read_regular(file) == text.encode():
        return None
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    backup = file.with_name(f"{file.name}.{stamp}.backup")
    write_file(backup, read_regular(file))
    mode = file.stat().st_mode & 0o777
    write_atomically(file, text)
    file.chmod(mode)
    return backup


def write_file(path: Path, data: bytes) -> None:
    """Replace the content of a file that the user named, such as a picture; durable when it returns. Raise StoreError.

    A link stays a link: its target is replaced. The directory must exist. The file is private.
    """
    place = Path(os.path.realpath(path))
    try:
        if path.exists() and not path.is_file():  # a pipe, a terminal, or a directory, which is an error
            path.write_bytes(data)
            return
        temporary = Temporary(place)
        with temporary as descriptor:
            write_all(descriptor, data)
            temporary.replace()
        sync_directory(place.parent)
    except OSError as error:
        raise writing_failed(path, error) from error
