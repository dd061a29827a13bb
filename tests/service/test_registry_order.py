"""What a node reads of the registry and then writes there: another thread or process comes in between."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from fullbloom.service import data_folder
from fullbloom.service.clock import Clock
from fullbloom.service.engine import Engine
from fullbloom.service.failures import Refused, StartError
from fullbloom.service.node import Node
from fullbloom.service.peers import Peers
from fullbloom.service.redis.handles import Counters, Handles, OpenFilter
from fullbloom.service.registry import Registry, connection
from fullbloom.service.registry.nodes import Heartbeat
from fullbloom.service.settings import load

NEW = {"seed": 1, "keyed": False, "strict": False, "expires": None}


@pytest.fixture
def node(tmp_path):
    settings = load(data=tmp_path, resp="none", node="n")
    engine = Engine(settings)
    with Registry(settings.registry_url) as registry:
        node = Node(settings, engine, registry)
        node.register("http://n", "")
        yield node
        engine.service.stop()
    engine.close()


def create(node, name):
    return node.create(name, "bloom", {"capacity": "10"}, **NEW)


def create_shared(rows, name, place=None):
    """Create the row of a filter in Redis."""
    place = place or f"place of {name}"
    number = rows.claim({"name": name, "kind": "bloom", "backend": "redis", "place": place})
    return rows.finish(number, place, {"num_bits": 512, "num_hashes": 8, "layout": "blocked", "scheme": ""})


def test_a_dropped_filter_takes_no_filter_along_that_got_the_id_of_its_row(node, monkeypatch):
    create(node, "first")
    number, (row, _) = next(iter(node.registry.filters.load("n").items()))
    node.service.delete("first")
    load_rows = node.registry.filters.load

    def load_then_reuse(name):
        rows = load_rows(name)
        node.registry.filters.release("first", "n", number)
        assert create_shared(node.registry.shared_filters, "second")["id"] == row  # SQLite reuses it
        return rows

    monkeypatch.setattr(node.registry.filters, "load", load_then_reuse)
    node.sync()
    assert node.registry.shared_filters.find("second") is not None


def test_other_nodes_see_a_new_epoch_once_the_registry_has_its_names(node, monkeypatch):
    node.sync()
    node.service.create("by-resp", "bloom", [("capacity", "10")], **NEW)
    insert, seen = node.registry.filters.insert, []

    def look_then_insert(*arguments):
        seen.append(node.registry.nodes.heartbeats()["n"].epoch)
        return insert(*arguments)

    monkeypatch.setattr(node.registry.filters, "insert", look_then_insert)
    node.refresh()
    node.sync()
    assert seen
    assert node.service.epoch not in seen
    assert node.registry.nodes.heartbeats()["n"].epoch == node.service.epoch


def test_a_node_that_is_removed_during_a_comparison_writes_its_rows_again(node, monkeypatch):
    create(node, "mine")
    load_rows, threads = node.registry.filters.load, []

    def load_then_remove(name):
        rows = load_rows(name)
        if not threads:
            node.registry.nodes.remove("n", node.registry.nodes.heartbeats()["n"].at)
            threads.append(threading.Thread(target=node.refresh))
            threads[0].start()
            threads[0].join(1)
        return rows

    monkeypatch.setattr(node.registry.filters, "load", load_then_remove)
    node.sync()
    threads[0].join()
    node.sync()
    assert [name for _, name in node.registry.filters.load("n").values()] == ["mine"]


def test_names_in_redis_are_announced_although_the_peers_cannot_be_read(node, monkeypatch):
    announced = []
    monkeypatch.setattr(node, "announce", lambda: announced.append(node.shared.all_names()))
    monkeypatch.setattr(node.registry, "shared", True)
    monkeypatch.setattr(node.peers, "refresh", lambda: 1 / 0)
    create_shared(node.registry.shared_filters, "far")
    with pytest.raises(ZeroDivisionError):
        node.refresh()
    assert announced == [["far"]]


def test_deleting_a_missing_name_leaves_the_reservation_of_who_creates_it(node, monkeypatch):
    release, creating = node.registry.filters.release, []
    reserved, go_on = threading.Event(), threading.Event()
    make = node.service.create

    class Slow:
        def __getattr__(self, name):
            return getattr(service, name)

        def create(self, *arguments, **named):
            reserved.set()
            go_on.wait(60)
            return make(*arguments, **named)

    def release_late(*arguments):
        if not creating:
            creating.append(threading.Thread(target=create, args=(node, "wanted")))
            creating[0].start()
            reserved.wait(1)  # longer than that it waits for this request
        release(*arguments)

    service = node.service
    monkeypatch.setattr(node, "service", Slow())
    monkeypatch.setattr(node.registry.filters, "release", release_late)
    assert not node.delete("wanted")
    assert reserved.wait(60)
    owner = node.registry.filters.find_owner("wanted")
    go_on.set()
    creating[0].join()
    assert owner == ("n", "http://n")


def make_peers(beats, names):
    nodes = SimpleNamespace(heartbeats=lambda: dict(beats), remove=lambda node, at: beats[node].at == at)
    filters = SimpleNamespace(load_remote_names=lambda _own: names.pop())
    return Peers(SimpleNamespace(nodes=nodes, filters=filters, shared=True), "own", 30.0)


def test_names_that_could_not_be_read_are_read_with_the_next_heartbeats():
    names = [{"a": "http://x"}]
    peers = make_peers({"x": Heartbeat("http://x", 1, 1)}, names)
    peers.refresh()
    peers._registry.nodes.heartbeats = lambda: {"x": Heartbeat("http://x", 2, 2)}
    with pytest.raises(IndexError):
        peers.refresh()
    names.append({"a": "http://x", "b": "http://x"})
    assert peers.refresh()
    assert peers.names == {"a": "http://x", "b": "http://x"}


def test_a_node_that_is_alive_again_is_not_removed():
    """Its heartbeat is read after its silence was measured."""
    beats = {"x": Heartbeat("http://x", 1, 1)}
    peers = make_peers(beats, [{}])
    peers.refresh()

    class Limit(float):
        def __gt__(self, silence):
            beats["x"] = Heartbeat("http://x", 2, 1)
            peers.refresh()
            return False

    peers._silence = Limit(30)
    with pytest.raises(Refused, match="alive again"):
        peers.remove("x")


def test_a_filter_that_is_dropped_while_others_are_sampled_does_not_lose_their_samples(node):
    infos = {create(node, name)["id"]: name for name in ("kept", "dropped")}
    rows = node.registry.filters.row_ids("n", list(infos))
    samples = [(rows[info["id"]], info) for info in node.service.stats(list(infos), counted=True)]
    node.delete("dropped")
    node.registry.snapshots.add(samples, 5)
    found = node.registry.snapshots.load("kept", since=0, until=9, most=9)
    assert [one["sampled_at"] for one in found] == [5]


def test_samples_that_could_not_be_written_are_due_again():
    due = [[(1, {"id": 1, "over_capacity": False})]]

    def list_due(sampled):
        return [] if sampled.get(1) else sampled.update({1: "counted"}) or due[0]

    written, failures = [], [OSError("full")]

    def add(samples, _at):
        if failures:
            raise failures.pop()
        written.extend(samples)

    shared = SimpleNamespace(is_set_up=True, flush=lambda: None, list_due=list_due)
    registry = SimpleNamespace(snapshots=SimpleNamespace(add=add))
    peers = SimpleNamespace(is_leader=lambda: True)
    clock = Clock(SimpleNamespace(shared=shared, registry=registry, peers=peers))
    with pytest.raises(OSError, match="full"):
        clock._sample_shared(1)
    clock._sample_shared(2)
    clock._sample_shared(3)
    assert written == due[0]


def test_a_process_that_is_killed_while_it_makes_the_tables_leaves_none(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path}/r.db"
    with monkeypatch.context() as patched:
        broken = OperationalError("", None, Exception("killed"))
        patched.setattr(connection.STAMP, "create", lambda _connection: (_ for _ in ()).throw(broken))
        with pytest.raises(StartError, match="killed"):
            Registry(url)
    with Registry(url) as registry:
        registry.nodes.register("n", "http://n", "", 1)
        with registry.engine.connect() as one:
            assert one.execute(text("PRAGMA foreign_keys")).scalar() == 1


def test_two_that_record_the_first_token_at_once_both_succeed(tmp_path, monkeypatch):
    write = data_folder._write

    def write_late(path, content):
        monkeypatch.setattr(data_folder, "_write", write)
        opened = path.with_name(f"{path.name}.new")
        opened.write_text(content)  # as this thread would; another one opens the same file, and renames it
        data_folder.record_tokens(tmp_path)
        opened.replace(path)

    monkeypatch.setattr(data_folder, "_write", write_late)
    data_folder.record_tokens(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["tokens"]


@pytest.fixture
def handles(tmp_path):
    """What two nodes know of one registry."""
    settings = load(data=tmp_path)
    with Registry(settings.registry_url) as registry:
        yield Handles(settings, registry), Handles(settings, registry)


def test_a_filter_that_another_node_drops_at_once_is_forgotten(handles):
    """The registry is then as it was before the filter was created."""
    here, there = handles
    here.refresh()
    row = create_shared(here.rows, "short")
    here.learn(row)
    there.rows.hide(row["id"], row["place"])
    there.rows.drop(row["id"], row["place"])
    assert here.refresh()
    assert here.names == []


def test_an_answer_that_is_late_does_not_hide_a_filter_for_long(handles):
    """A thread asks for a name before it is created, and says that it is unknown after that was read."""
    here, _ = handles
    row = create_shared(here.rows, "new")
    here.learn(row)
    here.refresh()
    with here._lock:
        here._forget("new")
    assert here.refresh()
    assert here.names == ["new"]


def test_names_that_are_being_listed_do_not_change(handles):
    here, _ = handles
    for name in ("b", "c"):
        here.learn(create_shared(here.rows, name))
    listed = here.names
    here.learn(create_shared(here.rows, "a"))
    here.forget("b", "place of b")
    assert listed == ["b", "c"]
    assert here.names == ["a", "c"]


def test_counts_do_not_go_back_when_they_are_recorded(node):
    row = create_shared(node.registry.shared_filters, "counted")
    known = node.shared._handles
    known.learn(row)
    known._open[row["place"]] = one = OpenFilter(row, None, Counters())
    one.counters.count_lookups(10, 3)

    def hits():
        found = node.shared.find_known("counted")
        return found.row["hits"] + known.pending_counts(found.row).get("hits", 0)

    before = hits()
    node.shared.flush()
    assert (before, hits()) == (3, 3)
