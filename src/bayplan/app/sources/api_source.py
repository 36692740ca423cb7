"""A Kubernetes API as a source: a live cluster that is only read, or a Bayplan server with its configuration and clock.

Each kind is listed once, in pages; nothing is watched and nothing is written. Secrets and ConfigMaps are never read.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from collections.abc import Sequence
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec

from bayplan.app.scheduler_setup import SchedulerSetup
from bayplan.app.sources.assumptions import (
    configuration_assumption,
    sampling_assumption,
    scheduler_name_assumption,
    time_text,
    unread_assumptions,
)
from bayplan.app.sources.cluster_source import (
    Assumption,
    ClusterSource,
    SourceKind,
    SourceOptions,
    UnreadKind,
    in_order,
)
from bayplan.app.sources.file_source import read_setup_of, with_source_gates
from bayplan.base.errors import InputError
from bayplan.base.go_text.times import parse_time_ns
from bayplan.base.version import __version__
from bayplan.client.cluster_access import ClusterAccess, open_access
from bayplan.client.connection import ApiConnection
from bayplan.client.list_errors import list_error
from bayplan.client.proxies import proxy_for
from bayplan.client.requests import NO_ANSWER, ApiRequest, ApiResponse
from bayplan.formats.object_decoder import ObjectDecoder
from bayplan.objects.kinds import ResourceKind, kind_of
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.namespace import Namespace
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.policy import LimitRange, PodDisruptionBudget, PodGroup, PriorityClass, ResourceQuota
from bayplan.objects.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from bayplan.objects.service import Service
from bayplan.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from bayplan.objects.workloads import DaemonSet, Deployment, Job, ReplicaSet, ReplicationController, StatefulSet

PAGE = 500
"""Number of objects per page; kubectl's default."""

TOKEN_VARIABLE = "BAYPLAN_TOKEN"
"""Environment variable with the token of a Bayplan server."""

_SPREADING = "default spreading of pods does not know their selectors"
_NONE = "it is assumed that there are none"
LISTED_KINDS: dict[type[KubernetesObject], str] = {
    Node: "",
    Pod: "",
    Namespace: "namespace selectors of affinity terms match no namespace",
    PriorityClass: "priorities of pods are known, names of classes are not",
    PersistentVolumeClaim: "pods with claims can't be evaluated",
    PersistentVolume: "pods with bound claims can't be evaluated",
    StorageClass: "pods with unbound claims can't be evaluated",
    CSINode: "limits of volumes for each node are not known",
    CSIDriver: "storage capacity is not checked",
    CSIStorageCapacity: "storage capacity is not known",
    VolumeAttachment: "attached volumes are those of the pods",
    PodDisruptionBudget: f"{_NONE}, so evictions may be proposed that a budget forbids",
    ReplicaSet: _SPREADING,
    StatefulSet: _SPREADING,
    ReplicationController: _SPREADING,
    Service: _SPREADING,
    Deployment: "workloads are known by the names of their ReplicaSets",
    DaemonSet: "the pods of DaemonSets are known, DaemonSets without pods are not",
    Job: "Jobs are known by their pods",
    ResourceClaim: "pods with resource claims can't be evaluated",
    ResourceClaimTemplate: "claims that are still to be made from templates are not known",
    ResourceSlice: "devices are not known",
    DeviceClass: "classes of devices are not known",
    DeviceTaintRule: _NONE,
    PodGroup: "gangs of pods are not known",
    LimitRange: _NONE,
    ResourceQuota: _NONE,
}
"""The kinds to list, and the assumption of answers if one cannot be listed; "" for kinds that must be readable."""


_Answer = TypeVar("_Answer")


class _Meta(msgspec.Struct, frozen=True, gc=False):
    continue_: str = msgspec.field(name="continue", default="")


class _List(msgspec.Struct, gc=False):
    metadata: _Meta = _Meta()
    items: list[msgspec.Raw] | None = None


class _ServerConfiguration(msgspec.Struct):
    text: str = ""
    effective: dict[str, object] = {}


