"""The exceptions of Bayplan: one tree, for bad input and for bugs. Outcomes of scheduling are values, never exceptions.

::

    BayplanError
    ├── InputError            something the user gave is wrong: a manifest, a trace, an option (exit code 2)
    │   ├── ConfigurationError    a scheduler configuration
    │   ├── PluginError           a custom plugin that can't be loaded, or breaks its contract
    │   ├── MissingPlugins        a question about a result without the custom plugins of its run
    │   └── MissingExtra          an optional package that is not installed
    ├── PluginFailure         a custom plugin failed in the middle of a cycle, where hosts survive that
    ├── EngineBusy            a scheduler on a thread of its own did not answer in time
    └── InvariantError        the state contradicts itself: a bug of ours
"""


class BayplanError(Exception):
    """Base of every exception that Bayplan raises on purpose."""


class InputError(BayplanError):
    """Bad input, reported with its location, the problem, the value found, the expected value, and a suggestion.

    Args:
        what: the problem, or the object and path concerned, e.g. ``Pod default/web $.spec.containers[0].image``.
        where: file and line, e.g. ``pods.yaml:12``; empty if unknown.
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
        text = f"{self.where} {self.what}" if self.where else self.what
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
    """A question about a result without the custom plugins of its run.

    Args:
        plugins: the missing ones, as ``NAME=WEIGHT`` or ``NAME``.
        where: the result.

    Attributes:
        plugins: as given.
        options: the options that enable them; the paths of their files are not in a result.
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
    """An optional package is needed and not installed.

    Args:
        package: the name under which it is imported.
        extra: the extra of Bayplan that installs the package.
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed", hint=f"pip install 'bayplan[{extra}]'")


class PluginFailure(BayplanError):
    """A custom plugin raised an exception or took too long; it ends the cycle, not the scheduler.

    Args:
        plugin: the plugin's name.
        point: the extension point in upstream's spelling, e.g. ``Filter``.
        text: the error, e.g. ``KeyError: 'zone' (my_plugin.py:12)``.
    """

    def __init__(self, plugin: str, point: str, text: str) -> None:
        self.plugin = plugin
        self.point = point
        self.text = text
        super().__init__(f'running {point} plugin "{plugin}": {text}')


class EngineBusy(BayplanError):
    """A scheduler on a separate thread did not respond in time; it may do so later."""


class InvariantError(BayplanError):
    """The state is inconsistent. Always a bug of Bayplan; the text has the evidence."""
