"""The pods with claims or disks on each row, and the number of volumes that use each claim.

Placing pods does not update this data: each reader processes the rows that changed, according to the log, since its
last call. So the data is also correct inside trials.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, TypeVar

from bayplan.objects.volumes import Volume
from bayplan.state.pod_info import PodInfo

if TYPE_CHECKING:
    from bayplan.state.cluster_state import ClusterState

K = TypeVar("K")


class VolumeUse:
    """The pods of a state that have volumes relevant to scheduling. Each reader has its own instance.

    Attributes:
        pods_on: by row, its pods with such volumes; rows without any are omitted.
        claim_users: by claim (``namespace/name``), the number of volumes that use it, excluding ephemeral volumes.
        name_users: the same by the claim's name alone, over all namespaces.
    """

    __slots__ = ("_disk_rows", "_position", "_state", "claim_users", "name_users", "pods_on")

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._position = -1
        self.pods_on: dict[int, list[PodInfo]] = {}
        self.claim_users: dict[str, int] = {}
        self.name_users: dict[str, int] = {}
        # By kind and name of a disk, the rows that use it, with the number of volumes there that have this name.
        self._disk_rows: dict[tuple[str, str], dict[int, int]] = {}

    def refresh(self) -> Collection[int]:
        """Update all data; return the rows that may have changed."""
        rows = moved_rows(self._state, self._position)
        self._position = self._state.change_log.end
        for row in rows:
            self._update_row(row)
        return rows

    def rows_with(self, volume: Volume) -> Iterator[dict[int, int]]:
        """Yield, for each disk of this volume that is in use, the number of volumes with its name, by row.

        Disks with the same name can be different: the name is only a part of their identity.
        """
        for key in _disk_names(volume):
            rows = self._disk_rows.get(key)
            if rows:
                yield rows

    def _update_row(self, row: int) -> None:
        infos = pods_with_volumes(self._state, row)
        before, same = self.pods_on.pop(row, []), 0
        while same < min(len(before), len(infos)) and before[same] is infos[same]:
            same += 1
        for info in before[same:]:
            self._count(info, row, -1)
        for info in infos[same:]:
            self._count(info, row, 1)
        if infos:
            self.pods_on[row] = infos

    def _count(self, info: PodInfo, row: int, change: int) -> None:
        namespace = info.pod.metadata.namespace
        for volume in info.pod.spec.volumes:
            if volume.persistent_volume_claim is None:
                for key in _disk_names(volume):
                    count_user(self._disk_rows, key, row, change)
                continue
            name = volume.persistent_volume_claim.claim_name
            _add(self.claim_users, f"{namespace}/{name}", change)
            _add(self.name_users, name, change)


def _disk_names(volume: Volume) -> Iterator[tuple[str, str]]:
    """Yield kind and name of a volume's disks, which pods on a node can't share freely."""
    if volume.gce_persistent_disk is not None:
        yield "gce", volume.gce_persistent_disk.pd_name
    if volume.aws_elastic_block_store is not None:
        yield "ebs", volume.aws_elastic_block_store.volume_id
    if volume.iscsi is not None:
        yield "iscsi", volume.iscsi.iqn
    if volume.rbd is not None:
        yield "rbd", volume.rbd.image


def _add(users: dict[K, int], key: K, change: int) -> int:
    """Add to the number of a key's users; return the new number. Keys without users are omitted."""
    count = users.get(key, 0) + change
    if count:
        users[key] = count
    else:
        del users[key]
    return count


def count_user(users: dict[K, dict[int, int]], key: K, row: int, change: int) -> bool:
    """Add (1) or remove (-1) a user of a key on a row; return whether it became the first or was the last user there."""
    rows = users.setdefault(key, {})
    count = _add(rows, row, change)
    if not rows:
        del users[key]
    return count == (1 if change > 0 else 0)


def moved_rows(state: ClusterState, position: int) -> Collection[int]:
    """Return the rows whose pods or node changed since a position in the change log; all rows for -1."""
    logged = state.change_log.since(position)
    return range(len(state.pods_on)) if logged is None else dict.fromkeys(logged)


def pods_with_volumes(state: ClusterState, row: int) -> list[PodInfo]:
    """Return the pods on a row whose volumes matter to volume plugins (`has_volumes`)."""
    return [info for info in state.pods_on[row].values() if has_volumes(info.pod.spec.volumes)]


def has_volumes(volumes: tuple[Volume, ...]) -> bool:
    """Return whether any of a pod's volumes is a claim, or a disk of a kind that affects scheduling."""
    return any(
        volume.persistent_volume_claim is not None
        or volume.ephemeral is not None
        or volume.gce_persistent_disk is not None
        or volume.aws_elastic_block_store is not None
        or volume.iscsi is not None
        or volume.rbd is not None
        or volume.cinder is not None
        or volume.azure_disk is not None
        or volume.portworx_volume is not None
        for volume in volumes
    )