class _ServerClock(msgspec.Struct):
    now: str = ""


class UrlAccess(ClusterAccess):
    """A server given by its URL; the token is read from the environment, if set."""

    def __init__(self, url: str) -> None:
        super().__init__(None, None)
        self.url = url.rstrip("/")
        self.tls = ssl.create_default_context() if url.startswith("https://") else None
        self.proxy = proxy_for(self.url, None, os.environ)

    async def load(self) -> None:
        """Do nothing: there is no kubeconfig."""

    async def authorization(self) -> str | None:
        """Return the value of the Authorization header, with the token in the environment, or None."""
        token = os.environ.get(TOKEN_VARIABLE, "")
        return f"Bearer {token}" if token else None


def open_cluster(options: SourceOptions) -> ClusterSource:
    """Read a live cluster.

    Raises:
        InputError: the cluster cannot be reached, or does not allow listing nodes and pods.
    """
    setup = read_setup_of(options)
    return asyncio.run(_open_cluster(options, setup))


async def _open_cluster(options: SourceOptions, setup: SchedulerSetup) -> ClusterSource:
    access = await open_access(options.kubeconfig, options.context or None)
    name = f"context {access.context}" if access.context else "the cluster of this pod"
    async with ApiConnection(access, user_agent=f"bayplan/{__version__}") as connection:
        reader = ApiReader(connection, name)
        objects = await reader.read()
    setup, gates = with_source_gates(options, setup, objects)
    now_ns = time.time_ns()
    found = [configuration_assumption(options, objects), *gates, Assumption("time", f"read at {time_text(now_ns)}")]
    return _source(options, SourceKind.CLUSTER, setup, objects, reader, found, now_ns)


def open_server(options: SourceOptions) -> ClusterSource:
    """Read a Bayplan server: its objects, its configuration, its clock.

    Raises:
        InputError: the server does not respond, is not Bayplan, or has a configuration that cannot be used.
    """
    return asyncio.run(_open_server(options))


async def _open_server(options: SourceOptions) -> ClusterSource:
    url = options.paths[0].rstrip("/")
    async with ApiConnection(UrlAccess(url), user_agent=f"bayplan/{__version__}", qps=-1) as connection:
        reader = ApiReader(connection, url)
        shown = await reader.get("/bayplan/v1/config", _ServerConfiguration)
        clock = await reader.get("/bayplan/v1/clock", _ServerClock)
        objects = await reader.read()
    own = options.config is None and bool(shown.text.strip())
    where = f"{url}/bayplan/v1/config"
    try:
        setup = read_setup_of(options, text=shown.text if own else "", where=where)
    except InputError as problem:
        raise InputError(
            f"the configuration of the server can't be used here: {problem}",
            hint="its own options: --plugin for its plugins, --mode classic for a Policy; or another --config FILE",
        ) from None
    origin = f"the configuration is that of {url}" if own else f"kube-scheduler's defaults apply, as at {url}"
    now_ns = parse_time_ns(clock.now) if clock.now else time.time_ns()
    found = [
        configuration_assumption(options, objects, origin),
        Assumption("time", f"read when its clock was at {time_text(now_ns)}"),
    ]
    return _source(options, SourceKind.SERVER, setup, objects, reader, found, now_ns)


def _source(
    options: SourceOptions,
    kind: SourceKind,
    setup: SchedulerSetup,
    objects: Sequence[KubernetesObject],
    reader: ApiReader,
    assumptions: Sequence[Assumption],
    now_ns: int,
) -> ClusterSource:
    found = [
        *assumptions,
        sampling_assumption(setup.configuration, objects),
        scheduler_name_assumption(setup.configuration, objects),
        *unread_assumptions(reader.unread),
    ]
    return ClusterSource(
        name=reader.name,
        kind=kind,
        objects=in_order(objects),
        scheduler=setup,
        now_ns=now_ns,
        assumptions=[each for each in found if each is not None],
        unread=reader.unread,
        requests=reader.requests,
    )


