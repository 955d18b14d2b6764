"""The options of the source ``workspace``. A search without configured sources does not import them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen, validators

from klaw_core.values.metadata import TRUST_CLASSES
from klaw_notes.patterns import normalized, problem_of

if TYPE_CHECKING:
    from klaw_core import Config

#: The default of ``include``.
DEFAULT_INCLUDE = ("*.md", "*.markdown", "*.mdx", "*.qmd", "*.rmd", "*.txt")


def can_name(name: str) -> bool:
    """Return whether a workspace may have this name, with which its paths begin: ``NAME/relative/path.md``."""
    return bool(name) and "/" not in name and not name.startswith(".") and name.isprintable()


def _absolute(_options: object, attribute: Any, value: str) -> None:
    if not value.startswith(("/", "~")):  # a relative path would depend on the current directory
        raise ValueError(f"{attribute.name}: expected an absolute path, or one that begins with ~, got {value!r}")


def _valid_name(options: WorkspaceOptions, attribute: Any, _value: str) -> None:
    if not can_name(options.origin):
        raise ValueError(f"{attribute.name}: {options.origin!r} is not a valid workspace name")


def _valid_patterns(_options: object, attribute: Any, value: Sequence[str]) -> None:
    for problem in filter(None, map(problem_of, value)):
        raise ValueError(f"{attribute.name}: {problem}")


@frozen
class WorkspaceOptions:
    """Options of ``[[memory.sources]] type = "workspace"``."""

    path: str = field(validator=_absolute)
    name: str = field(default="", validator=_valid_name)  # default: the directory's own name
    include: tuple[str, ...] = field(default=DEFAULT_INCLUDE, converter=normalized, validator=_valid_patterns)
    exclude: tuple[str, ...] = field(default=(), converter=normalized, validator=_valid_patterns)
    max_bytes: int = field(default=10 * 1024 * 1024, validator=validators.ge(1))
    trust: str = field(default="owner", validator=validators.in_(TRUST_CLASSES))  # the class of its files

    @property
    def root(self) -> Path:
        """The directory."""
        return Path(self.path).expanduser().absolute()

    @property
    def origin(self) -> str:
        """The name with which the paths of its documents begin."""
        return self.name or self.root.name or "root"


def configured_workspaces(config: Config) -> Iterator[WorkspaceOptions]:
    """Yield the options of the configured workspaces, but no invalid ones: what builds them says what is wrong."""
    for selection in config.sources:
        if selection.type == "workspace":
            with suppress(TypeError, ValueError):
                yield WorkspaceOptions(**selection.options)
