"""A rule of this API that Schemathesis does not know: every refusal is a problem document, and is described."""

import schemathesis

UNDESCRIBED = {405, 500}


@schemathesis.check
def refusals_are_described_problems(
    ctx: schemathesis.CheckContext, response: schemathesis.Response, case: schemathesis.Case
) -> None:
    if response.status_code < 400:
        return
    assert response.headers["content-type"] == ["application/problem+json"], response.headers
    described = case.operation.definition.raw["responses"]
    is_own_method = case.method.upper() == case.operation.method.upper()
    if is_own_method and response.status_code not in UNDESCRIBED:
        assert str(response.status_code) in described, f"{response.status_code} is not described"
