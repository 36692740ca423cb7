"""The nodes that have each image, and the size that the scheduler stores for each image name."""

from bayplan.objects.node import Node


class ImageState:
    """An image name: its size on the first node that reported it, and the rows that have it.

    Attributes:
        rows: the rows with the image; the values are the numbers of such rows when the row was added or last changed.
    """

    __slots__ = ("rows", "size_bytes")

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.rows: dict[int, int] = {}

    def add(self, row: int) -> None:
        """Record that a row has the image."""
        self.rows[row] = len(self.rows) + (row not in self.rows)


class ImageStates(dict[str, ImageState]):
    """All image names, in the form in which nodes report them, and in the order in which nodes first reported them."""

    def add_node(self, row: int, node: Node) -> None:
        """Add the images of a node."""
        for image in node.status.images:
            for name in image.names:
                self.setdefault(name, ImageState(image.size_bytes)).add(row)

    def remove_node(self, row: int, node: Node) -> None:
        """Remove the images of a node; an image that no node has any more is dropped, with its size."""
        for image in node.status.images:
            for name in image.names:
                state = self.get(name)
                if state is not None:
                    state.rows.pop(row, None)
                    if not state.rows:
                        del self[name]

    def copy(self) -> "ImageStates":
        """Return an independent copy."""
        other = ImageStates()
        for name, state in self.items():
            twin = other[name] = ImageState(state.size_bytes)
            twin.rows = dict(state.rows)
        return other
