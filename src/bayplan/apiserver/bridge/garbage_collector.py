"""The garbage collector: what becomes of objects of every kind when their owners go.

Background: dependents are deleted once the owner is gone. Foreground: the owner waits for those that block it. Orphan: they
lose the reference. Only owners that were seen to go count: objects that come with the reference to an owner that was never
here (a dump of pods without their ReplicaSets) are left alone, where upstream would delete them.

Which owners are gone and still have dependents is kept in a table of its own, so that a restart in the middle changes nothing.

Source: pkg/controller/garbagecollector v1.36.3, https://kubernetes.io/docs/concepts/architecture/garbage-collection/
"""

from __future__ import annotations

from bayplan.apiserver.bridge.document_controller import Ask, DocumentController, Ties, ties_of
from bayplan.apiserver.bridge.object_writer import ObjectWriter
from bayplan.apiserver.kinds.strategy import part, parts, texts
from bayplan.apiserver.store.item import DELETED, Item, Write
from bayplan.apiserver.store.store import Store
from bayplan.base.plain_data import Document
from bayplan.cluster.controllers.controller import ControllerTools
from bayplan.cluster.deletion import FOREGROUND_FINALIZER, ORPHAN_FINALIZER
from bayplan.cluster.owned_pods import JOB_TRACKING_FINALIZER

GONE = "bayplan.io/gone-owners"
"""The table of owners that are gone; no resource is served from it."""

_Place = tuple[str, str, str]  # Table, namespace, name.
_MOST_ALIKE = 10_000


