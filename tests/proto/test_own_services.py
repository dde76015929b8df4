"""The services of `proto/pointsman/v1` are those that are served, under the names that they are served by."""

from __future__ import annotations

from google.protobuf import descriptor_pool

from router.extproc.inspection.explaining import METHOD
from router.extproc.inspection.ring import Ring
from router.extproc.inspection.server import Inspection, Sight
from router.proto.pointsman.v1 import decision_record_pb2, explain_pb2, inspection_pb2


def test_the_modules_share_one_record() -> None:
    assert isinstance(explain_pb2.Explanation().record, decision_record_pb2.DecisionRecord)
    found = descriptor_pool.Default().FindMessageTypeByName("pointsman.v1.DecisionRecord")
    assert found is decision_record_pb2.DecisionRecord.DESCRIPTOR


def test_explain_is_served_by_its_name() -> None:
    [method] = explain_pb2.DESCRIPTOR.services_by_name["Explain"].methods
    assert f"/{method.containing_service.full_name}/{method.name}" == METHOD
    assert (method.input_type, method.output_type) == (
        explain_pb2.ExplainRequest.DESCRIPTOR,
        explain_pb2.ExplainResponse.DESCRIPTOR,
    )


def test_every_method_of_inspection_is_served() -> None:
    inspection = Inspection(Sight(Ring(), bytes))
    service = inspection_pb2.DESCRIPTOR.services_by_name["Inspection"]
    served = set(inspection.methods())
    inspection.close()
    assert served == {f"/{service.full_name}/{method.name}" for method in service.methods}
