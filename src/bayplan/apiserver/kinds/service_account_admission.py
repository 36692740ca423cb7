"""The admission plugin ServiceAccount: sets a pod's service account, mounts its token, and checks its secrets."""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.apiserver.kinds.strategy import Context
from bayplan.apiserver.model.errors import ApiError, forbidden
from bayplan.apiserver.schema.emptied import Emptied
from bayplan.base.plain_data import Document, part, parts

_DEFAULT_ACCOUNT = "default"
_VOLUME_PREFIX = "kube-api-access-"
_MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_MIRROR = "kubernetes.io/config.mirror"
_LIMIT = "kubernetes.io/enforce-mountable-secrets"
_TOKEN_SECONDS = 3607
"""One hour and seven seconds: the unusual lifetime identifies the tokens that this plugin mounts."""


def admit_service_account(context: Context, pod: Document) -> None:
    """Set the service account of a pod, mount its token, and add its image pull secrets.

    Raises:
        ApiError: the service account does not exist, or a secret must not be used.
    """
    metadata, spec = part(pod, "metadata"), part(pod, "spec")
    if _MIRROR in part(metadata, "annotations"):
        _check_mirror(pod)
        return
    # Copy the spec, which may be cached and shared: the name of the token volume differs for each pod.
    spec = Emptied(spec, spec.empties if isinstance(spec, Emptied) else {})
    pod["spec"] = spec
    name = str(spec.get("serviceAccountName") or _DEFAULT_ACCOUNT)
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    account = _account(context, pod, name)
    wanted = spec.get("automountServiceAccountToken", account.get("automountServiceAccountToken"))
    if wanted is not False:
        _mount_token(spec, context.cluster.generate_name(_VOLUME_PREFIX))
    if not parts(spec, "imagePullSecrets") and parts(account, "imagePullSecrets"):
        spec["imagePullSecrets"] = [dict(each) for each in parts(account, "imagePullSecrets")]
    if _limits_secrets(account):
        _check_secrets(pod, spec, account)


def check_ephemeral_secrets(context: Context, pod: Document) -> None:
    """Check the secrets of a pod's ephemeral containers.

    Raises:
        ApiError: the service account does not exist, or does not list a secret and is annotated to limit them.
    """
    spec = part(pod, "spec")
    name = str(spec.get("serviceAccountName") or "")
    if not name:
        owner = f"{context.namespace}/{part(pod, 'metadata').get('name')}"
        raise _refusal(pod, f"no service account specified for pod {owner}")
    account = _account(context, pod, name)
    if _limits_secrets(account):
        _check_container_secrets(pod, account, parts(spec, "ephemeralContainers"), "ephemeral container")


def _account(context: Context, pod: Document, name: str) -> Document:
    account = context.cluster.find("serviceaccounts", context.namespace, name)
    if account is None:
        why = f'error looking up service account {context.namespace}/{name}: serviceaccount "{name}" not found'
        raise _refusal(pod, why)
    return account


def _refusal(pod: Document, why: str) -> ApiError:
    return forbidden("pods", "", str(part(pod, "metadata").get("name") or ""), why)


def _limits_secrets(account: Document) -> bool:
    return part(account, "metadata", "annotations").get(_LIMIT) in ("1", "t", "T", "true", "TRUE", "True")


def _check_mirror(pod: Document) -> None:
    spec = part(pod, "spec")
    volumes = parts(spec, "volumes")
    if spec.get("serviceAccountName"):
        raise _refusal(pod, "a mirror pod may not reference service accounts")
    kinds = ("initContainers", "containers", "ephemeralContainers")
    containers = [each for kind in kinds for each in parts(spec, kind)]
    named = [name for each in containers for _, name in _secrets_of(each)]
    named += [str(each.get("name") or "") for each in parts(spec, "imagePullSecrets")]
    if any(named) or any(_has_secret(each) for each in volumes):
        raise _refusal(pod, "a mirror pod may not reference secrets")
    sources = (source for each in volumes for source in parts(part(each, "projected"), "sources"))
    if any("serviceAccountToken" in source for source in sources):
        raise _refusal(pod, "a mirror pod may not use ServiceAccountToken volume projections")