class ApiReader:
    """Reads all objects of a cluster once.

    Args:
        connection: the connection to the cluster's API.
        name: the name of the cluster, for messages.

    Attributes:
        requests: the requests sent so far.
        unread: the kinds that could not be read.
    """

    def __init__(self, connection: ApiConnection, name: str) -> None:
        self.name = name
        self.requests: list[str] = []
        self.unread: list[UnreadKind] = []
        self._connection = connection
        self._decoder = ObjectDecoder()

    async def read(self) -> list[KubernetesObject]:
        """Return the objects of all kinds that are listed.

        Raises:
            InputError: nodes or pods cannot be listed.
        """
        # The required kinds come first, so that a denial costs one request.
        needed = [await self._read_kind(kind_of(struct)) for struct, effect in LISTED_KINDS.items() if not effect]
        others = [kind_of(struct) for struct, effect in LISTED_KINDS.items() if effect]
        lists = [*needed, *await asyncio.gather(*(self._read_kind(kind) for kind in others))]
        self.unread.sort(key=lambda each: each.kind)
        return [item for items in lists for item in items]

    async def _read_kind(self, kind: ResourceKind) -> list[KubernetesObject]:
        """Return the objects of a kind, in the newest version that the server has, or an empty list."""
        for api_version in kind.api_versions:
            prefix = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
            found = await self._read_collection(f"{prefix}/{kind.plural}", kind)
            if found is not None:
                return found
        return []

    async def _read_collection(self, path: str, kind: ResourceKind) -> list[KubernetesObject] | None:
        """Return the objects of a collection, or None if the server does not serve it."""
        found: list[KubernetesObject] = []
        query = f"limit={PAGE}"
        while True:
            response = await self._get(path, query)
            if response.status == HTTPStatus.NOT_FOUND:
                return None
            if response.status == HTTPStatus.GONE and "continue" in query:
                # The list expired on the server between two pages.
                found, query = [], ""
                continue
            if not response.ok:
                self._refused(kind, response)
                return found
            page = msgspec.json.decode(response.body, type=_List)
            found += [self._decoder.decode(bytes(raw), kind.struct) for raw in page.items or ()]
            if not page.metadata.continue_:
                return found
            query = f"limit={PAGE}&continue={page.metadata.continue_}"

    async def _get(self, path: str, query: str = "") -> ApiResponse:
        shown = query.partition("&continue=")
        self.requests.append(f"GET {path}" + (f"?{shown[0]}{'&continue=...' if shown[1] else ''}" if query else ""))
        return await self._connection.send(ApiRequest("GET", path, query=query))

    def _refused(self, kind: ResourceKind, response: ApiResponse) -> None:
        effect = LISTED_KINDS[kind.struct]
        if response.status in (NO_ANSWER, HTTPStatus.UNAUTHORIZED) or not effect:
            raise list_error(self.name, kind.plural, response)
        self.unread.append(UnreadKind(kind=kind.kind, reason=response.message, effect=effect))

    async def get(self, path: str, kind: type[_Answer]) -> _Answer:
        """Return the response to a GET of a Bayplan server's own API, decoded as `kind`.

        Raises:
            InputError: nothing responds, or the server is not Bayplan.
        """
        response = await self._get(path)
        if response.status == NO_ANSWER:
            raise InputError(f"{self.name} does not respond: {response.message}", hint="bayplan up")
        if response.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise InputError(
                self.name, got=response.message, wanted="the server's token", hint=f"{TOKEN_VARIABLE}=TOKEN"
            )
        try:
            if response.ok:
                return msgspec.json.decode(response.body, type=kind)
        except msgspec.DecodeError:
            pass
        got = response.message if not response.ok else "another server"
        # Browsers show the URL of the page, which is that of the server with /ui and the path of a view.
        url = urlsplit(self.name)
        is_page = url.path == "/ui" or url.path.startswith("/ui/")
        hint = f"{url.scheme}://{url.netloc}" if is_page else "--context NAME for a cluster"
        raise InputError(self.name, got=got, wanted="a Bayplan server", hint=hint)
