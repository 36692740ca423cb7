"""StatefulSet and DaemonSet controllers that read older templates from stored ControllerRevisions after a restart."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.apiserver.bridge.revision_documents import REVISIONS, typed_template
from bayplan.apiserver.rest.backend import decode_item
from bayplan.apiserver.store.store import Store
from bayplan.controllers.adoption import SeenObjects
from bayplan.controllers.controller import ControllerTools
from bayplan.controllers.daemon_set import DaemonSetController
from bayplan.controllers.revisions import Revision, RevisionHistory
from bayplan.controllers.stateful_set import StatefulSetController
from bayplan.objects.workloads import DaemonSet, StatefulSet


class _RevisionHistories:
    """The revision histories of sets, each restored once.

    Args:
        documents: the API's store.
    """

    def __init__(self, documents: Store) -> None:
        self._documents = documents
        self._met = SeenObjects()

    def forget(self, key: str) -> None:
        """Forget a deleted set."""
        self._met.forget(key)

    def restore(
        self, key: str, item: StatefulSet | DaemonSet | None, history_of: Callable[[str], RevisionHistory]
    ) -> None:
        """Restore the revision history of a set, or forget the set if it is deleted.

        Args:
            key: the key of the set.
            item: the set; None if it is deleted.
            history_of: returns the history of a set by its uid.
        """
        if item is None:
            self.forget(key)
        else:
            self.fill(history_of(item.metadata.uid), item)

    def fill(self, history: RevisionHistory, item: StatefulSet | DaemonSet) -> None:
        """Fill an empty history with the stored revisions, when a set is processed for the first time."""
        if not self._met.is_new(item):
            return
        self._met.note(item)
        if history.revisions:
            return
        prefix = f"{item.metadata.name}-"
        found: list[tuple[int, Revision]] = []
        for each in self._documents.between(REVISIONS, item.metadata.namespace):
            if item.metadata.uid.encode() not in each.raw or not each.name.startswith(prefix):
                continue
            document = decode_item(each)
            template = typed_template(document, type(item))
            number = document.get("revision")
            if template is not None:
                revision = Revision(each.name.removeprefix(prefix), template)
                found.append((number if isinstance(number, int) else 0, revision))
        history.revisions = [revision for _, revision in sorted(found, key=lambda entry: entry[0])]


class RestoringStatefulSets(StatefulSetController):
    """A `StatefulSetController` that restores the history of each set first.

    Args:
        tools: see `ControllerTools`.
        documents: the API's store.
    """

    def __init__(self, tools: ControllerTools, documents: Store) -> None:
        super().__init__(tools)
        self._stored = _RevisionHistories(documents)

    def reconcile(self, key: str, now_ns: int) -> int | None:
        """Restore the history of the set, then reconcile it; see `StatefulSetController.reconcile`."""
        self._stored.restore(key, self.store.get(StatefulSet, key), self.history_of)
        return super().reconcile(key, now_ns)


class RestoringDaemonSets(DaemonSetController):
    """A `DaemonSetController` that restores the history of each set first.

    Args:
        tools: see `ControllerTools`.
        documents: the API's store.
    """

    def __init__(self, tools: ControllerTools, documents: Store) -> None:
        super().__init__(tools)
        self._stored = _RevisionHistories(documents)

    def reconcile(self, key: str, now_ns: int) -> int | None:
        """Restore the history of the set, then reconcile it; see `DaemonSetController.reconcile`."""
        self._stored.restore(key, self.store.get(DaemonSet, key), self.history_of)
        return super().reconcile(key, now_ns)
