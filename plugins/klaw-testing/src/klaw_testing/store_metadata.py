"""The laws of the metadata of documents in a store, a part of ``StoreContract``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from klaw_core import Condition, Filters, Metadata, Snapshot, Store
from klaw_core.values.collections import MEMORY
from klaw_testing.laws import examples, law
from klaw_testing.store_cache import put
from klaw_testing.values import conditions, cut_lines, make_document, metadata

_PATHS = tuple(f"notes/{number}.md" for number in range(5))


def typed(values: Metadata) -> Mapping[str, tuple[type, str]]:
    """Return metadata in a form in which equal numbers of different types differ, and so do 0.0 and -0.0."""
    return {key: (type(value), repr(value)) for key, value in values.items()}


def paths_of(snapshot: Snapshot[Any], filters: Filters, collection: str = MEMORY) -> set[str]:
    """Return the paths of the chunks that pass the filters."""
    keys = snapshot.select(collection, filters).keys().tolist()
    return {stored.path for stored in snapshot.chunks(collection, keys)}


class MetadataLaws:
    """The laws of metadata; the subclass defines the fixture ``store``."""

    @settings(law, max_examples=examples(100))
    @given(values=metadata)
    def test_metadata_is_read_back_with_every_chunk_and_equal_types(self, store: Store[Any], values: Metadata) -> None:
        document = make_document("notes/a.md", "one\ntwo", metadata=values)
        for name in (MEMORY, "docs", "facts"):
            with store.write() as transaction:
                transaction.delete(name, document.path)
                added = transaction.replace(name, document, cut_lines(document)).added
                assert [typed(stored.metadata) for stored in added] == [typed(values)] * 2
            with store.read() as snapshot:
                stored = [*snapshot.outline(name, document.path), *snapshot.chunks(name, [added[0].key])]
                assert [typed(item.metadata) for item in stored] == [typed(values)] * 3
                assert tuple(stored[:2]) == tuple(added)

    @settings(law, max_examples=examples(300))
    @given(
        own=st.lists(metadata, min_size=1, max_size=len(_PATHS)),
        others=st.lists(metadata, max_size=2),
        wanted=st.lists(conditions, min_size=1, max_size=4),
        path=st.sampled_from([None, "notes/", _PATHS[0]]),
    )
    def test_selections_agree_with_condition_holds(
        self,
        store: Store[Any],
        own: Sequence[Metadata],
        others: Sequence[Metadata],
        wanted: Sequence[Condition],
        path: str | None,
    ) -> None:
        """A selection agrees with ``Condition.holds``, whatever other collections contain."""
        written = {MEMORY: dict(zip(_PATHS, own, strict=False)), "facts": dict(zip(_PATHS, others, strict=False))}
        with store.write() as transaction:
            for name, documents in written.items():
                for each in _PATHS:
                    transaction.delete(name, each)
                for each, values in documents.items():
                    document = make_document(each, "one\ntwo", metadata=values)
                    transaction.replace(name, document, cut_lines(document))
        together = Filters(path=path, metadata=tuple(wanted))
        with store.read() as snapshot:
            for filters in (together, *(Filters(metadata=(condition,)) for condition in wanted)):
                for name, documents in written.items():
                    expected = {
                        each
                        for each, values in documents.items()
                        if each.startswith(filters.path or "")
                        and all(condition.holds(values) for condition in filters.metadata)
                    }
                    assert paths_of(snapshot, filters, name) == expected
                    assert len(snapshot.select(name, filters).keys()) == 2 * len(expected)

    def test_a_document_is_found_only_by_its_current_metadata(self, store: Store[Any]) -> None:
        old, new = ({"kind": kind, "tags": ("x", kind)} for kind in ("old", "new"))
        document = make_document("notes/a.md", "one\ntwo", metadata=old)
        by_old, by_new = (Filters(metadata=(Condition("tags", "=", kind),)) for kind in ("old", "new"))
        by_both = Filters(metadata=(Condition("tags", "=", "x"),))
        put(store, document, make_document("notes/b.md", "three"))
        for change in ("replace", "touch"):
            changed = evolve(document, metadata=new)
            with store.write() as transaction:
                if change == "replace":
                    assert transaction.replace(MEMORY, changed, cut_lines(changed)).removed == ()
                else:
                    transaction.touch(MEMORY, changed)
                assert paths_of(transaction, by_new) == {document.path}
            with store.read() as snapshot:
                assert paths_of(snapshot, by_old) == set()
                assert paths_of(snapshot, by_new) == paths_of(snapshot, by_both) == {document.path}
                assert [dict(stored.metadata) for stored in snapshot.outline(MEMORY, document.path)] == [new, new]
            put(store, document)
            with store.read() as snapshot:
                assert paths_of(snapshot, by_old) == {document.path}
                assert paths_of(snapshot, by_new) == set()
        with store.write() as transaction:
            transaction.delete(MEMORY, document.path)
        put(store, evolve(document, metadata={}))
        with store.read() as snapshot:
            assert paths_of(snapshot, by_old) == paths_of(snapshot, by_both) == set()
            assert paths_of(snapshot, Filters(metadata=(Condition("kind", "!=", "old"),))) == {
                document.path,
                "notes/b.md",
            }

    def test_the_case_of_letters_does_not_count(self, store: Store[Any]) -> None:
        tags = ("JavaScript", "Energy/Heating", "Caf\u00e9", "\u0391\u0398\u0397\u039d\u0391")
        put(store, *(make_document(f"notes/{at}.md", "one", metadata={"tags": (tag,)}) for at, tag in enumerate(tags)))
        asked = ("javascript", "energy", "CAFE\u0301", "\u03b1\u03b8\u03b7\u03bd\u03b1")
        every = {f"notes/{at}.md" for at in range(len(tags))}
        with store.read() as snapshot:
            for at, tag in enumerate(asked):
                own = f"notes/{at}.md"
                for wanted in (Condition("tags", "=", tag), Condition("tags", "in", (tag, "x"))):
                    assert paths_of(snapshot, Filters(metadata=(wanted,))) == {own}
                assert paths_of(snapshot, Filters(metadata=(Condition("tags", "!=", tag),))) == every - {own}
            before = Filters(metadata=(Condition("tags", "<", "F"),))
            assert paths_of(snapshot, before) == {"notes/1.md", "notes/2.md"}

    def test_a_condition_can_have_thousands_of_values(self, store: Store[Any]) -> None:
        put(store, *(make_document(f"notes/{number}.md", "one", metadata={"number": number}) for number in range(3)))
        wanted = Condition("number", "in", (*range(2, 3000), *(str(number) for number in range(3000))))
        with store.read() as snapshot:
            assert paths_of(snapshot, Filters(metadata=(wanted,))) == {"notes/2.md"}
