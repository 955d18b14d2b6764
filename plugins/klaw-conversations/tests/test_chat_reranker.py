"""The stage ``chat``: replies before questions, the person who is asked for, and everything else in its place."""

from datetime import UTC, datetime

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from klaw_conversations.reranker import WEIGHTS, ChatReranker, features
from klaw_core import Candidate, Chunk, Hit, Memory, Message, Query, StoredChunk
from klaw_testing.laws import law
from klaw_testing.reranker import RerankerContract

MONDAY = datetime(2026, 2, 23, 10, tzinfo=UTC)


class TestChatReranker(RerankerContract):
    @pytest.fixture
    def reranker(self):
        return ChatReranker()


def chat(*messages, name="tg_1", first_key=1):
    """Return one candidate for each message, by line; all have the same score and relevance."""
    found = []
    for line, text in enumerate(messages, start=1):
        chunk = Chunk(
            f"{name}-{line}", text, 0, len(text), line, line, context="\n".join(messages[max(0, line - 3) : line - 1])
        )
        stored = StoredChunk(first_key + line, chunk, f"conversations/{name}/2026-02-23.jsonl", "conversation", MONDAY)
        found.append(Candidate(stored, Hit(first_key + line, 0.5, (), 0.3)))
    return found


def ranked(question, candidates):
    """Return the texts in the order of the stage."""
    texts = {candidate.key: candidate.stored.chunk.text for candidate in candidates}
    scores = ChatReranker().rerank(Query(question, "memory", None, None), candidates, len(candidates))
    return list(texts.values()) if scores is None else [texts[score.key] for score in scores]


@pytest.mark.parametrize(
    ("question", "asked", "reply", "other"),
    [
        ("What did Ben paint?", "Ada: What did you paint, Ben?", "Ben: A sunrise.", "Ada: I paint, too."),
        ("Что нарисовал Ваня?", "Аня: Что ты нарисовал?", "Ваня: Рассвет.", "Аня: Я тоже нарисовала кота."),
        ("小王画了什么？", "小李: 你画了什么？", "小王: 日出。", "小李: 我也画画。"),
    ],
)
def test_a_reply_comes_before_its_question_and_before_a_mention(question, asked, reply, other):
    assert ranked(question, chat(other, asked, reply))[0] == reply


def test_the_answer_of_an_assistant_comes_before_the_question_about_a_subject():
    asked = "User: How do I rotate the signing keys?"
    answer = "Assistant: Run keytool rotate, then restart the gateway."
    assert ranked("how are signing keys rotated", chat(asked, answer)) == [answer, asked]


@pytest.mark.parametrize(
    ("question", "asked", "answer"),
    [
        (
            "museum with the whale",
            "User: what was the name of that museum with the whale",
            "It is the University Museum.",
        ),
        ("pattern for postcodes", "User: please write a pattern for postcodes", "Four digits, the first is no zero."),
        ("Rezept für Knödel", "User: Gib mir ein Rezept für Knödel", "Man reibt Kartoffeln."),
        ("столица Перу", "User: какая столица Перу", "Лима."),
    ],
)
def test_people_ask_an_assistant_without_a_question_mark_too(question, asked, answer):
    answer = f"Assistant: {answer}"
    assert ranked(question, chat(asked, answer)) == [answer, asked]


@pytest.mark.parametrize("said", ["What a museum with a whale!", "The museum with the whale is shut."])
def test_exclamations_and_statements_ask_nothing(said):
    said, answer = f"User: {said}", "Assistant: Noted."
    assert ranked("museum with the whale", chat(said, answer)) == [said, answer]


@pytest.mark.parametrize("question", ["What is my editor?", "Какой у меня редактор?", "我的编辑器是什么？"])
def test_what_a_person_said_comes_before_what_an_assistant_said_of_it(question):
    said, noted = "User: My editor is Helix.", "Assistant: Your editor is Helix, noted."
    messages = chat(noted, said)
    assert ranked(question, messages) == [said, noted]


