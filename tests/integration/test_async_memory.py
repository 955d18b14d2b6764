"""The asynchronous facade: the same names, answers and errors as ``Memory``, and a loop that is never blocked."""

from __future__ import annotations

import asyncio
import inspect
import threading

import pytest

from klaw_core import AsyncMemory, Chat, Memory, Message, NotFoundError, SearchEvent, StoreError
from klaw_testing.values import MOMENT

#: What a memory has beside its methods; each has methods of its own.
PARTS = ("core", "conversations", "workspaces")


def public(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


class TestSurface:
    def test_every_public_name_is_there(self):
        # A new method of Memory needs a line in klaw_core/async_memory.py: name = _in_thread(Memory.name)
        assert public(AsyncMemory) == public(Memory)

    @pytest.mark.parametrize("name", sorted(public(Memory)))
    def test_methods_are_coroutines_with_the_same_parameters(self, name):
        own, original = inspect.getattr_static(AsyncMemory, name), inspect.getattr_static(Memory, name)
        if not inspect.isfunction(original):
            assert not inspect.isfunction(own)
            return
        assert inspect.iscoroutinefunction(own)
        mine, others = (list(inspect.signature(method).parameters) for method in (own, original))
        assert mine == others

    def test_open_has_the_parameters_of_memory_open_and_threads(self):
        mine, others = (list(inspect.signature(kind.open).parameters) for kind in (AsyncMemory, Memory))
        assert mine == [*others, "threads"]


@pytest.fixture
def indexed(home):
    home.write("a.md", "# Harbour\n\nThe harbour master writes down every ship.\n")
    with home.open() as memory:
        memory.index(home.notes)
    return home


def run(home, use):
    """Run a coroutine function with an asynchronous memory of this home."""

    async def main():
        async with AsyncMemory(home.open()) as memory:
            return await use(memory)

    return asyncio.run(main())


class TestParts:
    @pytest.mark.parametrize("name", PARTS)
    def test_every_method_of_a_part_is_a_coroutine_with_its_answer(self, indexed, name):
        chat = Chat("telegram", "1")
        arguments = {"read": (chat,), "window": (chat,), "render": (), "get": (), "chats": (), "list": ()}

        async def use(memory):
            part = getattr(memory, name)
            await memory.core.update("user", "name", "Ada")
            await memory.conversations.append(Message("user", "hello", MOMENT, meta=chat.meta))
            methods = [method for method in arguments if hasattr(getattr(memory._memory, name), method)]
            assert methods
            return {method: await getattr(part, method)(*arguments[method]) for method in methods}

        answers = run(indexed, use)
        with indexed.open() as memory:
            part = getattr(memory, name)
            own = {method: getattr(part, method)(*arguments[method]) for method in answers}
            own |= {method: tuple(own[method]) for method in ("read",) if method in own}  # an iterator
        assert answers == own

    @pytest.mark.parametrize("name", PARTS)
    def test_what_a_part_does_not_have_raises_attribute_error(self, indexed, name):
        async def use(memory):
            with pytest.raises(AttributeError, match="fly"):
                await getattr(memory, name).fly()
            with pytest.raises(AttributeError):
                getattr(memory, name)._fly  # noqa: B018  # the access is what raises

        run(indexed, use)


class TestAnswers:
    def test_results_equal_those_of_the_memory(self, indexed):
        async def use(memory):
            await memory.core.update("user", "name", "Ada")
            saved = await memory.save("The ferry leaves at seven.")
            return (
                await memory.search("harbour", mode="fts"),
                await memory.get(saved.path),
                await memory.core.get(),
                await memory.call_tool("memory_search", {"q": "ferry"}),
                [document.path for document in await memory.documents()],
            )

        found, read, facts, answer, documents = run(indexed, use)
        with indexed.open() as memory:
            assert found == memory.search("harbour", mode="fts")
            assert read.content == "The ferry leaves at seven."
            assert facts == memory.core.get()
            assert answer == memory.call_tool("memory_search", {"query": "ferry"})
            assert documents == [document.path for document in memory.documents()]

    def test_errors_are_raised_where_the_call_is_awaited(self, indexed):
        async def use(memory):
            with pytest.raises(NotFoundError, match="no indexed document has"):
                await memory.get("notes/none.md")

        run(indexed, use)

    def test_open_can_be_awaited_or_used_as_a_context_manager(self, tmp_path):
        async def main():
            async with AsyncMemory.open(tmp_path / "x.db") as memory:
                await memory.save("The ferry leaves at seven.")
            memory = await AsyncMemory.open(tmp_path / "x.db")
            found = await memory.search("ferry", mode="fts")
            await memory.close()
            await memory.close()
            return found

        assert [result.content for result in asyncio.run(main())] == ["The ferry leaves at seven."]

    def test_events_arrive_in_the_loop(self, indexed):
        async def use(memory):
            threads = []
            stop = await memory.on_change(lambda _event: threads.append(threading.current_thread()))
            await memory.save("The ferry leaves at seven.")
            await asyncio.sleep(0)
            stop()
            return threads

        assert set(run(indexed, use)) == {threading.main_thread()}


class TestConcurrency:
    def test_searches_run_concurrently(self, indexed):
        together = threading.Barrier(3, timeout=300)

        def meet(event):
            if isinstance(event, SearchEvent):  # in the thread of the search
                together.wait()

        async def use(memory):
            memory._memory.on_change(meet)
            return await asyncio.gather(*(memory.search("harbour", mode="fts") for _ in range(3)))

        first, *others = run(indexed, use)
        assert not together.broken
        assert first
        assert others == [first, first]

    def test_many_searches_and_saves_at_once(self, indexed):
        async def use(memory):
            saves = [memory.save(f"Ship {number} has arrived.") for number in range(10)]
            searches = [memory.search("harbour", mode="fts") for _ in range(30)]
            await asyncio.gather(*saves, *searches)
            return await memory.search("ship arrived", 20, mode="fts")

        assert len({result.content for result in run(indexed, use)} - {None}) >= 10


class TestCancellation:
    def test_a_cancelled_run_ends_at_its_next_step_and_continues_later(self, indexed):
        for number in range(50):
            indexed.write(f"{number}.md", f"# Note {number}\n\nText of note number {number}.\n")

        async def use(memory):
            begun, seen = asyncio.Event(), []
            loop = asyncio.get_running_loop()
            released = threading.Event()

            def on_progress(progress):
                seen.append(progress)
                loop.call_soon_threadsafe(begun.set)
                released.wait(300)

            task = asyncio.create_task(memory.index(on_progress=on_progress))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            released.set()
            await memory._run(lambda: None)
            report = await memory.index()
            return len(seen), report

        steps, report = run(indexed, use)
        assert steps == 1, "the run reported again after it was cancelled"
        assert report.added == 50

    def test_a_cancelled_call_that_has_not_started_never_runs(self, indexed):
        async def main():
            released, ran = threading.Event(), []
            async with AsyncMemory(indexed.open(), threads=1) as memory:
                first = asyncio.create_task(memory._run(lambda: released.wait(300)))
                second = asyncio.create_task(memory._run(lambda: ran.append(1)))
                await asyncio.sleep(0)
                second.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await second
                released.set()
                await first
            return ran

        assert asyncio.run(main()) == []

    def test_a_cancelled_save_that_has_started_is_kept(self, indexed, monkeypatch):
        begun, released = threading.Event(), threading.Event()

        async def main():
            async with AsyncMemory(indexed.open()) as memory:
                part = memory._memory.extension("saved")
                original = type(part).save

                def slow(self, *arguments, **options):
                    begun.set()
                    released.wait(300)
                    return original(self, *arguments, **options)

                monkeypatch.setattr(type(part), "save", slow)
                task = asyncio.create_task(memory.save("The ferry leaves at seven."))
                await asyncio.to_thread(begun.wait, 30)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                released.set()

        asyncio.run(main())
        with indexed.open() as memory:
            assert memory.search("ferry", mode="fts")

    def test_every_call_after_close_is_an_error(self, indexed):
        async def main():
            memory = AsyncMemory(indexed.open())
            await memory.close()
            with pytest.raises(StoreError, match="closed"):
                await memory.search("harbour")
            with pytest.raises(StoreError, match="closed"):
                await memory.core.get()

        asyncio.run(main())
