"""The files of an export: in a directory, in a ZIP archive, or a single file."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

from klaw_core import RecordError

#: The maximum size of a file. The sizes in an archive cannot be trusted.
MAX_BYTES = 2 << 30


def named_files(source: Path, *patterns: str, required: bool = True) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of each file of an export whose name matches one of the patterns, ordered by name.

    ``source`` is the file itself (with any name), a directory, or a ZIP archive. Raise RecordError if a file is too
    large, or if it is ``required`` and no file matches.
    """
    if source.is_dir():
        found = [path for path in sorted(source.rglob("*")) if path.is_file() and _fits(path.name, patterns)]
        _require(found or not required, source, patterns)
        for path in found:
            _check_size(path.stat().st_size, str(path))
            yield path.relative_to(source).as_posix(), path.read_bytes()
    elif zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as archive:
            members = sorted(
                (item for item in archive.infolist() if _fits(PurePosixPath(item.filename).name, patterns)),
                key=lambda item: item.filename,
            )
            _require(members or not required, source, patterns)
            for member in members:
                yield member.filename, _unpacked(archive, member)
    else:
        _check_size(source.stat().st_size, str(source))
        yield source.name, source.read_bytes()


def parse_json(name: str, content: bytes) -> Any:
    """Return the JSON value of a file. Raise RecordError."""
    try:
        return json.loads(content.decode("utf-8-sig"))
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise RecordError(f"{name} is not JSON: {error}") from error


def _unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    try:
        with archive.open(member) as stream:
            content = stream.read(MAX_BYTES + 1)
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, OSError) as error:
        raise RecordError(f"{member.filename} cannot be unpacked: {error}") from error
    _check_size(len(content), member.filename)
    return content


def _fits(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def _require(found: object, source: Path, patterns: tuple[str, ...]) -> None:
    if not found:
        raise RecordError(
            f"{source} contains no {' or '.join(patterns)}", hint="pass the directory or archive of the export"
        )


def _check_size(size: int, name: str) -> None:
    if size > MAX_BYTES:
        raise RecordError(f"{name} has more than {MAX_BYTES >> 30} GiB")
