"""Sums over the values of many nodes, without double counting, in bounded memory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from fullbloom._core import CountingBloomFilter
from fullbloom.errors import FormatError, ParameterError, ParameterTypeError, PeerError

if TYPE_CHECKING:
    from .element import ProcessingElement

__all__ = ["AggregationNode", "Offer", "Receipt", "exchange_values"]

_MOST_NAME = 1024
_MOST_EARLIER = 1024
#: Bytes of a message: two names with every letter escaped and 1,025 numbers of 308 digits take 350 kB. JSON
#: of a given length can decode to thirty times as much.
_MOST_BYTES = 1 << 19
#: The sum of 10^8 such values is still a float, so no value makes a sum infinite, or raises OverflowError.
_MOST_VALUE = 1e300

Number = int | float


class Offer(NamedTuple):
    """The value of a node, for one other node."""

    #: Name of the node that offers.
    source: str
    #: Name of the node that it is for.
    target: str
    value: Number
    #: Values of which the source's filter says that they were offered to the target before.
    earlier: tuple[Number, ...]

    def to_bytes(self) -> bytes:
        """Return the offer as a message."""
        return json.dumps(self._asdict()).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Offer:
        """Return the offer in a message; raise ``FormatError`` for any other bytes."""
        fields = _read_fields(data, cls._fields)
        earlier = fields["earlier"]
        if not isinstance(earlier, list) or len(earlier) > _MOST_EARLIER:
            raise FormatError(f"an offer must list at most {_MOST_EARLIER} earlier values")
        return cls(
            _read_name(fields, "source"),
            _read_name(fields, "target"),
            _read_number(fields["value"]),
            tuple(_read_number(each) for each in earlier),
        )


class Receipt(NamedTuple):
    """What a node did with an offer."""

    #: Name of the node that received the offer.
    source: str
    #: Name of the node that made it.
    target: str
    value: Number
    #: The value that it subtracted, because the target had offered it before; None for none.
    replaced: Number | None
    #: False if the value was counted before.
    is_new: bool

    def to_bytes(self) -> bytes:
        """Return the receipt as a message."""
        return json.dumps(self._asdict()).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Receipt:
        """Return the receipt in a message; raise ``FormatError`` for any other bytes."""
        fields = _read_fields(data, cls._fields)
        replaced = fields["replaced"]
        if not isinstance(fields["is_new"], bool):
            raise FormatError("is_new of a receipt must be true or false")
        return cls(
            _read_name(fields, "source"),
            _read_name(fields, "target"),
            _read_number(fields["value"]),
            None if replaced is None else _read_number(replaced),
            fields["is_new"],
        )


class AggregationNode:
    """A node that offers its value to others and sums the values offered to it, each node once.

    name: identifies the node to all others. values: its possible values, up to 1e300; the first is selected.
    Equal numbers, such as 5 and 5.0, are one value. capacity: nodes that it exchanges values with. fpr: of
    both filters at that number.

    Two counting filters replace the lists of nodes: *counted* holds (node, value) of each value in the sum,
    *offered* holds (node, value) of each offer of this node. A value counts as known only if both sides say
    so: the source, that it may have offered it, and the receiver, that it has counted it. Then the receiver
    ignores it, or, if the source now has another value, replaces it. A value is missed, or replaced by
    mistake, only if both filters are wrong: at the rate fpr squared. A value is never counted twice, even if
    offers or receipts are lost, unless a mistaken replacement has damaged a filter; nor may a transport
    deliver one offer twice. Memory: both filters, whatever the values.

    Steps: ``offer`` at the source, ``accept`` at the receiver, ``confirm`` at the source. An offer must be
    followed by its receipt or given up before the next offer to the same node. A lost receipt costs an
    entry of *offered*, no mistake. Sums of ints are exact.

    Source: Pournaras, Warnier, Brazier, "A generic and adaptive aggregation service for large-scale
    decentralized networks", Complex Adaptive Systems Modeling 1, 2013.

    >>> meter, total = AggregationNode("meter", [5, 8]), AggregationNode("total", [0])
    >>> for _ in range(3):
    ...     meter.confirm(total.accept(meter.offer("total")))
    >>> total.total
    5
    >>> meter.select(8)
    >>> meter.confirm(total.accept(meter.offer("total")))
    >>> total.total, total.num_counted
    (8, 1)
    """

    def __init__(
        self,
        name: str,
        values: list[Number],
        *,
        capacity: int = 1000,
        fpr: float = 0.001,
        seed: int = 0,
        secret: bytes | None = None,
    ) -> None:
        if not isinstance(name, str):
            raise ParameterTypeError(f"name must be a str, got {name!r}")
        if not 0 < len(name.encode()) <= _MOST_NAME:
            raise ParameterError(f"name must have 1 to {_MOST_NAME} bytes, got {len(name.encode())}")
        if not 0 < len(values) <= _MOST_EARLIER or len(set(values)) < len(values):
            raise ParameterError(f"values must be 1 to {_MOST_EARLIER} distinct numbers, got {len(values)}")
        for value in values:
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise ParameterTypeError(f"values must be numbers, got {value!r}")
            if not abs(value) <= _MOST_VALUE:
                raise ParameterError(f"values must be from -{_MOST_VALUE} to {_MOST_VALUE}, got {value}")
        self.name = name
        self._values, self._value = tuple(values), values[0]
        self._counted = CountingBloomFilter(capacity, fpr, seed=seed, secret=secret)
        self._offered = CountingBloomFilter(capacity, fpr, seed=seed, secret=secret)
        self._sum: Number = 0
        self._num_counted = 0

    @property
    def value(self) -> Number:
        """The selected value."""
        return self._value

    @property
    def total(self) -> Number:
        """The sum of the own value and of all values counted."""
        return self._sum + self._value

    @property
    def num_counted(self) -> int:
        """Number of other nodes whose values are in the sum."""
        return self._num_counted

    @property
    def nbytes(self) -> int:
        """Bytes of both filters."""
        return self._counted.nbytes + self._offered.nbytes

    def select(self, value: Number) -> None:
        """Change the own value; raise ``ParameterError`` unless it is among those given at construction."""
        if value not in self._values:
            raise ParameterError(f"value must be one of the {len(self._values)} given, got {value!r}")
        # The node's own object: an equal one, such as True for 1, may not be a number of JSON.
        self._value = self._values[self._values.index(value)]

    def offer(self, to: str) -> Offer:
        """Return the own value for node ``to``, and record that it was offered."""
        earlier = tuple(value for value in self._values if _key(to, value) in self._offered)
        # Record it before it is sent: what the receiver counts must be in the filter even without a receipt.
        self._offered.add(_key(to, self._value))
        return Offer(self.name, to, self._value, earlier)

    def accept(self, offer: Offer) -> Receipt:
        """Count a value, replace the one counted before, or ignore it if it was counted; return which.

        Raises ``ParameterError`` for an offer to another node.
        """
        if offer.target != self.name:
            raise ParameterError(f"an offer for {self.name!r} was due, got one for {offer.target!r}")
        counted = [value for value in offer.earlier if _key(offer.source, value) in self._counted]
        if offer.value in counted:
            return Receipt(self.name, offer.source, offer.value, None, is_new=False)
        replaced = counted[0] if counted else None
        if replaced is not None:
            self._counted.discard(_key(offer.source, replaced))
            self._sum -= replaced
            self._num_counted -= 1
        self._counted.add(_key(offer.source, offer.value))
        self._sum += offer.value
        self._num_counted += 1
        return Receipt(self.name, offer.source, offer.value, replaced, is_new=True)

    def confirm(self, receipt: Receipt) -> None:
        """Record what the receiver did; raise ``ParameterError`` for a receipt of another node's offer."""
        if receipt.target != self.name:
            raise ParameterError(f"a receipt for {self.name!r} was due, got one for {receipt.target!r}")
        if not receipt.is_new:
            # The first offer of this value is recorded already.
            self._offered.discard(_key(receipt.source, receipt.value))
        elif receipt.replaced is not None:
            self._offered.discard(_key(receipt.source, receipt.replaced))


