"""Extenders in the order of their calls, the resources that NodeResourcesFit ignores for them, and certificates."""

import pytest

from bayplan.framework.configuration.document import ExtenderTLSConfig
from bayplan.framework.configuration.loading import examine_configuration
from bayplan.framework.configuration.plugin_arguments import NodeResourcesFitArgs
from tests.framework.configuration.configurations import HEADER, examine


def test_ignorable_extenders_are_called_last_and_timeouts_have_a_default() -> None:
    found = examine(
        "extenders: [{urlPrefix: a, ignorable: true}, {urlPrefix: b, httpTimeout: 2s}, {urlPrefix: c, httpTimeout: 0s}]\n"
    )
    assert found.configuration is not None
    extenders = found.configuration.extenders
    assert [(extender.url_prefix, extender.http_timeout_ns) for extender in extenders] == [
        ("b", 2_000_000_000),
        ("c", 5_000_000_000),
        ("a", 5_000_000_000),
    ]


IGNORING = """extenders:
- managedResources: [{name: example.com/a, ignoredByScheduler: true}, {name: example.com/b}]
- managedResources: [{name: example.com/c, ignoredByScheduler: true}]
"""


@pytest.mark.parametrize(
    ("profiles", "want"),
    [
        ("", ("example.com/a", "example.com/c")),
        (
            "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [example.com/x]}}]}]\n",
            ("example.com/a", "example.com/c"),
        ),
    ],
    ids=["by default", "instead of their own"],
)
def test_resources_managed_by_extenders_are_ignored_by_node_resources_fit(profiles: str, want: tuple[str, ...]) -> None:
    found = examine(IGNORING + profiles)
    assert found.configuration is not None
    args = found.configuration.profiles[0].plugin_arguments["NodeResourcesFit"]
    assert isinstance(args, NodeResourcesFitArgs)
    assert args.ignored_resources == want


def test_ignored_resources_require_node_resources_fit_in_the_profile() -> None:
    plugins = "{multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}, {name: DefaultBinder}]}}"
    found = examine(f"{IGNORING}profiles:\n- plugins: {plugins}\n")
    assert (found.stage, found.error) == (
        "build",
        "couldn't build extenders: can't find NodeResourcesFitArgs in plugin config",
    )


def test_a_ca_file_and_the_insecure_flag_are_mutually_exclusive() -> None:
    found = examine("extenders: [{tlsConfig: {insecure: true, caFile: x}}]\n")
    assert found.error == (
        "couldn't build extenders: specifying a root certificates file with the insecure flag is not allowed"
    )


def test_the_host_checks_certificates_of_extenders() -> None:
    seen: list[ExtenderTLSConfig] = []

    def refuse(tls: ExtenderTLSConfig) -> str | None:
        seen.append(tls)
        return "no such file"

    text = HEADER + "extenders: [{enableHTTPS: true}, {enableHTTPS: true, tlsConfig: {certFile: c, keyData: YWJj}}]\n"
    found = examine_configuration(text, check_tls=refuse)
    assert found.error == "couldn't build extenders: no such file"
    # Without a root certificate, upstream does not verify the server's certificate.
    assert seen == [ExtenderTLSConfig(insecure=True, cert_file="c", key_data=b"abc")]
    assert examine_configuration(text).error is None
