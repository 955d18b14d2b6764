"""A killed index run: what was answered and kept is never paid for again; ``paid.py`` says how it is killed."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # test modules are imported by path, and so know no neighbours

from paid import TEXTS_PER_CALL, Provider, Trial  # the line above

#: Chunks that are paid for, in a sample and in a campaign.
SAMPLE, WHOLE = 300, 5_000


@pytest.fixture
def trial(tmp_path, httpserver, cases):
    trial = Trial(tmp_path, Provider(httpserver, dimension=64))
    trial.prepare(cases.number(SAMPLE, WHOLE))
    return trial


def index(trial, **kill):
    return trial.klaw("index", str(trial.root / "notes"), **kill)


@pytest.mark.promise("D8", "D23")
def test_killed_between_two_calls_no_text_is_sent_again(trial):
    calls = trial.chunks // TEXTS_PER_CALL
    for call in (2, 3):  # the first is the probe's, which makes the vector space
        assert index(trial, kill_at=call) < 0
    assert index(trial, kill_at=calls // 2) < 0
    assert 0 < len(trial.provider.paid) < trial.chunks
    assert index(trial) == 0
    assert len(trial.provider.paid) == trial.chunks
    assert trial.twice() == 0
    asked = len(trial.provider.requests)
    assert index(trial) == 0
    assert len(trial.provider.requests) == asked, "the next start embeds nothing"


def test_killed_while_an_answer_is_on_its_way_one_call_is_sent_again(trial):
    assert index(trial, kill_at=4, when="counted") < 0
    assert index(trial) == 0
    assert len(trial.provider.paid) == trial.chunks
    assert 0 < trial.twice() <= TEXTS_PER_CALL


def test_killed_while_the_index_moves_to_another_model_no_text_is_sent_again(trial):
    assert trial.klaw("index", str(trial.root / "notes"), "--no-embed") == 0
    assert not trial.provider.paid
    assert trial.klaw("reindex", kill_at=4) < 0
    assert trial.klaw("reindex", kill_at=3) < 0
    assert trial.klaw("reindex") == 0
    assert len(trial.provider.paid) == trial.chunks
    assert trial.twice() == 0
