"""The notices to subscribers: of what has changed, and of nothing else."""

from types import SimpleNamespace

import anyio
import pytest

from klaw_mcp.notices import Notices


class Session:
    """A connection that notes what it is told, and may break."""

    def __init__(self):
        self.told = []
        self.broken = False

    async def send_resource_list_changed(self):
        if self.broken:
            raise RuntimeError("the client has gone")
        self.told.append("list")


@pytest.fixture
def session(monkeypatch):
    async def updated(self, uri):
        self.told.append(str(uri))

    monkeypatch.setattr("klaw_mcp.notices.ServerSession.send_resource_updated", updated)
    return Session()


def test_only_resources_that_changed_are_told(session):
    versions = {"klaw:///a": "1", "klaw:///b": "1"}
    context = SimpleNamespace(request=None, session=session)

    async def talk():
        notices = Notices(versions.get)
        for uri in versions:
            await notices.subscribe(context, SimpleNamespace(uri=uri))
        await notices.tell()
        versions["klaw:///a"] = "2"
        await notices.tell()
        await notices.tell()
        await notices.unsubscribe(context, SimpleNamespace(uri="klaw:///b"))
        versions["klaw:///b"] = None
        await notices.tell()

    anyio.run(talk)
    assert session.told == ["list", "list", "klaw:///a", "list", "list"]


def test_a_client_that_has_gone_is_told_nothing_more(session):
    async def talk():
        notices = Notices({}.get)
        await notices.subscribe(SimpleNamespace(request=None, session=session), SimpleNamespace(uri="klaw:///a"))
        session.broken = True
        await notices.tell()
        session.broken = False
        await notices.tell()

    anyio.run(talk)
    assert session.told == []
