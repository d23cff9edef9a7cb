"""Name each tool that kafkacore's set-up needs and this machine lacks, and what to install for it.

``check_tools.py demo`` or ``check_tools.py test`` in, one line per missing tool out, exit status 1 if there
is any. Runs on any Python 3, before a virtual environment exists, so it uses nothing that is newer.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig

JAVA_MINIMUM = 17
JDK = "openjdk-17-jdk-headless"


def java_version():
    """The major version of the Java that Spark would run, or None."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not java or not os.path.exists(java):
        return None
    answer = subprocess.run([java, "-version"], stderr=subprocess.PIPE, check=False)
    match = re.search(r'version "(\d+)', answer.stderr.decode(errors="replace"))
    return int(match.group(1)) if match else None


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
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    if not shutil.which(compiler):
        yield "a C compiler (%s): on Debian and Ubuntu, apt-get install build-essential" % compiler
    header = os.path.join(sysconfig.get_paths()["include"], "Python.h")
    if not os.path.exists(header):
        yield "Python's C headers (%s): on Debian and Ubuntu, apt-get install python3-dev" % header
    java = java_version()
    if java is None:
        yield "Java %d, for Spark: on Debian and Ubuntu, apt-get install %s" % (JAVA_MINIMUM, JDK)
    elif java < JAVA_MINIMUM:
        yield "Java %d or newer, for Spark (JAVA_HOME or PATH has %d)" % (JAVA_MINIMUM, java)
    if purpose == "test":
        # The integration tests fetch Apache Kafka's jars by Maven and compile small Java programs.
        if not shutil.which("mvn"):
            yield "Maven, for the integration tests: on Debian and Ubuntu, apt-get install maven"
        if not shutil.which("javac"):
            yield "a JDK (javac), for the integration tests: on Debian and Ubuntu, apt-get install %s" % JDK


def main():
    gaps = list(missing(sys.argv[1] if len(sys.argv) > 1 else "demo"))
    for gap in gaps:
        print("missing: " + gap, file=sys.stderr)
    return 1 if gaps else 0


if __name__ == "__main__":
    sys.exit(main())
