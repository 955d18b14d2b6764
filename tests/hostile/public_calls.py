"""Every public call that takes a text, found by reflection, and values that put a secret into each parameter."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

import attrs
from attrs import frozen
from planted_secrets import KINDS, NOW, OTHER, World, alone, apart, beside

from klaw_core import AsyncMemory, Chat, Condition, Filters, Memory, Message, NewDocument, SearchRequest
from klaw_facts import Fact, Facts, MemoryFactStore
from klaw_facts.journal import FactsJournal
from klaw_facts.keeper import FactKeeper
from klaw_facts.records import fact_record
from klaw_facts.store import JournalFactStore
from klaw_journals import Record
from klaw_memories import CoreMemory, ReplacedFact
from klaw_tools import ContextQuestion

chats = import_module("klaw_conversations")
Conversations, HistoryStore = chats.Conversations, chats.HistoryStore
WorkspaceManager = import_module("klaw_notes.management").WorkspaceManager

ROOT = Path(__file__).parents[2]
CHAT = Chat("telegram", "1")

#: The objects that programs call, and how a world has one of each.
OBJECTS: Mapping[type, Callable[[World], Any]] = {
    Memory: lambda world: world.memory,
    CoreMemory: lambda world: world.memory.core,
    Conversations: lambda world: world.memory.conversations,
    HistoryStore: lambda world: HistoryStore(world.memory.conversations),
    WorkspaceManager: lambda world: world.memory.workspaces,
    Facts: lambda world: world.memory.extension(Facts),
    FactKeeper: lambda world: world.memory.extension(Facts).keeper,
    JournalFactStore: lambda world: world.memory.extension(Facts).store,
    FactsJournal: lambda world: world.memory.extension(Facts).journal,
    MemoryFactStore: lambda _world: MemoryFactStore(),
}
#: Classes whose methods only run those of another in a thread.
ASYNCHRONOUS: Mapping[type, type] = {AsyncMemory: Memory}
#: Classes with operations that store no text of programs, and why.
WITHOUT_TEXT = {
    "OpenMemory": "the base of Memory, whose methods are those of Memory",
    "Agents": "opens memories",
    "BackgroundIndexer": "runs Memory.index",
    "Watcher": "runs Memory.index",
    "People": "stores only names of people who are known",
    "Sync": "exchanges what was stored; it takes codes of memories and places",
    "Here": "the base of Sync",
    "Extraction": "reads what was said",
    "Compression": "reads what was said",
    "FileJournals": "chooses the files that extensions write",
    **dict.fromkeys(("Workspaces", "Sharing"), "are called by WorkspaceManager"),
    **dict.fromkeys(("Journal", "SummaryFiles"), "are called by Conversations"),
    "FactIndex": "is called by Facts",
}
#: Parameters that are not fed, and why.
NOT_FED = {
    "Memory.open": "chooses files, before there is a memory",
    "Memory.export.target": "the file that the caller names; the records in it are as they were said",
    "Facts.attach": "is called by the core",
    "Facts.fix": "takes findings of Klaw",
    "Facts.on": "takes events of Klaw",
    "FactKeeper.forget.suppress": "a function",
}


@frozen
class Call:
    """A method and one of its parameters, or a keyword of a method that passes keywords on."""

    kind: type
    method: str
    parameter: str
    annotation: str

    def __str__(self) -> str:
        return f"{self.door}.{self.parameter}"

    @property
    def door(self) -> str:
        return f"{self.kind.__name__}.{self.method}"


class NoCallWrittenError(Exception):
    """A public call takes something that the table below has no value for."""


def _annotation(parameter: inspect.Parameter) -> str:
    """Return an annotation as written, without modules and quotes."""
    raw = parameter.annotation
    text = raw if isinstance(raw, str) else inspect.formatannotation(raw)
    return re.sub(r"(?:\b[a-z_]+\.)+", "", text).replace("'", "").replace("NoneType", "None")


#: Types without a text of the caller.
_NO_TEXT = re.compile(
    r"(?:int|float|bool|bytes|None|datetime|Path|BinaryIO|Vector|Selection|Event|Host|Callable\[.*\]|ProgressCallback"
    r"|Trust|Literal\[.*\]|Iterator\[Record\] with no text)"
)
_STRINGS = re.compile(r"(?:Iterable|Sequence|Collection|Iterator)\[str(?: \| Path)?\]")


def _messages(text: str) -> list[Message]:
    meta = CHAT.meta
    return [
        Message("user", text, NOW, meta=meta),
        Message("assistant", f"{OTHER} We decided on 3 things on Monday. {text}", NOW, meta=meta),
        Message("tool", json.dumps({"result": [text]}), NOW, meta={**meta, "tool": text, "deep": {"list": [text]}}),
        Message("user", OTHER, NOW, meta={**meta, **beside(text), "name": text, "title": text, "model": text}),
        Message("user", OTHER, NOW, meta=meta, extra={"unknown": text}),
        Message("user", OTHER, NOW, id=text, meta=meta),
    ]


def _chats(text: str) -> Iterator[Callable[[], Chat]]:
    yield lambda: Chat("telegram", text)
    yield lambda: Chat(text, "1")
    yield from (partial(Chat, "telegram", secret) for secret in alone(text))


def _documents(text: str) -> list[Callable[[], NewDocument]]:
    return [
        lambda: NewDocument("d1", text),
        lambda: NewDocument("d2", f"{OTHER}\n\n{text}\n", {"note": text, "tags": (text, "x"), **beside(text)}),
        lambda: NewDocument("d3", OTHER, source=text),
        lambda: NewDocument("d4", OTHER, format=text),
        lambda: NewDocument("d5", OTHER, {text: "x"}),
        lambda: NewDocument(text, OTHER),
        *(partial(NewDocument, secret, OTHER) for secret in alone(text)),
    ]


def _facts(text: str) -> list[Fact]:
    named = {
        field.name: (text,) if "tuple" in str(field.type) else {"note": text} if "Mapping" in str(field.type) else text
        for field in attrs.fields(Fact)
        if re.search(r"str\b|Mapping", str(field.type)) and not re.search("Quote|datetime", str(field.type))
    }
    assert {"text", "subject", "tags", "metadata", "source", "value", "end_reason"} <= named.keys()
    plain = {"id": "f-1", "text": "We meet in Rome"}
    each = [Fact(**{**plain, "id": f"f-{name}", name: value}) for name, value in named.items()]
    name, secret = apart(text)
    return [
        *each,
        Fact("f-2", f"{OTHER} {text}"),
        Fact("f-3", f"is {secret}", subject=name),
        Fact("f-4", "We meet in Oslo", tags=(name, secret), metadata=beside(text)),
    ]


def _lines(text: str) -> list[Mapping[str, Any]]:
    head = {"ts": "2026-02-24T00:00:00Z", "by": "person"}
    digest = {**head, "id": "d-1", "op": "digest", "chat": CHAT.name, "day": "2026-02-24", "quotes": []}
    return [
        *(fact_record(fact, NOW) for fact in _facts(text)),
        {**digest, "lines": [text, OTHER]},
        {**head, "id": "p-1", "op": "profile", "facts": ["f-1"], "lines": [text]},
        {**head, "id": "o-1", "op": "edit", "fact": "f-1", "changes": {"text": text, "tags": [text]}},
        {
            **head,
            "id": "o-3",
            "op": "edit",
            "fact": "f-1",
            "changes": {"metadata": beside(text), "tags": list(apart(text))},
        },
        {**head, "id": "o-2", "op": "end", "fact": "f-1", "valid_to": "2026-02-24T00:00:00Z", "reason": text},
    ]


def _replaced(text: str) -> list[ReplacedFact]:
    sound = ReplacedFact("user", "name", "Ada", "owner", "agent", "2026-11-28T00:00:00+00:00")
    return [attrs.evolve(sound, **{field.name: text}) for field in attrs.fields(ReplacedFact)]


def _one_by_one(values: Any) -> list[Callable[[], Any]]:
    return [lambda value=value: [value() if callable(value) else value] for value in values]


#: Values that contain a text, by the annotation of a parameter. A function makes the value.
_MAKERS: Mapping[str, Callable[[World, str], Any]] = {
    "str": lambda _w, text: [text, *alone(text)],
    "Any": lambda _w, text: [text],
    "Message": lambda _w, text: _messages(text),
    "Iterable[Message]": lambda _w, text: _one_by_one(_messages(text)),
    "Chat": lambda _w, text: list(_chats(text)),
    "Iterable[NewDocument]": lambda _w, text: _one_by_one(_documents(text)),
    "Iterable[Fact]": lambda _w, text: _one_by_one(_facts(text)),
    "Sequence[Fact]": lambda _w, text: _one_by_one(_facts(text)),
    "Sequence[ReplacedFact]": lambda _w, text: _one_by_one(_replaced(text)),
    "Iterable[Mapping[str, Any]]": lambda _w, text: _one_by_one(_lines(text)),
    "Sequence[Mapping[str, Any]]": lambda _w, text: _one_by_one(_lines(text)),
    "Mapping[str, Any]": lambda _w, text: [{"note": text, "deep": {"list": [text], **beside(text)}}],
    "Mapping[str, MetadataValue]": lambda _w, text: [{"note": text}, {"tags": (text,), **beside(text)}],
    "MetadataValue": lambda _w, text: [text],
    "Iterable[tuple[str, str, str]]": lambda _w, text: [
        [("user", "a", text)],
        [("user", text, "a")],
        [(text, "a", "b")],
    ],
    "SearchRequest": lambda _w, text: [SearchRequest(text), SearchRequest("tea", filters=Filters(source=text))],
    "Filters": lambda _w, text: [Filters(source=text), Filters(path=text), Filters(chat_id=text)],
    "Sequence[Condition]": lambda _w, text: [[Condition("note", "=", text)]],
    "ContextQuestion": lambda _w, text: [ContextQuestion(text)],
    "Sequence[ContextItem]": lambda _w, _text: [],
    "Record": lambda _w, text: [Record("fact", {"value": line}) for line in _lines(text)],
    "Iterator[Record]": lambda _w, text: [
        lambda line=line: iter([Record("fact", {"value": line})]) for line in _lines(text)
    ],
    "Mode": lambda _w, text: [text],
    "Duplicates": lambda _w, text: [text],
    "Precision": lambda _w, text: [text],
    "ContextPart": lambda _w, text: [text],
    "type[T]": lambda _w, _text: [],
}


def _note(world: World, text: str) -> list[Path]:
    """Return a directory with notes that contain the text, in their text and in their front matter."""
    directory = world.home / f"notes-{len(world.planter.places)}"
    directory.mkdir()
    name, secret = apart(text)
    (directory / "a.md").write_text(f"# Keys\n\n{text}\n\n{OTHER}\n", "utf-8")
    (directory / "b.md").write_text(
        f"---\ntitle: {json.dumps(text)}\ntags: [{json.dumps(text)}]\n{name}: {secret}\n---\n# {text}\n\nx\n", "utf-8"
    )
    (directory / "c.py").write_text(f"def f():\n    '''{text}'''\n    return 1\n", "utf-8")
    return [directory]


def _in_workspace(world: World, text: str) -> list[list[Path]]:
    file = world.home / "notes" / f"n{len(world.planter.places)}.md"
    file.write_text(f"{OTHER}\n\n{text}\n", "utf-8")
    return [[file]]


#: Values for parameters whose annotation does not say what they are.
_SPECIAL: Mapping[str, Callable[[World, str], Any]] = {
    "Memory.index.directory": _note,
    "Memory.index.paths": _in_workspace,
    "Memory.call_tool.arguments": lambda _w, text: [{"query": text}, {text: 1}, json.dumps({"query": text}), text],
    **dict.fromkeys(
        ("HistoryStore.append.tool_calls", "HistoryStore.append_nowait.tool_calls"),
        lambda _w, text: [[{"name": "f", "arguments": {"x": text}}]],
    ),
    "FactsJournal.renamed.record": lambda _w, text: _lines(text),
    "Memory.import_.source": lambda _w, text: [text],
    **dict.fromkeys(
        ("HistoryStore.append.key", "HistoryStore.append_nowait.key"),
        lambda _w, text: [f"telegram:{text}", text],
    ),
}
#: Keywords that methods with ``**`` accept.
_KEYWORDS: Mapping[str, tuple[type, str]] = {
    "Facts.remember": (FactKeeper, "remember"),
    "FactKeeper.edit": (FactKeeper, "remember"),
    "HistoryStore.append_nowait": (HistoryStore, "append"),
}
_NOT_EDITABLE = {"is_pinned", "by", "source"}


def _a_fact(world: World, number: int) -> str:
    facts: Any = world.memory.extension("facts")
    name: str = facts.remember(f"Something ordinary {number}").id
    return name


#: What the other required parameters of a call are given: by class and name, or by name.
_ORDINARY: Mapping[str, Callable[[World, int], Any]] = {
    "WorkspaceManager.include": lambda _w, _n: ["*.md"],
    "WorkspaceManager.exclude": lambda _w, _n: ["sub"],
    **dict.fromkeys(("text", "content"), lambda _w, _n: OTHER),
    **dict.fromkeys(("FactKeeper.name", "Facts.name", "JournalFactStore.fact_id"), _a_fact),
    **dict.fromkeys(("query", "question", "Memory.message"), lambda _w, _n: "tea"),
    "message": lambda _w, _n: Message("user", OTHER, NOW, meta=CHAT.meta),
    "Facts.question": lambda _w, _n: ContextQuestion("tea"),
    "HistoryStore.key": lambda _w, _n: "telegram:1",
    "key": lambda _w, number: f"city{number}",
    "value": lambda _w, _n: "Lyon",
    "Memory.name": lambda _w, _n: "memory_search",
    "name": lambda _w, _n: "notes",
    "directory": lambda _w, _n: "notes",
    "new": lambda _w, number: f"other{number}",
    "arguments": lambda _w, _n: {"query": "tea"},
    "suppress": lambda _w, _n: lambda _fact: (),
    "section": lambda _w, _n: "user",
    "role": lambda _w, _n: "user",
    "Facts.chat": lambda _w, _n: CHAT.name,
    "chat": lambda _w, _n: CHAT,
    "ids": lambda _w, _n: ["d1"],
    "texts": lambda _w, _n: ["tea", "x"],
    "message_id": lambda _w, _n: "m1",
    "count": lambda _w, _n: 5,
    "accept": lambda _w, _n: True,
    "items": lambda _w, _n: [],
    "source": lambda _w, _n: "export.jsonl",
    "documents": lambda _w, _n: [NewDocument("d1", OTHER)],
}


def _ordinary(world: World, call: Call, name: str, number: int) -> Any:
    """Return an ordinary value of a required parameter. Raise NoCallWrittenError."""
    make = _ORDINARY.get(f"{call.kind.__name__}.{name}") or _ORDINARY.get(name)
    if make is None:
        raise NoCallWrittenError(f"no call written for {call}: no ordinary value of {name}")
    return make(world, number)


def calls_of(kind: type) -> list[Call]:
    """Return every parameter of every public method that may hold a text."""
    found = []
    for name in dir(kind):
        method = inspect.getattr_static(kind, name)
        if name.startswith("_") or not isinstance(method, FunctionType | classmethod | staticmethod):
            continue
        found += _calls_of_method(kind, name)
    return [call for call in found if call.door not in NOT_FED and str(call) not in NOT_FED]


def _calls_of_method(kind: type, name: str) -> Iterator[Call]:
    for parameter in inspect.signature(getattr(kind, name)).parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            other, method = _KEYWORDS.get(f"{kind.__name__}.{name}", (None, ""))
            if other is None:
                raise NoCallWrittenError(f"no call written for {kind.__name__}.{name}: it takes any keyword")
            rest = {call.parameter: call for call in _calls_of_method(other, method)}
            rest = {key: call for key, call in rest.items() if name != "edit" or key not in _NOT_EDITABLE}
            own = set(inspect.signature(getattr(kind, name)).parameters)
            yield from (attrs.evolve(call, kind=kind, method=name) for key, call in rest.items() if key not in own)
            continue
        annotation = _annotation(parameter)
        parts = re.split(r" \| (?![^\[]*\])", annotation)
        if not all(_NO_TEXT.fullmatch(part) for part in parts):
            yield Call(kind, name, parameter.name, annotation)


#: Parameters that hold what somebody says or writes. The others name something.
_CONTENT = {
    *("text", "content", "message", "messages", "documents", "facts", "records", "operations", "value", "metadata"),
    *("tags", "reason", "subject", "source", "arguments", "directory", "paths", "tool_calls", "query", "slot"),
}


def kinds_for(call: Call, number: int) -> list[str]:
    """Return the kinds of secrets to feed: all for content; a few in turn for the name of something, in every call."""
    names = list(KINDS)
    if "Path" in call.annotation:
        names.remove("url")  # no path has two slashes
    if call.parameter in _CONTENT:
        return names
    return [names[(number * 5 + step) % len(names)] for step in range(5)]


def values_of(world: World, call: Call, text: str) -> list[Any]:
    """Return values of the parameter that contain the text. Raise NoCallWrittenError."""
    if (special := _SPECIAL.get(str(call))) is not None:
        return list(special(world, text))
    found: list[Any] = []
    for part in re.split(r" \| (?![^\[]*\])", call.annotation):
        if _NO_TEXT.fullmatch(part):
            continue
        if _STRINGS.fullmatch(part):
            found.append([text])
        elif part in _MAKERS:
            found += _MAKERS[part](world, text)
        else:
            raise NoCallWrittenError(f"no call written for {call}, a {part}")
    return found


def run(world: World, call: Call, value: Any, number: int) -> object:
    """Make a call with one parameter as given and the required others ordinary."""
    target = OBJECTS[call.kind](world)
    bound = getattr(target, call.method)
    positional, named = [], {}
    value = value() if callable(value) else value
    for parameter in inspect.signature(bound).parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        if parameter.name == call.parameter:
            given = value
        elif parameter.default is inspect.Parameter.empty and parameter.kind is not inspect.Parameter.VAR_POSITIONAL:
            given = _ordinary(world, call, parameter.name, number)
        else:
            continue
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            named[parameter.name] = given
        else:
            positional.append((parameter.name, given))
    signature = inspect.signature(bound).parameters
    if call.parameter not in signature:
        named[call.parameter] = value
    skipped = [name for name, p in signature.items() if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    if [name for name, _ in positional] != skipped[: len(positional)] and all(
        name in skipped for name, _ in positional
    ):
        named.update(positional)
        positional = []
    result = bound(*(given for _, given in positional), **named)
    return list(result) if isinstance(result, Iterator) else result


@cache
def classes_with_operations() -> dict[str, type]:
    """Return every class of Klaw that is decorated as having operations, by name."""
    found = {}
    for source in (ROOT / "klaw_core", *ROOT.glob("plugins/*/src")):
        for path in source.rglob("*.py"):
            if "@operations" not in path.read_text("utf-8"):
                continue
            for node in ast.parse(path.read_text("utf-8")).body:
                if isinstance(node, ast.ClassDef) and any(
                    isinstance(item, ast.Name) and item.id == "operations" for item in node.decorator_list
                ):
                    top = ROOT if source.name == "klaw_core" else source
                    module = ".".join(path.relative_to(top).with_suffix("").parts)
                    found[node.name] = getattr(importlib.import_module(module), node.name)
    return found
