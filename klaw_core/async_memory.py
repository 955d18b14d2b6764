"""``AsyncMemory``: the same memory for programs that run an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial, wraps
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from klaw_core.conversations.archive import Conversations
from klaw_core.core_memory.facts import CoreMemory
from klaw_core.errors import StoreError
from klaw_core.holds import Flag
from klaw_core.memory import Memory
from klaw_core.sources.management import WorkspaceManager

if TYPE_CHECKING:
    from klaw_core.conversations.chat import Chat
    from klaw_core.conversations.journal import JournalLine
    from klaw_core.extensions.host import Extensions
    from klaw_core.interfaces.components import Embedder
    from klaw_core.interfaces.extension import Extension
    from klaw_core.plugins.registry import LiveComponent, Registry
    from klaw_core.values.config import Config
    from klaw_core.values.events import Event

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", CoreMemory, Conversations, WorkspaceManager)

#: Threads. Searches are fast, so more threads would only wait for each other.
THREADS = 4


class _Cancelled(BaseException):  # like KeyboardInterrupt, so that no `except Exception` catches it
    """Ends a run in its thread after the task that waits for it was cancelled."""


def _in_thread(
    method: Callable[Concatenate[Memory, P], T],
) -> Callable[Concatenate[AsyncMemory, P], Coroutine[Any, Any, T]]:
    """Return a method of Memory as a coroutine that runs it in a thread."""

    @wraps(method)
    async def call(self: AsyncMemory, /, *arguments: P.args, **options: P.kwargs) -> T:
        return await self._run(partial(method, self._memory, *arguments, **options))

    return call


def _run_in_thread(
    method: Callable[Concatenate[Memory, P], T],
) -> Callable[Concatenate[AsyncMemory, P], Coroutine[Any, Any, T]]:
    """Return a method that reports progress as a coroutine whose cancellation ends it at the next step."""

    @wraps(method)
    async def call(self: AsyncMemory, /, *arguments: P.args, **options: P.kwargs) -> T:
        cancelled = Flag()
        report: Callable[[Any], None] | None = options.get("on_progress")  # type: ignore[assignment]  # of any method

        def on_progress(progress: Any) -> None:
            if cancelled.is_set():
                raise _Cancelled
            if report is not None:
                report(progress)

        options["on_progress"] = on_progress
        try:
            return await self._run(partial(method, self._memory, *arguments, **options))
        except asyncio.CancelledError:
            cancelled.set()
            raise

    return call


def _core_memory_method(
    method: Callable[Concatenate[CoreMemory, P], T],
) -> Callable[Concatenate[AsyncCoreMemory, P], Coroutine[Any, Any, T]]:
    @wraps(method)
    async def call(self: AsyncCoreMemory, /, *arguments: P.args, **options: P.kwargs) -> T:
        return await self._ask(partial(_apply, method, arguments, options))

    return call


def _conversations_method(
    method: Callable[Concatenate[Conversations, P], T],
) -> Callable[Concatenate[AsyncConversations, P], Coroutine[Any, Any, T]]:
    @wraps(method)
    async def call(self: AsyncConversations, /, *arguments: P.args, **options: P.kwargs) -> T:
        return await self._ask(partial(_apply, method, arguments, options))

    return call


def _workspaces_method(
    method: Callable[Concatenate[WorkspaceManager, P], T],
) -> Callable[Concatenate[AsyncWorkspaces, P], Coroutine[Any, Any, T]]:
    @wraps(method)
    async def call(self: AsyncWorkspaces, /, *arguments: P.args, **options: P.kwargs) -> T:
        return await self._ask(partial(_apply, method, arguments, options))

    return call


def _apply(method: Callable[..., T], arguments: Sequence[Any], options: dict[str, Any], part: object) -> T:
    return method(part, *arguments, **options)


class _Part(Generic[S]):
    """A part of a memory. Its calls run in a thread, where the part is also built."""

    def __init__(self, memory: AsyncMemory, get: Callable[[Memory], S]) -> None:
        self._owner = memory
        self._get: Callable[[Memory], S] = get

    async def _ask(self, work: Callable[[S], T]) -> T:
        memory = self._owner._memory  # noqa: SLF001  # a part of it
        return await self._owner._run(lambda: work(self._get(memory)))  # noqa: SLF001  # a part of it


class AsyncCoreMemory(_Part[CoreMemory]):
    """The methods of ``CoreMemory``, each a coroutine."""

    get = _core_memory_method(CoreMemory.get)
    render = _core_memory_method(CoreMemory.render)
    redacted = _core_memory_method(CoreMemory.redacted)
    update = _core_memory_method(CoreMemory.update)
    update_all = _core_memory_method(CoreMemory.update_all)
    delete = _core_memory_method(CoreMemory.delete)
    init_from_user_md = _core_memory_method(CoreMemory.init_from_user_md)


class AsyncConversations(_Part[Conversations]):
    """The methods of ``Conversations``, each a coroutine. ``read`` returns a tuple, not an iterator."""

    append = _conversations_method(Conversations.append)
    append_many = _conversations_method(Conversations.append_many)
    session_break = _conversations_method(Conversations.session_break)
    window = _conversations_method(Conversations.window)
    tail = _conversations_method(Conversations.tail)
    search = _conversations_method(Conversations.search)
    session = _conversations_method(Conversations.session)
    add_summary = _conversations_method(Conversations.add_summary)
    summaries = _conversations_method(Conversations.summaries)
    sync = _conversations_method(Conversations.sync)
    remove = _conversations_method(Conversations.remove)
    forget = _conversations_method(Conversations.forget)
    find = _conversations_method(Conversations.find)
    chats = _conversations_method(Conversations.chats)
    purge = _conversations_method(Conversations.purge)

    async def read(
        self, chat: Chat, since: datetime | None = None, until: datetime | None = None
    ) -> tuple[JournalLine, ...]:
        """Return the lines of a chat, oldest first."""
        return await self._ask(lambda part: tuple(part.read(chat, since, until)))


class AsyncWorkspaces(_Part[WorkspaceManager]):
    """The methods of ``WorkspaceManager``, each a coroutine."""

    list = _workspaces_method(WorkspaceManager.list)
    unread = _workspaces_method(WorkspaceManager.unread)
    kinds = _workspaces_method(WorkspaceManager.kinds)
    rename = _workspaces_method(WorkspaceManager.rename)
    remove = _workspaces_method(WorkspaceManager.remove)
    exclude = _workspaces_method(WorkspaceManager.exclude)
    restore = _workspaces_method(WorkspaceManager.restore)


class AsyncMemory:
    """A memory whose methods are coroutines of the same names: each runs in a thread of its own pool.

        async with AsyncMemory.open() as memory:
            found = await memory.search("what did we decide about auth")

    Calls run at once, as many as there are threads; the others wait. A cancelled call that has not started never runs.
    One that has started runs to its end in its thread, except ``index``, ``embed`` and ``reindex``, which stop at their
    next step, and continue there at the next call. ``close`` waits for running calls.
    """

    def __init__(self, memory: Memory, *, threads: int = THREADS) -> None:
        """Take over a memory, which :meth:`close` closes."""
        self._memory = memory
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="klaw")
        self._closed = False

    @classmethod
    def open(
        cls,
        config: Config | str | Path | None = None,
        *,
        data_dir: str | Path | None = None,
        registry: Registry | None = None,
        components: Iterable[LiveComponent] = (),
        replace_damaged: bool = False,
        threads: int = THREADS,
    ) -> OpeningMemory:
        """Open as ``Memory.open`` does: ``await`` the result, or use it in ``async with``."""
        build = partial(
            Memory.open,
            config,
            data_dir=data_dir,
            registry=registry,
            components=components,
            replace_damaged=replace_damaged,
        )
        return OpeningMemory(lambda: cls(build(), threads=threads))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Wait for running calls, cancel the others, and release the store. Closing twice is allowed."""
        if self._closed:
            return
        self._closed = True
        await asyncio.to_thread(self._shut_down)

    def _shut_down(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._memory.close()

    async def _run(self, work: Callable[[], T]) -> T:
        if self._closed:
            raise StoreError("the memory is closed")
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    @property
    def config(self) -> Config:
        """The configuration this memory was assembled from."""
        return self._memory.config

    @property
    def erases_later(self) -> str:
        """See :attr:`Memory.erases_later`."""
        return self._memory.erases_later

    @property
    def isolates(self) -> bool:
        """Whether the store keeps this memory apart from those of other agents."""
        return self._memory.isolates

    @property
    def embedder(self) -> Embedder:
        """The configured embedder; its own methods are not coroutines."""
        return self._memory.embedder

    @property
    def extensions(self) -> Extensions:
        """The installed extensions; their own methods are not coroutines."""
        return self._memory.extensions

    @overload
    async def extension(self, key: str) -> Extension: ...
    @overload
    async def extension(self, key: type[T]) -> T: ...
    async def extension(self, key: str | type[T]) -> Extension | T:
        """Return an extension by its name or class; its own methods are not coroutines."""
        return await self._run(lambda: self._memory.extension(key))

    @property
    def core(self) -> AsyncCoreMemory:
        """Core memory: the few facts about user and agent that are part of every prompt."""
        return AsyncCoreMemory(self, lambda memory: memory.core)

    @property
    def conversations(self) -> AsyncConversations:
        """The conversations: append messages, read them, and search single messages."""
        return AsyncConversations(self, lambda memory: memory.conversations)

    @property
    def workspaces(self) -> AsyncWorkspaces:
        """The directories of notes: list, rename, remove and restrict them."""
        return AsyncWorkspaces(self, lambda memory: memory.workspaces)

    async def on_change(self, callback: Callable[[Event], None]) -> Callable[[], None]:
        """Call back in the event loop at every event of this memory in this process; return what ends that."""
        loop = asyncio.get_running_loop()

        def pass_on(event: Event) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(callback, event)

        return await self._run(lambda: self._memory.on_change(pass_on))

    index = _run_in_thread(Memory.index)
    embed = _run_in_thread(Memory.embed)
    reindex = _run_in_thread(Memory.reindex)
    search = _in_thread(Memory.search)
    search_for = _in_thread(Memory.search_for)
    nearest = _in_thread(Memory.nearest)
    get = _in_thread(Memory.get)
    save = _in_thread(Memory.save)
    add = _in_thread(Memory.add)
    delete = _in_thread(Memory.delete)
    get_by_ids = _in_thread(Memory.get_by_ids)
    documents = _in_thread(Memory.documents)
    sources = _in_thread(Memory.sources)
    watch_paths = _in_thread(Memory.watch_paths)
    forget = _in_thread(Memory.forget)
    context = _in_thread(Memory.context)
    tools = _in_thread(Memory.tools)
    toolbox = _in_thread(Memory.toolbox)
    call_tool = _in_thread(Memory.call_tool)
    recent = _in_thread(Memory.recent)
    restore = _in_thread(Memory.restore)
    collections = _in_thread(Memory.collections)
    status = _in_thread(Memory.status)
    doctor = _in_thread(Memory.doctor)
    export = _in_thread(Memory.export)
    import_ = _in_thread(Memory.import_)


class OpeningMemory(Awaitable[AsyncMemory]):
    """A memory that is being opened: await it, or enter it."""

    def __init__(self, build: Callable[[], AsyncMemory]) -> None:
        self._build = build
        self._memory: AsyncMemory | None = None

    def __await__(self) -> Generator[Any, None, AsyncMemory]:
        return self._open().__await__()

    async def _open(self) -> AsyncMemory:
        opening = asyncio.ensure_future(asyncio.to_thread(self._build))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_close_unused)  # no other code has a reference to it
            raise

    async def __aenter__(self) -> AsyncMemory:
        self._memory = await self
        return self._memory

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._memory is not None:
            await self._memory.close()


def _close_unused(opening: asyncio.Future[AsyncMemory]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        memory = opening.result()
        threading.Thread(target=memory._shut_down, name="klaw-close").start()  # noqa: SLF001  # its own
