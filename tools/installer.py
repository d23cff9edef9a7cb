"""Install packages into the environment that runs this script, with uv.

pip needs three times the CPU time for PySpark and what the demo needs, 58 seconds instead of 19.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
UV_INSTALL = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", sys.executable]
#: Settings of pip, and the variables by which uv knows them. uv does not read the configuration of pip.
VARIABLES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "timeout": "UV_HTTP_TIMEOUT",
}
#: The sections of pip's configuration that apply to an installation. A later one overrides an earlier one.
SECTIONS = ("global", "install", ":env:")


class Installer:
    """Installs packages from where pip would take them."""

    def __init__(self) -> None:
        subprocess.run([*PIP, "install", "--quiet", "uv>=0.9"], check=True)
        listed = subprocess.run([*PIP, "config", "list"], check=True, stdout=subprocess.PIPE, text=True)
        self._environment = {**uv_variables(listed.stdout), **os.environ}

    def install(self, arguments: Iterable[str], environment: Mapping[str, str] | None = None) -> None:
        """Install what the arguments of ``uv pip install`` name.

        Raises
        ------
        subprocess.CalledProcessError
            A package could not be installed. uv has printed the reason to standard error.
        """
        subprocess.run(
            [*UV_INSTALL, *arguments], env={**self._environment, **(environment or {})}, check=True
        )


def uv_variables(pip_configuration: str) -> dict[str, str]:
    """Return the variables by which uv knows the settings that ``pip config list`` has printed."""
    sections: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in pip_configuration.splitlines():
        name, _, value = line.partition("=")
        section, _, setting = name.partition(".")
        if section in sections and setting in VARIABLES:
            # pip separates the values of a list by spaces or line ends.
            words = str(ast.literal_eval(value)).split()
            sections[section][VARIABLES[setting]] = " ".join(words)
    found: dict[str, str] = {}
    for settings in sections.values():
        found.update(settings)
    if "UV_INDEX" in found:
        # pip compares the versions of all indexes; uv by default takes the first index that has the package.
        found["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return found
