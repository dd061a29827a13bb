"""Prometheus metrics: requests, and figures of the largest filters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.process_collector import ProcessCollector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fullbloom.service.auth import Grant

_BUCKETS = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)
#: Most filters with figures of their own: each is a dozen lines of every response.
MOST_FILTERS = 200
#: Metric, member of a filter's info, meaning.
GAUGES = (
    ("num_added", "num_added", "Keys that were new when they were added, less those removed"),
    ("fpr", "fpr", "False-positive rate by its law at the present number of keys"),
    ("target_fpr", "target_fpr", "False-positive rate requested at capacity"),
    ("bytes", "nbytes", "Bytes of cells"),
    ("capacity", "capacity", "Keys it was sized for"),
    ("over_capacity", "over_capacity", "1 while it is over capacity, at a rate above its target"),
)
COUNTED = ("hits", "misses", "adds", "new", "removed")
#: Actions that requests are counted under; anything else is "other".
_ACTIONS = frozenset({"add", "check", "remove", "count", "values", "api", "dump", "merge", "history"})
_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"})


class Metrics:
    """Counters of one service."""

    def __init__(self, service: Any, shared: Callable[[], list[dict[str, Any]]] = list) -> None:
        """Start at zero; ``shared`` returns the infos of filters in Redis."""
        self._service, self._shared = service, shared
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "fullbloom_http_requests",
            "HTTP requests",
            ("action", "method", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "fullbloom_http_seconds", "Response time", ("action",), buckets=_BUCKETS, registry=self._registry
        )
        ProcessCollector(registry=self._registry)
        self._known: dict[tuple[str, str, int], Any] = {}
        self._timed: dict[str, Any] = {}

    def observe(self, action: str, method: str, status: int, seconds: float) -> None:
        """Count one request and its time."""
        action = action if action in _ACTIONS else "other"
        counter = self._known.get((action, method, status))
        if counter is None:
            method = method if method in _METHODS else "other"
            counter = self._requests.labels(action, method, str(status))
            self._known[action, method, status] = counter
            self._timed.setdefault(action, self._seconds.labels(action))
        counter.inc()
        self._timed[action].observe(seconds)

    def text(self, grant: Grant) -> bytes:
        """Return the text for Prometheus; it has the filters that the grant covers."""
        return generate_latest(self._registry) + generate_latest(_Store(self._service, self._shared, grant))


class _Store:
    """The store's figures, for one grant."""

    def __init__(self, service: Any, shared: Callable[[], list[dict[str, Any]]], grant: Grant) -> None:
        self._service, self._shared, self._grant = service, shared, grant

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        """Yield the families of metrics."""
        service, grant = self._service, self._grant
        yield GaugeMetricFamily("fullbloom_filters", "Filters", value=len(service))
        yield GaugeMetricFamily(
            "fullbloom_store_bytes", "Bytes of cells of all filters", value=service.nbytes
        )
        refused = 0 if service.trouble() is None else 1
        yield GaugeMetricFamily("fullbloom_read_only", "1 while changes are refused", value=refused)
        held, most, _, refusals = service.memory()
        yield GaugeMetricFamily(
            "fullbloom_memory_held_bytes", "Bytes held for clients beside the filters", value=held
        )
        yield GaugeMetricFamily(
            "fullbloom_memory_limit_bytes", "Bytes that may be held for clients", value=most
        )
        yield CounterMetricFamily(
            "fullbloom_memory_refused", "Requests refused because clients held too many bytes", value=refusals
        )
        shared = [info for info in self._shared() if grant.covers(info["name"])][:MOST_FILTERS]
        infos = [*service.stats(service.largest(MOST_FILTERS, list(grant.patterns))), *shared]
        for name, member, text in GAUGES:
            gauge = GaugeMetricFamily(f"fullbloom_filter_{name}", text, labels=("filter",))
            for info in infos:
                gauge.add_metric((info["name"],), float(info[member]))
            yield gauge
        counter = CounterMetricFamily("fullbloom_filter_keys", "Keys by outcome", labels=("filter", "what"))
        for info in infos:
            for what in COUNTED:
                counter.add_metric((info["name"], what), info[what])
        yield counter
