"""Finds workloads that never finish. With such a workload, a run without a given end must be stopped."""

from __future__ import annotations

from typing import TypeAlias

from bayplan.cluster.run_time import FOREVER, RUN_TIME_ANNOTATION
from bayplan.cluster.store import ObjectStore
from bayplan.objects.workloads import CronJob, DaemonSet, Deployment, ReplicaSet, ReplicationController, StatefulSet

Restarting: TypeAlias = DaemonSet | Deployment | ReplicaSet | ReplicationController | StatefulSet
"""Workloads that replace each pod that ends."""


def perpetual_reason(store: ObjectStore) -> str:
    """Return which workloads create pods forever: `Kind namespace/name would run forever`; "" if none does.

    These are CronJobs that are not suspended, and workloads that replace ended pods, if their pods have a run time.
    Workloads without replicas, and those of another workload that is stored (ReplicaSets of a Deployment), are left out.
    """
    found = [f"CronJob {job.key}" for job in store.all(CronJob) if not job.spec.suspend]
    restarting: list[Restarting] = [*store.all(Deployment), *store.all(StatefulSet), *store.all(DaemonSet)]
    restarting += [*store.all(ReplicaSet), *store.all(ReplicationController)]
    names = {(type(item).__name__, item.key) for item in restarting}
    for item in restarting:
        owner = item.metadata.controller()
        if owner is not None and (owner.kind, f"{item.metadata.namespace}/{owner.name}") in names:
            continue
        if not isinstance(item, DaemonSet) and item.spec.replicas == 0:
            continue
        template = item.spec.template
        run_time = template.metadata.annotations.get(RUN_TIME_ANNOTATION, FOREVER) if template else FOREVER
        if run_time != FOREVER:
            found.append(f"{type(item).__name__} {item.key}")
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"{found[0]}{more} would run forever" if found else ""
