"""A killed service keeps what it acknowledged; the expected state is recorded outside of it."""

import itertools
import json
import random
import signal
import subprocess
import sys
import threading
import time

import pytest
from durability.kills import rounds

redis = pytest.importorskip("redis", reason="redis-py, with which the service is asked, is not installed")
pytest.importorskip("fullbloom_server", reason="the native half of the service is not installed")

CLIENTS = 4


class Service:
    """A service over one folder, restarted after each kill."""

    def __init__(self, folder):
        self.folder = folder
        self.ready = folder / "ready.json"

    def start(self):
        self.ready.unlink(missing_ok=True)
        command = [sys.executable, "-m", "fullbloom", "serve", "--data", str(self.folder / "data")]
        command += ["--http", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--ready-file", str(self.ready)]
        log = (self.folder / "service.log").open("ab")
        self.process = subprocess.Popen([*command, "--durability", "always"], stdout=log, stderr=log)
        end = time.monotonic() + 60
        while not self.ready.exists():
            said = (self.folder / "service.log").read_text()
            assert self.process.poll() is None, f"the service ended: {said}"
            assert time.monotonic() < end, said
            time.sleep(0.02)
        host, _, port = json.loads(self.ready.read_text())["resp"].rpartition(":")
        self.address = {"host": host, "port": int(port)}

    def client(self):
        return redis.Redis(**self.address, socket_timeout=30, retry=None)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


class Expected:
    """The acknowledged state: keys of two filters, existing names and deleted names."""

    def __init__(self):
        self.lock = threading.Lock()
        self.added, self.counted, self.there, self.gone = [], [], set(), set()
        self.numbers = itertools.count()

    def work(self, client, rng, stop):
        """Changes filters until the service is gone; notes a change once it is acknowledged."""
        while not stop.is_set():
            keys = [f"key-{next(self.numbers)}" for _ in range(rng.choice([1, 1, 1, 50]))]
            try:
                match rng.randrange(6):
                    case 0:
                        name = f"f{next(self.numbers)}"
                        client.execute_command("BF.RESERVE", name, "0.01", "100")
                        with self.lock:
                            self.there.add(name)
                    case 1:
                        with self.lock:
                            name = self.there.pop() if self.there else None
                        if name is not None:
                            client.delete(name)
                            with self.lock:
                                self.gone.add(name)
                    case 2:
                        client.execute_command("CF.INSERT", "counted", "ITEMS", *keys)
                        with self.lock:
                            self.counted += keys
                    case _:
                        client.execute_command("BF.MADD", "added", *keys)
                        with self.lock:
                            self.added += keys
            except redis.exceptions.ConnectionError:
                return

    def check(self, client):
        for verb, name, keys in (
            ("BF.MEXISTS", "added", self.added),
            ("CF.MEXISTS", "counted", self.counted),
        ):
            for start in range(0, len(keys), 10_000):
                some = keys[start : start + 10_000]
                found = client.execute_command(verb, name, *some)
                lost = [key for key, there in zip(some, found, strict=True) if not there]
                assert not lost, f"{len(lost)} acknowledged keys of {name!r} are lost, {lost[:3]} among them"
        counts = [client.execute_command("CF.COUNT", "counted", key) for key in self.counted[-500:]]
        # Rarely a key counts twice, as another has its fingerprint; all do where a log is done twice.
        assert sum(counts) < 1.5 * len(counts) or not counts
        for name in self.there:
            assert client.exists(name), f"{name} was made and acknowledged"
        for name in self.gone:
            assert not client.exists(name), f"{name} was dropped and acknowledged"


@pytest.fixture
def service(tmp_path):
    service = Service(tmp_path)
    service.start()
    yield service
    service.kill()


def test_no_acknowledged_change_is_lost_when_the_service_is_killed(service):
    rng, expected = random.Random(20), Expected()
    first = service.client()
    first.execute_command("BF.RESERVE", "added", "0.001", "1000")
    first.execute_command("CF.RESERVE", "counted", "100000")
    for _ in range(rounds(3, share=0.2)):
        stop = threading.Event()
        work = [
            threading.Thread(target=expected.work, args=(service.client(), random.Random(rng.random()), stop))
            for _ in range(CLIENTS)
        ]
        for thread in work:
            thread.start()
        time.sleep(rng.uniform(0.05, 0.5))
        if rng.random() < 0.5:
            service.client().execute_command("BGSAVE")
            time.sleep(rng.uniform(0, 0.05))
        service.kill()
        stop.set()
        for thread in work:
            thread.join()
        service.start()
        expected.check(service.client())
    print(f"{len(expected.added) + len(expected.counted)} keys acknowledged")
