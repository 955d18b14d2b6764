"""``AsyncMemory``: the same memory for programs that run an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, overload

from klaw_core.errors import StoreError
from klaw_core.holds import Flag
from klaw_core.memory import Memory

if TYPE_CHECKING:
    from klaw_core.extensions.host import Extensions
    from klaw_core.interfaces.components import Embedder
    from klaw_core.interfaces.extension import Extension
    from klaw_core.plugins.registry import LiveComponent, Registry
    from klaw_core.values.config import Config
    from klaw_core.values.events import Event

P = ParamSpec("P")
T = TypeVar("T")

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


class AsyncPart:
    """The methods of a part of a memory, each a coroutine. An iterator that one returns becomes a tuple.

    The part is built in a thread too, so a name that it does not have raises AttributeError in the coroutine.
    """

    def __init__(self, memory: AsyncMemory, get: Callable[[Memory], object]) -> None:
        self._owner = memory
        self._get = get

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        if name.startswith("_"):
            raise AttributeError(name)

        async def call(*arguments: Any, **options: Any) -> Any:
            return await self._owner._run(partial(self._call, name, arguments, options))  # noqa: SLF001  # a part of it

        return call

    def _call(self, name: str, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
        part = self._get(self._owner._memory)  # noqa: SLF001  # a part of it
        found = getattr(part, name)(*arguments, **options)
        return tuple(found) if isinstance(found, Iterator) else found


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
    def core(self) -> AsyncPart:
        """Core memory: the few facts about user and agent that are part of every prompt."""
        return AsyncPart(self, lambda memory: memory.core)

    @property
    def conversations(self) -> AsyncPart:
        """The conversations: append messages, read them, and search single messages."""
        return AsyncPart(self, lambda memory: memory.conversations)

    @property
    def workspaces(self) -> AsyncPart:
        """The directories of notes: list, rename, remove and restrict them."""
        return AsyncPart(self, lambda memory: memory.workspaces)

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
