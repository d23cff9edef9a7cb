"""Sphinx configuration of the documentation site: ``make docs`` builds it into build/docs."""

from __future__ import annotations

import sys
from importlib import import_module, metadata
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_extensions"))

# Sphinx evaluates the signatures, so it needs the types that are imported only for type checkers.
for module, source, name in (
    ("kafkacore.admin.kafka_admin_client", "kafkacore.admin.config_types", "AdminConfig"),
    ("kafkacore.admin.kafka_admin_client", "uuid", "UUID"),
    ("kafkacore.consumer.kafka_consumer", "kafkacore.consumer.config_types", "ConsumerConfig"),
    ("kafkacore.producer.kafka_producer", "kafkacore.producer.config_types", "ProducerConfig"),
):
    setattr(import_module(module), name, getattr(import_module(source), name))

project = "kafkacore"
author = "the kafkacore developers"
release = metadata.version("kafkacore")
version = ".".join(release.split(".")[:3])

extensions = [
    "myst_parser",
    "numpydoc",
    "reference",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
]
root_doc = "index"
#: Pages for developers, which are not part of the site.
exclude_patterns = ["PORTED_TESTS.md"]

nitpicky = True
nitpick_ignore = [
    # Imported only for type checkers.
    ("py:class", "StructType"),
    ("py:class", "DataFrame"),
    ("py:class", "KafkaBroker"),
    ("py:class", "pa.RecordBatch"),
    ("py:class", "pa.Schema"),
    ("py:class", "pa.Table"),
    # The argument of CommitFuture, which programs do not create.
    ("py:class", "RequestFuture"),
    # Type aliases, and parts of generic types that Sphinx splits at the comma.
    ("py:class", "CommitCallback"),
    ("py:class", "ConsumerConfig"),
    ("py:class", "Positions"),
    ("py:class", "collections.abc.Mapping[int"),
    ("py:class", "collections.abc.Mapping[str"),
]

myst_enable_extensions = ["attrs_block", "colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 3

# Show signatures without module names. Long signatures have one parameter per line.
add_module_names = False
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "undoc-members": True, "show-inheritance": True}
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 80
python_use_unqualified_type_names = True
numpydoc_show_class_members = False
numpydoc_validation_checks: set[str] = set()

html_theme = "furo"
html_title = "kafkacore"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True}
copybutton_prompt_text = r"\$ |>>> "
copybutton_prompt_is_regexp = True