def _has_secret(volume: Document) -> bool:
    sources = parts(part(volume, "projected"), "sources")
    found = [part(volume, "secret").get("secretName"), part(volume, "azureFile").get("secretName")]
    found += [part(source, "secret").get("name") for source in sources]
    for name in ("cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"):
        found.append(part(volume, name, "secretRef").get("name"))
    return any((*found, part(volume, "csi", "nodePublishSecretRef").get("name")))


def _secrets_of(container: Document) -> Iterator[tuple[str, str]]:
    """Yield how a container refers to each of its secrets, and the name of the secret."""
    for env in parts(container, "env"):
        if "secretKeyRef" in part(env, "valueFrom"):
            yield f"envVar {env.get('name')}", str(part(env, "valueFrom", "secretKeyRef").get("name") or "")
    for source in parts(container, "envFrom"):
        if "secretRef" in source:
            yield "envFrom", str(part(source, "secretRef").get("name") or "")


def _check_secrets(pod: Document, spec: Document, account: Document) -> None:
    known = {each.get("name") for each in parts(account, "secrets")}
    named = part(account, "metadata").get("name")
    for volume in parts(spec, "volumes"):
        secret = str(part(volume, "secret").get("secretName") or "")
        if "secret" in volume and secret not in known:
            why = f"is not allowed because service account {named} does not reference that secret"
            raise _refusal(pod, f'volume with secret.secretName="{secret}" {why}')
    _check_container_secrets(pod, account, parts(spec, "initContainers"), "init container")
    _check_container_secrets(pod, account, parts(spec, "containers"), "container")
    pulling = {each.get("name") for each in parts(account, "imagePullSecrets")}
    for index, each in enumerate(parts(spec, "imagePullSecrets")):
        if each.get("name") not in pulling:
            why = f"is not allowed because service account {named} does not reference that imagePullSecret"
            raise _refusal(pod, f'imagePullSecrets[{index}].name="{each.get("name") or ""}" {why}')


def _check_container_secrets(pod: Document, account: Document, containers: list[Document], what: str) -> None:
    known = {each.get("name") for each in parts(account, "secrets")}
    why = (
        f"is not allowed because service account {part(account, 'metadata').get('name')} does not reference that secret"
    )
    for container in containers:
        for place, secret in _secrets_of(container):
            if secret not in known:
                shown = f'{what} {container.get("name")} with {place} referencing secret.secretName="{secret}"'
                raise _refusal(pod, f"{shown} {why}")


def _mount_token(spec: Document, new_name: str) -> None:
    """Mount the token in every container that has no mount at the token's path, and add the volume if it is used."""
    volumes = parts(spec, "volumes")
    names = [str(each.get("name") or "") for each in volumes]
    known = next((name for name in names if name.startswith(_VOLUME_PREFIX)), "")
    mount: Document = {"name": known or new_name, "readOnly": True, "mountPath": _MOUNT_PATH}
    mounted = False
    for field in ("initContainers", "containers"):
        containers = list(parts(spec, field))
        for place, container in enumerate(containers):
            mounts = parts(container, "volumeMounts")
            if not any(each.get("mountPath") == _MOUNT_PATH for each in mounts):
                containers[place] = {**container, "volumeMounts": [*mounts, dict(mount)]}
                mounted = True
        if containers:
            spec[field] = containers
    if mounted and not known:
        spec["volumes"] = [*volumes, _token_volume(new_name)]


def _token_volume(name: str) -> Document:
    sources: list[Document] = [
        {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {
            "downwardAPI": {
                "items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]
            }
        },
    ]
    return {"name": name, "projected": {"sources": sources, "defaultMode": 420}}
