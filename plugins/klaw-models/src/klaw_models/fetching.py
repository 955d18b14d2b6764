"""Write the files of a new model, from the hub or from local files."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from attrs import field, frozen

from klaw_core import ModelCorruptError
from klaw_http import HttpError, NoAnswerError, StatusError, http_url
from klaw_http.download import DownloadLimits, download
from klaw_models.errors import ModelError
from klaw_models.known import KnownFile, KnownModel
from klaw_models.manifest import MANIFEST, ModelManifest

#: The default hub of known models, and the environment variable for a mirror.
HUB = "https://huggingface.co"
HUB_VARIABLE = "HF_ENDPOINT"

#: Called with the number of received bytes of the whole model.
OnBytes = Callable[[int], None]


class FileSource(Protocol):
    """A source of the files of known models."""

    def take(self, model: KnownModel, file: KnownFile, target: Path, on_bytes: OnBytes, /) -> None:
        """Write one file to ``target``. The caller checks its hash. Raise KlawError."""


@frozen
class Hub:
    """A model hub or its mirror, with files by repository, commit and path."""

    base_url: str = field(default=HUB, validator=http_url)
    limits: DownloadLimits | None = None

    def take(self, model: KnownModel, file: KnownFile, target: Path, on_bytes: OnBytes, /) -> None:
        """Download one file. Raise ModelError."""
        url = f"{self.base_url.rstrip('/')}/{model.repository}/resolve/{model.commit}/{file.path}"
        by_hand = f"add files from elsewhere: klaw models add {model.name} --from DIRECTORY"
        try:
            download(url, target, size=file.size, on_bytes=on_bytes, limits=self.limits)
        except NoAnswerError as error:
            hint = f"try again, set {HUB_VARIABLE} to a mirror's address, or: {by_hand}"
            raise ModelError(error.message, hint=hint) from error
        except HttpError as error:
            refused = isinstance(error, StatusError) and error.status in {401, 403}
            why = ": the hub requires a login for it, and Klaw does not log in" if refused else ""
            raise ModelError(f"{error.message}{why}", hint=by_hand) from error


@frozen
class Directory:
    """Local files, in the directories of the repository or all in one directory."""

    path: Path

    def take(self, model: KnownModel, file: KnownFile, target: Path, on_bytes: OnBytes, /) -> None:
        """Copy one file. Raise ModelError if it does not exist."""
        places = (self.path / file.path, self.path / file.name)
        found = next((place for place in places if place.is_file()), None)
        if found is None:
            raise ModelError(f"{model.name} needs {file.path}, which is not in {self.path}", hint="add that file too")
        shutil.copyfile(found, target)
        on_bytes(target.stat().st_size)


def fill_known(model: KnownModel, source: FileSource, directory: Path, on_bytes: OnBytes) -> None:
    """Write a known model's files and manifest. Raise ModelCorruptError if a file does not have the pinned hash."""
    done = 0
    for file in model.files:
        target = directory / file.name
        source.take(model, file, target, lambda bytes_, before=done: on_bytes(before + bytes_))  # type: ignore[misc]  # mypy does not infer a lambda's default
        _require(target, file.sha256, f"{file.path} of {model.repository}")
        done += file.size
    write_manifest(directory, model.manifest)


def fill_copy(model: ModelManifest, directory: Path, on_bytes: OnBytes) -> None:
    """Copy a model with a manifest, and the files that the manifest lists. Raise ModelCorruptError."""
    done = 0
    for name, record in model.files.items():
        source, target = model.directory / name, directory / name
        if not source.is_file():
            raise model.corrupt(f"{source} does not exist")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        _require(target, record.sha256, str(source))
        done += target.stat().st_size
        on_bytes(done)
    shutil.copyfile(model.directory / MANIFEST, directory / MANIFEST)


def fill_described(files: Mapping[str, Path], content: Mapping[str, Any], directory: Path, on_bytes: OnBytes) -> None:
    """Copy local files, and write the manifest with their hashes."""
    done = 0
    recorded = {}
    for name, source in files.items():
        target = directory / name
        shutil.copyfile(source, target)
        size = target.stat().st_size
        recorded[name] = {"sha256": _sha256(target), "size": size}
        done += size
        on_bytes(done)
    weights = recorded[content["model"]]["sha256"]
    write_manifest(directory, {**content, "revision": weights, "files": recorded})


def write_manifest(directory: Path, content: Mapping[str, Any]) -> None:
    """Write ``model.json``."""
    (directory / MANIFEST).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _require(path: Path, expected: str, what: str) -> None:
    found = _sha256(path)
    if found != expected:
        raise ModelCorruptError(
            f"{what} has an unexpected checksum: SHA-256 {found}, expected {expected}",
            hint="nothing was kept; try another source",
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
