"""The counts of a day, and its bounds."""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from klaw_core import LanguageModelError
from klaw_llm_openai.usage import DayUsage, UsageLedger
from klaw_testing.doubles.chat import CITY, ask
from klaw_testing.doubles.wire import Wire, reply

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
ANSWER = reply(json.dumps({"choices": [{"message": {"content": "Kiel"}}]}).encode())


def ledger(path, requests=100, tokens=100_000, now=lambda: NOON):
    return UsageLedger(path / "usage.json", requests, tokens, now)


def take(path, count):
    taken = 0
    for _ in range(count):
        try:
            UsageLedger(path, 50, 10_000).reserve(10, 10)
            taken += 1
        except LanguageModelError:
            break
    return taken


def test_a_reservation_counts_until_the_answer_has_the_real_number(tmp_path):
    book = ledger(tmp_path)
    reservation = book.reserve(100, 1000)
    assert book.today() == DayUsage(1, 100, 1000)
    book.settle(reservation, 120, 7)
    assert book.today() == DayUsage(1, 120, 7)


def test_a_request_that_was_not_sent_is_not_counted(tmp_path):
    book = ledger(tmp_path)
    reservation = book.reserve(100, 1000)
    book.repeat(reservation)
    book.settle(reservation, 0, 0, was_sent=False)
    assert book.today() == DayUsage()


def test_a_limit_is_never_exceeded(tmp_path):
    book = ledger(tmp_path, requests=2)
    first = book.reserve(1, 1)
    book.repeat(first)
    with pytest.raises(LanguageModelError, match="limit of 2 requests"):
        book.reserve(1, 1)
    with pytest.raises(LanguageModelError, match="limit of 2 requests"):
        book.repeat(first)
    small = ledger(tmp_path, tokens=1000)
    with pytest.raises(LanguageModelError, match="1,000 tokens"):
        small.reserve(500, 499)
    small.reserve(500, 498)


def test_a_new_day_starts_at_zero_and_old_days_are_removed(tmp_path):
    for day in range(40):
        moment = NOON + timedelta(days=day)
        ledger(tmp_path, requests=1, now=lambda moment=moment: moment).reserve(1, 1)
    kept = json.loads((tmp_path / "usage.json").read_text())
    assert len(kept) == 31
    assert max(kept) == "2026-12-31"


@pytest.mark.parametrize("content", ["", "[]", "{", '{"2026-11-22": 7}', '{"2026-11-22": {"requests": -1}}'])
def test_unreadable_counts_stop_every_request(tmp_path, content):
    (tmp_path / "usage.json").write_text(content)
    with pytest.raises(LanguageModelError) as caught:
        ledger(tmp_path).reserve(1, 1)
    assert "delete it" in caught.value.hint


def test_processes_and_threads_share_one_limit(tmp_path):
    path = tmp_path / "usage.json"
    with ProcessPoolExecutor(2) as pool:
        assert sum(pool.map(take, [path] * 2, [40] * 2)) == 50
    path.unlink()
    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(take, [path] * 4, [20] * 4)) == 50


def test_a_model_stops_at_the_limit_and_reports_when_it_continues(server, connect):
    model = connect(server.url, max_requests_per_day=2)
    model.complete(ask())
    model.complete(ask())
    with pytest.raises(LanguageModelError, match="limit of 2 requests") as caught:
        model.complete(ask())
    assert "00:00 UTC" in caught.value.hint
    assert len(server.requests) == 2


def test_a_model_stops_at_the_tokens_of_the_day(server, connect):
    model = connect(server.url, max_tokens_per_day=100)
    model.complete(ask(max_tokens=40))
    with pytest.raises(LanguageModelError, match="16 of the daily limit of 100 tokens") as caught:
        model.complete(ask(max_tokens=80))
    assert "max_tokens_per_day" in caught.value.hint
    assert len(server.requests) == 1


def test_each_tried_format_counts_as_a_request(server, connect):
    server.forms, server.answer = (), '{"city": "Kiel"}'
    model = connect(server.url, max_requests_per_day=3)
    model.complete(ask(schema=CITY))
    assert model.status()["language_model_requests_today"] == 3
    assert model.status()["language_model_tokens_today"] == 16


def test_a_retry_counts_as_a_request(connect):
    with Wire(reply(b"", "503 Busy"), ANSWER) as wire:
        model = connect(f"{wire.url}/v1", retries=2)
        assert model.complete(ask()).text == "Kiel"
    assert model.status()["language_model_requests_today"] == 2


def test_a_request_is_not_repeated_beyond_the_limit(connect):
    with Wire(reply(b"", "503 Busy"), ANSWER) as wire:
        model = connect(f"{wire.url}/v1", retries=2, max_requests_per_day=1)
        with pytest.raises(LanguageModelError, match="limit of 1 requests"):
            model.complete(ask())
        assert len(wire.requests) == 1


def test_a_missing_answer_counts_its_reservation(connect):
    with Wire(b"", deaf_seconds=30) as wire:
        model = connect(f"{wire.url}/v1")
        with pytest.raises(LanguageModelError):
            model.complete(ask(deadline_seconds=0.2, max_tokens=77))
    assert model.status()["language_model_tokens_today"] > 77
