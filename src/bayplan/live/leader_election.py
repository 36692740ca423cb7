"""Leader election with a Lease: of several schedulers, only the holder of the lease is active; the others wait for it.

A state machine without clock and sockets: its generators yield requests, and receive responses; they also yield seconds
to wait (see `bayplan.client.exchanges`). Requests, times and the event are those of client-go's leader election in
kube-scheduler.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from bayplan.base.durations import SECOND_NS
from bayplan.base.go_text.times import format_micro_time, format_time
from bayplan.client.request_steps import RequestSteps
from bayplan.client.requests import ApiRequest, ApiResponse

JITTER_FACTOR = 1.2
"""A candidate retries after the retry period plus a random time, up to this factor times the period."""

_LEASES = "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
_NOT_FOUND = 404
_CONFLICT = 409
_encode = msgspec.json.encode
_log = logging.getLogger("bayplan.client")

_Attempt: TypeAlias = RequestSteps[bool]


class LeaderElectionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the election; the defaults are those of kube-scheduler's configuration."""

    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"
    lease_duration_seconds: int = 15
    renew_deadline_seconds: float = 10.0
    retry_period_seconds: float = 2.0


class _LeaseSpec(msgspec.Struct, rename="camel", omit_defaults=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class LeaderElector:
    """One candidate.

    Args:
        options: the lease, and its duration.
        identity: the name of the candidate, which must be unique.
        controller: the reporting controller of the event about a new leader.
        now_ns: the function that returns the time in nanoseconds since 1970.
        jitter: the function that returns a random number in [0, 1).

    Attributes:
        leads: whether this candidate believes that it is the leader.
        holder: the last known holder of the lease; "" for none.
        renewed_ns: the time when the lease was last acquired or renewed.
    """

    def __init__(
        self,
        options: LeaderElectionOptions,
        *,
        identity: str,
        controller: str,
        now_ns: Callable[[], int],
        jitter: Callable[[], float],
    ) -> None:
        self.options = options
        self.identity = identity
        self.leads = False
        self.holder = ""
        self.renewed_ns = 0
        self._controller = controller
        self._now_ns = now_ns
        self._jitter = jitter
        self._path = _LEASES.format(namespace=options.resource_namespace)
        self._query = f"timeout={options.renew_deadline_seconds / 2:g}s"
        self._document: dict[str, object] = {}
        self._observed = _LeaseSpec()
        self._observed_ns = 0
        self._problem = ""

    # --- acquiring, renewing and releasing ----------------------------------------------------------------------------

    def acquire(self) -> RequestSteps[None]:
        """Retry until the lease is acquired; then `announce` it."""
        retry = self.options.retry_period_seconds
        while not (yield from self._try_acquire_or_renew()):
            yield retry * (1.0 + JITTER_FACTOR * self._jitter())
        self.leads = True

    def announce(self) -> RequestSteps[None]:
        """Record the event about the new leader, concurrently with its work: the response may take long."""
        yield from self._record("became leader")

    def renew(self) -> RequestSteps[None]:
        """Renew the lease until that fails for the renew deadline; then the lease is lost."""
        retry, deadline_ns = self.options.retry_period_seconds, int(self.options.renew_deadline_seconds * SECOND_NS)
        tried_ns = self._now_ns()
        while self._now_ns() - tried_ns < deadline_ns:
            if (yield from self._try_acquire_or_renew()):
                tried_ns = self._now_ns() + int(retry * SECOND_NS)
            yield retry
        self.leads = False

    def release(self) -> RequestSteps[None]:
        """Release the lease, so that another candidate need not wait; call it after `renew` was cancelled."""
        response = yield self._get()
        if not response.ok or self.holder != self.identity:
            self.leads = False
            return
        lease = self._observe(response)
        now = format_micro_time(self._now_ns())
        spec = _LeaseSpec("", 1, now, now, lease.lease_transitions or 0)
        yield from self._update(spec)
        self.leads = False

    def expired_for_seconds(self) -> float:
        """Return how long ago the lease of this leader expired without a renewal; 0 if it has not."""
        if not self.leads:
            return 0.0
        over_ns = self.renewed_ns + self.options.lease_duration_seconds * SECOND_NS
        return max(0.0, (self._now_ns() - over_ns) / SECOND_NS)

    # --- one attempt --------------------------------------------------------------------------------------------------

    def _try_acquire_or_renew(self) -> _Attempt:
        now_ns = self._now_ns()
        now = format_micro_time(now_ns)
        wanted = _LeaseSpec(self.identity, self.options.lease_duration_seconds, now, now, 0)
        is_holder = self.holder == self.identity
        # No other candidate should have written a lease that we hold, so it need not be read first.
        if is_holder and self._is_valid(now_ns) and (yield from self._update(_continued(wanted, self._observed))):
            return True
        response = yield self._get()
        if response.status == _NOT_FOUND:
            return (yield from self._create(wanted))
        if not response.ok:
            return self._failed(response)
        lease = self._observe(response)
        is_holder = self.holder == self.identity
        if self.holder and self._is_valid(now_ns) and not is_holder:
            return False
        if is_holder:
            return (yield from self._update(_continued(wanted, lease)))
        return (
            yield from self._update(
                msgspec.structs.replace(wanted, lease_transitions=(lease.lease_transitions or 0) + 1)
            )
        )

    def _is_valid(self, now_ns: int) -> bool:
        return self._observed_ns + (self._observed.lease_duration_seconds or 0) * SECOND_NS > now_ns

    def _observe(self, response: ApiResponse) -> _LeaseSpec:
        """Process the server's version of the lease.

        Its duration counts from the time at which a change was observed.
        """
        document = msgspec.json.decode(response.body, type=dict[str, object])
        spec = msgspec.convert(document.get("spec") or {}, _LeaseSpec)
        if spec != self._observed:
            self._see(spec)
        self._document = document
        return spec

    def _see(self, spec: _LeaseSpec) -> None:
        self._observed = spec
        self._observed_ns = self._now_ns()
        self.holder = spec.holder_identity or ""

    def _failed(self, response: ApiResponse) -> bool:
        """Log why the lease can't be read or written, unless that is known; return False."""
        problem = response.message
        if response.status != _CONFLICT and problem != self._problem:
            options = self.options
            _log.warning("lease %s/%s: %s", options.resource_namespace, options.resource_name, problem)
            self._problem = problem
        return False

    # --- requests -----------------------------------------------------------------------------------------------------

    def _get(self) -> ApiRequest:
        return ApiRequest("GET", f"{self._path}/{self.options.resource_name}", query=self._query)

    def _create(self, spec: _LeaseSpec) -> _Attempt:
        metadata = {"name": self.options.resource_name, "namespace": self.options.resource_namespace}
        self._document = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": metadata}
        body = _encode({**self._document, "spec": spec})
        return (yield from self._write(ApiRequest("POST", self._path, body, query=self._query), spec))

    def _update(self, spec: _LeaseSpec) -> _Attempt:
        path = f"{self._path}/{self.options.resource_name}"
        body = _encode({**self._document, "spec": spec})
        return (yield from self._write(ApiRequest("PUT", path, body, query=self._query), spec))

    def _write(self, request: ApiRequest, spec: _LeaseSpec) -> _Attempt:
        response = yield request
        if not response.ok:
            return self._failed(response)
        self._problem = ""
        self._document = msgspec.json.decode(response.body, type=dict[str, object])
        self._see(spec)
        self.renewed_ns = self._observed_ns
        return True

    def _record(self, what: str) -> RequestSteps[None]:
        metadata = self._document.get("metadata")
        found: Mapping[str, object] = metadata if isinstance(metadata, dict) else {}
        namespace, now_ns = self.options.resource_namespace, self._now_ns()
        event = {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {"name": f"{self.options.resource_name}.{now_ns:x}", "namespace": namespace},
            "involvedObject": {
                "kind": "Lease",
                "namespace": namespace,
                "name": self.options.resource_name,
                "uid": found.get("uid"),
                "apiVersion": "coordination.k8s.io/v1",
                "resourceVersion": found.get("resourceVersion"),
            },
            "reason": "LeaderElection",
            "message": f"{self.identity} {what}",
            "source": {"component": self._controller},
            "firstTimestamp": format_time(now_ns),
            "lastTimestamp": format_time(now_ns),
            "count": 1,
            "type": "Normal",
            "eventTime": None,
            "reportingComponent": self._controller,
            "reportingInstance": "",
        }
        yield ApiRequest("POST", f"/api/v1/namespaces/{namespace}/events", _encode(event))


def _continued(wanted: _LeaseSpec, before: _LeaseSpec) -> _LeaseSpec:
    """Return a renewed lease, with the acquire time and the number of transitions of the previous one."""
    return msgspec.structs.replace(
        wanted, acquire_time=before.acquire_time, lease_transitions=before.lease_transitions or 0
    )
