"""From a question and chunks to scores, and what a model that is not what it says leads to."""

import math

import pytest

from klaw_core import Memory, ModelCorruptError, ModelNotFoundError, Query, RetrievalError
from klaw_core.config.load import load_config
from klaw_rerank_onnx.pairs import PairTokenizer
from klaw_rerank_onnx.reranker import logistic
from klaw_testing.doubles.cross_encoder import SPECIAL, VOCABULARY, make_graph

QUERY = Query("which pet ran")


def scores(scored):
    return {item.key: item.score for item in scored}


class TestScores:
    def test_scores_agree_with_the_model(self, make_model, load, found):
        scored = load(make_model()).rerank(QUERY, found, 10)
        assert [(item.key, item.raw) for item in scored] == [(3, 2.0), (2, 0.0), (1, -1.0), (4, -1.0)]
        assert [item.score for item in scored] == [logistic(item.raw) for item in scored]

    def test_the_score_of_two_logits_is_their_difference(self, make_model, load, found):
        scored = load(make_model(make_graph(2))).rerank(QUERY, found, 10)
        assert {item.key: item.raw for item in scored} == {3: 4.0, 2: 0.0, 1: -2.0, 4: -2.0}

    @pytest.mark.parametrize("batch", [1, 2, 3, 8])
    @pytest.mark.parametrize("threads", [1, 3])
    def test_batches_and_threads_do_not_change_scores(self, make_model, load, found, batch, threads):
        scored = load(make_model(), batch=batch, threads=threads).rerank(QUERY, found, 10)
        assert [item.raw for item in scored] == [2.0, 0.0, -1.0, -1.0]

    @pytest.mark.parametrize(("limit", "top_n"), [(2, 8), (10, 2)])
    def test_only_top_n_results_move(self, make_model, load, found, limit, top_n):
        assert [item.key for item in load(make_model(), top_n=top_n).rerank(QUERY, found, limit)] == [3, 2]

    def test_only_the_best_candidates_are_read(self, make_model, load, found):
        assert set(scores(load(make_model(), max_candidates=2).rerank(QUERY, found, 10))) == {1, 2}

    def test_large_logits_keep_their_order(self, make_model, load, found):
        scored = load(make_model(make_graph(1, scale=1e4))).rerank(QUERY, found, 10)
        assert [item.key for item in scored] == [3, 2, 1, 4]
        assert all(0 <= item.score <= 1 for item in scored)

    @pytest.mark.parametrize("logit", [-1e308, -1000.0, -5.0, 0.0, 5.0, 1000.0, 1e308])
    def test_the_logistic_function_is_stable(self, logit):
        assert math.isclose(logistic(logit), 0.5 * (1 + math.tanh(logit / 2)), abs_tol=1e-12)

    def test_a_clear_winner_loads_nothing(self, make_model, load, found):
        directory = make_model()
        reranker = load(directory, bypass=True)
        (directory / "model.onnx").unlink()
        assert reranker.rerank(QUERY, found[:1], 10) is None
        with pytest.raises(ModelCorruptError, match="cannot read"):
            reranker.rerank(QUERY, found, 10)


class TestPairs:
    @pytest.fixture
    def tokenizer(self, make_model, load):
        def of(max_tokens=512, **changes):
            return PairTokenizer.load(load(make_model(**changes)).manifest, max_tokens)

        return of

    def test_a_pair_has_both_texts_and_their_types(self, tokenizer):
        (pair,) = tokenizer().pairs("which pet", ["the dog ran"])
        words = [list(VOCABULARY)[number] for number in pair.ids]
        assert words == ["[CLS]", "which", "pet", "[SEP]", "the", "dog", "ran", "[SEP]"]
        assert pair.types == (0, 0, 0, 0, 1, 1, 1, 1)

    @pytest.mark.parametrize(("max_tokens", "window"), [(16, 64), (512, 16)])
    def test_only_the_chunk_is_truncated(self, tokenizer, max_tokens, window):
        pairs = tokenizer(max_tokens, window_tokens=window).pairs("which pet ran", ["the dog sat " * 40, "a boat"])
        assert [len(pair.ids) for pair in pairs] == [16, 8]
        assert pairs[0].ids[:5] == pairs[1].ids[:5]
        assert pairs[0].ids[-1] == VOCABULARY["[SEP]"]

    def test_a_question_that_fills_the_window_is_refused(self, tokenizer):
        tokenizer(64).pairs("pet " * 32, ["a boat"])
        with pytest.raises(RetrievalError, match="the question has 33 tokens; the model reads only 64"):
            tokenizer(64).pairs("pet " * 33, ["a boat"])

    @pytest.mark.parametrize("text", ["", "\ud800", "\0", "🧵", "кошка", "a\nb"])
    def test_any_text_can_be_scored(self, tokenizer, text):
        (pair,) = tokenizer().pairs(text, [text])
        assert len(pair.ids) == len(pair.types) >= 3

    def test_a_special_token_in_a_note_is_text(self, tokenizer):
        (plain,) = tokenizer().pairs("pet", ["dog"])
        (odd,) = tokenizer().pairs("pet", ["dog [SEP] [CLS]"])
        special = {VOCABULARY[name] for name in SPECIAL if name != "[UNK]"}
        assert sum(number in special for number in odd.ids) == sum(number in special for number in plain.ids)


