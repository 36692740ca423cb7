"""Finds workloads that never finish. With such a workload, a run without a given end must be stopped."""

from __future__ import annotations

from typing import TypeAlias

from bayplan.cluster.run_time import FOREVER, RUN_TIME_ANNOTATION
from bayplan.cluster.store import ObjectStore
from bayplan.objects.workloads import CronJob, DaemonSet, Deployment, ReplicaSet, ReplicationController, StatefulSet

Restarting: TypeAlias = DaemonSet | Deployment | ReplicaSet | ReplicationController | StatefulSet
"""Workloads that replace each pod that ends."""


def perpetual_workloads(store: ObjectStore) -> list[str]:
    """Return the workloads that create pods forever, as `Kind namespace/name`.

    These are CronJobs that are not suspended, and workloads that replace ended pods, if their pods have a run time.
    Workloads of another workload that is stored, such as the ReplicaSets of a Deployment, are left out.
    """
    found = [f"CronJob {job.key}" for job in store.all(CronJob) if not job.spec.suspend]
    restarting: list[Restarting] = [*store.all(Deployment), *store.all(StatefulSet), *store.all(DaemonSet)]
    restarting += [*store.all(ReplicaSet), *store.all(ReplicationController)]
    names = {(type(item).__name__, item.key) for item in restarting}
    for item in restarting:
        owner = item.metadata.controller()
        if owner is not None and (owner.kind, f"{item.metadata.namespace}/{owner.name}") in names:
            continue
        template = item.spec.template
        run_time = template.metadata.annotations.get(RUN_TIME_ANNOTATION, FOREVER) if template else FOREVER
        if run_time != FOREVER:
            found.append(f"{type(item).__name__} {item.key}")
    return found
