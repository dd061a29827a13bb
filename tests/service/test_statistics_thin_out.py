"""History is thinned, not cut: one of each hour, later of each day, stays."""

from __future__ import annotations

from fullbloom.service.registry import Registry

HOUR, DAY = 3_600_000, 86_400_000


def info(name, number):
    numbers = ("capacity", "hits", "misses", "adds", "new", "removed", "nbytes", "created", "seed", "fpr")
    flags = {"keyed": False, "strict": False, "expires": None, "estimated": None, "fill": None}
    named = {"name": name, "id": number, "kind": "bloom", "target_fpr": 0.01, "options": [], "details": {}}
    return {**dict.fromkeys(numbers, 0), **flags, **named}


def test_the_last_of_each_span_stays(tmp_path):
    registry = Registry(f"sqlite:///{tmp_path / 'r.db'}")
    registry.nodes.register("n", "http://x", "", 0)
    registry.filters.record("n", info("a", 1))
    registry.filters.record("n", info("b", 2))
    rows = {name: row for row, name in registry.filters.load("n").values()}
    now = 100 * DAY
    for row in rows.values():
        for at in range(now - 3 * DAY, now, HOUR // 4):
            registry.snapshots.add([(row, info("a", 1))], at)
    registry.snapshots.thin(now, full=DAY / 1000, hourly=2 * DAY / 1000)
    registry.snapshots.thin(now, full=DAY / 1000, hourly=2 * DAY / 1000)
    for name in rows:
        times = [
            sample["sampled_at"] for sample in registry.snapshots.load(name, since=0, until=now, most=10_000)
        ]
        young = [at for at in times if at >= now - DAY]
        middle = [at for at in times if now - 2 * DAY <= at < now - DAY]
        old = [at for at in times if at < now - 2 * DAY]
        assert (len(young), len(middle), len(old)) == (96, 24, 1)
        assert old == [now - 2 * DAY - HOUR // 4]
    registry.close()
