"""Write what is indexed as a bundle in Open Knowledge Format 0.2, which other programs read.

A bundle is a directory of Markdown files (https://github.com/GoogleCloudPlatform/knowledge-catalog, ``okf/SPEC.md``).
Each has front matter with a ``type``; links are Markdown links, with paths from the root of the bundle. ``index.md``
lists a directory, so no other file may have this name, nor ``log.md``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from unicodedata import normalize
from urllib.parse import quote

from attrs import frozen

from klaw_core import Memory, Metadata, NotFoundError, SkippedEntry, StoreError
from klaw_core.cli.kit import counted
from klaw_journals.records import ExportReport
from klaw_notes.front_matter import read_front_matter
from klaw_notes.links.reading import Link, anchor, links_of_metadata
from klaw_notes.links.relinking import AddressOf, relinked, relinked_value
from klaw_notes.walking import Patterns

if TYPE_CHECKING:
    from klaw_notes.links.graph import LinkGraph

VERSION = "0.2"
_TYPES = {"note": "Note", "saved": "Memory", "document": "Document"}
_OF_ORIGIN = {"saved": "saved", "documents": "document"}
_MARKDOWN = (".md", ".markdown", ".mdx", ".qmd", ".rmd")
_RESERVED = {"index.md", "log.md"}
_LONGEST_NAME = 200  # bytes of a part of a path
_PAGE = 1_000  # documents per query
# What a name has not on some systems, or what would end the path of a link.
_NOT_IN_NAMES = re.compile(r"[\x00-\x1f\x7f\\\\:*?\"<>|#]")
# Names of devices on Windows, also before an ending.
_DEVICE = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³]) *(?:\.|\Z)", re.IGNORECASE)
_NOT_QUOTED = "/!$&'+,;=@~"
_BLOCK = re.compile(r"---[ \t]*(?:\r\n|\r|\n)(.*?)(?<=[\r\n])(?:---|\.\.\.)[ \t]*(?:\r\n|\r|\n|\Z)", re.DOTALL)
_NEW_LINE = "\n"
# Text that needs no quotation marks, also in YAML 1.1, which has more words for true and false.
_WORD = re.compile(r"(?!(?:true|false|yes|no|on|off|null|y|n)\Z)[a-z][a-z_]*", re.IGNORECASE)
_PLAIN = re.compile(r"/[\w/.-]+")
_UNTYPED = "the type in the front matter is no text, which other programs may refuse"
_ANEW = "wrote the front matter again, without comments and nested values, because it is not valid YAML"
_LONGEST_ADDRESS = 500  # of a link that Klaw reads


@frozen
class _Concept:
    """A document of a bundle: its path in the memory, its collection, what it is, and its path in the bundle."""

    path: str
    collection: str
    kind: str
    name: str


def write_bundle(
    memory: Memory, graph: LinkGraph, metadata_of: Callable[[str, str], Metadata], directory: Path
) -> ExportReport:
    """Write a bundle to a new or empty directory, complete or not at all. Raise StoreError.

    It has the Markdown files of workspaces, saved memories and documents of programs. ``metadata_of`` returns the
    metadata of an indexed document, given by its collection and path.
    """
    parent = _checked(memory, directory)
    concepts, left_out = _concepts(memory)
    names = {concept.path: concept.name for concept in concepts}
    counts: Counter[str] = Counter()
    skipped: list[SkippedEntry] = []
    remarks: dict[str, list[str]] = defaultdict(list)
    try:
        temporary = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=parent))
        try:
            listed: dict[str, Metadata] = {}
            for concept in concepts:
                try:
                    written = memory.get(concept.path).content
                except NotFoundError as error:  # it was forgotten in the meantime
                    skipped.append(SkippedEntry(concept.path, error.message, keep=True))
                    continue
                found = metadata_of(concept.collection, concept.path)
                text, remark = _concept_text(concept.kind, written, found, _addresses(graph, concept.path, names))
                _write(temporary / concept.name, text)
                listed[concept.name] = found
                counts[concept.kind] += 1
                remarks[remark].append(concept.path)
            for place, text in _indexes(listed):
                _write(temporary / place, text)
            if directory.is_dir():
                directory.rmdir()  # it is empty
            temporary.rename(directory)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    except OSError as error:
        raise StoreError(f"{directory} cannot be written: {error.strerror}", hint="check the path") from error
    notices = [f"left out {counted(count, 'document')} of {what}" for what, count in sorted(left_out.items())]
    notices += (f"{remark}: {', '.join(paths)}" for remark, paths in sorted(remarks.items()) if remark)
    return ExportReport(dict(counts), tuple(skipped), tuple(notices))


def _checked(memory: Memory, directory: Path) -> Path:
    """Return the directory in which that of a bundle will be. Raise StoreError if it cannot be there."""
    if directory.exists() and not directory.is_dir():
        raise StoreError(f"{directory} is a file, and a bundle is a directory", hint="name another directory")
    if directory.is_dir() and any(directory.iterdir()):
        raise StoreError(f"{directory} is there and not empty", hint="name a directory that does not exist")
    place = Path(os.path.realpath(directory))
    if not place.parent.is_dir():
        raise StoreError(f"cannot write {directory}: no such directory: {place.parent}", hint="create it first")
    for each in memory.workspaces.list():
        root = Path(os.path.realpath(each.root))
        relative = place.relative_to(root) if place.is_relative_to(root) else None
        if relative is None or any(part.startswith(".") for part in relative.parts):
            continue
        excluded, parts = Patterns.of(each.exclude), (*relative.parts, "index.md")
        if not any(excluded.first("/".join(parts[: depth + 1])) for depth in range(len(parts))):
            raise StoreError(
                f"{directory} is in the workspace {each.name}, so the next `klaw index` would read all notes twice",
                hint="name a directory outside of it, or exclude this one from it",
            )
    return place.parent


def _concepts(memory: Memory) -> tuple[Sequence[_Concept], Mapping[str, int]]:
    """Return what goes into a bundle, and the number of other documents by what they are."""
    workspaces = {each.name for each in memory.workspaces.list()}
    found: list[_Concept] = []
    left_out: Counter[str] = Counter()
    taken: set[str] = set()
    for collection in memory.collections():
        after = ""
        while page := memory.documents(collection=collection, after=after, limit=_PAGE):
            for record in page:
                kind = "note" if record.origin in workspaces else _OF_ORIGIN.get(record.origin, "")
                if not kind:
                    left_out[record.origin] += 1
                elif kind == "note" and not record.path.lower().endswith(_MARKDOWN):
                    left_out["another kind than Markdown"] += 1
                else:
                    found.append(_Concept(record.path, collection, kind, _free_name(record.path, taken)))
            after = page[-1].path
    return found, left_out


def _free_name(path: str, taken: set[str]) -> str:
    """Return the path of a document in a bundle, which no other has, also where upper and lower case are the same."""
    *directories, last = (_usable(part) for part in path.split("/") if part)
    # No directory has the name of a file.
    whole = PurePosixPath(*(re.sub(r"\.(?=md\Z)", "-", each, flags=re.IGNORECASE) for each in directories), last)
    stem = whole.with_suffix("") if whole.suffix.lower() in _MARKDOWN else whole
    if f"{stem.name}.md".casefold() in _RESERVED:
        stem = stem.with_name(f"{stem.name}-note")
    name, number = f"{stem}.md", 1
    while (key := normalize("NFC", name).casefold()) in taken:
        number += 1
        name = f"{stem}-{number}.md"
    taken.add(key)
    return name


def _usable(part: str) -> str:
    """Return a part of a path as every system takes it: visible, and short enough with a number and an ending."""
    name = _NOT_IN_NAMES.sub("-", part)
    name = f"_{name[1:]}" if name.startswith(".") else f"_{name}" if _DEVICE.match(name) else name
    if len(name.encode()) > _LONGEST_NAME:
        name = name.encode()[:_LONGEST_NAME].decode(errors="ignore")
    return name.rstrip(". ") or "_"  # Windows leaves out dots and spaces at the end


def _addresses(graph: LinkGraph, path: str, names: Mapping[str, str]) -> AddressOf:
    """Return the function that gives links of a document their addresses in the bundle; empty if they have none."""

    def address_of(link: Link) -> str:
        target = graph.target_of(link, path)
        name = names.get(target, "")
        meant = (graph.heading_of(link, target) if name else None) or link.heading
        heading = f"#{anchor(meant)}" if meant else ""
        address = f"/{_quoted(name)}{_quoted(heading)}" if name else ""
        return address if len(address) <= _LONGEST_ADDRESS else ""

    return address_of


def _quoted(text: str) -> str:
    """Return a part of an address. Letters of all languages stay, so that people can read it."""
    return "".join(each if each.isalnum() or each in f"#-_.{_NOT_QUOTED}" else quote(each) for each in text)


def _concept_text(kind: str, text: str, metadata: Metadata, address_of: AddressOf) -> tuple[str, str]:
    """Return the file of a document, and what there is to say about it.

    The file has its front matter with a type, and its text, both with new addresses.
    """
    if kind != "note":
        fields = {"type": _TYPES[kind], **{key: value for key, value in metadata.items() if "." not in key}}
        return f"{_front_matter(fields, address_of)}{relinked(text, address_of)}", ""
    text = text.removeprefix("\ufeff")
    own, blanked = read_front_matter(text)
    line_end = "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"
    has_own = blanked != text
    body = relinked(text[_body(blanked) :] if has_own else text, address_of)
    given = own.get("type")
    own_type = given.strip() if isinstance(given, str) else ""
    kept, has_type = _kept(text, address_of, line_end) if has_own else ("", False)
    if kept:
        return f"{kept}{body}", _UNTYPED if has_type and not own_type else ""
    head = _front_matter({**own, "type": own_type or _TYPES["note"]}, address_of)
    return f"{head.replace(_NEW_LINE, line_end)}{body}", _ANEW if has_own else ""


def _body(blanked: str) -> int:
    """Return where the text begins behind front matter, which is blanked out."""
    end = 0
    for line in blanked.splitlines(keepends=True):
        if line.strip():
            break
        end += len(line)
    return end


def _kept(text: str, address_of: AddressOf, line_end: str) -> tuple[str, bool]:
    """Return the front matter as it is written, with a type; empty if that would not be valid YAML.

    The second value says whether it has a type of its own.
    """
    match = _BLOCK.match(text)
    root = None if match is None else _composed(match[1])
    if match is None or root is None:
        return "", False
    block = match[1]
    added = f"type: {_TYPES['note']}"
    keys = [key.value for key, _ in root.value]
    wanted = keys if "type" in keys else ["type", *keys]
    edits = list(_value_edits(root, address_of))
    if "type" not in keys:
        at = (root.start_mark.index + bool(root.flow_style)) if block.strip() else 0
        after = (
            (", " if keys else "") if root.flow_style and block.strip() else f"{line_end}{' ' * root.start_mark.column}"
        )
        edits.append((at, at, f"{added}{after}"))
    for start, end, new in sorted(edits, reverse=True):
        block = f"{block[:start]}{new}{block[end:]}"
    again = _composed(block)
    if again is None or [key.value for key, _ in again.value] != wanted:
        return "", False
    return f"---{line_end}{block}---{line_end}", "type" in keys


def _composed(block: str) -> Any:
    """Return the node of a block of YAML, with the places of its values; None if it is not a valid mapping."""
    import yaml

    try:
        root = yaml.compose(block if block.strip() else "{}", Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError):
        return None
    return root if isinstance(root, yaml.MappingNode) else None


def _value_edits(root: Any, address_of: AddressOf) -> Iterator[tuple[int, int, str]]:
    """Yield the values of front matter that are links: where each is, and what is there then."""
    for _, value in root.value:
        for node in value.value if value.id == "sequence" else (value,):
            if node.id != "scalar" or node.style not in {None, "'", '"'}:
                continue
            if new := _new_value(node.value, address_of):
                doubled = new.replace("'", "''")
                written = {"'": f"'{doubled}'", None: new if _PLAIN.fullmatch(new) else None}.get(node.style)
                yield node.start_mark.index, node.end_mark.index, written or json.dumps(new, ensure_ascii=False)


def _new_value(text: str, address_of: AddressOf) -> str:
    """Return what a value becomes that is a link or the path of a note; empty if it stays."""
    links = list(links_of_metadata({"": text}))
    if len(links) != 1:
        return ""
    if not text.startswith(links[0].target):
        new = relinked_value(text, address_of)
        return new if new != text else ""
    address = address_of(links[0])
    return "" if "%" in address else address  # such a value is a path, and not an address


def _front_matter(fields: Metadata, address_of: AddressOf) -> str:
    """Return front matter; JSON is YAML."""

    def new(value: object) -> object:
        if isinstance(value, tuple):
            return [new(each) for each in value]
        return _new_value(value, address_of) or value if isinstance(value, str) else value

    rows = (f"{_yaml(key)}: {_yaml(new(value))}" for key, value in fields.items())
    return "\n".join(("---", *rows, "---", ""))


def _yaml(value: object) -> str:
    return value if isinstance(value, str) and _WORD.fullmatch(value) else json.dumps(value, ensure_ascii=False)


def _indexes(listed: Mapping[str, Metadata]) -> Iterator[tuple[str, str]]:
    """Yield the index of each directory: its documents and its directories."""
    documents: dict[PurePosixPath, list[str]] = {PurePosixPath("."): []}
    for name in listed:
        place = PurePosixPath(name)
        documents.setdefault(place.parent, []).append(name)
        for above in place.parents:
            documents.setdefault(above, [])
    for directory, names in sorted(documents.items()):
        inside = [each for each in sorted(documents) if each.parent == directory and each != directory]
        sections = [
            ("Documents", [_entry(PurePosixPath(name).name, listed[name]) for name in sorted(names)]),
            ("Directories", [f"* [{_label(each.name)}]({_quoted(each.name)}/)" for each in inside]),
        ]
        body = "\n".join(f"# {title}\n\n{_NEW_LINE.join(rows)}\n" for title, rows in sections if rows)
        head = f'---\nokf_version: "{VERSION}"\n---\n' if directory == PurePosixPath(".") else ""
        yield str(directory / "index.md"), f"{head}{body}"


def _entry(name: str, metadata: Metadata) -> str:
    title, description = metadata.get("title"), metadata.get("description")
    shown = title if isinstance(title, str) and title.strip() else name.removesuffix(".md")
    after = f" - {' '.join(description.split())}" if isinstance(description, str) and description.strip() else ""
    return f"* [{_label(' '.join(shown.split()))}]({_quoted(name)}){after}"


def _label(text: str) -> str:
    return re.sub(r"([\[\]\\`<])", r"\\\1", text)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8", newline="")
