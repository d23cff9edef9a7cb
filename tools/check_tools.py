"""Name each tool that kafkacore's set-up needs and this machine lacks, and what to install for it.

``check_tools.py unit``, ``demo``, ``test`` or ``sanitize`` in, one line per missing tool out, exit status
1 if there is any. Runs on any Python 3 before a virtual environment exists, so it uses nothing newer.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig

JAVA_MINIMUM = 17
JDK = "openjdk-17-jdk-headless"


def find_java_program(name):
    """Path of ``java`` or ``javac``, looked for where Spark looks: in JAVA_HOME alone if it is set."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(os.path.join(home, "bin", name) if home else name)


def java_version():
    """The major version of the Java that Spark would run, or None."""
    java = find_java_program("java")
    if java is None:
        return None
    try:
        answer = subprocess.run([java, "-version"], stderr=subprocess.PIPE, check=False)
    except OSError:
        return None
    # Up to 8 they called themselves 1.x.
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr.decode(errors="replace"))
    return int(match.group(1)) if match else None


def missing_java():
    """What is wrong with the Java that Spark would run, or None."""
    install = "on Debian and Ubuntu, apt-get install %s" % JDK
    home = os.environ.get("JAVA_HOME")
    version = java_version()
    if version is None and home:
        return "Java %d, for Spark: JAVA_HOME is %s, where no bin/java runs; correct or unset it, or %s" % (
            JAVA_MINIMUM,
            home,
            install,
        )
    if version is None:
        return "Java %d, for Spark: %s" % (JAVA_MINIMUM, install)
    if version < JAVA_MINIMUM:
        where = "JAVA_HOME is %s" % home if home else "on PATH"
        return "Java %d or newer, for Spark (%s, and is Java %d): %s, and let JAVA_HOME name it" % (
            JAVA_MINIMUM,
            where,
            version,
            install,
        )
    return None


def compiler():
    """The command of the C compiler."""
    return (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]


def has_sanitizers():
    """Whether the compiler brings the libraries of its sanitizers; gcc does."""
    command = [compiler(), "-print-file-name=libasan.so"]
    try:
        answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    except OSError:
        return False
    # What it does not find it prints as it was asked for.
    return os.path.isabs(answer.stdout.decode(errors="replace").strip())


def missing(purpose):
    """One sentence for each tool that ``purpose`` needs and that is not there."""
    if sys.version_info < (3, 11):
        this = sys.version.split()[0]
        yield "Python 3.11 or newer (this is %s): install it, then run make PYTHON=python3.11" % this
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        yield "Python's venv module: on Debian and Ubuntu, apt-get install python3-venv"
    if not shutil.which(compiler()):
        yield "a C compiler (%s): on Debian and Ubuntu, apt-get install build-essential" % compiler()
    elif purpose == "sanitize" and not has_sanitizers():
        yield "libasan.so of %s: on Debian and Ubuntu, apt-get install gcc, and let CC name it" % compiler()
    header = os.path.join(sysconfig.get_paths()["include"], "Python.h")
    if not os.path.exists(header):
        yield "Python's C headers (%s): on Debian and Ubuntu, apt-get install python3-dev" % header
    java = None if purpose == "unit" else missing_java()
    if java:
        yield java


def missing_for_tests():
    """What only some tests need: Apache Kafka's jars, small Java programs, a browser, a Kerberos realm."""
    if not shutil.which("mvn"):
        yield "Maven, for the integration tests: on Debian and Ubuntu, apt-get install maven"
    if not (find_java_program("javac") or shutil.which("javac")):
        yield "a JDK (javac), for the integration tests: on Debian and Ubuntu, apt-get install %s" % JDK
    if not shutil.which("chromedriver"):
        # The browser comes with its driver, in one version.
        yield "Chromium and its driver, for the status page: on Debian, apt-get install chromium-driver"
    if not shutil.which("krb5-config"):
        # The package gssapi is compiled against it.
        yield "Kerberos' C headers (krb5-config): on Debian and Ubuntu, apt-get install libkrb5-dev"
    # Not on everybody's PATH.
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    for name, package in (("krb5kdc", "krb5-kdc"), ("kadmin.local", "krb5-admin-server")):
        if not shutil.which(name, path=path):
            yield "%s, for tests of Kerberos: on Debian and Ubuntu, apt-get install %s" % (name, package)


def main():
    purpose = sys.argv[1] if len(sys.argv) > 1 else "demo"
    gaps = list(missing(purpose))
    for gap in gaps:
        print("missing: " + gap, file=sys.stderr)
    if purpose == "test":
        optional = list(missing_for_tests())
        for gap in optional:
            print("missing: " + gap, file=sys.stderr)
        if os.environ.get("KAFKACORE_REQUIRE_ALL") == "1":
            gaps += optional
        elif optional:
            print("The tests that need them are left out.", file=sys.stderr)
    return 1 if gaps else 0


if __name__ == "__main__":
    sys.exit(main())
