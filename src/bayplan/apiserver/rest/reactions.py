"""The reactions of kube-apiserver's own controllers to a write, by the table of the written object.

Upstream's controllers act some milliseconds later; here, they have acted before the response is sent. A reaction reads
the current state from the store, because earlier reactions to the same write may have written the object again.
"""

from __future__ import annotations

from bayplan.apiserver.kinds import api_services, custom_resources, flow_kinds
from bayplan.apiserver.rest.api_service_conditions import refresh_api_service, refresh_api_services_of
from bayplan.apiserver.rest.backend import CUSTOM_RESOURCES, Reactions
from bayplan.apiserver.rest.definitions import end_definition, refresh_definition
from bayplan.apiserver.rest.flow_control import refresh_flow_schema, refresh_flow_schemas
from bayplan.apiserver.rest.local_api_services import sync_api_service, sync_api_services_of
from bayplan.apiserver.rest.service_addresses import sync_ip_addresses

REACTIONS: Reactions = {
    flow_kinds.LEVELS: (refresh_flow_schemas,),
    flow_kinds.SCHEMAS: (refresh_flow_schema,),
    api_services.SERVICES: (sync_ip_addresses, refresh_api_services_of),
    api_services.SLICES: (refresh_api_services_of,),
    api_services.TABLE: (refresh_api_service, sync_api_service),
    custom_resources.DEFINITIONS: (refresh_definition, sync_api_services_of),
    CUSTOM_RESOURCES: (end_definition,),
}
