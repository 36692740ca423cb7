"""The structs of a configuration file: ``KubeSchedulerConfiguration`` and what it holds.

These say what was declared (with defaults filled in). What follows from it, profile by profile, is in ``profiles.py``.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from bayplan.framework.configuration.json_tree import JsonNode
from bayplan.framework.configuration.plugin_arguments import PluginArguments
from bayplan.framework.configuration.schema import (
    BOOL,
    FLOAT32,
    INT32,
    INT64,
    STRING,
    Arguments,
    Base64,
    Duration,
    Nested,
    Pointer,
    Slice,
    Struct,
    wire,
)


@dataclass(frozen=True, slots=True)
class RawArguments:
    """Arguments of a plugin whose argument type is not known: kept as they are."""

    tree: JsonNode


@dataclass(frozen=True, slots=True)
class Plugin(Struct):
    """A plugin in a list, with its weight for scoring; 0 where none was given."""

    name: str = field(default="", metadata=wire("name", STRING))
    weight: int = field(default=0, metadata=wire("weight", Pointer(INT32), nil=0, omit_empty=True))


@dataclass(frozen=True, slots=True)
class PluginSet(Struct):
    """Which plugins are added at an extension point, and which defaults are taken away (``*``: all)."""

    enabled: tuple[Plugin, ...] = field(default=(), metadata=wire("enabled", Slice(Nested(Plugin)), omit_empty=True))
    disabled: tuple[Plugin, ...] = field(default=(), metadata=wire("disabled", Slice(Nested(Plugin)), omit_empty=True))


_NO_PLUGINS = PluginSet()


@dataclass(frozen=True, slots=True)
class Plugins(Struct):
    """A plugin set for every extension point, and one that stands for all of them."""

    pre_enqueue: PluginSet = field(default=_NO_PLUGINS, metadata=wire("preEnqueue", Nested(PluginSet)))
    queue_sort: PluginSet = field(default=_NO_PLUGINS, metadata=wire("queueSort", Nested(PluginSet)))
    pre_filter: PluginSet = field(default=_NO_PLUGINS, metadata=wire("preFilter", Nested(PluginSet)))
    filter: PluginSet = field(default=_NO_PLUGINS, metadata=wire("filter", Nested(PluginSet)))
    post_filter: PluginSet = field(default=_NO_PLUGINS, metadata=wire("postFilter", Nested(PluginSet)))
    pre_score: PluginSet = field(default=_NO_PLUGINS, metadata=wire("preScore", Nested(PluginSet)))
    score: PluginSet = field(default=_NO_PLUGINS, metadata=wire("score", Nested(PluginSet)))
    reserve: PluginSet = field(default=_NO_PLUGINS, metadata=wire("reserve", Nested(PluginSet)))
    permit: PluginSet = field(default=_NO_PLUGINS, metadata=wire("permit", Nested(PluginSet)))
    pre_bind: PluginSet = field(default=_NO_PLUGINS, metadata=wire("preBind", Nested(PluginSet)))
    bind: PluginSet = field(default=_NO_PLUGINS, metadata=wire("bind", Nested(PluginSet)))
    post_bind: PluginSet = field(default=_NO_PLUGINS, metadata=wire("postBind", Nested(PluginSet)))
    multi_point: PluginSet = field(default=_NO_PLUGINS, metadata=wire("multiPoint", Nested(PluginSet)))
    placement_generate: PluginSet = field(default=_NO_PLUGINS, metadata=wire("placementGenerate", Nested(PluginSet)))
    placement_score: PluginSet = field(default=_NO_PLUGINS, metadata=wire("placementScore", Nested(PluginSet)))


@dataclass(frozen=True, slots=True)
class PluginConfig(Struct):
    """Arguments for one plugin. ``defaulted`` is False for arguments of the internal version, which get no defaults."""

    name: str = field(default="", metadata=wire("name", STRING))
    args: PluginArguments | RawArguments | None = field(default=None, metadata=wire("args", Arguments()))
    defaulted: bool = True


@dataclass(frozen=True, slots=True)
class KubeSchedulerProfile(Struct):
    """A profile as declared. ``scheduler_name`` is None where it was not given; after defaulting, it is a text."""

    scheduler_name: str | None = field(default=None, metadata=wire("schedulerName", Pointer(STRING), omit_empty=True))
    percentage_of_nodes_to_score: int | None = field(
        default=None, metadata=wire("percentageOfNodesToScore", Pointer(INT32, everywhere=True), omit_empty=True)
    )
    plugins: Plugins | None = field(
        default=None, metadata=wire("plugins", Pointer(Nested(Plugins), everywhere=True), omit_empty=True)
    )
    plugin_config: tuple[PluginConfig, ...] = field(
        default=(), metadata=wire("pluginConfig", Slice(Nested(PluginConfig)), omit_empty=True)
    )


@dataclass(frozen=True, slots=True)
class LeaderElectionConfiguration(Struct):
    """How replicas of the scheduler agree on one that works."""

    go_package: ClassVar[str] = "v1alpha1"

    leader_elect: bool = field(default=False, metadata=wire("leaderElect", Pointer(BOOL), nil=True))
    lease_duration_ns: int = field(default=0, metadata=wire("leaseDuration", Duration()))
    renew_deadline_ns: int = field(default=0, metadata=wire("renewDeadline", Duration()))
    retry_period_ns: int = field(default=0, metadata=wire("retryPeriod", Duration()))
    resource_lock: str = field(default="", metadata=wire("resourceLock", STRING))
    resource_name: str = field(default="", metadata=wire("resourceName", STRING))
    resource_namespace: str = field(default="", metadata=wire("resourceNamespace", STRING))


@dataclass(frozen=True, slots=True)
class ClientConnectionConfiguration(Struct):
    """How the API server is talked to."""

    go_package: ClassVar[str] = "v1alpha1"

    kubeconfig: str = field(default="", metadata=wire("kubeconfig", STRING))
    accept_content_types: str = field(default="", metadata=wire("acceptContentTypes", STRING))
    content_type: str = field(default="", metadata=wire("contentType", STRING))
    qps: float = field(default=0.0, metadata=wire("qps", FLOAT32, go_name="QPS"))
    burst: int = field(default=0, metadata=wire("burst", INT32))


@dataclass(frozen=True, slots=True)
class ExtenderManagedResource(Struct):
    """An extended resource that an extender looks after."""

    name: str = field(default="", metadata=wire("name", STRING))
    ignored_by_scheduler: bool = field(default=False, metadata=wire("ignoredByScheduler", BOOL, omit_empty=True))


@dataclass(frozen=True, slots=True)
class ExtenderTLSConfig(Struct):
    """TLS settings of an extender; the ``data`` fields hold PEM and go before the files."""

    insecure: bool = field(default=False, metadata=wire("insecure", BOOL, omit_empty=True))
    server_name: str = field(default="", metadata=wire("serverName", STRING, omit_empty=True))
    cert_file: str = field(default="", metadata=wire("certFile", STRING, omit_empty=True))
    key_file: str = field(default="", metadata=wire("keyFile", STRING, omit_empty=True))
    ca_file: str = field(default="", metadata=wire("caFile", STRING, omit_empty=True, go_name="CAFile"))
    cert_data: bytes = field(default=b"", metadata=wire("certData", Base64(), omit_empty=True))
    key_data: bytes = field(default=b"", metadata=wire("keyData", Base64(), omit_empty=True))
    ca_data: bytes = field(default=b"", metadata=wire("caData", Base64(), omit_empty=True, go_name="CAData"))


@dataclass(frozen=True, slots=True)
class Extender(Struct):
    """An HTTP extender; a verb that is empty is not asked for."""

    url_prefix: str = field(default="", metadata=wire("urlPrefix", STRING, go_name="URLPrefix"))
    filter_verb: str = field(default="", metadata=wire("filterVerb", STRING, omit_empty=True))
    preempt_verb: str = field(default="", metadata=wire("preemptVerb", STRING, omit_empty=True))
    prioritize_verb: str = field(default="", metadata=wire("prioritizeVerb", STRING, omit_empty=True))
    weight: int = field(default=0, metadata=wire("weight", INT64, omit_empty=True))
    bind_verb: str = field(default="", metadata=wire("bindVerb", STRING, omit_empty=True))
    enable_https: bool = field(
        default=False, metadata=wire("enableHTTPS", BOOL, omit_empty=True, go_name="EnableHTTPS")
    )
    tls_config: ExtenderTLSConfig | None = field(
        default=None,
        metadata=wire(
            "tlsConfig", Pointer(Nested(ExtenderTLSConfig), everywhere=True), omit_empty=True, go_name="TLSConfig"
        ),
    )
    http_timeout_ns: int = field(default=0, metadata=wire("httpTimeout", Duration(), go_name="HTTPTimeout"))
    node_cache_capable: bool = field(default=False, metadata=wire("nodeCacheCapable", BOOL, omit_empty=True))
    managed_resources: tuple[ExtenderManagedResource, ...] = field(
        default=(), metadata=wire("managedResources", Slice(Nested(ExtenderManagedResource)), omit_empty=True)
    )
    ignorable: bool = field(default=False, metadata=wire("ignorable", BOOL, omit_empty=True))


@dataclass(frozen=True, slots=True)
class KubeSchedulerConfiguration(Struct):
    """A configuration file. ``api_version`` is the version that it was written in."""

    api_version: str = ""
    parallelism: int = field(default=0, metadata=wire("parallelism", Pointer(INT32), nil=16, omit_empty=True))
    leader_election: LeaderElectionConfiguration = field(
        default=LeaderElectionConfiguration(), metadata=wire("leaderElection", Nested(LeaderElectionConfiguration))
    )
    client_connection: ClientConnectionConfiguration = field(
        default=ClientConnectionConfiguration(),
        metadata=wire("clientConnection", Nested(ClientConnectionConfiguration)),
    )
    enable_profiling: bool = field(
        default=False,
        metadata=wire("enableProfiling", Pointer(BOOL), nil=True, omit_empty=True, embedded="DebuggingConfiguration"),
    )
    enable_contention_profiling: bool | None = field(
        default=None,
        metadata=wire("enableContentionProfiling", Pointer(BOOL), omit_empty=True, embedded="DebuggingConfiguration"),
    )
    percentage_of_nodes_to_score: int | None = field(
        default=None,
        metadata=wire("percentageOfNodesToScore", Pointer(INT32, everywhere=True), nil=0, omit_empty=True),
    )
    pod_initial_backoff_seconds: int = field(
        default=0, metadata=wire("podInitialBackoffSeconds", Pointer(INT64), nil=1, omit_empty=True)
    )
    pod_max_backoff_seconds: int = field(
        default=0, metadata=wire("podMaxBackoffSeconds", Pointer(INT64), nil=10, omit_empty=True)
    )
    profiles: tuple[KubeSchedulerProfile, ...] = field(
        default=(), metadata=wire("profiles", Slice(Nested(KubeSchedulerProfile)), omit_empty=True)
    )
    extenders: tuple[Extender, ...] = field(
        default=(), metadata=wire("extenders", Slice(Nested(Extender)), omit_empty=True)
    )
    delay_cache_until_active: bool = field(default=False, metadata=wire("delayCacheUntilActive", BOOL, omit_empty=True))