class ApiGarbageCollector(DocumentController):
    """Reconcile owners, by uid: those that are gone, and those that wait for their dependents."""

    def __init__(self, tools: ControllerTools, documents: Store, writer: ObjectWriter, ask: Ask) -> None:
        super().__init__(tools, documents, writer, ask)
        self._ties: dict[_Place, Ties] = {}
        # Pods of one owner share what ties them to it.
        self._alike: dict[Ties, Ties] = {}
        self._dependents: dict[str, dict[_Place, None]] = {}
        self._waiting: dict[str, _Place] = {}

    # --- looking ------------------------------------------------------------------------------------------------------

    def begin(self, now_ns: int) -> None:
        """Read the ties of everything there is."""
        self._ties.clear()
        self._dependents.clear()
        self._waiting.clear()
        for table in self.documents.table_names():
            for item in self.documents.table(table).items():
                if table == GONE:
                    self.ask(item.name, now_ns)
                else:
                    self._note(table, item, now_ns)

    def follow(self, write: Write, now_ns: int) -> None:
        """Keep the ties up to date; ask about owners that went, that ask for their dependents, or that wait for this one."""
        if write.table == GONE:
            return
        if write.type != DELETED:
            self._note(write.table, write.new, now_ns)
            return
        item = write.new
        place = (write.table, item.namespace, item.name)
        for owner in self._untie(place).owner_references:
            if owner.uid in self._waiting:
                self.ask(owner.uid, now_ns)
        self._waiting.pop(item.uid, None)
        if self._dependents.get(item.uid):
            self._remember(item.uid)
            self.ask(item.uid, now_ns)

    def _note(self, table: str, item: Item, now_ns: int) -> None:
        place = (table, item.namespace, item.name)
        ties = ties_of(item)
        before = self._ties.get(place)
        if before is None or before.owner_references != ties.owner_references:
            self._untie(place)
            for owner in ties.owner_references:
                self._dependents.setdefault(owner.uid, {})[place] = None
                if self.documents.get(GONE, ("", owner.uid)) is not None:
                    self.ask(owner.uid, now_ns)
        if ties.owner_references:
            self._ties[place] = self._shared(ties)
        asks = FOREGROUND_FINALIZER in ties.finalizers or ORPHAN_FINALIZER in ties.finalizers
        if asks and ties.deletion_timestamp is not None:
            self._waiting[item.uid] = place
            self.ask(item.uid, now_ns)
        for owner in ties.owner_references:
            if owner.uid in self._waiting:
                self.ask(owner.uid, now_ns)

    def _shared(self, ties: Ties) -> Ties:
        if len(self._alike) >= _MOST_ALIKE:
            self._alike.clear()
        return self._alike.setdefault(ties, ties)

    def _untie(self, place: _Place) -> Ties:
        """Forget the ties of an object and return them."""
        ties = self._ties.pop(place, Ties())
        for owner in ties.owner_references:
            others = self._dependents.get(owner.uid)
            if others is not None:
                others.pop(place, None)
                if not others:
                    del self._dependents[owner.uid]
        return ties

    def _remember(self, uid: str) -> None:
        if self.documents.get(GONE, ("", uid)) is None:
            self.documents.put(GONE, Item(b"{}", self.documents.revision + 1, "", uid, uid, {}, {}))

    def _forget(self, uid: str) -> None:
        if self.documents.get(GONE, ("", uid)) is not None:
            self.documents.remove(GONE, Item(b"{}", self.documents.revision + 1, "", uid, uid, {}, {}))

    # --- acting -------------------------------------------------------------------------------------------------------

    def reconcile(self, key: str, now_ns: int) -> int | None:
        """Delete, wait for, or let go of the dependents of one owner.

        Raises:
            WriteRefused: the API refuses it.
        """
        place = self._waiting.get(key)
        owner = self._item(place) if place is not None else None
        if place is not None and owner is not None and owner.uid == key:
            return self._serve(place, owner, now_ns)
        if self.documents.get(GONE, ("", key)) is None:
            return None
        left = [each for each in self._dependents.get(key, ()) if not self._is_going(each)]
        for dependent in left[: self.burst]:
            self._lose_owner(dependent, key)
        if len(left) > self.burst:
            return now_ns
        self._forget(key)
        return None

    def _serve(self, place: _Place, owner: Item, now_ns: int) -> int | None:
        """Do what an owner that is being deleted asks for."""
        ties, uid = ties_of(owner), owner.uid
        dependents = list(self._dependents.get(uid, ()))
        if ORPHAN_FINALIZER in ties.finalizers:
            for dependent in dependents[: self.burst]:
                self._drop_reference(dependent, uid)
            if len(dependents) > self.burst:
                return now_ns
            self._let_go(place, uid, ORPHAN_FINALIZER)
            return None
        left = [each for each in dependents if not self._is_going(each)]
        for dependent in left[: self.burst]:
            self._delete(dependent, foreground=bool(self._dependents.get(self._uid(dependent))))
        if len(left) > self.burst:
            return now_ns
        if not any(self._blocks(each, uid) for each in self._dependents.get(uid, ())):
            self._let_go(place, uid, FOREGROUND_FINALIZER)
        return None

    def _let_go(self, place: _Place, uid: str, finalizer: str) -> None:
        self._waiting.pop(uid, None)
        table, namespace, name = place
        self.writer.drop_finalizer(table, (namespace, name), finalizer)

    def _lose_owner(self, dependent: _Place, uid: str) -> None:
        others = [owner for owner in self._ties.get(dependent, Ties()).owner_references if owner.uid != uid]
        if any(self.documents.get(GONE, ("", owner.uid)) is None for owner in others):
            self._drop_reference(dependent, uid)
        else:
            self._delete(dependent, foreground=False)

    def _delete(self, place: _Place, *, foreground: bool) -> None:
        table, namespace, name = place
        item = self._item(place)
        if item is not None:
            # One that asks to orphan or wait for its own keeps that wish.
            policy = "Foreground" if foreground else ""
            self.writer.delete(table, (namespace, name), propagation=policy, uid=item.uid)

    def _drop_reference(self, place: _Place, uid: str) -> None:
        item = self._item(place)
        if item is None:
            return
        table, namespace, name = place
        metadata = dict(part(self.writer.document(table, item), "metadata"))
        owners = parts(metadata, "ownerReferences")
        controls = any(owner.get("uid") == uid and owner.get("controller") for owner in owners)
        _set(metadata, "ownerReferences", [owner for owner in owners if owner.get("uid") != uid])
        if controls:
            # Nobody is left to count the pod for its Job.
            left = [each for each in texts(metadata, "finalizers") if each != JOB_TRACKING_FINALIZER]
            _set(metadata, "finalizers", left)
        self.writer.change(table, (namespace, name), {"metadata": metadata})

    # --- asking -------------------------------------------------------------------------------------------------------

    def _item(self, place: _Place) -> Item | None:
        return self.documents.get(place[0], place[1:])

    def _uid(self, place: _Place) -> str:
        item = self._item(place)
        return item.uid if item is not None else ""

    def _is_going(self, place: _Place) -> bool:
        item = self._item(place)
        return item is None or ties_of(item).deletion_timestamp is not None

    def _blocks(self, place: _Place, uid: str) -> bool:
        """Say whether an object that is still there holds back the deletion of its owner."""
        ties = self._ties.get(place, Ties())
        return any(owner.uid == uid and owner.block_owner_deletion for owner in ties.owner_references)


def _set(metadata: Document, name: str, value: object) -> None:
    if value:
        metadata[name] = value
    else:
        metadata.pop(name, None)
