"""Compile the program that measures Kafka's Java client, and build the command that runs it.

The program is ``BenchClient.java`` in this directory, the Java counterpart of ``worker``.
"""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from kafkacore.bench.task import Task

SOURCE = Path(__file__).with_name("BenchClient.java")
COMPILE_LIMIT_S = 120
#: The heap is large enough for the buffers of the tuned profile, and typical of a service.
JVM_OPTIONS = ("-Xms256m", "-Xmx1g", "-Djava.awt.headless=true")
#: Attributes of a task that are passed to the Java program.
ARGUMENTS = (
    "role", "topic", "partitions", "records", "size", "values_file", "times_file", "warm_up_records", "rate",
    "patience_s",
)  # fmt: skip


class JavaMissing(Exception):
    """The Java client cannot run. The message names what is missing."""


class JavaClient:
    """The compiled ``BenchClient.java``.

    Parameters
    ----------
    folder:
        Directory for the classes.
    classpath:
        Class path with Kafka's client jars. The default is ``KAFKA_HOME/libs``.
    environment:
        Environment variables.

    Raises
    ------
    JavaMissing
        Java or the jars are missing, or the program does not compile.
    """

    def __init__(
        self, folder: Path, classpath: str | None, environment: Mapping[str, str] = os.environ
    ) -> None:
        self._classpath = _classpath(classpath, environment)
        self._java = _program("java", environment)
        self._folder = folder
        options = ["-encoding", "UTF-8", "-nowarn", "-proc:none", "-cp", self._classpath, "-d", str(folder)]
        command = [_program("javac", environment), *options, str(SOURCE)]
        done = subprocess.run(  # noqa: S603 - the compiler, no shell
            command, capture_output=True, text=True, timeout=COMPILE_LIMIT_S, check=False
        )
        if done.returncode:
            first = next((line for line in done.stderr.splitlines() if "error:" in line), done.stderr.strip())
            raise JavaMissing(f"failed to compile the Java client with {self._classpath}: {first}")

    def command(self, task: Task, properties: Path | None = None) -> list[str]:
        """Return the command that runs ``task``. ``properties`` is a file with further client settings."""
        arguments = [f"{name}={getattr(task, name)}" for name in ARGUMENTS]
        arguments += [f"client.{name}={_text(value)}" for name, value in task.settings.items()]
        if properties is not None:
            arguments.append(f"properties={properties}")
        classpath = f"{self._folder}{os.pathsep}{self._classpath}"
        return [self._java, *JVM_OPTIONS, "-cp", classpath, "BenchClient", *arguments]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _classpath(given: str | None, environment: Mapping[str, str]) -> str:
    if given is not None:
        if not any(glob.glob(part) for part in given.split(os.pathsep)):
            raise JavaMissing(f"--java-classpath {given} matches no file: set it to Kafka's libs, as 'DIR/*'")
        return given
    home = environment.get("KAFKA_HOME")
    if not home:
        raise JavaMissing("set KAFKA_HOME, or set Kafka's jars with --java-classpath 'kafka/libs/*'")
    if not list(Path(home, "libs").glob("kafka-clients-*.jar")):
        raise JavaMissing(f"no kafka-clients jar in {home}/libs: set KAFKA_HOME to an installation of Kafka")
    return f"{home}/libs/*"


def _program(name: str, environment: Mapping[str, str]) -> str:
    home = environment.get("JAVA_HOME")
    found = shutil.which(name, path=f"{home}/bin") if home else None
    found = found or shutil.which(name, path=environment.get("PATH"))
    if found is None:
        raise JavaMissing(f"{name} is not on PATH: install a JDK, 17 or newer")
    return found
