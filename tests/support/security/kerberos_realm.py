"""A Kerberos realm for tests: MIT's KDC on a free port of this machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from missing_tools import find_tool
from peers.apache_kafka import free_ports

REALM = "KAFKACORE.TEST"


class KerberosRealm:
    """Contains the principal ``kafka/localhost`` and those that are added."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        [self.port] = free_ports(1)
        self.config = folder / "krb5.conf"
        self.config.write_text(
            f"""[libdefaults]
    default_realm = {REALM}
    dns_lookup_realm = false
    dns_lookup_kdc = false
    dns_canonicalize_hostname = false
    rdns = false
    udp_preference_limit = 1
[realms]
    {REALM} = {{
        kdc = 127.0.0.1:{self.port}
    }}
[domain_realm]
    localhost = {REALM}
"""
        )
        profile = folder / "kdc.conf"
        profile.write_text(
            f"""[kdcdefaults]
    kdc_listen = ""
    kdc_tcp_listen = 127.0.0.1:{self.port}
[realms]
    {REALM} = {{
        database_name = {folder}/principal
        key_stash_file = {folder}/stash
        acl_file = {folder}/acl
        max_life = 24h
    }}
[logging]
    kdc = FILE:{folder}/kdc.log
"""
        )
        #: Environment of a process that uses the realm.
        self.environment = {
            "KRB5_CONFIG": str(self.config),
            "KRB5_KDC_PROFILE": str(profile),
            "KRB5CCNAME": f"FILE:{folder}/ccache",
            "KRB5RCACHEDIR": str(folder),
        }
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")
        self.kafka_keytab = self.add("kafka/localhost")
        self._kdc: subprocess.Popen[bytes] | None = None

    def add(self, principal: str) -> Path:
        """Add a principal and return its keytab."""
        keytab = self.folder / f"{principal.replace('/', '_')}.keytab"
        self._run("kadmin.local", "-r", REALM, "addprinc", "-randkey", principal)
        self._run("kadmin.local", "-r", REALM, "ktadd", "-k", str(keytab), principal)
        return keytab

    def start(self) -> None:
        self._kdc = subprocess.Popen(
            [_program("krb5kdc"), "-n", "-r", REALM],
            env=os.environ | self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert self._kdc.stdout is not None
        for line in self._kdc.stdout:
            if b"starting" in line:
                return
        raise AssertionError("krb5kdc did not start: " + (self.folder / "kdc.log").read_text())

    def stop(self) -> None:
        if self._kdc is not None:
            self._kdc.terminate()
            self._kdc.communicate()
            self._kdc = None

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [_program(program), *arguments], env=os.environ | self.environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"


def _program(name: str) -> str:
    return find_tool(name, package="krb5-kdc krb5-admin-server")


@contextmanager
def kerberos_realm(folder: Path) -> Iterator[KerberosRealm]:
    realm = KerberosRealm(folder)
    realm.start()
    try:
        yield realm
    finally:
        realm.stop()
