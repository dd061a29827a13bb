"""Requests drawn from the OpenAPI description: what it does not say is not answered."""

from __future__ import annotations

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error

EXAMPLES = 8


def test_no_request_of_the_openapi_description_is_a_server_error(start):
    service = start()
    for name in ("a", "b"):
        service.create(name, capacity=100)
    schema = schemathesis.openapi.from_dict(service.http.get("/openapi.json").json())
    walked = 0
    for result in schema.get_all_operations():
        operation = result.ok()

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        )
        @schema_given(operation)
        def one(case):
            case.call_and_validate(base_url=service.url, checks=[not_a_server_error], timeout=60)

        one()
        walked += 1
    assert walked > 25
    assert service.http.get("/healthz").status_code == 200


def schema_given(operation):
    from hypothesis import given

    return given(case=operation.as_strategy())
