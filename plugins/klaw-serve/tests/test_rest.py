"""The REST surface, asked over HTTP."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from klaw_core import Memory, PluginNotFoundError, RetryableStoreError, StoreLockedError, load_config, to_json
from klaw_journals import NewDocument
from klaw_serve.answers import json_body
from klaw_serve.events import EventHub
from klaw_serve.operations import Operation, OperationError
from klaw_serve.table import OPERATIONS
from klaw_serve.tenants import Tenant


def test_a_search_returns_complete_results(server):
    (best, *_) = server.get("/api/search?query=kiln+degrees&k=3").json["results"]
    assert best["path"] == "notes/kiln.md"
    assert "twelve hundred" in best["content"]
    assert {part["component"] for part in best["explain"]} == {"fts5"}


def test_the_links_of_a_note_are_answered(server):
    boat = server.ask("GET", "/api/links?path=notes/boat.md").json
    assert boat == {"path": "notes/boat.md", "to": [], "backlinks": [], "broken": []}
    assert server.ask("GET", "/api/links?path=nowhere").status == 404


def test_a_result_has_the_common_json_form(home):
    with Memory.open(load_config(data_dir=home.data)) as memory:
        found = memory.search("kiln degrees")
        answer = json.loads(
            json_body(OPERATIONS["memory.search"].call(Tenant("", memory, EventHub(None)), {"q": "kiln degrees"}))
        )
    assert len(found) > 0
    expected = [{**to_json(each), "is_weak": each.is_weak} for each in found]
    assert answer == {"results": json.loads(json.dumps(expected)), "notices": list(found.notices)}


def test_short_and_complete_routes_give_equal_answers(server):
    """GET of a path without parameters goes past Starlette, HEAD of the same does not."""
    short, whole = server.get("/api/search?query=kiln"), server.ask("HEAD", "/api/search?query=kiln")
    assert (short.status, whole.status) == (200, 200)
    varying = {"date", "content-length"}
    assert {**short.headers, **dict.fromkeys(varying)} == {**whole.headers, **dict.fromkeys(varying)}
    assert server.ask("POST", "/api/search?query=kiln").status == 405
    assert server.get("/api/search/?query=kiln").status in {307, 404}


def test_a_search_accepts_filters(server):
    found = server.get("/api/search?query=the&path=notes/boat&collection=memory&collection=docs").json["results"]
    assert {result["path"] for result in found} == {"notes/boat.md"}
    assert server.get("/api/search?query=the&since=2999-01-01").json["results"] == []


@pytest.mark.needs("klaw-conversations")
def test_times_are_read_as_in_a_command(server):
    def found(days):
        return server.get(f"/api/search?query=the&path=notes/boat&{days}").json["results"]

    assert found("since=7d")
    assert found("since=yesterday&until=today")
    assert found("since=2020-01-01&until=2999-12-31")
    assert not found("until=yesterday")
    assert server.get("/api/chats/telegram_7?since=soon").status == 400


def test_a_search_covers_every_collection_that_is_not_separate(home):
    with Memory.open(load_config(data_dir=home.data, environment={"KLAW_EMBEDDER": "none"})) as memory:
        for name in ("adk", "docs"):
            memory.add([NewDocument("a", f"the lantern of {name}", trust="owner")], collection=name)
    with home.serving() as running:
        found = running.get("/api/search?query=lantern").json["results"]
        assert {result["collection"] for result in found} == {"adk"}
        found = running.rpc("memory.search", query="lantern")["result"]["results"]
        assert {result["collection"] for result in found} == {"adk"}
        found = running.get("/api/search?query=lantern&collection=docs").json["results"]
        assert {result["collection"] for result in found} == {"docs"}
        listed = running.get("/api/collections").json
        assert set(listed["collections"]) - set(listed["searched"]) == {"docs"}
        assert (
            "the lantern of adk" in running.rpc("memory.context", message="where is the lantern?")["result"]["context"]
        )


def test_wrong_arguments_are_named(server):
    answer = server.get("/api/search?query=kiln&colour=red")
    assert answer.status == 400
    assert "colour" in answer.json["error"]
    assert server.get("/api/search").status == 400
    assert server.get("/api/search?query=a&query=b").status == 400
    assert server.get("/api/search?query=kiln&since=soon").status == 400
    assert server.get("/api/search?query=kiln&collection=none").status == 400
    empty = server.get("/api/search?query=kiln&since=2026-01-02&until=2026-01-01")
    assert (empty.status, "since is not before until" in empty.json["error"]) == (400, True)


def test_a_document_is_read_and_a_missing_one_is_404(server):
    excerpt = server.get("/api/document?path=notes/kiln.md&first_line=3&lines=1").json
    assert excerpt["content"].strip() == "The kiln is fired to"
    assert server.get("/api/document?path=notes/none.md").status == 404


def test_a_deleted_document_says_that_its_text_is_not_current(home):
    with home.serving() as running:
        assert running.get("/api/document?path=notes/kiln.md").json["notice"] == ""
        (home.path / "notes" / "kiln.md").unlink()
        assert "its file cannot be found" in running.get("/api/document?path=notes/kiln.md").json["notice"]


def test_no_path_leads_out_of_the_workspace(server):
    for path in ("notes/../data/serve.token", "../data/serve.token", "/etc/passwd", "notes/%2e%2e/x", "notes/\0"):
        assert server.get(f"/api/document?path={quote(path)}").status == 404, path
    for path in ("/page/../tokens.py", "/page/%2e%2e%2ftokens.py", "/page/__init__.py"):
        assert server.get(path).status == 404, path
    for agent in ("..", "%2e%2e", ".hidden", "a%00b", "%ff"):
        assert server.get(f"/agents/{agent}/api/status").status == 404, agent


def test_a_memory_is_saved_found_and_forgotten(server):
    saved = server.ask("POST", "/api/memories", {"text": "The harbour froze over."})
    assert saved.status == 201
    assert server.get("/api/search?query=harbour+froze").json["results"][0]["path"] == saved.json["path"]
    gone = server.ask("DELETE", f"/api/document?path={saved.json['path']}").json
    assert gone["paths"] == [saved.json["path"]]
    assert not server.get("/api/search?query=harbour+froze").json["results"]


def test_a_note_is_excluded_and_restored(server):
    server.ask("DELETE", "/api/document?path=notes/boat.md")
    assert not server.get("/api/search?query=boat+Split").json["results"]
    assert server.ask("POST", "/api/restore", {"path": "notes/boat.md"}).json["added"] == 1
    assert server.get("/api/search?query=boat+Split").json["results"]


def test_core_memory_can_be_changed(server):
    assert server.ask("PUT", "/api/core/user/home/town", {"value": "Lyon"}).json["user"] == {"home/town": "Lyon"}
    assert server.get("/api/core").json["user"] == {"home/town": "Lyon"}
    assert server.ask("DELETE", "/api/core/user/home/town").json["user"] == {}
    assert server.ask("DELETE", "/api/core/user/home/town").status == 404
    assert server.ask("PUT", "/api/core/nobody/a", {"value": "b"}).status == 400


@pytest.mark.needs("klaw-conversations")
def test_a_conversation_is_stored_and_read_without_secrets(server):
    secret = "sk-ant-api03-" + "a1B2" * 24
    who = {"sender_id": "77", "name": "Ada"}
    said = {"role": "user", "content": f"The key is {secret}, the boat is green.", "id": "m1", **who}
    assert server.ask("POST", "/api/chats/telegram_7", said).status == 201
    assert [chat["name"] for chat in server.get("/api/chats").json["chats"]] == ["telegram_7"]
    (message,) = server.get("/api/chats/telegram_7").json["messages"]
    assert "green" in message["content"]
    assert who.items() <= message["meta"].items()
    assert secret not in message["content"]
    assert server.get("/api/chats/nobody").status == 400


@pytest.mark.needs("klaw-conversations")
def test_a_message_that_is_sent_twice_is_shown_once(server):
    said = {"role": "user", "content": "The boat is red.", "id": "m9", "ts": "2026-02-24T10:30Z"}
    for _ in range(2):
        assert server.ask("POST", "/api/chats/web_9", said).status == 201
    for query in ("", "?since=2026-02-24"):
        assert [each["id"] for each in server.get(f"/api/chats/web_9{query}").json["messages"]] == ["m9"]


def test_an_index_run_updates_the_index_and_sends_events(server):
    with server.raw() as stream:
        stream.sendall(
            f"GET /api/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode()
        )
        lines = stream.makefile("rb")
        assert any(line.startswith(b": open") for line in lines)
        assert server.ask("POST", "/api/index", {"origin": "notes"}).status == 202
        kinds = [line.split()[1] for line in _until_done(lines) if line.startswith(b"event:")]
    assert {b"index", b"progress"} <= set(kinds)
    assert server.get("/api/index").json["state"] == "done"
    assert server.ask("POST", "/api/index", {"origin": "nothing"}).status == 404


def _until_done(lines):
    for line in lines:
        yield line
        if b'"state":"done"' in line:
            return


def test_a_context_and_a_tool_can_be_called(server):
    told = server.get("/api/context?message=kiln+degrees&part=volatile&min_relevance=0.01").json
    assert "twelve hundred" in told["context"]
    assert told["sources"][0].startswith("notes/kiln.md:")
    assert server.get(f"/api/context?message=kiln&where={quote('tags=none')}").json["context"] == ""
    assert server.get("/api/context?message=&part=stable").json["context"] == ""
    answer = server.ask("POST", "/api/tools/memory_search", {"arguments": {"q": "kiln", "topK": "1"}})
    assert len(answer.json["results"]) == 1
    refused = server.ask("POST", "/api/tools/memory_save", {"arguments": {"content": "x", "source": "kiln.md"}})
    assert "may be the name of a file" in refused.json["error"]
    assert server.ask("POST", "/api/tools/memory_nothing", {}).status == 404
    assert server.ask("POST", "/api/tools/memory_forget", {"arguments": {"path": "notes/kiln.md"}}).status == 404


def test_every_operation_is_in_the_openapi_document(server):
    described = server.get("/openapi.json", token="").json
    assert described["openapi"].startswith("3.1")
    ids = {each["operationId"] for path in described["paths"].values() for each in path.values()}
    assert OPERATIONS.keys() <= ids


def test_an_empty_parameter_is_refused_or_the_document_says_what_it_means(server):
    """A client that fills a template makes one of a value that it has not. Treated as absent, it selects more."""
    asked = 0
    for path, methods in server.get("/openapi.json", token="").json["paths"].items():
        for method, described in methods.items():
            for parameter in described.get("parameters", ()):
                schema = parameter["schema"]
                schema = schema.get("items", schema)
                said = parameter.get("description", "") + schema.get("description", "")
                if parameter["in"] != "query" or (schema.get("minLength") == 0 and "empty" in said):
                    continue
                named = parameter["name"]
                others = [each["name"] for each in described["parameters"] if each.get("required")]
                query = "&".join([f"{named}=", *(f"{name}=1" for name in others if name != named)])
                answer = server.ask(method.upper(), f"{path.replace('{', '').replace('}', '')}?{query}")
                assert answer.status == 400, (method, path, named)
                assert named in answer.json["error"]
                asked += 1
    assert asked > 30


@pytest.mark.needs("klaw-conversations")
def test_every_read_without_arguments_answers(server):
    reads = [each for each in OPERATIONS.values() if each.method == "GET" and not each.required]
    statuses = {each.path: server.get(each.path).status for each in reads}
    assert len(statuses) > 8
    assert statuses.pop("/api/search") == 400  # without a question it needs a condition
    assert server.get("/api/search?path=notes/").json["results"][0]["relevance"] is None
    assert set(statuses.values()) == {200}, statuses
    assert server.get("/api/documents").json["documents"]


def test_health_and_metrics_report_the_state(server):
    assert server.get("/health", token="").json["status"] == "ok"
    server.get("/api/search?query=kiln")
    assert 'klaw_calls_total{operation="memory.search",status="200"}' in server.get("/metrics").body.decode()


def test_a_body_that_is_not_an_object_is_rejected(server):
    for body in (b"{", b"[]", b"1", b'"text"', b"\xff", b'{"text": NaN}', b"[" * 100_000, b'{"text": "\\ud800"}'):
        assert server.ask("POST", "/api/memories", body).status == 400, body[:20]


def test_any_text_can_be_returned():
    for text in ("", "Größe 数 \u2028 \x00", "half of a pair: \ud800"):
        assert json.loads(json_body({"text": text, text: 1.5})) == {"text": text, text: 1.5}


def test_read_only_offers_no_operation_that_writes(home):
    with home.serving("--read-only") as running:
        assert running.get("/api/search?query=kiln").json["results"]
        assert running.ask("POST", "/api/memories", {"text": "no"}).status == 404
        assert running.ask("DELETE", "/api/document?path=notes/kiln.md").status == 405
        assert running.rpc("memory.save", text="no")["error"]["code"] == -32601
        assert running.ask("POST", "/api/tools/memory_save", {"arguments": {"content": "no"}}).status in {404, 405}
        assert "memory.save" not in json.dumps(running.get("/openapi.json").json)


def test_a_feature_that_the_server_does_not_have_is_named_with_what_installs_it():
    def run(_tenant, _given):
        raise PluginNotFoundError(
            "extension 'conversations' is not installed", hint="pip install 'klaw[conversations]'"
        )

    with pytest.raises(OperationError) as caught:
        Operation("memory.chats", "GET", "/api/chats", "", run).call(None, {})
    assert caught.value.status == 501
    assert "'conversations' is not installed" in caught.value.message
    assert caught.value.hint == "pip install 'klaw[conversations]'"


def test_a_document_is_rendered_with_its_date_and_its_file(server):
    found = server.ask("GET", "/api/rendered?path=notes/boat.md").json
    assert [block[0] for block in found["blocks"]] == ["h1", "p"]
    assert (found["origin"], found["file"] is not None, found["created_at"] is not None) == ("notes", True, True)
    assert found["content"] == server.ask("GET", "/api/document?path=notes/boat.md").json["content"]
    assert server.ask("GET", "/api/rendered?path=nowhere").status == 404


def test_a_saved_memory_is_replaced_and_keeps_its_date_and_source(server):
    first = {"text": "The meter reads 41.", "source": "diary"}
    path = server.ask("POST", "/api/memories", first).json["path"]
    changed = server.ask("PUT", "/api/memories", {"path": path, "text": "The meter reads 42."}).json
    assert (changed["replaced"]["text"], changed["replaced"]["path"]) == (first["text"], path)
    (found,) = server.ask("GET", "/api/search?query=meter").json["results"]
    assert (found["content"], found["source"], found["path"]) == ("The meter reads 42.", "diary", changed["path"])
    assert found["created_at"][:19] == changed["replaced"]["created_at"][:19]
    versions = server.ask("GET", f"/api/rendered?path={path}").json["versions"]
    assert [(each["path"], each["current"]) for each in versions] == [(path, False), (changed["path"], True)]
    assert server.ask("PUT", "/api/memories", {"path": path, "text": "again"}).status == 400
    tagged = {"path": changed["path"], "text": "The meter reads 42.", "tags": ["house", "energy"]}
    changed = server.ask("PUT", "/api/memories", tagged).json
    assert server.ask("GET", f"/api/rendered?path={changed['path']}").json["tags"] == ["house", "energy"]
    dated = {"path": changed["path"], "text": "The meter reads 43.", "created_at": "2026-02-24"}
    assert server.ask("PUT", "/api/memories", dated).json["path"].startswith("saved/2026-02-2")


def test_only_a_saved_memory_is_replaced_and_an_equal_text_stays(server):
    path = server.ask("POST", "/api/memories", {"text": "The thermometer shows 41."}).json["path"]
    same = server.ask("PUT", "/api/memories", {"path": path, "text": "The thermometer shows 41."}).json
    assert same["path"] == path
    assert server.ask("GET", f"/api/document?path={path}").status == 200
    note = server.ask("PUT", "/api/memories", {"path": "notes/boat.md", "text": "x"})
    assert (note.status, "not a saved memory" in note.json["error"]) == (404, True)
    assert server.ask("PUT", "/api/memories", {"path": path, "text": " "}).status == 400
    assert server.ask("GET", f"/api/document?path={path}").status == 200


@pytest.mark.parametrize("place", ["", "/agents/ann"])
def test_what_is_replaced_has_the_class_of_who_replaces_it(server, place):
    path = server.ask("POST", f"{place}/api/memories", {"text": "The barometer shows 41."}).json["path"]
    server.ask("PUT", f"{place}/api/memories", {"path": path, "text": "The barometer shows 42."})
    (found,) = server.ask("GET", f"{place}/api/search?query=barometer").json["results"]
    assert (found["content"], found["trust"]) == ("The barometer shows 42.", "owner")


def test_a_fact_that_is_found_has_its_relevance(home):
    with Memory.open(load_config(data_dir=home.data)) as memory:
        memory.extension("facts").remember("Ida keeps the lantern in the boathouse")
        ask = OPERATIONS["memory.facts"].call
        tenant = Tenant("", memory, EventHub(None))
        (found,) = ask(tenant, {"query": "where is the lantern"})["facts"]
        strangers = ask(tenant, {"query": "best pizza in Naples"})["facts"]
    assert (found["text"], found["is_weak"]) == ("Ida keeps the lantern in the boathouse", False)
    assert 0 < found["relevance"] <= 1
    assert [fact for fact in strangers if not fact["is_weak"]] == []


STRINGS = [
    (operation, name)
    for operation in OPERATIONS.values()
    for name, rules in operation.properties.items()
    if rules.get("type") == "string"
]


@pytest.mark.parametrize(("operation", "name"), STRINGS, ids=lambda item: getattr(item, "name", item))
def test_a_list_is_no_text(operation, name):
    with pytest.raises(OperationError) as caught:
        operation.call(None, {name: ["a"]})
    assert caught.value.status == 400
    assert f"{name} must be a string, not ['a']" in caught.value.message


@pytest.mark.parametrize("kind", [StoreLockedError, RetryableStoreError])
def test_what_may_succeed_later_is_a_503(kind):
    def run(_tenant, _given):
        raise kind("busy", hint="try again")

    with pytest.raises(OperationError) as caught:
        Operation("memory.status", "GET", "/api/status", "", run).call(None, {})
    assert (caught.value.status, caught.value.hint) == (503, "try again")
