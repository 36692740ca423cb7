"""The command ``nodes``: find nodes to add so that all pods are placed, or nodes that can be removed."""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, TypeAlias

import typer
from msgspec.structs import replace

from bayplan.answers.answer_text import addition_text, removal_text
from bayplan.answers.capacity import parse_mix
from bayplan.answers.drain_rules import DrainOptions
from bayplan.answers.node_addition import nodes_to_add
from bayplan.answers.node_removal import nodes_to_remove
from bayplan.answers.node_selection import select_names
from bayplan.answers.node_shapes import NodeShape, parse_shape, shape_of, shapes_of
from bayplan.answers.prices import check_prices, equal_price, parse_prices, price_in
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.base.errors import InputError
from bayplan.cli.option_groups import with_groups
from bayplan.cli.question_options import All, opened, print_answer
from bayplan.cli.source_options import AsJson, ChosenScheduler, LiveCluster, Sources, source_options
from bayplan.objects.node import Node


class Bound(StrEnum):
    """The methods for the lower bound of an answer."""

    RELAXATION = "relaxation"
    PACKING = "packing"


class Action(StrEnum):
    """The actions of the command."""

    ADD = "add"
    REMOVE = "remove"


Shape: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SHAPE",
        help="Node shape to add: cpu=8,memory=32Gi,price=0.4 or like=NODE; repeatable. [default: existing shapes]",
    ),
]
Shapes: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--shapes", metavar="FILE", help="Node manifests: shapes that can be added. [default: none]"),
]
Copies: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="WORKLOAD=N,...", help="Extra copies of workloads to place (add); repeatable. [default: none]"
    ),
]
Price: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=PRICE",
        help="Price of an instance type, pool or node; repeatable. [default: bayplan.io/price, or 1]",
    ),
]
NodeNames: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="NODES", help="Nodes that may be removed: names, patterns, label:key=value. [default: all]"),
]
Most: TypeAlias = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Maximum number of nodes to remove. [default: no limit]")
]
Force: TypeAlias = Annotated[bool, typer.Option("--force", help="Move pods without a controller, too.")]
DeleteEmptyDirData: TypeAlias = Annotated[
    bool, typer.Option("--delete-emptydir-data", help="Move pods with emptyDir volumes, too.")
]
DisableEviction: TypeAlias = Annotated[bool, typer.Option("--disable-eviction", help="Ignore disruption budgets.")]
BoundOption: TypeAlias = Annotated[
    Bound, typer.Option("--bound", help="Method for the bound: relaxation, or packing (tighter; needs OR-Tools).")
]
Preempt: TypeAlias = Annotated[
    bool, typer.Option("--preempt", help="Evict pods of lower priority to place pending pods (add).")
]


