"""The admission plugin ServiceAccount: sets a pod's service account, mounts its token and adds its pull secrets."""

from __future__ import annotations

from bayplan.apiserver.kinds.strategy import Context
from bayplan.apiserver.model.errors import forbidden
from bayplan.apiserver.schema.emptied import Emptied
from bayplan.base.plain_data import Document, part, parts

_DEFAULT_ACCOUNT = "default"
_VOLUME_PREFIX = "kube-api-access-"
_MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_MIRROR = "kubernetes.io/config.mirror"
_TOKEN_SECONDS = 3607
"""One hour and seven seconds: the unusual lifetime identifies the tokens that this plugin mounts."""


def admit_service_account(context: Context, pod: Document) -> None:
    """Set the service account of a pod, mount its token, and add its image pull secrets.

    Raises:
        ApiError: the service account does not exist.
    """
    metadata, spec = part(pod, "metadata"), part(pod, "spec")
    if _MIRROR in part(metadata, "annotations"):
        return
    # Copy the spec, which may be cached and shared: the name of the token volume differs for each pod.
    spec = Emptied(spec, spec.empties if isinstance(spec, Emptied) else {})
    pod["spec"] = spec
    name = str(spec.get("serviceAccountName") or _DEFAULT_ACCOUNT)
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    account = context.cluster.find("serviceaccounts", context.namespace, name)
    if account is None:
        why = f'error looking up service account {context.namespace}/{name}: serviceaccount "{name}" not found'
        raise forbidden("pods", "", str(metadata.get("name") or ""), why)
    wanted = spec.get("automountServiceAccountToken", account.get("automountServiceAccountToken"))
    if wanted is not False:
        _mount_token(spec, context.cluster.generate_name(_VOLUME_PREFIX))
    if not parts(spec, "imagePullSecrets") and parts(account, "imagePullSecrets"):
        spec["imagePullSecrets"] = [dict(each) for each in parts(account, "imagePullSecrets")]


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
