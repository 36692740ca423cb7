"""Determines the writes that synchronize the local cluster with the source, from the state of both instead of events.

The follower holds the newest version of every object of the source, the state of the local objects, and the sync state.
After any change of an object, it reconciles the object and returns the next write for it. So the result does not depend
on the order of events, on merged events, or on lost events that a later list makes up for. It has no sockets and no
clock.

For pods, with the defaults of `SyncPolicy`:

- A pod that has a node in the source when the sync begins is created with that node. Any other pod is created without a
  node, even if it is first seen with one: the local scheduler decides.
- While the pod is pending in the source, its changes are applied. Once it has a node there, only its end and the
  removal of its gates are applied.
- A pod that is deleted locally stays deleted until the source deletes it, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import msgspec

from bayplan.base.plain_data import Document, part, text
from bayplan.cluster.source_copies import SOURCE_UID
from bayplan.sync.applied_fields import from_annotation, keep_local_changes, with_hashes
from bayplan.sync.expectations import Expectations
from bayplan.sync.followed_kinds import BY_PLURAL, FOLLOWED_KINDS, FollowedKind, ObjectRef
from bayplan.sync.known_objects import LocalObject, Problem, SourceObject, placeholder_uid, ref_of, source_object
from bayplan.sync.memory import MEMORY_NAMESPACE, Known, Memory
from bayplan.sync.merging import (
    finished_status,
    is_finished,
    is_gated,
    is_scheduled,
    merge_object,
    merge_status,
    merge_waiting_pod,
    open_gates,
    resized,
)
from bayplan.sync.policy import SyncPolicy
from bayplan.sync.sync_write import Put, SyncWrite, Verb
from bayplan.sync.translation import Dependents, MissingDependency, translate
from bayplan.sync.volume_decisions import CLAIMS, VolumeDecisions, is_bound

_INITIAL_ONLY = ("volumeattachments",)
"""Kinds whose objects are decisions of the source's scheduling, unless they existed when the sync began."""

_MEMORY_PLACE = ObjectRef("namespaces", "", MEMORY_NAMESPACE)

_NEEDED_BY_OTHERS = ("namespaces", "priorityclasses", "runtimeclasses")
"""Kinds that the API requires for other objects, which may arrive first: watches of two kinds have no common order."""

_decode = msgspec.json.decode