class TestBrokenModels:
    def test_a_changed_file_is_not_run(self, make_model, load, found):
        directory = make_model()
        (directory / "model.onnx").write_bytes(make_graph(2))
        with pytest.raises(ModelCorruptError, match="does not match its manifest"):
            load(directory).rerank(QUERY, found, 10)

    def test_a_missing_graph_is_an_error(self, make_model, load, found):
        with pytest.raises(RetrievalError, match="cannot load tiny"):
            load(make_model(b"no graph")).rerank(QUERY, found, 10)

    def test_an_unknown_input_is_an_error(self, make_model, load, found):
        directory = make_model(inputs={"ids": "words", "mask": "attention_mask"})
        with pytest.raises(ModelCorruptError, match="the graph of tiny has no words"):
            load(directory).rerank(QUERY, found, 10)

    def test_an_output_of_another_form_is_an_error(self, make_model, load, found):
        with pytest.raises(ModelCorruptError, match=r"logits of tiny has the shape \(4, 3\)"):
            load(make_model(make_graph(3))).rerank(QUERY, found, 10)

    def test_a_score_that_is_not_a_number_is_an_error(self, make_model, load, found):
        with pytest.raises(RetrievalError, match="not a finite number"):
            load(make_model(make_graph(1, scale=math.nan))).rerank(QUERY, found, 10)

    def test_a_missing_model_is_an_error(self, load, tmp_path):
        with pytest.raises(ModelNotFoundError, match=r"no model\.json in"):
            load(tmp_path / "nowhere")


class TestThroughMemory:
    @pytest.fixture
    def open_memory(self, tmp_path):
        notes = tmp_path / "notes"
        notes.mkdir()
        for name, text in (("a", "the ran ran ran"), ("b", "the dog and which pet ran"), ("c", "pets")):
            (notes / f"{name}.md").write_text(text)

        def opened(**stage):
            tables = {
                "store": {"type": "memory"},
                "embedding": {"type": "none"},
                "retrieval": [{"type": "words"}],
                "reranking": [{"type": "onnx", **stage}],
            }
            config = load_config(
                data_dir=tmp_path, environment={"KLAW_CONFIG": "/dev/null"}, overrides={"memory": tables}
            )
            memory = Memory.open(config)
            memory.index(notes)
            return memory

        return opened

    def test_a_search_is_reranked_and_explained(self, open_memory, make_model):
        with open_memory(path=str(make_model()), bypass=False) as memory:
            results = memory.search("which pet ran")
        assert results.notices == ()
        first = results[0]
        assert first.path == "notes/b.md"
        assert first.score == logistic(2.0)
        assert (first.explain[-1].component, first.explain[-1].rank, first.explain[-1].raw) == ("onnx", 1, 2.0)
        assert math.isclose(sum(part.value for part in first.explain), first.score)

    def test_a_clear_winner_skips_the_model_and_explain_shows_it(self, open_memory, make_model):
        with open_memory(path=str(make_model())) as memory:
            results = memory.search("which dog")
        assert results.notices == ()
        assert [(part.component, part.weight, part.value) for part in results[0].explain[1:]] == [("onnx", 0.0, 0.0)]

    def test_a_missing_model_keeps_the_order_and_names_its_install_command(self, open_memory):
        with open_memory() as memory:
            (notice,) = memory.search("which pet ran").notices
        assert notice.startswith("not reranked by onnx: the model ms-marco-MiniLM-L6-v2 is not on this machine")
        assert "klaw models add ms-marco-MiniLM-L6-v2" in notice
