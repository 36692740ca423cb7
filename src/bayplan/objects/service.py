"""Services, whose selectors determine default topology spreading and the classic spreading priority."""

from msgspec import field

from bayplan.objects.meta import ApiStruct, Int32, IntOrString, KubernetesObject


class ServicePort(ApiStruct, frozen=True, kw_only=True):
    """A port of a service."""

    name: str = ""
    protocol: str = ""
    port: Int32 = 0
    target_port: IntOrString = 0
    node_port: Int32 = 0


class ServiceSpec(ApiStruct, frozen=True, kw_only=True):
    """The spec of a Service. With `selector` None it selects no pods."""

    ports: tuple[ServicePort, ...] = ()
    selector: dict[str, str] | None = None
    cluster_ip: str = field(name="clusterIP", default="")
    type: str = ""
    session_affinity: str = ""


class Service(KubernetesObject, frozen=True, kw_only=True):
    """A service."""

    spec: ServiceSpec = ServiceSpec()