def test_a_later_piece_of_a_long_message_is_the_assistants():
    said, piece = "User: My editor is Helix.", "Note: your editor is Helix, and so on."
    first, second = chat(piece, said)
    stored = first.stored
    chunk = Chunk("c", piece, 0, len(piece), 1, 1, continues="paragraph")
    first = Candidate(StoredChunk(stored.key, chunk, stored.path, stored.source, stored.created_at), first.hit)
    others = chat("Assistant: Hello!", name="tg_1", first_key=10)
    assert ranked("What is my editor?", [first, second, *others])[0] == said


def test_the_messages_of_a_named_speaker_come_first():
    other, own = "Ada: The kiln of Ben is new, I like it.", "Ben: The kiln in my shed is new, I like it."
    assert ranked("Which kiln does Ben have?", chat(other, own))[0] == own
    assert ranked("Which kiln does Ada have?", chat(own, other))[0] == other


def test_a_message_with_a_day_answers_a_question_of_when():
    plain, dated = "Ada: We moved the kiln, I think.", "Ada: We moved the kiln yesterday."
    messages = chat("Ben: Hello.", plain, dated)
    assert ranked("When did they move the kiln?", messages)[0] == dated
    assert ranked("Did they move the kiln?", chat("Ben: Hello.", dated, plain))[0] == dated  # nothing else differs


@pytest.mark.parametrize("name", ["Strauß", "İnci", "Ann [10:30]", "A" * 80])
def test_any_name_of_a_transcript_is_a_speaker(name):
    reply = f"{name}: ﬁne, a sunrise."
    assert ranked("What did they paint?", chat("Ada: We paint, too.", "Ada: What did they paint?", reply))[0] == reply


def test_the_order_stays_where_nobody_replies():
    messages = chat("Ada: What did I paint?", "Ada: A sunrise.", "Ada: I paint.")
    scores = ChatReranker().rerank(Query("What did Ada paint?", "memory", None, None), messages, 3)
    assert [score.key for score in scores] == [candidate.key for candidate in messages]
    unknown = [Candidate(each.stored, Hit(each.key, 0.5)) for each in messages]
    assert ChatReranker().rerank(Query("What did Ada paint?", "memory", None, None), unknown, 3) is None


def test_the_words_of_the_messages_before_count_less_than_those_of_a_message_itself():
    messages = chat(
        "Ada: Where is the quixotic lantern?", "Ben: The quixotic lantern is in Split.", "Ada: Who fixes the boiler?"
    )
    scores = ChatReranker().rerank(Query("quixotic lantern", "memory", None, None), messages, 3)
    relevance = {score.key: score.relevance for score in scores}
    answer, boiler = relevance[messages[1].key], relevance[messages[2].key]
    assert answer > 0.5
    assert boiler < answer / 2


def test_a_reply_is_as_relevant_as_its_question_as_far_as_that_is_the_one_asked():
    asked, reply = chat("Ada: What did you paint?", "Ben: A sunrise.")
    reply = Candidate(reply.stored, Hit(reply.key, 0.5, (), 0.01))
    scores = ChatReranker().rerank(Query("What did Ben paint?", "memory", None, None), [asked, reply], 2)
    assert [score.key for score in scores] == [reply.key, asked.key]
    unasked, alone = chat("Ada: What did you eat?", "Ben: A sunrise.")
    alone = Candidate(alone.stored, Hit(alone.key, 0.5, (), 0.01))
    others = ChatReranker().rerank(Query("What did Ben paint?", "memory", None, None), [unasked, alone], 2)
    (other,) = [score for score in others if score.key == alone.key]
    assert scores[0].relevance > 0.5
    assert other.relevance < scores[0].relevance / 2


def test_every_feature_of_a_message_has_a_weight():
    (row, *_) = features("What did Ben paint?", chat("Ada: What did you paint?", "Ben: A sunrise."))
    assert {*row, "fused"} - {"assistant", "own"} == set(WEIGHTS)