@with_groups
def nodes(
    action: Annotated[
        Action, typer.Argument(help="Find nodes to add, or nodes that can be removed.", show_default=False)
    ],
    sources: Sources = None,
    *,
    shape: Shape = None,
    shapes: Shapes = None,
    copies: Copies = None,
    price: Price = None,
    node: NodeNames = None,
    most: Most = None,
    force: Force = False,
    delete_emptydir_data: DeleteEmptyDirData = False,
    disable_eviction: DisableEviction = False,
    preempt: Preempt = False,
    bound: BoundOption = Bound.RELAXATION,
    everything: All = False,
    live: LiveCluster,
    as_json: AsJson = False,
    scheduler: ChosenScheduler,
) -> None:
    """Show which nodes to add, or which can be removed.

    add finds a cheap set of nodes for the pending pods, a lower bound on the price of any such set, and the pods that stay pending.

    remove finds nodes that can be drained so that every pod gets another node, the order in which to drain them, and the new node
    of each pod. As in kubectl drain, disruption budgets are honoured, and pods of DaemonSets are ignored. Nodes with pods that have
    no controller or have emptyDir volumes are kept, unless --force or --delete-emptydir-data is given.

    Exit code: 0 if all pods are placed or a node can be removed, 1 otherwise, 2 on bad input.

    Example: bayplan nodes remove --context prod --node label:pool=spot
    """
    mix = ",".join(filter(None, copies or ()))
    _refuse(action, Action.ADD, shape=shape, shapes=shapes, copies=mix, preempt=preempt)
    _refuse(action, Action.REMOVE, node=node, most=most, force=force)
    _refuse(action, Action.REMOVE, delete_emptydir_data=delete_emptydir_data, disable_eviction=disable_eviction)
    options = source_options(sources, live, scheduler)
    drain = DrainOptions(force=force, delete_emptydir_data=delete_emptydir_data, disable_eviction=disable_eviction)
    prices, packing = parse_prices(price or []), bound is Bound.PACKING
    with opened(options) as (source, cluster):
        if action is Action.ADD:
            given = _shapes(shape or [], shapes or [], cluster, prices)
            wanted = {share.workload: share.count for share in parse_mix(mix)} if mix else {}
            added = nodes_to_add(cluster, given, copies=wanted, preempts=preempt, packing=packing)
            print_answer(added, source, lambda: addition_text(added, everything=everything), as_json=as_json)
            failed = added.still_waiting > 0
        else:
            names = [name for text in node or () for name in select_names(text, cluster)] if node else None
            by_node = _prices_by_node(prices, cluster)
            removed = nodes_to_remove(cluster, names, prices=by_node, options=drain, most=most, packing=packing)
            print_answer(removed, source, lambda: removal_text(removed, everything=everything), as_json=as_json)
            failed = not removed.removed
    if failed:
        raise typer.Exit(1)


def _refuse(action: Action, owner: Action, **given: object) -> None:
    """Raise InputError if an option is given that only the other action (`owner`) uses."""
    for name, value in given.items():
        if value and action is not owner:
            raise InputError(f"--{name.replace('_', '-')} doesn't apply to {action.value}", hint="without it")


def _prices_by_node(prices: dict[str, float], cluster: QuestionCluster) -> dict[str, float]:
    """Return the prices of the nodes that have one, by name."""
    check_prices(prices, cluster.all(Node), what="--price")
    known = {each.metadata.name: price_in(prices, each) for each in cluster.all(Node)}
    return {name: amount for name, amount in known.items() if amount is not None}


def _distinct(shapes: Sequence[NodeShape], texts: Sequence[str]) -> list[NodeShape]:
    """Return shapes with different names, as answers need: shapes like the same node are named by their texts.

    A shape that differs from its node is named by its text, too.
    """
    counts = Counter(shape.name for shape in shapes)
    for shape, text in zip(shapes, texts, strict=True):
        if counts[shape.name] > 1 and ("name=" in text or texts.count(text) > 1):
            raise InputError("--shape", got=f"{counts[shape.name]} shapes {shape.name!r}", wanted="different names")
    return [
        replace(shape, name=text) if counts[shape.name] > 1 or _changes_its_model(text) else shape
        for shape, text in zip(shapes, texts, strict=True)
    ]


def _changes_its_model(text: str) -> bool:
    """Return whether a shape without a name is like a node, but has other amounts, labels or taints."""
    keys = {part.partition("=")[0].strip() for part in text.split(",")}
    return "like" in keys and "name" not in keys and not keys <= {"like", "price", "most", "zone"}


def _shapes(texts: list[str], files: list[str], cluster: QuestionCluster, prices: dict[str, float]) -> list[NodeShape]:
    """Return the node shapes that may be added: the given ones, or else those of the cluster."""

    def price_of(node: Node) -> float:
        price = price_in(prices, node)
        return equal_price(node) if price is None else price

    found = _distinct([parse_shape(text, cluster.state, price_of) for text in texts], texts)
    if files:
        # Imported here, because only files of shapes need it.
        from bayplan.formats.inputs import load_inputs

        found += [shape_of(item, price_of) for item in load_inputs(files).manifest.nodes]
    check_prices(prices, [*cluster.all(Node), *(each.template for each in found)], what="--price")
    if not found and (texts or files):
        raise InputError("--shapes", got="files without a Node", wanted="Node manifests")
    return [
        replace(shape, has_price=shape.has_price or price_in(prices, shape.template) is not None)
        for shape in found or shapes_of(cluster.state, price_of)
    ]
