"""The command ``up``: run a cluster on this machine, with API, controllers and scheduler, in memory or in a file."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from bayplan.app.mode import Mode
from bayplan.base.background_output import background_output
from bayplan.base.errors import InputError
from bayplan.base.output_paths import check_output_file
from bayplan.base.termination import exit_on_sigterm
from bayplan.cli.option_groups import with_groups
from bayplan.cli.server_options import (
    DEFAULT_PLUGIN_DEADLINE,
    DEFAULT_RATE_LIMIT,
    DEFAULT_SPEED,
    AllowOrigin,
    Annotations,
    EventTtl,
    Listen,
    Once,
    Paths,
    Paused,
    PluginDeadline,
    Port,
    RateLimit,
    Records,
    Retain,
    RunTime,
    ServerSeed,
    ServiceAccounts,
    Speed,
    StoreFile,
    TlsCertificate,
    TlsKey,
    Token,
    Webhooks,
    WithControllers,
    WithKubelet,
    WithScheduler,
    WriteKubeconfig,
)
from bayplan.cli.simulation_options import (
    AlgorithmProvider,
    Config,
    FeatureGates,
    Level,
    ModeOption,
    Plugins,
    PodTimes,
    PolicyConfigFile,
    configuration_file,
)

if TYPE_CHECKING:
    from bayplan.app.api_service import Service
    from bayplan.cluster.kubelet import KubeletOptions


class KubeletTimes(PodTimes, frozen=True):
    """The times of pods, with the run time of those that end by themselves."""

    run_time: RunTime = "10s"


DEFAULT_TIMES = KubeletTimes()


@with_groups
def up(
    paths: Paths = None,
    port: Port = 6443,
    listen: Listen = "127.0.0.1",
    write_kubeconfig: WriteKubeconfig = Path("bayplan.kubeconfig"),
    store: StoreFile = None,
    event_ttl: EventTtl = "1h",
    token: Token = None,
    tls_cert: TlsCertificate = None,
    tls_key: TlsKey = None,
    rate_limit: RateLimit = DEFAULT_RATE_LIMIT,
    webhooks: Webhooks = None,
    service_account_admission: ServiceAccounts = False,
    allow_origin: AllowOrigin = None,
    mode: ModeOption = Mode.CURRENT,
    config: Config = None,
    policy_config_file: PolicyConfigFile = None,
    algorithm_provider: AlgorithmProvider = "",
    feature_gates: FeatureGates = "",
    plugin: Plugins = None,
    plugin_deadline: PluginDeadline = DEFAULT_PLUGIN_DEADLINE,
    seed: ServerSeed = 0,
    records: Records = Level.FULL,
    retain: Retain = "",
    annotations: Annotations = False,
    scheduler: WithScheduler = True,
    controllers: WithControllers = True,
    kubelet: WithKubelet = True,
    pod_times: KubeletTimes = DEFAULT_TIMES,
    speed: Speed = DEFAULT_SPEED,
    paused: Paused = False,
    once: Once = False,
) -> None:
    """Run a cluster without machines: API, scheduler, web page.

    kubectl, client libraries and other schedulers work with it as with a kube-apiserver. Built-in controllers and a kubelet
    replace the real ones, and the scheduler records every decision. Ctrl-C ends it.

    Example: bayplan up $(bayplan example)
    """
    # Imported here, because servers are slow to import, and only this command needs one.
    from bayplan.apiserver.bridge.bridge import BridgeOptions
    from bayplan.apiserver.http.server import ServerOptions, check_options
    from bayplan.app.api_service import make_service
    from bayplan.app.retention_option import parse_retention
    from bayplan.app.scheduler_setup import SchedulerOptions
    from bayplan.app.simulator_server import SimulatorOptions
    from bayplan.base.clock import Clock

    shown = token if token is not None else os.environ.get("BAYPLAN_TOKEN", "")
    options = ServerOptions(
        listen=listen, port=port, token=shown, certificate=tls_cert, key=tls_key, store=store, webhooks=tuple(webhooks or ()),
        allowed_origins=tuple(allow_origin or ()), rate_limit=rate_limit, admits_service_accounts=service_account_admission,
    )  # fmt: skip
    check_options(options)
    pods, file = kubelet_options(pod_times), configuration_file(mode, config, policy_config_file)
    scheduler_options = SchedulerOptions(
        mode=mode, config=file, algorithm_provider=algorithm_provider, plugins=plugin or (), feature_gates=feature_gates, seed=seed,
    )  # fmt: skip
    simulator_options = SimulatorOptions(
        scheduler=scheduler_options,
        schedules=scheduler,
        bridge=BridgeOptions(controllers=controllers, kubelet=kubelet, pods=pods, event_ttl_ns=event_ttl_ns(event_ttl)),
        record_level=records.record_level,
        retention=parse_retention(retain),
        annotations=annotations,
        plugin_deadline_seconds=plugin_deadline,
    )
    check_output_file(write_kubeconfig, "--write-kubeconfig")
    with exit_on_sigterm(), background_output():
        service = make_service(options, simulator_options, paths or (), Clock(speed=speed, paused=paused))
        service.run(on_ready=_reporter(service, write_kubeconfig, paths or (), once=once))


def kubelet_options(times: KubeletTimes) -> "KubeletOptions":
    """Return the kubelet's options, with the times of pods.

    Raises:
        InputError: a text is not a duration, or a duration is negative.
    """
    from bayplan.base.go_text.durations import read_duration
    from bayplan.cluster.kubelet import KubeletOptions
    from bayplan.cluster.run_time import FOREVER

    run_time = "" if times.run_time == FOREVER else times.run_time
    try:
        duration_ns = read_duration(run_time) if run_time else 0
    except InputError:
        duration_ns = -1
    if duration_ns < 0 or not times.run_time:
        got, hint = repr(times.run_time), "'10s', '5m' or 'forever'"
        raise InputError("--run-time", got=got, wanted="a duration or forever", hint=hint)
    return KubeletOptions(
        start_delay_ns=times.start_delay_ns,
        termination_time_ns=times.termination_time_ns,
        container_statuses=True,
        default_run_time=run_time,
    )


def event_ttl_ns(text: str) -> int:
    """Return the value of `--event-ttl` in nanoseconds.

    Raises:
        InputError: the text is not a positive duration.
    """
    from bayplan.base.go_text.durations import read_duration

    try:
        duration_ns = read_duration(text)
    except InputError:
        duration_ns = 0
    if duration_ns <= 0:
        raise InputError("--event-ttl", got=repr(text), wanted="a positive duration", hint="'1h' or '10m'")
    return duration_ns


def _reporter(service: "Service", kubeconfig: Path, paths: Sequence[str], *, once: bool) -> Callable[[], None]:
    """Write the kubeconfig, and return a function that prints addresses and report, to call once requests are accepted."""
    from bayplan.apiserver.http.kubeconfig import CONTEXT, write_kubeconfig
    from bayplan.apiserver.rest.loading import summary_of

    server, loaded = service.server, service.loaded
    for where, problems in loaded.unknown.items():
        print(f"{where}: {', '.join(problems)}", file=sys.stderr)
    try:
        merged = write_kubeconfig(kubeconfig, server.kubeconfig())
    except InputError:
        service.close()
        raise

    def print_report() -> None:
        if loaded.counts:
            print(f"loaded {summary_of(loaded)}")
        for note in service.notes:
            print(note)
        print(f"serving the Kubernetes API at {server.url}")
        print(f"the page: {server.url}/ui/")
        if merged:
            print(f"context {CONTEXT} is now the current one of {kubeconfig}; its other contexts are unchanged")
        run_time = service.simulator.options.bridge.pods.default_run_time
        if run_time and service.simulator.options.bridge.kubelet:
            print(f"new pods with restartPolicy Never or OnFailure end after {run_time} (--run-time)")
        if not once:
            print(f"try: kubectl --kubeconfig {kubeconfig} get nodes", flush=True)
        if paths or once:
            from bayplan.app.first_report import begin_report

            begin_report(service, end if once else lambda: print("Ctrl-C ends it", flush=True))

    def end() -> None:
        try:
            if paths:
                print(f"try: bayplan waiting {' '.join(map(quote, paths))}", flush=True)
        finally:
            server.stop()

    return print_report
