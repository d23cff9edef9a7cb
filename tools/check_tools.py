"""Report each tool that the set-up of kafkacore needs and this machine lacks, and how to install it.

The argument is ``unit``, ``demo``, ``test``, ``sanitize`` or ``tsan``. One line per missing tool is printed,
and the exit status is 1 if there is any. The script runs on any Python 3 before a virtual environment exists,
so it uses only syntax that old versions support.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig

JAVA_MINIMUM = 17
#: Newer versions of Debian have no package of Java 17, and Debian 12 has none of Java 21.
JDK = "openjdk-21-jdk-headless (on Debian 12, openjdk-17-jdk-headless)"
#: Libraries of the sanitizers that the targets of make use.
SANITIZERS = {"sanitize": "libasan.so", "tsan": "libtsan.so"}


def find_java_program(name):
    """Return the path of ``java`` or ``javac``, searched as Spark does: only in JAVA_HOME if it is set."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(os.path.join(home, "bin", name) if home else name)


def java_version():
    """Return the major version of the Java that Spark would run, or None."""
    java = find_java_program("java")
    if java is None:
        return None
    try:
        answer = subprocess.run([java, "-version"], stderr=subprocess.PIPE, check=False)
    except OSError:
        return None
    # Versions up to 8 are reported as 1.x.
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr.decode(errors="replace"))
    return int(match.group(1)) if match else None


def missing_java():
    """Return what is wrong with the Java that Spark would run, or None."""
    install = "on Debian and Ubuntu, apt-get install %s" % JDK
    home = os.environ.get("JAVA_HOME")
    version = java_version()
    if version is None and home:
        return (
            "Java %d or newer, for Spark: JAVA_HOME=%s has no working bin/java. "
            "Correct or unset JAVA_HOME, or %s"
            % (
                JAVA_MINIMUM,
                home,
                install,
            )
        )
    if version is None:
        return "Java %d or newer, for Spark: %s" % (JAVA_MINIMUM, install)
    if version < JAVA_MINIMUM:
        where = "JAVA_HOME=%s" % home if home else "PATH"
        return "Java %d or newer, for Spark (%s has Java %d): %s, and set JAVA_HOME to it" % (
            JAVA_MINIMUM,
            where,
            version,
            install,
        )
    return None


def compiler():
    """Return the command of the C compiler."""
    return (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]


def has_library(name):
    """Return whether the compiler has a library of its sanitizers; gcc does."""
    command = [compiler(), "-print-file-name=" + name]
    try:
        answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    except OSError:
        return False
    # The compiler prints the plain file name if it does not find the file.
    return os.path.isabs(answer.stdout.decode(errors="replace").strip())


def missing(purpose):
    """Return one sentence for each missing tool that ``purpose`` needs."""
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
    elif purpose in SANITIZERS and not has_library(SANITIZERS[purpose]):
        yield "%s of %s: on Debian and Ubuntu, apt-get install gcc, and set CC=gcc" % (
            SANITIZERS[purpose],
            compiler(),
        )
    header = os.path.join(sysconfig.get_paths()["include"], "Python.h")
    if not os.path.exists(header):
        yield "Python's C headers (%s): on Debian and Ubuntu, apt-get install python3-dev" % header
    java = None if purpose == "unit" else missing_java()
    if java:
        yield java


def missing_for_tests():
    """Return missing tools that only some tests need: a JDK and Maven, a browser, a Kerberos realm."""
    if not shutil.which("mvn"):
        yield "Maven, for the integration tests: on Debian and Ubuntu, apt-get install maven"
    if not (find_java_program("javac") or shutil.which("javac")):
        yield "a JDK (javac), for the integration tests: on Debian and Ubuntu, apt-get install %s" % JDK
    if not shutil.which("chromedriver"):
        # The distribution packages the browser and its driver in the same version.
        yield "Chromium and its driver, for the status page: on Debian, apt-get install chromium-driver"
    if not shutil.which("krb5-config"):
        # The package gssapi is compiled against these headers.
        yield "Kerberos' C headers (krb5-config): on Debian and Ubuntu, apt-get install libkrb5-dev"
    # These folders are not on every user's PATH.
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
            print("The tests that need them are skipped.", file=sys.stderr)
    return 1 if gaps else 0


if __name__ == "__main__":
    sys.exit(main())
