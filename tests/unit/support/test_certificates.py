"""Each bad certificate is invalid only in the way its name says, and the good ones are valid."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from model.certificates import BAD_SERVERS, LOOPBACK, Authority, BadServer, Identity, bad_servers


def server_context(identity: Identity, folder: Path, password: str | None = None) -> ssl.SSLContext:
    files = identity.write(folder, "server", password)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key, password)
    return context


def client_context(
    authority: Authority, folder: Path, revocation_list: bytes | None = None
) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority.pem.decode())
    context.hostname_checks_common_name = False
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    if revocation_list is not None:
        (folder / "revoked.pem").write_bytes(revocation_list)
        context.load_verify_locations(folder / "revoked.pem")
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    return context


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext, host: str) -> None:
    """Run a whole handshake in memory, and raise the client's error if it fails."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    while ends:
        for end in list(ends):
            try:
                end.do_handshake()
                ends.remove(end)
            except ssl.SSLWantReadError:
                continue


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def servers(authority: Authority) -> dict[str, BadServer]:
    return bad_servers(authority)


@pytest.mark.parametrize("name", BAD_SERVERS)
def test_openssl_refuses_each_bad_server_for_its_reason(
    name: str, authority: Authority, servers: dict[str, BadServer], tmp_path: Path
) -> None:
    bad = servers[name]
    context = client_context(authority, tmp_path, bad.revocation_list)
    with pytest.raises(ssl.SSLCertVerificationError, match=bad.says):
        shake_hands(context, server_context(bad.identity, tmp_path), bad.host)


@pytest.mark.parametrize("host", LOOPBACK)
@pytest.mark.parametrize("key", ["ec", "rsa"])
def test_a_good_certificate_passes_with_and_without_a_list_of_revoked_ones(
    authority: Authority, servers: dict[str, BadServer], tmp_path: Path, host: str, key: str
) -> None:
    server = server_context(authority.issue(key=key), tmp_path, "open sesame")
    shake_hands(client_context(authority, tmp_path), server, host)
    shake_hands(client_context(authority, tmp_path, servers["revoked"].revocation_list), server, host)


def test_an_authority_between_comes_with_the_certificate(authority: Authority, tmp_path: Path) -> None:
    identity = Authority("Between", under=authority).issue()
    shake_hands(client_context(authority, tmp_path), server_context(identity, tmp_path), "localhost")
