"""Packages come from where pip would take them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[3] / "tools" / "installer.py"
spec = importlib.util.spec_from_file_location("installer", TOOL)
assert spec is not None
assert spec.loader is not None
installer = importlib.util.module_from_spec(spec)
spec.loader.exec_module(installer)

LISTED = """\
:env:.find-links='/srv/wheels'
global.cert='/etc/ssl/own.pem'
global.extra-index-url='\\nhttps://one.example/simple\\nhttps://two.example/simple'
global.find-links='/srv/other'
global.index-url="https://mirror.example/o'simple"
install.no-binary='gssapi'
install.trusted-host='mirror.example'
list.format='columns'
"""


def test_settings_of_pip_become_those_of_uv():
    assert installer.uv_variables(LISTED) == {
        "SSL_CERT_FILE": "/etc/ssl/own.pem",
        "UV_DEFAULT_INDEX": "https://mirror.example/o'simple",
        "UV_FIND_LINKS": "/srv/wheels",
        "UV_INDEX": "https://one.example/simple https://two.example/simple",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_INSECURE_HOST": "mirror.example",
    }


@pytest.mark.parametrize("listed", ["", "\n", "global.no-color='true'\n"])
def test_nothing_is_set_where_pip_has_no_such_setting(listed):
    assert installer.uv_variables(listed) == {}
