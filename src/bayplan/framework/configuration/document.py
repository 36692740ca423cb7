"""The structs of a configuration file: ``KubeSchedulerConfiguration`` and its parts.

They hold the declared values, with defaults filled in. The profiles derived from them are in ``profiles.py``.
"""

from typing import Annotated, ClassVar

import msgspec

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


class RawArguments(msgspec.Struct, frozen=True):
    """Arguments of a plugin with an unknown argument type, unchanged."""

    tree: JsonNode


class Plugin(Struct, frozen=True):
    """A plugin in a list, with its score weight; 0 if none was given."""

    name: Annotated[str, wire("name", STRING)] = ""
    weight: Annotated[int, wire("weight", Pointer(INT32), nil=0, omit_empty=True)] = 0


class PluginSet(Struct, frozen=True):
    """The plugins enabled at an extension point, and the default plugins disabled there (``*``: all)."""

    enabled: Annotated[tuple[Plugin, ...], wire("enabled", Slice(Nested(Plugin)), omit_empty=True)] = ()
    disabled: Annotated[tuple[Plugin, ...], wire("disabled", Slice(Nested(Plugin)), omit_empty=True)] = ()


_NO_PLUGINS = PluginSet()


class Plugins(Struct, frozen=True):
    """A plugin set for every extension point, and one for all of them (``multiPoint``)."""

    pre_enqueue: Annotated[PluginSet, wire("preEnqueue", Nested(PluginSet))] = _NO_PLUGINS
    queue_sort: Annotated[PluginSet, wire("queueSort", Nested(PluginSet))] = _NO_PLUGINS
    pre_filter: Annotated[PluginSet, wire("preFilter", Nested(PluginSet))] = _NO_PLUGINS
    filter: Annotated[PluginSet, wire("filter", Nested(PluginSet))] = _NO_PLUGINS
    post_filter: Annotated[PluginSet, wire("postFilter", Nested(PluginSet))] = _NO_PLUGINS
    pre_score: Annotated[PluginSet, wire("preScore", Nested(PluginSet))] = _NO_PLUGINS
    score: Annotated[PluginSet, wire("score", Nested(PluginSet))] = _NO_PLUGINS
    reserve: Annotated[PluginSet, wire("reserve", Nested(PluginSet))] = _NO_PLUGINS
    permit: Annotated[PluginSet, wire("permit", Nested(PluginSet))] = _NO_PLUGINS
    pre_bind: Annotated[PluginSet, wire("preBind", Nested(PluginSet))] = _NO_PLUGINS
    bind: Annotated[PluginSet, wire("bind", Nested(PluginSet))] = _NO_PLUGINS
    post_bind: Annotated[PluginSet, wire("postBind", Nested(PluginSet))] = _NO_PLUGINS
    multi_point: Annotated[PluginSet, wire("multiPoint", Nested(PluginSet))] = _NO_PLUGINS
    placement_generate: Annotated[PluginSet, wire("placementGenerate", Nested(PluginSet))] = _NO_PLUGINS
    placement_score: Annotated[PluginSet, wire("placementScore", Nested(PluginSet))] = _NO_PLUGINS


class PluginConfig(Struct, frozen=True):
    """Arguments for one plugin. ``defaulted`` is False for arguments of the internal version, which get no defaults."""

    name: Annotated[str, wire("name", STRING)] = ""
    args: Annotated[PluginArguments | RawArguments | None, wire("args", Arguments())] = None
    defaulted: bool = True


class KubeSchedulerProfile(Struct, frozen=True):
    """A profile as declared. ``scheduler_name`` is None if it was not given; defaulting sets it."""

    scheduler_name: Annotated[str | None, wire("schedulerName", Pointer(STRING), omit_empty=True)] = None
    percentage_of_nodes_to_score: Annotated[
        int | None, wire("percentageOfNodesToScore", Pointer(INT32, everywhere=True), omit_empty=True)
    ] = None
    plugins: Annotated[Plugins | None, wire("plugins", Pointer(Nested(Plugins), everywhere=True), omit_empty=True)] = (
        None
    )
    plugin_config: Annotated[
        tuple[PluginConfig, ...], wire("pluginConfig", Slice(Nested(PluginConfig)), omit_empty=True)
    ] = ()


class LeaderElectionConfiguration(Struct, frozen=True):
    """Leader election among replicas of the scheduler."""

    go_package: ClassVar[str] = "v1alpha1"

    leader_elect: Annotated[bool, wire("leaderElect", Pointer(BOOL), nil=True)] = False
    lease_duration_ns: Annotated[int, wire("leaseDuration", Duration())] = 0
    renew_deadline_ns: Annotated[int, wire("renewDeadline", Duration())] = 0
    retry_period_ns: Annotated[int, wire("retryPeriod", Duration())] = 0
    resource_lock: Annotated[str, wire("resourceLock", STRING)] = ""
    resource_name: Annotated[str, wire("resourceName", STRING)] = ""
    resource_namespace: Annotated[str, wire("resourceNamespace", STRING)] = ""


