"""What a filter takes beside its cells, and what a sample of many takes while it is made."""

from __future__ import annotations

import subprocess
import sys

FILTERS = 4_000
#: 1.2 kB measured; 3.7 kB before filters that are alike shared what they have in common.
MOST = 2_000
MAKE = """
import sys
from pathlib import Path
import fullbloom_server
service = fullbloom_server.Service(Path(sys.argv[1]), durability="off")
for i in range(int(sys.argv[2])):
    options = [("initial_capacity", "1000"), ("growth", "2"), ("fpr", "1e-2")]
    service.create(f"filter:{i}", "scalable", options, seed=i, keyed=True)
service.stop()
"""
OPEN = """
import sys
from pathlib import Path
import fullbloom_server
from fullbloom.service.resources import release_memory
def held():
    release_memory()
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmRSS"))
before = held()
service = fullbloom_server.Service(Path(sys.argv[1]))
assert len(service) == int(sys.argv[2])
print((held() - before - service.nbytes) // len(service))
"""


def test_a_small_filter_takes_little_beside_its_cells(tmp_path):
    words = [tmp_path / "data", str(FILTERS)]
    subprocess.run([sys.executable, "-c", MAKE, *words], check=True)
    told = subprocess.run(
        [sys.executable, "-c", OPEN, *words], check=True, capture_output=True, text=True
    ).stdout
    assert int(told) < MOST


def test_samples_go_on_from_what_was_sampled(start):
    """A sample tells of what was changed or asked since the one before, however many there are."""
    service = start(FULLBLOOM_HISTORY__EVERY="0.2")
    names = [f"many:{i}" for i in range(450)]  # more than are sampled at once
    for name in names:
        service.create(name, capacity=10)

    def samples(name):
        return service.http.get(f"/v1/filters/{name}/history").json()["samples"]

    for name in (names[0], names[-1]):
        while not samples(name):
            pass
    known = len(samples(names[0]))
    service.http.post(f"/v1/filters/{names[-1]}/add", json={"key": "ada"})
    while samples(names[-1])[0]["adds"] != 1:
        pass
    assert len(samples(names[0])) == known
