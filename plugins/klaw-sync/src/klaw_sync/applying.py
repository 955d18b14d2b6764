"""Make the journals of this machine show what all versions say."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, field, frozen

from klaw_journals.traces import digest
from klaw_sync.desks import Body, Desk, desks
from klaw_sync.here import APPLYING, Round
from klaw_sync.merging import Conflict, Merged, is_alive, merge
from klaw_sync.values import KINDS, Trace, Version, is_deletion

_NOTED = "noted"  # the name in `meta` of the scopes that were forgotten while a journal could not be read


@define(eq=False)
class Applying:
    """One pass over the journals, with the merge of all versions."""

    round: Round
    merged: Merged = field(init=False)
    #: Records that are not written back because they were lost here without being forgotten.
    hidden: set[str] = field(init=False)

    @merged.default
    def _merge(self) -> Merged:
        return merge(self.round.state.versions.values(), self.round.state.traces)

    @hidden.default
    def _hide(self) -> set[str]:
        shown = self.merged.shown
        return {shown[v][0] for v in self.round.lost if v in shown}

    def apply(self) -> None:
        """Change the journals; then forget the bodies that are not needed any more."""
        round_, state, report = self.round, self.round.state, self.round.report
        self._note_arrived()
        with state.commit():
            state.meta[APPLYING] = "1"
        places = {(desk.kind.name, desk.place) for desk in desks(round_.here.root, round_.here.kinds)}
        changed, due = set(), state.due
        # Before the first change: whatever interrupts the run then, the next one updates the index.
        state.due = due.with_kinds(round_.kinds)
        with state.commit():
            pass
        for name, place in sorted(places | self.merged.places.keys()):
            if name in round_.kinds and self._settle(Desk(round_.here.root, KINDS[name], place)):
                changed.add(name)
        report.changed = tuple(sorted(changed))
        round_.here.step("applied")
        gone = self._others()
        own = round_.trace_names
        if new := [(trace.scope, trace.name) for trace in gone if trace.name not in own]:
            round_.here.traces.add(new)
        with state.commit():
            state.add_traces(gone, done=True)
            state.meta[APPLYING] = ""
            self._point()
            self._drop_bodies()
            state.due = due.with_kinds(changed)
        round_.here.step("done")
        report.conflicts = tuple(map(_told, self.merged.conflicts))
        report.missing = len(round_.lost)

    def _others(self) -> list[Trace]:
        """Return the traces of other machines whose texts have left the journals here now.

        The history of a journal that was not read may still have some: their scopes are noted for when it is.
        """
        state, unread = self.round.state, self.round.unread
        waiting = {scope for version in state.versions.values() if version.kind in unread for scope in version.scopes}
        gone = [
            Trace(scope, name)
            for scope, names in state.traces.items()
            if scope not in waiting
            for name in names - state.done[scope]
        ]
        noted = {*state.meta.get(_NOTED, "").split(), *(trace.scope for trace in gone)}
        state.meta[_NOTED] = " ".join(sorted(noted)) if unread else ""
        return gone

    def _note_arrived(self) -> None:
        """Write down which messages another machine wrote, before they are here: it reads them for facts."""
        state, here = self.round.state, self.round.here
        sources = {name: kind for name, kind in KINDS.items() if kind.is_source and name in here.kinds}
        foreign = set()
        for version in (state.versions[v] for v in self.merged.shown):
            kind = sources.get(version.kind)
            if kind is not None and kind.key(version.place, version.body or {}) not in state.here:
                foreign.add(here.traces.scope(kind.name, version.place.partition("/")[0], digest(version.body)))
        if foreign:
            here.traces.add_arrived(sorted(foreign))

    def _settle(self, desk: Desk) -> bool:
        wanted = self.merged.places.get((desk.kind.name, desk.place), [])
        if not wanted and not desk.stamp:
            return False
        plan = _Plan(self.round, desk, self.merged, [body for v, body in wanted if v not in self.hidden])
        return desk.settle(plan.ordered if desk.kind.ordered else plan.unordered, plan.is_past)

    def _point(self) -> None:
        """Note which version each record of the journals is now."""
        state, kinds = self.round.state, self.round.kinds
        kept = {
            key: v
            for key, v in state.here.items()
            if v in self.round.lost or (v in state.versions and state.versions[v].kind in self.round.unread)
        }
        for (name, place), rows in self.merged.places.items():
            if name in kinds:
                kept |= {KINDS[name].key(place, body): v for v, body in rows if v not in self.hidden}
        for (name, _), heads in self.merged.heads.items():
            if is_deletion(heads[-1].body or {}) and name in kinds:
                kept[KINDS[name].key("", heads[-1].body or {})] = heads[-1].v
        for key, v in state.here.items():  # a value that was changed during this run replaces what it was before
            if v in self.round.changed_meanwhile and v in state.versions:
                kept[key] = v
        state.here = kept

    def _drop_bodies(self) -> None:
        """Drop the texts of versions that were forgotten or replaced."""
        state = self.round.state
        over = {name for version in state.versions.values() for name in version.over}
        kept = self.merged.shown.keys() | self.round.changed_meanwhile
        carried = self.round.unread | (state.kinds - KINDS.keys())  # compared with the journal, once it can be read
        for version in list(state.versions.values()):
            if version.body is None:
                continue
            is_needed = version.v in kept or version.kind in carried or version.is_bad
            if not is_alive(version, state.traces) or (version.v in over and not is_needed):
                self.round.report.forgotten += version.v not in over and self._was_here(version)
                state.drop_body(version)

    def _was_here(self, version: Version) -> bool:
        """Return whether a journal had this record when it was read: this machine has not forgotten it itself."""
        kind = KINDS.get(version.kind)
        return kind is not None and kind.key(version.place, version.body or {}) in self.round.found


@frozen(eq=False)
class _Plan:
    """What one place of a journal becomes. It is computed under the lock of the place's writers."""

    round: Round
    desk: Desk
    merged: Merged
    wanted: Sequence[Body]

    def ordered(self, held: list[Body]) -> list[Body]:
        """Return the records in the order of all machines, and then those that were added during this run."""
        wanted = self._left(held)
        names = {self._key(body) for body in wanted}
        kept = [body for body in held if not self.desk.kind.is_synced(body)]
        known, extra = [], []
        for body in held:
            if self.desk.kind.is_synced(body):
                version = self._version(body)
                if version is None:
                    extra += [] if self._key(body) in names or self._is_doomed(body) else [body]
                elif version.v in self.merged.shown:
                    known.append(body)
        if known == wanted and len(known) + len(kept) + len(extra) == len(held):
            return held
        if wanted[: len(known)] == known and len(known) + len(kept) + len(extra) == len(held) and not extra:
            return [*held, *wanted[len(known) :]]
        return [*wanted, *kept, *extra]

    def unordered(self, held: list[Body]) -> list[Body]:
        """Return the records in their places, and the new ones after them."""
        wanted = {self._key(body): body for body in self._left(held)}
        out: dict[str, Body] = {}
        for body in held:
            key, version = self._key(body), self._version(body)
            if version is None or (self.desk.kind.register and version.body != body):
                if key in out or self._is_doomed(body):
                    continue
                out[key] = body  # written during this run: the next one makes a version of it
                if version is not None:
                    self.round.changed_meanwhile.add(version.v)
                wanted.pop(key, None)
            elif version.v in self.merged.shown:
                name = self._key(self.merged.shown[version.v][1])
                if name in wanted:
                    out[name] = wanted.pop(name)
        return [*out.values(), *wanted.values()]

    def _left(self, held: list[Body]) -> list[Body]:
        """Return what the place should have, except what was removed during this run: the next one learns why."""
        there = {self._key(body) for body in held}
        named = ((self._key(body), body) for body in self.wanted)
        return [body for key, body in named if key in there or key not in self.round.found]

    def _key(self, body: Body) -> str:
        return self.desk.kind.key(self.desk.place, body)

    def _version(self, body: Body) -> Version | None:
        state = self.round.state
        return state.versions.get(state.here.get(self._key(body), ""))

    def _is_doomed(self, body: Body) -> bool:
        """Return whether something was forgotten elsewhere that a record without a version had not seen."""
        if self._key(body) in self.round.doomed:
            return True
        return any(map(self._is_new, self._scopes(body)))

    def is_past(self, body: object) -> bool:
        """Return whether an earlier value, which only this machine has, was forgotten elsewhere."""
        noted = self.round.state.meta.get(_NOTED, "").split()
        return isinstance(body, dict) and any(scope in noted or self._is_new(scope) for scope in self._scopes(body))

    def _scopes(self, body: Body) -> Sequence[str]:
        return self.desk.kind.scopes(self.round.here.traces, self.desk.place, body)

    def _is_new(self, scope: str) -> bool:
        """Return whether it was forgotten elsewhere, and the journals here have not forgotten it yet."""
        state = self.round.state
        return bool(state.traces.get(scope, set()) - state.done.get(scope, set()))


def _told(conflict: Conflict) -> str:
    kind = KINDS[conflict.kind]
    name = conflict.id if kind.form == "text" else f"{conflict.kind}/{conflict.id}"
    return f"{name}: {conflict.version.v}"
