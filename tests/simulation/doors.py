"""What is done through the doors of a memory: its server, its tools, its command line, an agent's own memory."""

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any

import others
from company import ask
from deeds import Deeds
from lives import Operation
from others import AGENT, PRIVATE, as_agent, forged, prompt_problems, recalled, run_command, tool, typed

from klaw_core import RecordError, StoreFullError, WorkspaceError
from klaw_facts import Facts


def _aside(work: Callable[[], object]) -> None:
    """Do something in a thread of its own, which no interrupt reaches; raise its error here."""
    failed: list[Exception] = []

    def run() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001  # it is raised below
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed.pop()


class Doors(Deeds):
    """Deeds through a door, behind which nobody may find what is not theirs."""

    def do_secret(self, operation: Operation) -> None:
        """Tell a secret, through one of the doors."""
        letters = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
        secret = "".join(Random(operation.word).choices(letters, k=40))
        self.model.secrets.append(secret)
        self._say("secret", secret)
        text = f"My OpenAI key is sk-proj-{secret}"
        doors: list[Callable[[], object]] = [
            lambda: self.memory.save(text),
            lambda: self._append(operation, text),
            lambda: self.memory.extension(Facts).remember(text),
            lambda: tool(self.memory, "memory_remember", text=text),
            # What makes the server here is the simulator's own, and is not interrupted.
            lambda: _aside(lambda: others.request(self.memory, "POST /api/memories", {"text": text})),
        ]
        with suppress(RecordError):  # a fact of which nothing else is left is refused
            doors[int(operation.pick * len(doors))]()

    def do_agent(self, operation: Operation) -> str:
        """Let an agent use its own memory, through which it sees nothing of the owner's."""
        return str(as_agent(self.home, lambda memory: self._as_agent(operation, memory)) or "")

    def _as_agent(self, operation: Operation, memory: Any) -> str:
        if operation.pick < 1 / 3:
            passage = memory.save(f"{operation.word} is the agent's")
            return "" if passage.notice else str(passage.path)
        with suppress(WorkspaceError):  # nothing was saved yet
            memory.index()
        for word in (PRIVATE, self._pick(operation, self.model.words()) or PRIVATE):
            if any(word in result.content for result in memory.search(word, 5)) or word in str(memory.context(word)):
                self._problem("agent: it finds what is the owner's")
        return ""

    def do_request(self, operation: Operation) -> str:
        """Send a request to the server of the memory, as the owner or as the agent."""
        pick = operation.pick
        request = partial(ask, self.home.data) if self._company == "serve" else partial(others.request, self.memory)
        if pick < 1 / 4:
            saved = self._answered(operation, request("POST /api/memories", {"text": f"{operation.word} was told"}))
            return "" if saved is None or saved.get("notice") else str(saved["path"])
        word = self._pick(operation, self.model.words()) or PRIVATE
        if pick < 1 / 2:
            found = self._answered(operation, request("GET /api/search", query=f"query={word}&k=5"))
            self._shown("request", "" if found is None else str([each["content"] for each in found["results"]]))
            return ""
        if pick < 3 / 4:
            name = self._pick(operation, self.model.saved)
            if name is None:
                return ""
            self.model.target(name, self.model.saved[name])
            self._say("target", name, self.model.unsure[name])
            self._answered(operation, request("DELETE /api/document", query=f"path={name}"))
            return str(name)
        for asked in (f"/api/search?query={word}", f"/api/search?query={PRIVATE}", "/api/sources"):
            path, _, query = asked.partition("?")
            found = self._answered(operation, request(f"GET {path}", agent=AGENT, query=query))
            told = str(found).replace(f"nothing contains {query.removeprefix('query=')!r}", "")  # what it has asked
            if word in told or PRIVATE in told or "private" in told:
                self._problem("request: the agent's token opens what is the owner's")
        return ""

    def _answered(self, operation: Operation, answer: Any) -> Any:
        """Return what a request was answered with success; None, and a problem unless the disk was full, otherwise."""
        if answer.status in {200, 201, 204}:
            return answer.value or {}
        kind = operation.fault.kind if operation.fault else ""
        is_full = answer.status == 507 or (answer.status == 503 and "cannot be opened" in str(answer.value))
        if is_full and kind == "full":  # an agent is not told why its memory cannot be opened
            raise StoreFullError("the server has said so")
        self._problem(f"request: status {answer.status}: {answer.value}")
        return None

    def do_tool(self, operation: Operation) -> str:
        """Call a tool of the server for MCP, or ask for its prompt."""
        memory, pick = self.memory, operation.pick
        word = self._pick(operation, [*self.model.words(), *self.model.hidden.values()]) or operation.word
        if pick < 1 / 4:
            answer = self._told(operation, tool(memory, "memory_save", content=f"{operation.word} was told"))
            return "" if answer.get("notice") else str(answer.get("saved", ""))
        if pick < 1 / 2:
            where = {"collection": "facts"} if operation.number % 2 and self.model.facts else {}
            answer = self._told(operation, tool(memory, "memory_search", q=word, **where))
            self._shown("tool", str([each["content"] for each in answer.get("results", ())]))
        elif pick < 3 / 4:
            word = self._pick(operation, self._noted()) or word
            told = recalled(memory, word)
            self._shown("prompt", told.partition("\n")[2])
            for problem in prompt_problems(told):
                self._problem(f"tool: {problem}")
        else:
            answer = self._told(operation, tool(memory, "memory_context", message=word))
            self._shown("tool", str(answer.get("context", "")))
            for problem in forged(str(answer.get("context", ""))):
                self._problem(f"tool: {problem}")
        return ""

    def _told(self, operation: Operation, answered: tuple[Any, bool]) -> Any:
        """Return what a tool answered; an error is a problem unless the disk was full."""
        answer, is_error = answered
        if is_error and operation.fault is not None and operation.fault.kind == "full":
            raise StoreFullError(str(answer))
        if is_error:
            self._problem(f"tool: {answer}")
        return answer

    def do_shell(self, operation: Operation) -> str:
        """Type a command, or be a coding agent that runs a hook: what is printed has nothing that nobody may see."""
        known = self._pick(operation, self.model.words()) or operation.word
        dice, name = Random(operation.word), self._pick(operation, self.model.saved) or ""
        words, told = typed(operation.word, known, name, dice)
        code, printed = run_command(self.home, words, told)
        if code and words[0] == "doctor" and "→ klaw index" in printed and self.model.unsure:
            run_command(self.home, ("index",))  # what another process could not end, and said so
            code, printed = run_command(self.home, words, told)
        if code and words[0] == "doctor" and "→ `klaw reindex`" in printed and self.home.swapped.exists():
            run_command(self.home, ("reindex",))  # the embedder is another, and what was advised has not been done
            code, printed = run_command(self.home, words, told)
        command = f"klaw {words[0]}{' ' + words[1] if words[0] == 'hook' else ''}"
        if code and operation.fault is not None and operation.fault.kind == "full":
            raise StoreFullError(printed)
        if code and not (words[0] == "search" and "found" in printed):
            self._problem(f"shell: {command}: exit code {code}: {printed[-1000:]}")
        self._shown(command, printed.replace(known, ""))
        if not code and words[0] == "get" and self.model.saved[name] not in printed:
            self._problem(f"shell: {command}: the text is not printed")
        if words[0] != "save" or code:
            return ""
        saved, _ = json.JSONDecoder().raw_decode(printed)  # its notice follows, on standard error
        return "" if saved["notice"] else str(saved["path"])
