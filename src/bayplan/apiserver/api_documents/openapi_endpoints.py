"""OpenAPI version 3 of endpoints that are not resources: discovery, the version, and OpenID."""

from __future__ import annotations

import msgspec

from bayplan.apiserver.api_documents.openapi_operations import camel_case
from bayplan.apiserver.api_documents.openapi_types import META, SCHEMAS
from bayplan.apiserver.model.resources import ResourceRegistry
from bayplan.base.plain_data import Document

SECURITY: Document = {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}}
"""The scheme of the bearer token, by its name."""
_FORMATS = ("application/json", "application/vnd.kubernetes.protobuf", "application/yaml")


class Endpoint(msgspec.Struct, frozen=True):
    """An endpoint with the operation GET.

    Attributes:
        tag: the tag of the operation.
        operation: the id of the operation.
        type: the type of the response; empty for a string.
        formats: the media types of the response.
    """

    tag: str
    operation: str
    type: str = ""
    formats: tuple[str, ...] = _FORMATS[:1]

    def document(self, path: str, schemas: Document) -> Document:
        """Return the paths and components of the document.

        Args:
            path: the path without slashes at its ends.
            schemas: the schemas of the type and of all types that it refers to.
        """
        schema: Document = {"$ref": SCHEMAS + self.type} if self.type else {"type": "string"}
        content: Document = {each: {"schema": schema} for each in self.formats}
        responses: Document = {"200": {"description": "OK", "content": content}, "401": {"description": "Unauthorized"}}
        get: Document = {"tags": [self.tag], "operationId": self.operation, "responses": responses}
        components: Document = {"schemas": schemas} if schemas else {}
        return {"paths": {f"/{path}/": {"get": get}}, "components": components | {"securitySchemes": SECURITY}}


_FIXED = {
    ".well-known/openid-configuration": Endpoint("WellKnown", "getServiceAccountIssuerOpenIDConfiguration"),
    "api": Endpoint("core", "getCoreAPIVersions", f"{META}APIVersions", _FORMATS),
    "apis": Endpoint("apis", "getAPIVersions", f"{META}APIGroupList", _FORMATS),
    "openid/v1/jwks": Endpoint("openid", "getServiceAccountIssuerOpenIDKeyset", formats=("application/jwk-set+json",)),
    "version": Endpoint("version", "getCodeVersion", "io.k8s.apimachinery.pkg.version.Info"),
}


def endpoints(registry: ResourceRegistry) -> dict[str, Endpoint]:
    """Return the endpoints by path, without slashes at its ends."""
    found = dict(_FIXED)
    for group in registry.groups:
        if group and not registry.is_custom(group):
            tag = camel_case(group)
            found[f"apis/{group}"] = Endpoint(
                tag, f"get{tag[:1].upper()}{tag[1:]}APIGroup", f"{META}APIGroup", _FORMATS
            )
    return found