class Follower:
    """Reconciles the objects of a source with the local objects; see the module.

    Args:
        policy: the policy of the sync.
        memory: the state of earlier runs, or empty.
        kinds: the plural names of the source's kinds. Nothing is written until all of them are listed locally, and
            no object of a rank until the lower ranks are listed in the source; nothing is deleted until everything is
            listed.

    Attributes:
        policy, memory: see the arguments.
        problems: why objects could not be written.
        counts: the numbers of writes that the target has confirmed.
    """

    def __init__(self, policy: SyncPolicy, memory: Memory, kinds: Iterable[str]) -> None:
        self.policy = policy
        self.memory = memory
        self.problems: dict[ObjectRef, Problem] = {}
        self.counts = dict.fromkeys(Verb, 0)
        self._source: dict[ObjectRef, SourceObject] = {}
        self._local: dict[ObjectRef, LocalObject] = {}
        self._unlisted = set(kinds)
        self._unlisted_here = set(self._unlisted)
        self._dirty: list[dict[ObjectRef, None]] = [{} for _ in BY_PLURAL]
        self._in_flight: dict[ObjectRef, SyncWrite] = {}
        self._expected = Expectations()
        # Hashes of the versions that were written locally, by uid in the source; and of the versions being written, by
        # reference.
        self._applied: dict[str, bytes] = {}
        self._merging: dict[ObjectRef, bytes] = {}
        self._volumes = VolumeDecisions(policy, memory, self._source)
        # Dependents of the local uid of another object; the number of the source's objects in each namespace.
        self._users = Dependents()
        self._inhabitants: dict[str, int] = {}

    # --- changes of the source ----------------------------------------------------------------------------------------

    def source_part_listed(self, plural: str, documents: Iterable[Document]) -> None:
        """Record the objects in a part of the first list of a kind."""
        for document in documents:
            self._add(ref_of(plural, document), document, initial=plural in self._unlisted and not self.memory.began)

    def source_listed(self, plural: str, documents: Iterable[Document], emitted: Iterable[ObjectRef] = ()) -> None:
        """Record the objects in the complete list of a kind, and drop all other objects of the kind.

        Called at the start, and whenever events may have been lost.

        Args:
            plural: the plural of the kind.
            documents: the objects of the list.
            emitted: the objects that `source_part_listed` has recorded already.
        """
        first = plural in self._unlisted
        self._unlisted.discard(plural)
        seen: dict[ObjectRef, None] = dict.fromkeys(emitted)
        for document in documents:
            ref = ref_of(plural, document)
            seen[ref] = None
            self._add(ref, document, initial=first and not self.memory.began)
        for ref in [ref for ref in self._source if ref.plural == plural and ref not in seen]:
            self._drop(ref)
        for ref in [ref for ref in self._local if ref.plural == plural and ref not in seen]:
            self._mark_dirty(ref)
        if first and not self._unlisted:
            if not self.memory.began:
                self._record_initial_objects()
            there = {known.uid for known in self._source.values()}
            for uid in self.memory.uids():
                if uid not in there:
                    self.memory.forget(uid)
            for ref in [ref for ref in self._local if ref not in self._source]:
                self._mark_dirty(ref)

    def source_changed(self, plural: str, document: Document) -> None:
        """Record an added or changed object of the source."""
        self._add(ref_of(plural, document), document, initial=False)

    def source_deleted(self, plural: str, document: Document) -> None:
        """Drop a deleted object of the source; the deletion of an earlier object with this name is ignored."""
        ref = ref_of(plural, document)
        if ref in self._source and text(part(document, "metadata"), "uid") in ("", self._source[ref].uid):
            self._drop(ref)

    def _add(self, ref: ObjectRef, document: Document, *, initial: bool) -> None:
        if ref == _MEMORY_PLACE:
            return  # A source that syncs another cluster has its own memory.
        taken = source_object(ref, document, initial=initial)
        known = self._source.get(ref)
        if known is not None and known.uid == taken.uid:
            if known.version == taken.version:
                return
            taken.initial = known.initial
        else:
            if known is not None:
                self._drop(ref)
            self._inhabitants[ref.namespace] = self._inhabitants.get(ref.namespace, 0) + 1
        self._source[ref] = taken
        if initial:
            self._record_initial_object(ref, taken)
        self.problems.pop(ref, None)
        self._mark_dirty(ref)

    def _drop(self, ref: ObjectRef) -> None:
        known = self._source.pop(ref)
        self._inhabitants[ref.namespace] -= 1
        if ref.namespace and not self._inhabitants[ref.namespace]:
            self._mark_dirty(ObjectRef("namespaces", "", ref.namespace))
        self.memory.forget(known.uid)
        self._applied.pop(known.uid, None)
        self.problems.pop(ref, None)
        self._expected.drop(ref)
        self._mark_dirty(ref)

    def _record_initial_objects(self) -> None:
        """Record all objects that keep their nodes, so that an interrupted run can be resumed."""
        for ref, known in self._source.items():
            if known.initial:
                self._record_initial_object(ref, known)
        self.memory.begin()

    def _record_initial_object(self, ref: ObjectRef, known: SourceObject) -> None:
        # An object that an interrupted first run created or saw deleted keeps the state recorded then.
        if self.memory.get(known.uid) is None and self._keeps_initial_state(ref, known):
            self.memory.set(known.uid, Known.KEEPS)

    def _keeps_initial_state(self, ref: ObjectRef, known: SourceObject) -> bool:
        """Return whether an object that existed when the sync began is created locally in its initial state."""
        if ref.plural == "pods":
            return self.policy.keep_nodes and known.scheduled
        return ref.plural in _INITIAL_ONLY or (ref.plural == CLAIMS and is_bound(_decode(known.raw)))

    # --- changes of the local cluster ---------------------------------------------------------------------------------

    def local_listed(self, plural: str, documents: Iterable[Document], revision: int) -> None:
        """Record all local objects of a kind, from a list at a revision."""
        self._unlisted_here.discard(plural)
        found = {ref_of(plural, document): document for document in documents}
        for ref in [ref for ref in self._local if ref.plural == plural and ref not in found]:
            self._drop_local(ref, self._local[ref].uid)
        for document in found.values():
            self.local_changed(plural, document)
        self.local_bookmark(plural, revision)

    def local_bookmark(self, plural: str, revision: int) -> None:
        """Record that all local changes of a kind up to a revision are known.

        Created objects that were not observed until then are gone.
        """
        for ref, uid in self._expected.observed_revision(plural, revision):
            self._drop_local(ref, uid)

    def local_deleted(self, plural: str, document: Document) -> None:
        """Record that an object was deleted locally, and reconcile it."""
        self._drop_local(ref_of(plural, document), text(part(document, "metadata"), "uid"))

    def local_changed(self, plural: str, document: Document) -> None:
        """Record that an object was added or changed locally, and reconcile it."""
        ref = ref_of(plural, document)
        metadata = part(document, "metadata")
        uid = text(metadata, "uid")
        source_uid = text(part(metadata, "annotations"), SOURCE_UID)
        found = LocalObject(uid, source_uid, is_gated(document), is_finished(document))
        self._expected.observed(ref, uid)
        before = self._local.get(ref)
        if before == found:
            return
        self._local[ref] = found
        self._mark_dirty(ref)
        if before is None or (before.uid, before.source_uid) != (uid, source_uid):
            self._uid_changed(ref)
        if before is None and plural in _NEEDED_BY_OTHERS:
            for refused in list(self.problems):
                self.retry(refused)

    def _uid_changed(self, ref: ObjectRef) -> None:
        """Reconcile the objects that depend on the local uid of an object."""
        for user in self._users.pop(ref):
            if user in self._source:
                self._applied.pop(self._source[user].uid, None)
            self._mark_dirty(user)

    def _drop_local(self, ref: ObjectRef, uid: str) -> None:
        self._expected.observed_deletion(ref, uid, creation_pending=ref in self._in_flight)
        if ref in self._local and self._local[ref].uid == uid:
            del self._local[ref]
        self.problems.pop(ref, None)
        self._mark_dirty(ref)
        if ref == _MEMORY_PLACE:
            self._start_over()

    def _start_over(self) -> None:
        """Start from scratch: the memory was deleted manually, or a different, empty cluster now has this address."""
        self.memory.clear()
        for forgotten in (self._applied, self._expected, self.problems):
            forgotten.clear()
        for ref, known in self._source.items():
            known.initial = True
            self._mark_dirty(ref)
        if not self._unlisted:
            self._record_initial_objects()

    # --- queries of the translation -----------------------------------------------------------------------------------

    def uid_of(self, ref: ObjectRef, source_uid: str) -> str | None:
        """Return the local uid of an object's copy; see `bayplan.sync.translation.LocalObjects`."""
        found = self._local.get(ref)
        # Without a uid in the source, any local object of that name is the copy.
        fits = found is not None and (source_uid in ("", found.source_uid) or found.source_uid == placeholder_uid(ref))
        return found.uid if found is not None and fits else None

    def keeps_node(self, source_uid: str) -> bool:
        """Return whether a pod keeps the node that it had when the sync began."""
        return self.memory.get(source_uid) in (Known.KEEPS, Known.KEPT)

    # --- decisions ----------------------------------------------------------------------------------------------------

    @property
    def is_ready(self) -> bool:
        """Whether everything is listed on both sides."""
        return not self._unlisted and not self._unlisted_here

    @property
    def is_idle(self) -> bool:
        """Whether everything that can be written is written."""
        return self.is_ready and not (self._in_flight or len(self._expected) or any(self._dirty))

    @property
    def lag(self) -> int:
        """The number of objects that are still to be reconciled or written."""
        return sum(map(len, self._dirty)) + len(self._in_flight)

    def is_pending(self, ref: ObjectRef) -> bool:
        """Return whether an object is still to be reconciled or written."""
        return ref in self._in_flight or ref in self._dirty[BY_PLURAL[ref.plural].rank]

    def next_writes(self, most: int) -> list[SyncWrite]:
        """Return at most `most` writes that are possible now. The caller must report each outcome: see `done`.

        Objects of a rank wait until objects of lower ranks are written.
        """
        writes: list[SyncWrite] = []
        if self._unlisted_here:
            return writes
        for rank, dirty in enumerate(self._dirty):
            while refs := [ref for ref in islice(dirty, len(self._in_flight) + most) if ref not in self._in_flight]:
                for ref in refs:
                    del dirty[ref]
                    write = self._decide(ref)
                    if write is not None:
                        self._in_flight[ref] = write
                        writes.append(write)
                        if len(writes) >= most:
                            return writes
            coming = FOLLOWED_KINDS[rank].plural in self._unlisted
            if coming or any(BY_PLURAL[ref.plural].rank <= rank for ref in self._in_flight):
                break
        return writes

    def _mark_dirty(self, ref: ObjectRef) -> None:
        self._dirty[BY_PLURAL[ref.plural].rank][ref] = None

    def _decide(self, ref: ObjectRef) -> SyncWrite | None:
        source, local = self._source.get(ref), self._local.get(ref)
        if ref in self._expected:
            return None
        if source is None:
            if local is None or not local.source_uid or ref in self.problems or self._unlisted:
                return None
            # A namespace with objects in the source exists again; its event will follow.
            inhabited = ref.plural == "namespaces" and self._inhabitants.get(ref.name)
            return None if inhabited else SyncWrite(Verb.DELETE, ref, local.uid)
        known = self.memory.get(source.uid)
        if local is None:
            return self._decide_missing(ref, source, known)
        if local.source_uid == source.uid:
            return self._decide_present(ref, source, local)
        if local.source_uid and ref.plural != "namespaces":
            # This is the copy of an earlier object with that name. A namespace is updated instead, because deleting it
            # would delete objects of its successor.
            return None if ref in self.problems else SyncWrite(Verb.DELETE, ref, local.uid)
        if ref.plural == "pods":
            self.problems[ref] = Problem(ref, "a pod of this name was created in the target by another client")
            return None
        return self._update(ref, source)

    def _decide_missing(self, ref: ObjectRef, source: SourceObject, known: Known | None) -> SyncWrite | None:
        if known in (Known.MADE, Known.KEPT, Known.FREE):
            self.memory.set(source.uid, Known.DELETED)
            self._applied.pop(source.uid, None)
            return None
        if known is Known.DELETED or (known is None and ref.plural in _INITIAL_ONLY) or ref in self.problems:
            return None
        if ref.plural == "pods" and source.finished:
            return None
        wanted = self._translated(ref, _decode(source.raw), source)
        if wanted is None:
            return None
        wanted = with_hashes(BY_PLURAL[ref.plural], wanted, wanted)
        return SyncWrite(Verb.CREATE, ref, source.uid, wanted, source.version)

    def _decide_present(self, ref: ObjectRef, source: SourceObject, local: LocalObject) -> SyncWrite | None:
        known = self.memory.get(source.uid)
        if known in (None, Known.KEEPS):
            # The object was created by a run that ended before it could record the creation.
            self._record_created(ref, source.uid)
        if ref.plural != "pods":
            return self._update(ref, source)
        if source.finished:
            return None if local.finished else self._update(ref, source)
        if not source.scheduled or self.policy.update_scheduled_pods:
            return self._update(ref, source)
        return self._update(ref, source) if local.gated and not source.gated else None

    def _record_created(self, ref: ObjectRef, uid: str) -> None:
        if self.memory.get(uid) is Known.KEEPS:
            self.memory.set(uid, Known.KEPT)
        else:
            self.memory.set(uid, Known.FREE if self._volumes.is_bound_locally(ref, uid) else Known.MADE)

    def _update(self, ref: ObjectRef, source: SourceObject) -> SyncWrite | None:
        if ref in self.problems or self._applied.get(source.uid) == source.version:
            return None
        return SyncWrite(Verb.UPDATE, ref, source.uid)

    def _translated(self, ref: ObjectRef, document: Document, source: SourceObject) -> Document | None:
        decided = self._volumes.as_decided(ref, source.uid, document)
        if decided is None:
            return None
        kept = self.keeps_node(source.uid)
        try:
            return translate(BY_PLURAL[ref.plural], decided, self._users.recording(ref, self), keeps_node=kept)
        except MissingDependency:
            return None

    def merged(self, write: SyncWrite, here: Document) -> list[Put]:
        """Return the replacements for an update or after a creation, in the order of writing; empty if nothing differs.

        Args:
            write: an update, or an executed creation.
            here: the local object.
        """
        ref = write.ref
        source = self._source.get(ref)
        if source is None or source.uid != write.uid:
            return []
        # The pod may have changed in the source since its creation was sent; that change is written later.
        self._merging[ref] = write.version if ref.plural == "pods" and write.version else source.version
        if ref.plural == "pods" and write.document is not None:
            status = write.document.get("status")
            return [Put("status", {**here, "status": status})] if status is not None else []
        kind, document = BY_PLURAL[ref.plural], _decode(source.raw)
        if ref.plural == "pods":
            return self._merged_pod(write, kind, document, here)
        wanted = self._translated(ref, document, source)
        if wanted is None:
            return []  # The object is reconciled again when the awaited object exists.
        # Admission may have changed a new object; these are not user changes.
        before = from_annotation(here, source.uid) if write.verb is Verb.UPDATE else None
        kept = keep_local_changes(kind, here, wanted, before)
        main = with_hashes(kind, merge_object(kind, here, kept), wanted)
        puts = [Put("", main)] if main != here else []
        status = merge_status(here, kept) if kind.has_status else None
        if status is not None:
            # The hashes of a node include its status, so they must not be written before the status.
            puts.insert(0 if kind.kind == "Node" else len(puts), Put("status", status))
        return puts

    def _merged_pod(self, write: SyncWrite, kind: FollowedKind, document: Document, here: Document) -> list[Put]:
        if is_finished(document):
            return [] if is_finished(here) else [Put("status", finished_status(here, document))]
        wanted = translate(kind, document, self)
        if is_scheduled(document) and not self.policy.update_scheduled_pods:
            return [Put("", open_gates(here, wanted))] if is_gated(here) else []
        changed = keep_local_changes(kind, here, wanted, from_annotation(here, write.uid))
        main = with_hashes(kind, merge_waiting_pod(here, changed), wanted)
        puts = [Put("", main), Put("resize", resized(here, changed))]
        return [put for put in puts if put.document != here]

    # --- outcomes of writes -------------------------------------------------------------------------------------------

    def done(self, write: SyncWrite, uid: str = "", revision: int = 0, *, written: bool = True) -> None:
        """Record a successful write; deleting an object that is already gone is a success.

        Args:
            write: a write from `next_writes`.
            uid, revision: the uid and revision of the object, after a creation.
            written: whether the target was written to; it may have needed no change.
        """
        ref = write.ref
        self.counts[write.verb] += written
        if ref in self._merging:
            self._applied[write.uid] = self._merging[ref]
        if write.verb is Verb.CREATE:
            source = self._source.get(ref)
            if source is not None and source.uid == write.uid:
                self._record_created(ref, write.uid)
            self._expect(ref, uid, revision)
        elif write.verb is Verb.DELETE and ref in self._local and self._local[ref].uid == write.uid:
            self._expected.expect_deletion(ref, write.uid)
        self._finish_write(ref)

    def found(self, write: SyncWrite, uid: str, revision: int) -> None:
        """Record that the object to create already exists. It is reconciled when the local watch reports this revision."""
        self._expect(write.ref, uid, revision)
        self._finish_write(write.ref)

    def _expect(self, ref: ObjectRef, uid: str, revision: int) -> None:
        local = self._local.get(ref)
        if local is None or local.uid != uid:
            self._expected.expect_creation(ref, uid, revision)

    def failed(self, write: SyncWrite, message: str) -> None:
        """Record a rejected write; see `note`."""
        self.note(write, message)
        self._finish_write(write.ref)

    def retry(self, ref: ObjectRef) -> None:
        """Reconcile an object again if it could not be written."""
        if self.problems.pop(ref, None) is not None:
            if ref in self._source:
                self._applied.pop(self._source[ref].uid, None)
            self._mark_dirty(ref)

    def note(self, write: SyncWrite, message: str) -> None:
        """Record why an object could not be written, until `retry`, or until it changes in the source; call before `done`."""
        source, ref = self._source.get(write.ref), write.ref
        if write.verb is Verb.CREATE:
            has_changed = source is None or source.version != self._merging.get(ref, write.version)
        else:
            has_changed = ref in self._dirty[BY_PLURAL[ref.plural].rank]
        # If the object has changed since the write began, it is reconciled instead.
        if not has_changed:
            self.problems[ref] = Problem(ref, message)

    def _finish_write(self, ref: ObjectRef) -> None:
        del self._in_flight[ref]
        self._merging.pop(ref, None)
        if not self._in_flight:
            self._expected.no_creation_pending()
        self._mark_dirty(ref)
