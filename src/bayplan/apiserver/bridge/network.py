"""Addresses of virtual nodes and their pods: pod CIDRs, internal addresses of nodes, and pod IPs.

There is no network behind them. Clients and controllers read them, above all the EndpointSlice controller of a
kube-controller-manager. All state comes from the objects, so a restart does not assign an address twice.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_network

from bayplan.base.plain_data import Document
from bayplan.cluster.owned_pods import is_finished
from bayplan.cluster.store import ObjectStore
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.quantity import value

POD_NETWORK = IPv4Network("10.128.0.0/9")
"""Range of the pod CIDRs that are assigned to nodes, enough for 32,768 nodes with 254 pods each.

Cluster IPs are in 10.96.0.0/16.
"""

NODE_NETWORK = IPv4Network("172.16.0.0/12")
"""Range of the internal addresses that are assigned to nodes.

The first address is the API server's (`VIRTUAL_ADDRESS`).
"""

_BLOCK = 256
_MAX_BLOCKS = 256  # A node gets at most a /16, however many pods it allows.
_RESERVED = 2  # The network's own address, and the broadcast address or the bridge's.
_DEFAULT_MAX_PODS = 110

Network = IPv4Network | IPv6Network


class NumberPool:
    """Allocates numbers round-robin, so that a released number is not reused immediately.

    Args:
        first: the smallest number.
        size: the largest number plus 1.
    """

    def __init__(self, first: int, size: int) -> None:
        self._first = first
        self._size = size
        self._next = first
        # The number of users of each number. Several nodes may declare the same number; an allocated number has 0 users
        # until `add`.
        self._users: dict[int, int] = {}

    def add(self, number: int, count: int = 1) -> None:
        """Add a user of `count` consecutive numbers, which `take` may have returned.

        Numbers outside the range are ignored.
        """
        for each in range(max(number, self._first), min(number + count, self._size)):
            self._users[each] = self._users.get(each, 0) + 1

    def discard(self, number: int, count: int = 1) -> None:
        """Remove a user of `count` consecutive numbers. A number without users is free."""
        for each in range(number, number + count):
            users = self._users.pop(each, 0)
            if users > 1:
                self._users[each] = users - 1

    def take(self, count: int = 1) -> int | None:
        """Allocate `count` consecutive free numbers that start at a multiple of `count`; return the first, or None."""
        for start, end in ((self._next, self._size), (self._first, self._next)):
            number = -(-start // count) * count
            while number + count <= end:
                if self._users.keys().isdisjoint(range(number, number + count)):
                    self._users.update(dict.fromkeys(range(number, number + count), 0))
                    self._next = number + count
                    return number
                number += count
        return None


class NodeAddresses:
    """The pod CIDRs and internal addresses of all nodes; allocates free CIDRs and addresses."""

    def __init__(self) -> None:
        self._blocks = NumberPool(0, POD_NETWORK.num_addresses // _BLOCK)
        self._hosts = NumberPool(_RESERVED, NODE_NETWORK.num_addresses - 1)
        self._known: dict[str, tuple[str, str]] = {}

    def observe(self, node: Node, *, gone: bool) -> None:
        """Record the addresses of a changed node; `gone`: whether the node was deleted."""
        name = node.metadata.name
        now = ("", "") if gone else (node.spec.pod_cidr, internal_address(node))
        before = self._known.get(name, ("", ""))
        if before == now:
            return
        self._mark(before, used=False)
        self._mark(now, used=True)
        if gone:
            self._known.pop(name, None)
        else:
            self._known[name] = now

    def _mark(self, known: tuple[str, str], *, used: bool) -> None:
        cidr, host = known
        network = _network(cidr)
        if isinstance(network, IPv4Network) and network.subnet_of(POD_NETWORK):
            first = (int(network.network_address) - int(POD_NETWORK.network_address)) // _BLOCK
            count = max(network.num_addresses // _BLOCK, 1)
            (self._blocks.add if used else self._blocks.discard)(first, count)
        address = _ipv4(host)
        if address is not None and address in NODE_NETWORK:
            number = int(address) - int(NODE_NETWORK.network_address)
            (self._hosts.add if used else self._hosts.discard)(number)

    def new_cidr(self, node: Node) -> str:
        """Allocate a pod CIDR that is large enough for the pods that the node allows; return "" if none is left."""
        pods = node.status.allocatable.get("pods") or node.status.capacity.get("pods")
        wanted = _RESERVED + (_DEFAULT_MAX_PODS if pods is None else value(pods))
        count = 1
        while count * _BLOCK < wanted and count < _MAX_BLOCKS:
            count *= 2
        first = self._blocks.take(count)
        if first is None:
            return ""
        start = int(POD_NETWORK.network_address) + first * _BLOCK
        return f"{IPv4Address(start)}/{32 - (count * _BLOCK - 1).bit_length()}"

    def new_host(self) -> str:
        """Allocate an internal address; return "" if none is left."""
        number = self._hosts.take()
        return "" if number is None else str(IPv4Address(int(NODE_NETWORK.network_address) + number))


def internal_address(node: Node) -> str:
    """Return the first InternalIP of a node, or "" if it has none."""
    return next((each.address for each in node.status.addresses if each.type == "InternalIP"), "")


def pod_addresses(pod: Pod, store: ObjectStore) -> tuple[str, str]:
    """Return the IP of a pod that starts on its node, and the IP of the node; each is "" if there is none.

    A pod in the host network gets the node's address. Other pods get an address of the node's pod CIDR that no
    unfinished pod on the node has. The search starts at the address that would be next if no pod had ever been removed
    from the node.
    """
    node = store.nodes.get(pod.spec.node_name)
    if node is None:
        return "", ""
    host = internal_address(node)
    if pod.spec.host_network:
        return host, host
    network = _network(node.spec.pod_cidr)
    if network is None:
        return "", host
    used = {each.status.pod_ip for each in store.pods_on(node.metadata.name) if not is_finished(each)}
    first, usable = network.network_address, network.num_addresses - _RESERVED
    for number in range(min(len(used) + 1, usable)):
        address = str(first + 1 + (len(used) + number) % usable)
        if address not in used:
            return address, host
    return "", host


def with_lists(status: Document) -> Document:
    """Return the status of a pod with missing `podIPs` and `hostIPs` set from `podIP` and `hostIP`."""
    lists: Document = {}
    for single, plural in (("podIP", "podIPs"), ("hostIP", "hostIPs")):
        if status.get(single) and not status.get(plural):
            lists[plural] = [{"ip": status[single]}]
    return {**status, **lists} if lists else status


def _network(cidr: str) -> Network | None:
    try:
        return ip_network(cidr, strict=False) if cidr else None
    except ValueError:
        return None


def _ipv4(text: str) -> IPv4Address | None:
    try:
        return IPv4Address(text) if text else None
    except ValueError:
        return None
