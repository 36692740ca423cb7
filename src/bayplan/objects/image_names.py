"""The image names of a pod, in the form in which nodes report their images."""

from bayplan.objects.pod import Pod


def container_images(pod: Pod) -> tuple[str, ...]:
    """Return the normalized image names of a pod's init containers, containers and image volumes, with repetitions."""
    spec = pod.spec
    names = [normalized_image_name(container.image) for container in (*spec.init_containers, *spec.containers)]
    names.extend(normalized_image_name(volume.image.reference) for volume in spec.volumes if volume.image is not None)
    return tuple(names)


def normalized_image_name(name: str) -> str:
    """Return an image name with `:latest` appended if it has neither tag nor digest."""
    return f"{name}:latest" if name.rfind(":") <= name.rfind("/") else name
