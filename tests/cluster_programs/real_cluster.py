"""A real control plane: etcd, kube-apiserver and, if requested, kube-scheduler.

There are no kubelets and no controllers.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.apiserver.serving import Document
from tests.cluster_programs.bayplan_processes import answer_to
from tests.cluster_programs.programs import program

PATIENCE_SECONDS = 60.0
_CONTEXT = ssl.create_default_context()
_CONTEXT.check_hostname = False
_CONTEXT.verify_mode = ssl.CERT_NONE


class RealCluster:
    """A real control plane in processes of this machine.

    Args:
        folder: The folder for its state. It is created if it does not exist.
        users: Users who may do only what RBAC allows them, and whose requests are audited. Without any, authorization
            is off.

    Attributes:
        kubeconfig: The path of an administrator's kubeconfig.
    """

    def __init__(self, folder: Path, users: Sequence[str] = ()) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self._users = users
        self.port, self._etcd_port, self._peer_port = _free_ports(3)
        self._token = secrets.token_hex(16)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._make_keys()

    def _make_keys(self) -> None:
        key, public = str(self.folder / "sa.key"), str(self.folder / "sa.pub")
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        subprocess.run(["openssl", "rsa", "-in", key, "-pubout", "-out", public], check=True, capture_output=True)
        tokens = [
            f'{self._token},admin,admin,"system:masters"',
            *(f"{name}-token,{name},{name}" for name in self._users),
        ]
        (self.folder / "tokens.csv").write_text("".join(f"{line}\n" for line in tokens))
        self.kubeconfig.write_text(json.dumps(self._kubeconfig(self._token)))
        for name in self._users:
            self.kubeconfig_of(name).write_text(json.dumps(self._kubeconfig(f"{name}-token")))

    def kubeconfig_of(self, user: str) -> Path:
        """Return the path of the kubeconfig of one of the users."""
        return self.folder / f"kubeconfig-{user}"

    def _kubeconfig(self, token: str) -> Document:
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": self._url, "insecure-skip-tls-verify": True}}],
            "users": [{"name": "u", "user": {"token": token}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }

    @property
    def _url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    # --- processes ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start or restart etcd and kube-apiserver, and wait until they answer."""
        etcd, peer = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{self._peer_port}"
        self.run(
            "etcd",
            *("--data-dir", str(self.folder / "etcd"), "--unsafe-no-fsync", "--log-level", "warn"),
            *("--listen-client-urls", etcd, "--advertise-client-urls", etcd, "--listen-peer-urls", peer),
            *("--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}"),
        )
        _wait(lambda: _answers(f"{etcd}/health"), "etcd")
        self.run(
            "kube-apiserver",
            *("--etcd-servers", etcd, "--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1"),
            *("--secure-port", str(self.port), "--cert-dir", str(self.folder / "pki")),
            *("--service-account-issuer", "https://kubernetes.default.svc"),
            *("--service-account-key-file", str(self.folder / "sa.pub")),
            *("--service-account-signing-key-file", str(self.folder / "sa.key")),
            *("--service-cluster-ip-range", "10.96.0.0/16"),
            *("--authorization-mode", "RBAC" if self._users else "AlwaysAllow"),
            *(self._audit() if self._users else ()),
            *("--token-auth-file", str(self.folder / "tokens.csv"), "--allow-privileged"),
            *("--disable-admission-plugins", "ServiceAccount", "--endpoint-reconciler-type", "none"),
        )
        _wait(self._is_ready, "kube-apiserver")

    def _audit(self) -> Sequence[str]:
        policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"]}
        rules = [{"level": "Metadata", "users": list(self._users)}, {"level": "None"}]
        path = self.folder / "audit.json"
        path.write_text(json.dumps({**policy, "rules": rules}))
        return "--audit-policy-file", str(path), "--audit-log-path", str(self.folder / "audit.log")

    def requests_of(self, user: str) -> list[Document]:
        """Return the audited requests of a user so far."""
        log = self.folder / "audit.log"
        found = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return [each for each in found if each["user"]["username"] == user]

    def start_scheduler(self) -> None:
        """Start kube-scheduler with its default configuration except for the rate limit and leader election."""
        own = str(self.kubeconfig)
        self.run(
            "kube-scheduler",
            *("--kubeconfig", own, "--authentication-kubeconfig", own, "--authorization-kubeconfig", own),
            *("--secure-port", "0", "--leader-elect=false", "--kube-api-qps", "1000", "--kube-api-burst", "1000"),
        )

    def run(self, name: str, *options: str) -> None:
        """Start one of the programs; its log is in the folder."""
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen([program(name), *options], stdout=log, stderr=log)

    def kill(self, *names: str) -> None:
        """Kill programs with SIGKILL, as abruptly as a power failure. Without names, kill all of them."""
        for name in names or tuple(reversed(self._processes)):
            process = self._processes.pop(name)
            process.kill()
            process.wait()

    def pause(self, name: str) -> None:
        """Stop a program with SIGSTOP: it accepts connections, but does not respond."""
        self._processes[name].send_signal(signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """Continue a paused program."""
        self._processes[name].send_signal(signal.SIGCONT)

    def _is_ready(self) -> bool:
        try:
            self.ask("GET", "/readyz")
        except (OSError, AssertionError):
            # The server does not listen yet, or it is not ready.
            return False
        return True

    # --- requests -----------------------------------------------------------------------------------------------------

    def ask(self, method: str, path: str, document: Document | None = None, kind: str = "application/json") -> Document:
        """Send a request; see `answer_to`."""
        body = None if document is None else json.dumps(document).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        request = urllib.request.Request(self._url + path, body, headers, method=method)
        return answer_to(request, _CONTEXT)

    def items(self, path: str) -> list[Document]:
        """Return the items of a list."""
        found: list[Document] = self.ask("GET", path)["items"]
        return found


@contextlib.contextmanager
def real_cluster(folder: Path, *, scheduler: bool = False, users: Sequence[str] = ()) -> Iterator[RealCluster]:
    """Run a control plane for the length of a ``with`` block; print its logs if the test fails."""
    for name in ("etcd", "kube-apiserver"):
        program(name)
    cluster = RealCluster(folder, users)
    try:
        cluster.start()
        if scheduler:
            cluster.start_scheduler()
        yield cluster
    except BaseException:
        for log in sorted(folder.glob("*.log")):
            print(f"--- {log.name}\n{log.read_text(errors='replace')[-2000:]}")
        raise
    finally:
        cluster.kill()


def _free_ports(count: int) -> Sequence[int]:
    taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in taken]
    for each in taken:
        each.close()
    return ports


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except OSError:
        return False


def _wait(until: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not until():
        assert time.monotonic() < deadline, f"{what} does not answer"
        time.sleep(0.1)