def _key(name: str, value: Number) -> tuple[str, Number]:
    """Return the key of a node's value in a filter, the same for equal numbers.

    For a filter, 5 and 5.0 are two keys; for ``==``, and in the JSON of other languages, they are one value.
    """
    return name, int(value) if isinstance(value, float) and value.is_integer() else value


def exchange_values(element: ProcessingElement, node: AggregationNode, peer: int, name: str) -> None:
    """Offer values in both directions between this element and element ``peer``, whose node is ``name``.

    Both call this function. Raises ``PeerError`` if the peer fails, or sends an offer or a receipt that is
    not valid or names another node.

    >>> from fullbloom.compose.networked import run_local
    >>> def job(element):
    ...     node = AggregationNode(f"node {element.rank}", [10 * element.rank + 1])
    ...     for step in (1, 2, 3, 1):  # the last with a peer for the second time
    ...         exchange_values(element, node, element.rank ^ step, f"node {element.rank ^ step}")
    ...     return node.total
    >>> run_local(4, job)
    [64, 64, 64, 64]
    """
    own = node.offer(name)
    element.send(peer, own.to_bytes())
    try:
        offer = Offer.from_bytes(element.receive(peer))
        _check_names(offer, name, node.name)
        element.send(peer, node.accept(offer).to_bytes())
        receipt = Receipt.from_bytes(element.receive(peer))
        _check_names(receipt, name, node.name)
        _check_values(receipt, own)
    except FormatError as error:
        raise PeerError(peer, f"sent an invalid message: {error}") from error
    node.confirm(receipt)


def _check_values(receipt: Receipt, offer: Offer) -> None:
    # To remove values from the filter that are not in it would damage those offered to others.
    if receipt.value != offer.value or receipt.replaced not in (None, *offer.earlier):
        raise FormatError("a receipt names values that were not offered")


def _check_names(message: Offer | Receipt, source: str, target: str) -> None:
    if (message.source, message.target) != (source, target):
        raise FormatError(
            f"a message from {source!r} to {target!r} was due, got one from {message.source[:80]!r} "
            f"to {message.target[:80]!r}"
        )


def _read_fields(data: bytes, names: tuple[str, ...]) -> dict[str, Any]:
    if len(data) > _MOST_BYTES:
        raise FormatError(f"the message must have at most {_MOST_BYTES} bytes, got {len(data)}")
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the message is not valid JSON: {error}") from None
    if not isinstance(fields, dict) or set(fields) != set(names):
        raise FormatError(f"the message must have the fields {', '.join(names)}")
    return fields


def _read_name(fields: dict[str, Any], name: str) -> str:
    value = fields[name]
    # A lone surrogate, which JSON can hold, has no UTF-8 bytes.
    if not isinstance(value, str) or not 0 < len(value.encode(errors="replace")) <= _MOST_NAME:
        raise FormatError(f"{name} must be a text of 1 to {_MOST_NAME} bytes")
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise FormatError(f"{name} must be valid Unicode")
    return value


def _read_number(value: object) -> Number:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise FormatError(f"a value must be a number, got {type(value).__name__}")
    if not abs(value) <= _MOST_VALUE:
        raise FormatError(f"a value must be from -{_MOST_VALUE} to {_MOST_VALUE}")
    return value
