"""The door to Ray: processes on this machine, or on a cluster, that each hold one object of ours.

What is handed to such a process passes through Ray's store and may be seen there: never a key. Keys reach it
by the environment that its node was started with.
"""

import inspect
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from audit.words.errors import AuditError, BadRequest, Lost, MissingExtra

_STORE_BYTES = 256 << 20  # nothing is kept in it: each answer is taken out as soon as it comes

_REACH_S = 10.0
# At a cluster that runs already: Ray's own twenty take ten minutes where another program listens.
_TRIES = "2"
_ADVICE = "export RAY_AUTH_MODE=token where the cluster wants its token (~/.ray/auth_token)"


class Cluster:
    """Ray, as one command uses it: a cluster of its own on this machine, or one that is at `address`."""

    def __init__(self, address: str | None, cpus: int, variables: Mapping[str, str]) -> None:
        """`variables` are put into the environment of a cluster of its own, and of nothing else."""
        self.address = address
        self.cpus = cpus
        self._variables = variables

    def __enter__(self) -> Self:
        """Raises AuditError where there is no cluster at the address."""
        if self.address is not None:
            os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", _TRIES)  # read as it is imported
        import ray

        logging.getLogger("ray").setLevel(logging.ERROR)
        # Ray takes SIGTERM for itself; a run ends by it as by Ctrl-C.
        before = signal.getsignal(signal.SIGTERM)
        quiet = {"log_to_driver": False, "configure_logging": False, "logging_level": "ERROR"}
        try:
            if self.address is not None:
                ray.init(address=self.address, **quiet)
                self.cpus = int(ray.cluster_resources().get("CPU", 0))
            else:
                with _exported({"RAY_USAGE_STATS_ENABLED": "0", **self._variables}):
                    ray.init(
                        address="local",
                        num_cpus=self.cpus,
                        object_store_memory=_STORE_BYTES,
                        include_dashboard=False,
                        **quiet,
                    )
        except Exception as error:  # of the connection, the version, its own files
            place = f"at {self.address}" if self.address else "on this machine"
            reason = " ".join(str(error).split())[:300] or type(error).__name__
            advice = "" if self.address in (None, "auto") else f"; {_ADVICE}"
            raise AuditError(f"--engine ray: no Ray cluster {place}: {reason}{advice}") from error
        finally:
            signal.signal(signal.SIGTERM, before)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        import ray

        before = signal.getsignal(signal.SIGTERM)
        ray.shutdown()
        signal.signal(signal.SIGTERM, before)  # Ray leaves none

    def hold(self, make: Callable[..., Any], *args: Any, cpus: int = 1, at_once: int = 1000) -> "Remote":
        """A process that holds `make(*args)`: both are sent to it. It starts when a CPU is free."""
        import ray

        kind = type(make.__name__, (_Holder,), {})  # the process is shown under this name
        actor = ray.remote(num_cpus=cpus, max_concurrency=at_once, max_restarts=0)(kind)
        return Remote(actor.remote(make, args))


class Remote:
    """An object in another process."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    async def ask(self, method: str, *args: Any) -> Any:
        """What the method gives, whatever it raises. Raises Lost where the process ended."""
        from ray.exceptions import ActorDiedError, ActorUnavailableError

        try:
            return await self._actor.call.remote(method, args)
        except (ActorDiedError, ActorUnavailableError) as error:
            reason = " ".join(str(error).split())[:300]
            raise Lost(f"a process of Ray's is lost: {reason}; the same command goes on") from error

    def tell(self, method: str, *args: Any) -> None:
        """Call the method, and wait for nothing. What is asked or told later may come before it."""
        self._actor.call.remote(method, args)

    def end(self) -> None:
        """End the process."""
        import ray

        ray.kill(self._actor)


class _Holder:
    """What runs in the other process."""

    def __init__(self, make: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.held = make(*args)

    async def call(self, method: str, args: tuple[Any, ...]) -> Any:
        found = getattr(self.held, method)(*args)
        return await found if inspect.isawaitable(found) else found


def refuse_unreachable(address: str | None) -> None:
    """Raises MissingExtra, BadRequest for what is no address, AuditError where nothing listens there.

    Ray itself would try for minutes.
    """
    if find_spec("ray") is None:
        raise MissingExtra("ray", "ray", "--engine ray")
    if address is None or address == "auto":
        return
    host, port = _host_and_port(address)
    try:
        socket.create_connection((host, port), timeout=_REACH_S).close()
    except OSError as error:
        raise AuditError(f"--engine ray: no Ray cluster at {address}: {error}") from error


def _host_and_port(address: str) -> tuple[str, int]:
    """Raises BadRequest where it is not written so."""
    wrong = BadRequest(f"--ray-address {address!r}: expected auto, or host:port such as 10.0.0.1:6379")
    try:
        place = urlsplit(f"//{address}")
        host, port = place.hostname, place.port
    except ValueError as error:  # of the port, of brackets
        raise wrong from error
    if not host or not port or place.netloc != address or "@" in address:
        raise wrong
    return host, port


@contextmanager
def _exported(variables: Mapping[str, str]) -> Iterator[None]:
    """Variables that are in the environment while something is started."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
