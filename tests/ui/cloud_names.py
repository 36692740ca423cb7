"""Node names as the managed Kubernetes services of three clouds generate them: what the page has to show in practice."""

from __future__ import annotations

from collections.abc import Callable

LETTERS = "bcdfghjklmnpqrstvwxz2456789"
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
EKS_DOMAIN = "eu-west-1.compute.internal"
GKE_POOLS = (("default-pool", "1d0c9be2"), ("highmem", "4f8a1b2c"), ("gpu-a100", "9b1e77d0"))


def in_digits(number: int, digits: str, length: int) -> str:
    """Return a number written with other digits."""
    text = ""
    for _ in range(length):
        number, last = divmod(number, len(digits))
        text = digits[last] + text
    return text


def eks_name(number: int) -> str:
    """Return a name as EKS makes it from the address in the VPC: some 41 characters, of which 27 are the same for all nodes."""
    return f"ip-10-0-{11 + 16 * (number % 3) + number // 450}-{188 - number // 3 % 150}.{EKS_DOMAIN}"


def gke_name(number: int) -> str:
    """Return a name as GKE makes it from cluster and node pool: the nodes of a pool differ in the last four characters."""
    pool, digest = GKE_POOLS[number % 3]
    return f"gke-prod-eu-pool-{pool}-{digest}-{in_digits((7919 * number + 104_729) % 27**4, LETTERS, 4)}"


def aks_name(number: int) -> str:
    """Return a name as AKS makes it from scale set and instance: names differ in the last characters, counted in base 36."""
    return f"aks-userpool{1 + number % 2}-31415926-vmss{in_digits(46 + number, DIGITS, 6)}"


STYLES: dict[str, Callable[[int], str]] = {"eks": eks_name, "gke": gke_name, "aks": aks_name}


def cloud_name(number: int) -> str:
    """Return the name of a node in a cluster that has nodes of all three styles."""
    return (eks_name, gke_name, aks_name)[number % 3](number // 3)
