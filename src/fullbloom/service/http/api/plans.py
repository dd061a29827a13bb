"""Advice before a filter is created, and about the load of one that exists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query

from fullbloom import registry as structures
from fullbloom.errors import FullbloomError
from fullbloom.service import projection
from fullbloom.service.failures import Refused
from fullbloom.service.http import schemas
from fullbloom.service.http.schemas import NameInPath
from fullbloom.service.http.static_filters import KINDS as BUILT_KINDS

if TYPE_CHECKING:
    from fullbloom.plan import Choice
    from fullbloom.service.node import Node

#: Bounds of what a plan is made for; beyond them no filter fits a machine.
_MOST_ITEMS, _MOST_MEMORY, _MOST_NEEDS = 1 << 50, 1 << 50, 16
_FPR = 0.01
_Need = Annotated[str, Query(max_length=32)]


class Plans:
    """Routes of plans and projections."""

    def __init__(self, node: Node) -> None:
        """Advise on the filters of a node."""
        self._node = node
        self.router = router = APIRouter(tags=["plans"])
        router.add_api_route("/v1/plan", self.plan, response_model=schemas.Plan)
        router.add_api_route("/v1/filters/{name}/rates", self.rates, response_model=schemas.Rates)

    def plan(
        self,
        items: Annotated[int | None, Query(ge=1, le=_MOST_ITEMS, description="different keys")] = None,
        fpr: Annotated[
            float | None, Query(gt=0, lt=1, description="false-positive rate; 0.01 if only items is given")
        ] = None,
        memory: Annotated[int | None, Query(ge=1, le=_MOST_MEMORY, description="bytes at most")] = None,
        needs: Annotated[
            list[_Need],
            Query(max_length=_MOST_NEEDS, description="capabilities of /v1/kinds that the filter must have"),
        ] = [],  # noqa: B006 - FastAPI copies it
    ) -> Any:
        """Ways to build a filter, best first, with the cost and the guarantee of each.

        Give two of items, fpr and memory, or items alone.
        """
        from fullbloom import plan  # 0.9 MB, which a service that is never asked for a plan saves

        if items is not None and fpr is None and memory is None:
            fpr = _FPR
        left_out: dict[str, str] = {}
        try:
            found = plan.choices(items, fpr, memory=memory, needs=needs, left_out=left_out)
        except FullbloomError as error:
            raise Refused("invalid", str(error)) from None
        rate = found[0].fpr if fpr is None else fpr
        return {
            "choices": [_describe(choice, rate) for choice in found],
            "left_out": left_out,
            "needs": [*structures.capabilities(), plan.PARQUET],
        }

    def rates(self, name: NameInPath) -> Any:
        """The false-positive rate at the present number of keys, and with two and four times as many."""
        info = self._node.find_backend(name).info(name)
        return {"rates": projection.project_rates(info)}


def _describe(choice: Choice, fpr: float) -> dict[str, Any]:
    row = structures.get_row(choice.structure)
    layout = None if choice.layout in {"-", "auto"} else choice.layout
    return {
        "kind": choice.structure,
        "layout": layout,
        "items": choice.items,
        "nbytes": choice.nbytes,
        "bits_per_key": choice.bits_per_key,
        "fpr": choice.fpr,
        "num_hashes": choice.num_hashes or None,
        "ns_add": choice.add_ns_per_key or None,
        "ns_check": choice.ns_per_key,
        "false_negatives": choice.false_negatives,
        "capabilities": row["capabilities"],
        "fits": choice.fits,
        "recommended": choice.recommended,
        "built": choice.structure in BUILT_KINDS,
        "create": _make_body(row, choice, layout, fpr),
    }


def _make_body(row: dict[str, Any], choice: Choice, layout: str | None, fpr: float) -> dict[str, Any] | None:
    """Return the body of ``POST /v1/filters`` except the name; None for kinds that it does not create."""
    known = {name for name, *_ in row["parameters"]}
    takes_keys = structures.is_open(row, "key") or structures.is_open(row, "key", "value")
    if not takes_keys or not known & {"capacity", "initial_capacity"}:
        return None
    body: dict[str, Any] = {"kind": choice.structure, "capacity": choice.items}
    if "fpr" in known:
        body["fpr"] = fpr
    if layout is not None:
        body["options"] = {"layout": layout}
    return body
