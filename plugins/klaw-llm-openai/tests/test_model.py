"""The language model against a real HTTP server: what is sent, what it learns from refusals, and what errors say."""

from __future__ import annotations

import json
import socket

import pytest

from klaw_core import LanguageModelError, Memory, load_config
from klaw_llm_openai.options import OpenAIModelOptions
from klaw_testing.doubles.chat import CITY, ask
from klaw_testing.doubles.wire import Wire, reply

KEY = "sk-do-not-show-this-key-000000000000"


def refusal_of(model, prompt=None):
    with pytest.raises(LanguageModelError) as caught:
        model.complete(prompt or ask())
    error = caught.value
    assert KEY not in f"{error} {error.hint} {error.__cause__!r}"
    return f"{error.message} ({error.hint})"


def form_of(request):
    return request.get("response_format", {}).get("type")


class TestRequests:
    def test_a_prompt_is_sent_with_its_limits(self, server, connect):
        completion = connect(server.url, api_key=KEY).complete(ask(max_tokens=40, temperature=0.5))
        (request,) = server.requests
        assert (completion.text, completion.prompt_tokens, completion.completion_tokens) == ("Kiel", 11, 5)
        assert request["messages"] == [
            {"role": "system", "content": "You are terse."},
            {"role": "user", "content": "Name a city."},
        ]
        assert (request["model"], request["max_tokens"], request["temperature"]) == ("qwen3", 40, 0.5)
        assert "response_format" not in request
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"

    def test_a_schema_is_sent_and_its_value_returned(self, server, connect):
        server.answer = '{"city": "Kiel"}'
        completion = connect(server.url).complete(ask(schema=CITY))
        assert completion.value == {"city": "Kiel"}
        form = server.requests[0]["response_format"]["json_schema"]
        assert (form["schema"], form["strict"]) == (CITY, True)

    def test_an_unpaired_surrogate_is_not_sent(self, server, connect):
        connect(server.url).complete(ask("\ud83d?"))
        assert server.requests[0]["messages"][1]["content"] == "??"

    def test_the_limit_of_a_completion_fits_the_window(self, server, connect):
        connect(server.url, context_tokens=64).complete(ask(max_tokens=1000))
        assert server.requests[0]["max_tokens"] < 64

    def test_a_prompt_longer_than_the_window_is_not_sent(self, server, connect):
        problem = refusal_of(connect(server.url, context_tokens=64), ask("one two " * 100))
        assert "of 64" in problem
        assert "context_tokens" in problem
        assert server.requests == []

    def test_the_address_may_end_with_the_path(self, server, connect):
        assert connect(f"{server.url}/chat/completions/").complete(ask()).text == "Kiel"

    def test_the_key_of_openai_is_sent_only_to_openai(self, server, connect, monkeypatch):
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        connect(server.url).complete(ask())
        assert "authorization" not in server.headers[0]
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        connect(server.url).complete(ask())
        assert server.headers[1]["authorization"] == f"Bearer {KEY}"


class TestAdaptation:
    @pytest.mark.parametrize(
        ("forms", "expected"),
        [
            (("json_schema",), ["json_schema"]),
            (("json_object",), ["json_schema", "json_object"]),
            ((), ["json_schema", "json_object", None]),
        ],
    )
    def test_json_is_requested_in_a_supported_format(self, server, connect, forms, expected):
        server.forms, server.answer = forms, 'Of course: {"city": "Kiel"}'
        model = connect(server.url)
        assert model.complete(ask(schema=CITY)).value == {"city": "Kiel"}
        assert list(map(form_of, server.requests)) == expected
        assert ("JSON Schema" in server.requests[-1]["messages"][-1]["content"]) == (expected[-1] != "json_schema")
        model.complete(ask(schema=CITY))
        assert [form_of(request) for request in server.requests[len(expected) :]] == expected[-1:]

    def test_a_configured_format_is_the_only_one(self, server, connect):
        server.forms = ()
        problem = refusal_of(connect(server.url, response_format="json_object"), ask(schema=CITY))
        assert "unavailable" in problem
        assert len(server.requests) == 1

    def test_a_server_that_rejects_every_format_is_tried_three_times_and_not_cached(self, server, connect):
        server.refusals = {"model": "bad request"}
        model = connect(server.url)
        assert "bad request" in refusal_of(model, ask(schema=CITY))
        assert list(map(form_of, server.requests)) == ["json_schema", "json_object", None]
        server.refusals, server.answer = {}, '{"city": "Kiel"}'
        model.complete(ask(schema=CITY))
        assert form_of(server.requests[-1]) == "json_schema"

    def test_a_model_with_other_parameters_is_supported(self, server, connect):
        server.refusals = {
            "max_tokens": "Unsupported parameter: use max_completion_tokens instead.",
            "temperature": "'temperature' does not support 0.0 with this model.",
        }
        model = connect(server.url)
        assert model.complete(ask()).text == "Kiel"
        assert len(server.requests) == 3
        assert server.requests[-1]["max_completion_tokens"] == 1024
        assert "temperature" not in server.requests[-1]
        model.complete(ask())
        assert len(server.requests) == 4


