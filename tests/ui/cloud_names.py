"""Node names as the managed Kubernetes services of three clouds generate them, which the page has to display."""

from __future__ import annotations

from collections.abc import Callable

LETTERS = "bcdfghjklmnpqrstvwxz2456789"
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
EKS_DOMAIN = "eu-west-1.compute.internal"
GKE_POOLS = (("default-pool", "1d0c9be2"), ("highmem", "4f8a1b2c"), ("gpu-a100", "9b1e77d0"))


def in_digits(number: int, digits: str, length: int) -> str:
    """Return a number in the positional system with these digits, in `length` places."""
    text = ""
    for _ in range(length):
        number, last = divmod(number, len(digits))
        text = digits[last] + text
    return text


def eks_name(number: int) -> str:
    """Return a name as EKS derives it from the address in the VPC: about 41 characters, 27 of them always the same."""
    return f"ip-10-0-{11 + 16 * (number % 3) + number // 450}-{188 - number // 3 % 150}.{EKS_DOMAIN}"


def gke_name(number: int) -> str:
    """Return a name as GKE derives it from cluster and node pool: nodes of a pool differ in the last 4 characters."""
    pool, digest = GKE_POOLS[number % 3]
    return f"gke-prod-eu-pool-{pool}-{digest}-{in_digits((7919 * number + 104_729) % 27**4, LETTERS, 4)}"


def aks_name(number: int) -> str:
    """Return a name as AKS derives it from scale set and instance; the last characters count in base 36."""
    return f"aks-userpool{1 + number % 2}-31415926-vmss{in_digits(46 + number, DIGITS, 6)}"


STYLES: dict[str, Callable[[int], str]] = {"eks": eks_name, "gke": gke_name, "aks": aks_name}


def cloud_name(number: int) -> str:
    """Return the name of a node in a cluster that mixes all three styles."""
    return (eks_name, gke_name, aks_name)[number % 3](number // 3)