class ClientConnectionConfiguration(Struct, frozen=True):
    """The client connection to the API server."""

    go_package: ClassVar[str] = "v1alpha1"

    kubeconfig: Annotated[str, wire("kubeconfig", STRING)] = ""
    accept_content_types: Annotated[str, wire("acceptContentTypes", STRING)] = ""
    content_type: Annotated[str, wire("contentType", STRING)] = ""
    qps: Annotated[float, wire("qps", FLOAT32, go_name="QPS")] = 0.0
    burst: Annotated[int, wire("burst", INT32)] = 0


class ExtenderManagedResource(Struct, frozen=True):
    """An extended resource that an extender manages."""

    name: Annotated[str, wire("name", STRING)] = ""
    ignored_by_scheduler: Annotated[bool, wire("ignoredByScheduler", BOOL, omit_empty=True)] = False


class ExtenderTLSConfig(Struct, frozen=True):
    """TLS settings of an extender; the ``data`` fields hold PEM and take precedence over the files."""

    insecure: Annotated[bool, wire("insecure", BOOL, omit_empty=True)] = False
    server_name: Annotated[str, wire("serverName", STRING, omit_empty=True)] = ""
    cert_file: Annotated[str, wire("certFile", STRING, omit_empty=True)] = ""
    key_file: Annotated[str, wire("keyFile", STRING, omit_empty=True)] = ""
    ca_file: Annotated[str, wire("caFile", STRING, omit_empty=True, go_name="CAFile")] = ""
    cert_data: Annotated[bytes, wire("certData", Base64(), omit_empty=True)] = b""
    key_data: Annotated[bytes, wire("keyData", Base64(), omit_empty=True)] = b""
    ca_data: Annotated[bytes, wire("caData", Base64(), omit_empty=True, go_name="CAData")] = b""


class Extender(Struct, frozen=True):
    """An HTTP extender; an empty verb is not called."""

    url_prefix: Annotated[str, wire("urlPrefix", STRING, go_name="URLPrefix")] = ""
    filter_verb: Annotated[str, wire("filterVerb", STRING, omit_empty=True)] = ""
    preempt_verb: Annotated[str, wire("preemptVerb", STRING, omit_empty=True)] = ""
    prioritize_verb: Annotated[str, wire("prioritizeVerb", STRING, omit_empty=True)] = ""
    weight: Annotated[int, wire("weight", INT64, omit_empty=True)] = 0
    bind_verb: Annotated[str, wire("bindVerb", STRING, omit_empty=True)] = ""
    enable_https: Annotated[bool, wire("enableHTTPS", BOOL, omit_empty=True, go_name="EnableHTTPS")] = False
    tls_config: Annotated[
        ExtenderTLSConfig | None,
        wire("tlsConfig", Pointer(Nested(ExtenderTLSConfig), everywhere=True), omit_empty=True, go_name="TLSConfig"),
    ] = None
    http_timeout_ns: Annotated[int, wire("httpTimeout", Duration(), go_name="HTTPTimeout")] = 0
    node_cache_capable: Annotated[bool, wire("nodeCacheCapable", BOOL, omit_empty=True)] = False
    managed_resources: Annotated[
        tuple[ExtenderManagedResource, ...],
        wire("managedResources", Slice(Nested(ExtenderManagedResource)), omit_empty=True),
    ] = ()
    ignorable: Annotated[bool, wire("ignorable", BOOL, omit_empty=True)] = False


class KubeSchedulerConfiguration(Struct, frozen=True):
    """A configuration file. ``api_version`` is the version it was written in."""

    api_version: str = ""
    parallelism: Annotated[int, wire("parallelism", Pointer(INT32), nil=16, omit_empty=True)] = 0
    leader_election: Annotated[
        LeaderElectionConfiguration, wire("leaderElection", Nested(LeaderElectionConfiguration))
    ] = LeaderElectionConfiguration()
    client_connection: Annotated[
        ClientConnectionConfiguration, wire("clientConnection", Nested(ClientConnectionConfiguration))
    ] = ClientConnectionConfiguration()
    enable_profiling: Annotated[
        bool, wire("enableProfiling", Pointer(BOOL), nil=True, omit_empty=True, embedded="DebuggingConfiguration")
    ] = False
    enable_contention_profiling: Annotated[
        bool | None,
        wire("enableContentionProfiling", Pointer(BOOL), omit_empty=True, embedded="DebuggingConfiguration"),
    ] = None
    percentage_of_nodes_to_score: Annotated[
        int | None, wire("percentageOfNodesToScore", Pointer(INT32, everywhere=True), nil=0, omit_empty=True)
    ] = None
    pod_initial_backoff_seconds: Annotated[
        int, wire("podInitialBackoffSeconds", Pointer(INT64), nil=1, omit_empty=True)
    ] = 0
    pod_max_backoff_seconds: Annotated[int, wire("podMaxBackoffSeconds", Pointer(INT64), nil=10, omit_empty=True)] = 0
    profiles: Annotated[
        tuple[KubeSchedulerProfile, ...], wire("profiles", Slice(Nested(KubeSchedulerProfile)), omit_empty=True)
    ] = ()
    extenders: Annotated[tuple[Extender, ...], wire("extenders", Slice(Nested(Extender)), omit_empty=True)] = ()
    delay_cache_until_active: Annotated[bool, wire("delayCacheUntilActive", BOOL, omit_empty=True)] = False
