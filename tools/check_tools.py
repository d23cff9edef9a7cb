"""List the tools that kafkacore's setup needs and this machine lacks, and how to install them.

The argument is ``unit``, ``demo``, ``test`` or ``sanitize``. The script prints a line for each missing tool,
and exits with status 1 if one is missing. It must run on any Python 3, before a virtual environment exists.
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
    """Return the path of ``java`` or ``javac``. As in Spark, JAVA_HOME takes precedence over PATH."""
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
    # Versions up to 8 are named 1.x.
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr.decode(errors="replace"))
    return int(match.group(1)) if match else None


def missing_java():
    """Return the problem with the Java that Spark would run, or None."""
    install = "on Debian and Ubuntu, apt-get install %s" % JDK
    home = os.environ.get("JAVA_HOME")
    version = java_version()
    if version is None and home:
        return (
            "Java %d, for Spark: JAVA_HOME=%s has no working bin/java. Correct or unset JAVA_HOME, or %s"
            % (
                JAVA_MINIMUM,
                home,
                install,
            )
        )
    if version is None:
        return "Java %d, for Spark: %s" % (JAVA_MINIMUM, install)
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


def has_sanitizers():
    """Return whether the libraries of the compiler's sanitizers are installed, as with gcc."""
    command = [compiler(), "-print-file-name=libasan.so"]
    try:
        answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    except OSError:
        return False
    # If the compiler does not find the file, it prints the name unchanged.
    return os.path.isabs(answer.stdout.decode(errors="replace").strip())


def missing(purpose):
    """Yield a sentence for each missing tool that ``purpose`` needs."""
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
        yield "libasan.so of %s: on Debian and Ubuntu, apt-get install gcc, and set CC to it" % compiler()
    header = os.path.join(sysconfig.get_paths()["include"], "Python.h")
    if not os.path.exists(header):
        yield "Python's C headers (%s): on Debian and Ubuntu, apt-get install python3-dev" % header
    java = None if purpose == "unit" else missing_java()
    if java:
        yield java


def missing_for_tests():
    """Yield a sentence for each missing tool that only some tests need."""
    if not shutil.which("mvn"):
        yield "Maven, for the integration tests: on Debian and Ubuntu, apt-get install maven"
    if not (find_java_program("javac") or shutil.which("javac")):
        yield "a JDK (javac), for the integration tests: on Debian and Ubuntu, apt-get install %s" % JDK
    if not shutil.which("chromedriver"):
        # The package also installs the browser, in the same version.
        yield "Chromium and its driver, for the status page: on Debian, apt-get install chromium-driver"
    if not shutil.which("krb5-config"):
        # pip compiles the package gssapi against these headers.
        yield "Kerberos' C headers (krb5-config): on Debian and Ubuntu, apt-get install libkrb5-dev"
    # /usr/sbin is often not on the PATH of a user.
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
