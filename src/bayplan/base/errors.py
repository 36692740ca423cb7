"""The exceptions of Bayplan: one tree, for bad input and for bugs. Outcomes of scheduling are never exceptions.

::

    BayplanError
    ├── InputError            invalid input: a manifest, a trace, an option (exit code 2)
    │   ├── ConfigurationError    a scheduler configuration
    │   ├── PluginError           a custom plugin that can't be loaded, or breaks the contract
    │   ├── MissingPlugins        details of a result were requested without the custom plugins of its run
    │   ├── MissingExtra          an optional package that is not installed
    │   └── ServerUnavailable     an API server that does not respond, or is not ready
    ├── PluginFailure         a custom plugin failed in the middle of a cycle; the scheduler goes on
    ├── EngineBusy            a scheduler on its own thread did not respond in time
    └── InvariantError        the state contradicts itself: a bug in Bayplan
"""

import copyreg


class BayplanError(Exception):
    """Base of all exceptions that Bayplan raises on purpose."""

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle any subclass: without this, unpickling passes the message to `__init__`, whose arguments differ."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class InputError(BayplanError):
    """Bad input. The message names its location, the problem, the value found, the expected value, and a suggestion.

    Args:
        what: the problem, or the object and path concerned, e.g. ``Pod default/web $.spec.containers[0].image``.
        where: file and line, e.g. ``pods.yaml:12``, or an option; empty if unknown.
        got: the actual value, already quoted as it should be shown.
        wanted: the expected value, e.g. ``a quantity``.
        hint: a suggestion, e.g. ``'2'``.
    """

    def __init__(self, what: str, *, where: str = "", got: str = "", wanted: str = "", hint: str = "") -> None:
        self.what = what
        self.where = where
        self.got = got
        self.wanted = wanted
        self.hint = hint
        super().__init__(self._text())

    def _text(self) -> str:
        separator = ": " if self.where.startswith("--") else " "
        text = f"{self.where}{separator}{self.what}" if self.where else self.what
        if self.wanted:
            text += f": expected {self.wanted}"
        if self.got:
            text += f"{',' if self.wanted else ':'} got {self.got}"
        if self.hint:
            text += f"; try {self.hint}"
        return text


class ConfigurationError(InputError):
    """An invalid scheduler configuration."""


class PluginError(InputError):
    """A custom plugin that cannot be loaded or breaks the contract of its extension point."""


class MissingPlugins(InputError):
    """Details of a result were requested without the custom plugins of its run.

    Args:
        plugins: the missing plugins, as `NAME=WEIGHT` or `NAME`.
        where: the result.

    Attributes:
        plugins: the missing plugins.
        options: the options that load them; a result does not contain the paths of their files.
    """

    def __init__(self, plugins: list[str], *, where: str) -> None:
        self.plugins = plugins
        self.options = " ".join(f"--plugin FILE.py:{plugin}" for plugin in plugins)
        super().__init__(
            "custom plugins",
            where=where,
            got=f"a result whose run had the custom plugin{'s' * (len(plugins) > 1)} {', '.join(plugins)}",
            wanted="the plugins of the run",
            hint=f"{self.options}, or in Python plugins={[f'FILE.py:{plugin}' for plugin in plugins]}",
        )


class MissingExtra(InputError):
    """An optional package is needed but not installed.

    Args:
        package: the name under which it is imported.
        extra: the extra of Bayplan that installs it.
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed", hint=f"pip install '.[{extra}]' in a checkout of Bayplan")


class ServerUnavailable(InputError):
    """An API server does not respond, or is not ready: the address is wrong, or the server will be available later."""


class PluginFailure(BayplanError):
    """A custom plugin raised an exception or took too long. This ends the cycle, but not the scheduler.

    Args:
        plugin: the plugin's name.
        point: the extension point in upstream's spelling, e.g. `Filter`.
        text: the error, e.g. `KeyError: 'zone' (my_plugin.py:12)`.
    """

    def __init__(self, plugin: str, point: str, text: str) -> None:
        self.plugin = plugin
        self.point = point
        self.text = text
        super().__init__(f'running {point} plugin "{plugin}": {text}')


class EngineBusy(BayplanError):
    """A scheduler that runs on its own thread did not respond in time; it may do so later."""


class InvariantError(BayplanError):
    """The state contradicts itself. Always a bug in Bayplan; the message contains the evidence."""
