"""The structs of a configuration file, with the declared values: ``KubeSchedulerConfiguration`` and its parts."""

from typing import Annotated, ClassVar, Final

import msgspec

from bayplan.base.durations import SECOND_NS
from bayplan.formats.json_tree import JsonNode
from bayplan.framework.configuration.plugin_arguments import PluginArguments
from bayplan.framework.configuration.schema import ALWAYS, ARGUMENTS, EMPTY_IS_UNSET, DurationNs, Float32, Struct, Wire
from bayplan.objects.meta import Int32, Int64

KIND: Final = "KubeSchedulerConfiguration"
GROUP: Final = "kubescheduler.config.k8s.io"
VERSION: Final = "v1"
API_VERSION: Final = f"{GROUP}/{VERSION}"

_ALWAYS_SET: Final = Wire(empty_is_unset=True, always=True)


class RawArguments(msgspec.Struct, frozen=True):
    """The undecoded arguments of a plugin whose argument type is unknown."""

    tree: JsonNode


class Plugin(Struct, frozen=True):
    """An entry of a plugin list: the plugin, and its score weight, 0 if not set."""

    name: Annotated[str, ALWAYS] = ""
    weight: Annotated[Int32, ALWAYS] = 0


class PluginSet(Struct, frozen=True):
    """The plugins enabled at an extension point, and the default plugins disabled there (``*``: all)."""

    enabled: tuple[Plugin, ...] = ()
    disabled: tuple[Plugin, ...] = ()


_NO_PLUGINS = PluginSet()


class Plugins(Struct, frozen=True):
    """A plugin set for every extension point, and a set for all of them (``multiPoint``)."""

    pre_enqueue: PluginSet = _NO_PLUGINS
    queue_sort: PluginSet = _NO_PLUGINS
    pre_filter: PluginSet = _NO_PLUGINS
    filter: PluginSet = _NO_PLUGINS
    post_filter: PluginSet = _NO_PLUGINS
    pre_score: PluginSet = _NO_PLUGINS
    score: PluginSet = _NO_PLUGINS
    reserve: PluginSet = _NO_PLUGINS
    permit: PluginSet = _NO_PLUGINS
    pre_bind: PluginSet = _NO_PLUGINS
    bind: PluginSet = _NO_PLUGINS
    post_bind: PluginSet = _NO_PLUGINS
    multi_point: PluginSet = _NO_PLUGINS
    placement_generate: PluginSet = _NO_PLUGINS
    placement_score: PluginSet = _NO_PLUGINS


class PluginConfig(Struct, frozen=True):
    """The arguments of one plugin."""

    name: Annotated[str, ALWAYS] = ""
    args: Annotated[PluginArguments | RawArguments | None, ARGUMENTS, ALWAYS] = None


class KubeSchedulerProfile(Struct, frozen=True):
    """A profile as declared. `scheduler_name` is None if the file does not set it; defaulting fills it in."""

    scheduler_name: Annotated[str | None, Wire(v1_pointer=True)] = None
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins | None = None
    plugin_config: tuple[PluginConfig, ...] = ()


class LeaderElectionConfiguration(Struct, frozen=True):
    """The settings of leader election among replicas of the scheduler."""

    go_package: ClassVar[str] = "v1alpha1"

    leader_elect: Annotated[bool, ALWAYS] = True
    lease_duration_ns: Annotated[DurationNs, EMPTY_IS_UNSET] = 15 * SECOND_NS
    renew_deadline_ns: Annotated[DurationNs, EMPTY_IS_UNSET] = 10 * SECOND_NS
    retry_period_ns: Annotated[DurationNs, EMPTY_IS_UNSET] = 2 * SECOND_NS
    resource_lock: Annotated[str, _ALWAYS_SET] = "leases"
    resource_name: Annotated[str, _ALWAYS_SET] = "kube-scheduler"
    resource_namespace: Annotated[str, _ALWAYS_SET] = "kube-system"


class ClientConnectionConfiguration(Struct, frozen=True):
    """The settings of the connection to the API server."""

    go_package: ClassVar[str] = "v1alpha1"

    kubeconfig: Annotated[str, ALWAYS] = ""
    accept_content_types: Annotated[str, ALWAYS] = ""
    content_type: Annotated[str, _ALWAYS_SET] = "application/vnd.kubernetes.protobuf"
    qps: Annotated[Float32, Wire(go_name="QPS", empty_is_unset=True, always=True)] = 50.0
    burst: Annotated[Int32, _ALWAYS_SET] = 100


class ExtenderManagedResource(Struct, frozen=True):
    """An extended resource that an extender manages; if `ignored_by_scheduler`, NodeResourcesFit does not check it."""

    name: Annotated[str, ALWAYS] = ""
    ignored_by_scheduler: bool = False


class ExtenderTLSConfig(Struct, frozen=True):
    """TLS settings of an extender; the ``data`` fields hold PEM and take precedence over the files."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: Annotated[str, Wire(go_name="CAFile")] = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: Annotated[bytes, Wire(go_name="CAData")] = b""


class Extender(Struct, frozen=True):
    """The settings of an HTTP extender; a verb that is "" is not called."""

    url_prefix: Annotated[str, Wire(go_name="URLPrefix", always=True)] = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: Annotated[bool, Wire(json="enableHTTPS")] = False
    tls_config: Annotated[ExtenderTLSConfig | None, Wire(go_name="TLSConfig")] = None
    http_timeout_ns: Annotated[DurationNs, Wire(go_name="HTTPTimeout")] = 0
    node_cache_capable: bool = False
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: bool = False


class KubeSchedulerConfiguration(Struct, frozen=True):
    """A configuration file. `api_version` is the version in which it was written."""

    api_version: Annotated[str, Wire(json="-")] = ""
    parallelism: Annotated[Int32, ALWAYS] = 16
    leader_election: LeaderElectionConfiguration = LeaderElectionConfiguration()
    client_connection: ClientConnectionConfiguration = ClientConnectionConfiguration()
    enable_profiling: Annotated[bool, Wire(embedded="DebuggingConfiguration", always=True)] = True
    enable_contention_profiling: Annotated[bool | None, Wire(embedded="DebuggingConfiguration", v1_pointer=True)] = None
    percentage_of_nodes_to_score: Int32 | None = 0
    pod_initial_backoff_seconds: Annotated[Int64, ALWAYS] = 1
    pod_max_backoff_seconds: Annotated[Int64, ALWAYS] = 10
    profiles: tuple[KubeSchedulerProfile, ...] = ()
    extenders: tuple[Extender, ...] = ()
    delay_cache_until_active: bool = False
