"""``KlawStore`` as LangGraph's contract describes stores (langgraph.store.base)."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

import langchain_klaw.stores
from klaw_core import Memory, load_config
from langchain_klaw import KlawStore

WORDS_ONLY = {"memory": {"embedding": {"type": "none"}}}


@pytest.fixture
def store(words_only):
    return KlawStore(words_only)


class TestItems:
    def test_an_item_is_stored_changed_and_deleted(self, store):
        store.put(("users", "ada"), "k", {"text": "The ferry.", "n": [1, {"x": None}]})
        first = store.get(("users", "ada"), "k")
        assert (first.namespace, first.key, first.value) == (
            ("users", "ada"),
            "k",
            {"text": "The ferry.", "n": [1, {"x": None}]},
        )
        store.put(("users", "ada"), "k", {"text": "The train."})
        second = store.get(("users", "ada"), "k")
        assert second.value == {"text": "The train."}
        assert second.created_at == first.created_at
        assert second.updated_at >= first.updated_at
        assert store.get(("users",), "k") is None
        store.delete(("users", "ada"), "k")
        assert store.get(("users", "ada"), "k") is None
        assert store.search(("users",), query="train") == []

    def test_an_answer_to_a_question_has_nothing_that_nobody_sees_and_an_item_is_what_was_put(self, store):
        value = {"te\u200bxt": "The ferry lea\u00adves.", "n": [1, {"x": "a\u2060"}]}
        store.put(("users",), "k", value)
        (found,) = store.search(("users",), query="ferry")
        assert found.value == {"text": "The ferry leaves.", "n": [1, {"x": "a"}]}
        assert [item.value for item in store.search(("users",))] == [store.get(("users",), "k").value] == [value]

    def test_names_with_any_characters_are_distinguished(self, store):
        names = [(("a",), "b/c"), (("a", "b"), "c"), (("a",), "b%2Fc"), (("ü\n",), "数据 库"), (("a",), "b c")]
        for number, (namespace, key) in enumerate(names):
            store.put(namespace, key, {"n": number})
        for number, (namespace, key) in enumerate(names):
            assert store.get(namespace, key).value == {"n": number}
        assert set(store.list_namespaces()) == {namespace for namespace, _ in names}

    def test_a_batch_is_answered_in_order_and_the_last_write_wins(self, store):
        store.put(("t",), "a", {"n": 0})
        results = store.batch(
            [
                GetOp(("t",), "a"),
                PutOp(("t",), "a", {"n": 1}),
                SearchOp(("t",)),
                PutOp(("t",), "a", {"n": 2}),
                ListNamespacesOp(),
            ]
        )
        assert results[0].value == {"n": 0}
        assert [item.value for item in results[2]] == [{"n": 0}]
        assert (results[1], results[3], results[4]) == (None, None, [("t",)])
        assert store.get(("t",), "a").value == {"n": 2}

    def test_an_invalid_namespace_is_rejected(self, store):
        with pytest.raises(InvalidNamespaceError):
            store.put(("a.b",), "k", {})

    def test_it_works_in_an_event_loop(self, store):
        async def use():
            await asyncio.gather(*(store.aput(("t",), str(number), {"n": number}) for number in range(10)))
            return await store.asearch(("t",), limit=20)

        assert {item.value["n"] for item in asyncio.run(use())} == set(range(10))


class TestSearch:
    @pytest.fixture
    def fleet(self, store):
        store.put(("boats", "red"), "1", {"text": "a red boat", "year": 2024, "owner": {"first-name": "Ada"}})
        store.put(("boats", "blue"), "2", {"text": "a blue boat", "year": 2026})
        store.put(("boatsheds",), "3", {"text": "a boat in a shed", "year": 2026})
        return store

    def test_words_find_the_best_first(self, fleet):
        found = fleet.search(("boats",), query="blue boat")
        assert [item.key for item in found] == ["2", "1"]
        assert found[0].score > found[1].score

    def test_a_namespace_ends_where_its_label_ends(self, fleet):
        assert {item.key for item in fleet.search(("boats",))} == {"1", "2"}
        assert {item.key for item in fleet.search((), query="boat")} == {"1", "2", "3"}

    @pytest.mark.parametrize(
        ("where", "keys"),
        [
            ({"year": 2026}, {"2"}),
            ({"year": {"$gt": 2024}}, {"2"}),
            ({"year": {"$lt": float("inf")}}, {"1", "2"}),
            ({"year": {"$ne": 2026}}, {"1"}),
            ({"owner.first-name": "Ada"}, {"1"}),
            ({"owner": {"first-name": "Ada"}}, {"1"}),
            ({"text": {"$gte": "a c"}}, {"1"}),
            ({"text": {"$gt": "Zebra"}}, {"1", "2"}),  # by code points, not as the index orders text
            ({"year": {"$eq": float("nan")}}, set()),
        ],
    )
    @pytest.mark.parametrize("query", ["boat", None, " "])
    def test_filters_apply_with_and_without_a_question(self, fleet, where, keys, query):
        assert {item.key for item in fleet.search(("boats",), query=query, filter=where)} == keys

    def test_an_unknown_operator_is_refused(self, fleet):
        with pytest.raises(ValueError, match="regex"):
            fleet.search(("boats",), filter={"year": {"$regex": "2"}})

    def test_pages_do_not_overlap(self, store):
        for number in range(7):
            store.put(("t",), str(number), {"text": f"boat number {number}"})
        for query in ("boat", None):
            pages = [store.search(("t",), query=query, limit=3, offset=offset) for offset in (0, 3, 6)]
            assert sorted(item.key for page in pages for item in page) == list("0123456")

    def test_only_the_named_fields_are_searched(self, words_only):
        store = KlawStore(words_only, fields=["title", "tags[*]"])
        store.put(("t",), "a", {"title": "Boats", "tags": ["harbour"], "body": "wombat"})
        store.put(("t",), "b", {"title": "Boats", "body": "kiwi"}, index=["body"])
        store.put(("t",), "c", {"title": "Boats", "body": "heron"}, index=False)
        assert [item.key for item in store.search(("t",), query="boats")] == ["a"]
        assert [item.key for item in store.search(("t",), query="harbour")] == ["a"]
        assert [item.key for item in store.search(("t",), query="kiwi")] == ["b"]
        assert not store.search(("t",), query="wombat")
        assert not store.search(("t",), query="heron")
        assert {item.key for item in store.search(("t",))} == {"a", "b", "c"}


class TestNamespaces:
    @pytest.fixture
    def filled(self, store):
        for namespace in [("a", "x", "1"), ("a", "y", "1"), ("b", "x", "2"), ("b",)]:
            store.put(namespace, "k", {})
        return store

    @pytest.mark.parametrize(
        ("asked", "found"),
        [
            ({}, [("a", "x", "1"), ("a", "y", "1"), ("b",), ("b", "x", "2")]),
            ({"prefix": ("a",)}, [("a", "x", "1"), ("a", "y", "1")]),
            ({"suffix": ("1",)}, [("a", "x", "1"), ("a", "y", "1")]),
            ({"prefix": ("*", "x")}, [("a", "x", "1"), ("b", "x", "2")]),
            ({"prefix": ("a",), "suffix": ("y", "*")}, [("a", "y", "1")]),
            ({"max_depth": 1}, [("a",), ("b",)]),
            ({"limit": 2, "offset": 1}, [("a", "y", "1"), ("b",)]),
        ],
    )
    def test_namespaces_are_listed(self, filled, asked, found):
        assert filled.list_namespaces(**asked) == found


class TestExpiry:
    @pytest.fixture
    def clock(self, monkeypatch):
        class Clock(datetime):
            shift = timedelta()

            @classmethod
            def now(cls, tz=None):
                return datetime.now(tz) + cls.shift

        monkeypatch.setattr(langchain_klaw.stores, "datetime", Clock)
        return Clock

    def test_expired_items_are_not_returned_and_can_be_removed(self, store, clock):
        store.put(("t",), "short", {"text": "a boat"}, ttl=1)
        store.put(("t",), "long", {"text": "a boat"}, ttl=None)
        clock.shift = timedelta(minutes=2)
        assert store.get(("t",), "short") is None
        assert [item.key for item in store.search(("t",), query="boat")] == ["long"]
        assert [item.key for item in store.search(("t",))] == ["long"]
        assert store.sweep_ttl() == 1
        assert store.sweep_ttl() == 0
        clock.shift = timedelta()
        assert store.get(("t",), "short") is None

    def test_a_read_renews_the_expiry_unless_disabled(self, store, clock):
        for key in ("read", "peeked"):
            store.put(("t",), key, {}, ttl=10)
        clock.shift = timedelta(minutes=8)
        store.get(("t",), "read")
        store.get(("t",), "peeked", refresh_ttl=False)
        clock.shift = timedelta(minutes=12)
        assert store.get(("t",), "read") is not None
        assert store.get(("t",), "peeked") is None


LABELS = st.sampled_from(["a", "b", "a/b", "%2F", "ü"])
NAMESPACES = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
VALUES = st.dictionaries(st.sampled_from(["x", "y"]), st.integers(0, 3) | st.booleans() | st.none(), max_size=2)
OPERATIONS = st.one_of(
    st.tuples(NAMESPACES, LABELS, st.none() | VALUES).map(lambda given: PutOp(*given)),
    st.tuples(NAMESPACES, LABELS).map(lambda given: GetOp(*given)),
    st.tuples(NAMESPACES, st.none() | st.fixed_dictionaries({"x": st.integers(0, 3)}), st.just(100)).map(
        lambda given: SearchOp(*given)
    ),
)


@settings(max_examples=25, deadline=None)
@given(batches=st.lists(st.lists(OPERATIONS, max_size=4), max_size=8))
def test_law_answers_agree_with_langgraphs_in_memory_store(batches, tmp_path_factory):
    """Values, not times. Namespaces are left out: the twin also lists those whose items are deleted."""
    twin = InMemoryStore()
    config = load_config(data_dir=tmp_path_factory.mktemp("law"), overrides=WORDS_ONLY)
    with Memory.open(config) as memory:
        store = KlawStore(memory)
        for batch in batches:
            assert list(map(_plain, store.batch(batch))) == list(map(_plain, twin.batch(batch)))


def _plain(result):
    if isinstance(result, list):
        return sorted((_plain(item) for item in result), key=repr)
    return result if result is None or isinstance(result, tuple) else (result.namespace, result.key, repr(result.value))


def test_times_have_a_time_zone(store):
    store.put(("t",), "k", {})
    item = store.get(("t",), "k")
    assert item.created_at.tzinfo == UTC
