"""What is computed once for several specs: found again by the specs themselves."""

from bayplan.plugins.stacked_specs import REMEMBERED, StackedSpecs


class Spec:
    """Something with an identity."""


def test_the_same_specs_in_the_same_order_are_stacked_once() -> None:
    asked: list[int] = []

    def stack(specs: object) -> int:
        asked.append(1)
        return len(asked)

    stacked = StackedSpecs[Spec, int](stack)
    one, two = Spec(), Spec()
    assert [stacked.of([one, two]), stacked.of([one, two]), stacked.of([two, one])] == [1, 1, 2]
    for _ in range(REMEMBERED):
        stacked.of([Spec()])
    assert stacked.of([one, two]) == len(asked)
    assert len(asked) == REMEMBERED + 3
