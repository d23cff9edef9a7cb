"""A schema registry with HTTPS and a certificate of a private authority."""

import base64
import json
import ssl

import pytest
import trustme
from decode.registry_server import scripted_registry

from kafkacore.decode.registry import SchemaRegistry, registry_options
from kafkacore.errors import KafkaConfigurationError, SchemaRegistryError
from kafkacore.testing.clock import VirtualClock

SCHEMA = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}]}


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture(scope="module")
def cafile(authority, tmp_path_factory):
    path = tmp_path_factory.mktemp("tls") / "authority.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


@pytest.fixture
def serve(authority):
    """Return a function that starts a registry with a certificate for this name."""

    def start(name):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(name).configure_cert(context)
        return scripted_registry(context)

    return start


def ask(server, **options):
    """Fetch schema 1 from the registry, as a task does."""
    server.answer("/schemas/ids/1", (200, {"schema": json.dumps(SCHEMA)}))
    given = {"schema.registry.url": server.url, **options}
    found = registry_options({name.replace("__", "."): text for name, text in given.items()})
    return SchemaRegistry(found, VirtualClock()).schema(1)[0]


def test_a_registry_of_a_private_authority_is_asked_with_user_and_password(serve, cafile):
    with serve("127.0.0.1") as server:
        schema = ask(server, schema__registry__ssl__cafile=cafile, schema__registry__auth="me:s3:cret")
    assert schema.fields[0].name == "id"
    [(_, authorization)] = server.asked
    assert base64.b64decode(authorization.removeprefix("Basic ")) == b"me:s3:cret"


def test_one_that_is_not_trusted_gets_no_password_and_the_option_is_named(serve):
    with serve("127.0.0.1") as server:
        with pytest.raises(
            SchemaRegistryError, match=r"not trusted \(.*\): set schema\.registry\.ssl\.cafile"
        ):
            ask(server, schema__registry__auth="me:s3cret")
        assert server.asked == []


def test_a_certificate_of_another_name_is_not_trusted(serve, cafile):
    with serve("other.example") as server:
        with pytest.raises(SchemaRegistryError, match=r"127\.0\.0\.1.*set schema\.registry\.url"):
            ask(server, schema__registry__ssl__cafile=cafile, schema__registry__auth="me:s3cret")
        assert server.asked == []


@pytest.mark.parametrize("content", [None, "", "no certificate"])
def test_a_file_of_certificates_that_is_none_is_named(serve, tmp_path, content):
    path = tmp_path / "authority.pem"
    if content is not None:
        path.write_text(content)
    with serve("127.0.0.1") as server:
        with pytest.raises(
            KafkaConfigurationError, match=r"schema\.registry\.ssl\.cafile is not a readable PEM file .*pem"
        ):
            ask(server, schema__registry__ssl__cafile=str(path))
        assert server.asked == []


def test_https_to_a_registry_without_it_is_an_error(cafile):
    with scripted_registry() as server:
        server.url = server.url.replace("http:", "https:")
        with pytest.raises(SchemaRegistryError, match="did not answer in 3 attempts"):
            ask(server, schema__registry__ssl__cafile=cafile)