class TestErrors:
    def test_an_unreachable_server_is_reported(self, connect):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        model = connect(f"http://127.0.0.1:{port}/v1", retries=1)
        assert "is it running?" in refusal_of(model)
        assert model.status()["language_model_requests_today"] == 0
        assert model.status()["language_model_tokens_today"] == 0

    @pytest.mark.parametrize(
        ("status", "hint"),
        [("401 No", "api_key"), ("404 Not Found", "is 'qwen3' a model"), ("302 Found", "redirect"), ("500 No", "500")],
    )
    def test_a_rejection_has_a_hint_and_no_key(self, connect, status, hint):
        words = json.dumps({"error": {"message": f"wrong key {KEY}"}}).encode()
        with Wire(reply(words, status, location="http://127.0.0.1:9/")) as wire:
            model = connect(f"{wire.url}/v1", api_key=KEY)
            assert hint in refusal_of(model)
            assert len(wire.requests) == 1
        assert model.status()["language_model_tokens_today"] == 0

    def test_an_error_instead_of_a_completion_shows_no_key(self, connect):
        with Wire(reply(json.dumps({"error": {"message": f"no credit for {'x' * 290} {KEY}"}}).encode())) as wire:
            assert "no credit" in refusal_of(connect(f"{wire.url}/v1", api_key=KEY))

    def test_a_schema_error_shows_no_key(self, server, connect):
        server.answer = json.dumps({"city": [KEY]})
        problem = refusal_of(connect(server.url, api_key=KEY), ask(schema=CITY))
        assert "does not fit the schema" in problem
        assert 'response_format = "text"' in problem

    def test_a_truncated_completion_is_an_error(self, server, connect):
        choice = {"message": {"content": '{"city": "Ki'}, "finish_reason": "length"}
        server.more = {"choices": [choice]}
        problem = refusal_of(connect(server.url), ask(schema=CITY, max_tokens=5))
        assert "cut off after 5 tokens" in problem
        assert "max_completion_tokens" in problem

    def test_a_silent_server_ends_at_the_deadline(self, connect):
        with Wire(b"", deaf_seconds=30) as wire:
            problem = refusal_of(connect(f"{wire.url}/v1", retries=5), ask(deadline_seconds=0.2))
        assert "0.2 s" in problem or "was silent" in problem

    def test_remote_servers_are_not_called_offline(self, connect):
        with pytest.raises(LanguageModelError, match="offline"):
            connect("https://llm.example.org/v1", offline=True)
        connect("http://127.0.0.1:1/v1", offline=True)

    def test_openai_without_a_key(self, connect, monkeypatch):
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        assert "needs a key" in refusal_of(connect("https://api.openai.com/v1"))

    @pytest.mark.parametrize("options", [{"model": ""}, {"url": "ftp://x"}, {"api_key": "a b"}, {"retries": -1}])
    def test_an_invalid_option_is_rejected(self, options):
        with pytest.raises(ValueError, match=next(iter(options))):
            OpenAIModelOptions(**{"model": "m", **options})


class TestInAMemory:
    def memory(self, tmp_path, **table):
        overrides = {"memory": {"embedding": {"type": "none"}, "language_model": {"type": "openai", **table}}}
        return Memory.open(load_config(data_dir=tmp_path, environment={"KEY": KEY}, overrides=overrides))

    def test_status_shows_the_used_tokens(self, server, tmp_path):
        with self.memory(tmp_path, url=server.url, model="qwen3", api_key="${KEY}") as memory:
            memory._assembly.language_model.complete(ask())
            statistics = memory.status().statistics
        assert statistics["language_model"] == f"qwen3 at {server.url}"
        assert statistics["language_model_requests_today"] == 1
        assert statistics["language_model_tokens_today"] == 16
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"

    def test_status_shows_why_it_does_not_work(self, tmp_path):
        with self.memory(tmp_path, url="http://127.0.0.1:1/v1", model="m") as memory:
            (tmp_path / "language_model_usage.json").write_text("{", "utf-8")
            (problem,) = [item for item in memory.status().problems if "counts" in item]
        assert "delete it" in problem

    def test_a_variable_that_is_not_set_is_named_once(self, tmp_path):
        with self.memory(tmp_path, url="http://127.0.0.1:1/v1", model="m", api_key="${NO_SUCH}") as memory:
            assert len([item for item in memory.status().problems if "NO_SUCH" in item]) == 1