_texts = st.lists(
    st.sampled_from(
        ["Ada: What did you paint?", "Ben: A sunrise.", "Ada: We paint.", "User: My kiln?", "Assistant: Yes.", "no one"]
    ),
    max_size=6,
)
_questions = st.sampled_from(["What did Ben paint?", "my kiln", "when", "画", "?"])


@law
@given(_texts, _texts, _questions)
def test_law_a_chat_keeps_its_places_and_no_message_is_lost(first, second, question):
    messages = [*chat(*first, name="tg_1"), *chat(*second, name="tg_2", first_key=50)]
    messages.sort(key=lambda candidate: candidate.key % 7)
    scores = ChatReranker().rerank(Query(question, "memory", None, None), messages, len(messages))
    if scores is None:
        return
    paths = {candidate.key: candidate.stored.path for candidate in messages}
    assert sorted(score.key for score in scores) == sorted(paths)
    assert [paths[score.key] for score in scores] == [candidate.stored.path for candidate in messages]
    assert [score.score for score in scores] == [candidate.hit.score for candidate in messages]
    assert {score.relevance is None for score in scores} == {False}  # all of these have one before the stage


def say(memory, *messages):
    meta = {"channel": "tg", "chat_id": "1"}
    memory.conversations.append_many(
        Message("user", text, MONDAY.replace(minute=minute), id=str(minute), meta={**meta, "name": name})
        for minute, (name, text) in enumerate(messages)
    )
    memory.index()


LINES = (
    ("Ada", "How was the weekend in the mountains, was there any snow?"),
    ("Ben", "There was none at all, but we walked up to the old hut."),
    ("Ada", "And what did you paint there, at the lake below the hut?"),
    ("Ben", "A sunrise, in oil, with the two boats of the fisherman."),
    ("Ada", "Clara also said that you paint there, at the lake below the hut."),
)


def test_a_search_finds_the_reply_first_and_says_why(home):
    with home.open() as memory:
        say(memory, *LINES)
        (best, *_) = memory.search("What did Ben paint at the lake?")
        assert best.content == "Ben: A sunrise, in oil, with the two boats of the fisherman."
        assert best.explain[-1].component == "chat"
        assert sum(part.value for part in best.explain) == pytest.approx(best.score)
    with home.open(reranking=[]) as memory:
        (best, *_) = memory.search("What did Ben paint at the lake?")
        assert best.content != "Ben: A sunrise, in oil, with the two boats of the fisherman."


def test_notes_keep_their_places_and_scores_among_messages(home):
    home.write("lake.md", "# The lake\n\nWe paint at the lake below the hut.\n")
    home.write("hut.md", "# The hut\n\nThe hut above the lake is old, and Ben has the key.\n")

    def found(memory):
        say(memory, *LINES)
        memory.index(home.notes)
        return memory.search("What did Ben paint at the lake?")

    with home.open(reranking=[]) as memory:
        before = found(memory)
    with home.open() as memory:
        after = memory.search("What did Ben paint at the lake?")
    notes = [(place, result.path, result.score) for place, result in enumerate(before) if result.chat_id is None]
    assert notes == [(place, result.path, result.score) for place, result in enumerate(after) if result.chat_id is None]
    assert len(notes) == 2
    assert [result.content for result in before] != [result.content for result in after]


def test_messages_keep_their_order_and_nothing_is_said_where_the_plugin_is_missing(home):
    with home.open(reranking=[]) as memory:
        say(memory, *LINES)
        before = [result.content for result in memory.search("What did Ben paint at the lake?")]
    installed = home.registry()
    offers = {key: found for key, found in installed.offers.items() if key != ("reranker", "chat")}
    with Memory.open(home.config(), registry=evolve(installed, offers=offers)) as memory:
        for _ in range(2):
            found = memory.search("What did Ben paint at the lake?")
            assert [result.content for result in found] == before
            assert found.notices == ()
        assert not [problem for problem in memory.status().problems if "chat" in problem]