class TestCheck:
    """What `klaw doctor` does: it asks for the list of models, and without a list for a completion."""

    def problem_of(self, model):
        with pytest.raises(LanguageModelError) as caught:
            model.check()
        assert KEY not in f"{caught.value} {caught.value.__cause__!r}"
        return f"{caught.value.message} ({caught.value.hint})"

    @pytest.mark.parametrize("status", [200, 400, 429, 501])
    def test_a_server_that_answers(self, connect, status):
        with Wire(reply(b'{"object": "list", "data": []}', status)) as wire:
            model = connect(f"{wire.url}/v1", api_key=KEY)
            model.check()
            (request,) = wire.requests
        assert request.startswith(b"GET /v1/models ")
        assert f"Bearer {KEY}".encode() in request
        assert model.status()["language_model_requests_today"] == 0

    @pytest.mark.parametrize(
        ("status", "hint"),
        [(301, "redirect"), (401, "OPENAI_API_KEY"), (500, "500"), (503, "503")],
    )
    def test_a_server_that_refuses(self, connect, status, hint):
        words = json.dumps({"error": {"message": f"no: {KEY}"}}).encode()
        with Wire(reply(words, status, location="http://127.0.0.1:9/")) as wire:
            problem = self.problem_of(connect(f"{wire.url}/v1", api_key=KEY, retries=5))
            assert len(wire.requests) == 1
        assert hint in problem

    @pytest.mark.parametrize("status", [403, 404, 405])
    @pytest.mark.parametrize(
        ("completion", "completion_status"),
        [
            ({"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]}, 200),
            ({"choices": [{"message": {"content": ""}, "finish_reason": "length"}]}, 200),
            ({"error": {"message": "Could not finish: max_tokens or model output limit was reached."}}, 400),
            ({"error": {"message": "Too many requests"}}, 429),
        ],
    )
    def test_a_server_without_a_list_is_asked_for_one_token(self, connect, status, completion, completion_status):
        answers = [reply(b"no list", status), reply(json.dumps(completion).encode(), completion_status)]
        with Wire(*answers) as wire:
            model = connect(f"{wire.url}/v1", api_key=KEY, retries=5)
            model.check()
            asked = wire.requests
        assert [request.split(b" HTTP")[0] for request in asked] == [b"GET /v1/models", b"POST /v1/chat/completions"]
        assert json.loads(asked[1].partition(b"\r\n\r\n")[2])["max_tokens"] == 1
        assert f"Bearer {KEY}".encode() in asked[1]
        assert model.status()["language_model_requests_today"] == 1

    def test_a_newer_name_of_the_limit_is_learned(self, connect):
        words = b'{"error": {"message": "Unsupported parameter: use max_completion_tokens instead."}}'
        good = b'{"choices": [{"message": {"content": "Hi"}}]}'
        with Wire(reply(b"", 403), reply(words, 400), reply(good)) as wire:
            connect(f"{wire.url}/v1").check()
            assert b'"max_completion_tokens":1' in wire.requests[2].replace(b" ", b"")

    @pytest.mark.parametrize("status", [403, 404, 405])
    @pytest.mark.parametrize(
        ("completion_status", "hint"),
        [(401, "OPENAI_API_KEY"), (403, "OPENAI_API_KEY"), (404, "'qwen3' a model"), (400, "400"), (503, "503")],
    )
    def test_a_server_that_completes_nothing(self, connect, status, completion_status, hint):
        words = json.dumps({"error": {"message": f"no: {KEY}"}}).encode()
        with Wire(reply(b"", status), reply(words, completion_status)) as wire:
            problem = self.problem_of(connect(f"{wire.url}/v1", api_key=KEY, retries=5))
            assert len(wire.requests) == 2
        assert hint in problem
        assert "/chat/completions" in problem

    def test_a_page_is_no_completion(self, connect):
        with Wire(reply(b"", 404), reply(b"<html>Welcome</html>")) as wire:
            assert "/chat/completions" in self.problem_of(connect(f"{wire.url}/v1"))

    def test_a_completion_that_never_comes(self, connect, monkeypatch):
        monkeypatch.setattr("klaw_llm_openai.model._CHECK_COMPLETION_SECONDS", 0.2)
        with Wire(reply(b"", 404), lambda connection: connection.recv(1)) as wire:
            problem = self.problem_of(connect(f"{wire.url}/v1", retries=5))
        assert "0.2 s" in problem

    def test_no_server(self, connect):
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        problem = self.problem_of(connect(f"http://127.0.0.1:{port}/v1", retries=5))
        assert f"127.0.0.1:{port}" in problem
        assert "cannot be reached" in problem
        assert "memory.language_model.url" in problem

    def test_a_silent_server_is_left_soon(self, connect, monkeypatch):
        monkeypatch.setattr("klaw_llm_openai.model._CHECK_SECONDS", 0.2)
        with Wire(b"", deaf_seconds=30) as wire:
            problem = self.problem_of(connect(f"{wire.url}/v1", retries=5))
        assert "0.2 s" in problem

    def test_counts_that_cannot_be_read(self, server, connect, tmp_path):
        (tmp_path / "language_model_usage.json").write_text("[")
        assert "cannot be read" in self.problem_of(connect(server.url))
