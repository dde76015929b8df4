"""The floor that Pointsman is measured against: an ext_proc on grpc.aio and uvloop that only names a cluster."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator

import grpc
import grpc.aio
import uvloop
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio

from router.proto import ext_proc_pb2 as pb

WAIT = pb.ProcessingResponse(request_headers=pb.HeadersResponse())


def named(cluster: str) -> pb.ProcessingResponse:
    header = pb.HeaderValueOption(
        header=pb.HeaderValue(key="x-pointsman-cluster", raw_value=cluster.encode()), append_action=2
    )
    mutation = pb.HeaderMutation(set_headers=[header])
    common = pb.CommonResponse(header_mutation=mutation, clear_route_cache=True)
    return pb.ProcessingResponse(request_body=pb.BodyResponse(response=common))


async def main(socket: str, cluster: str) -> None:
    answer = named(cluster)

    async def process(messages: AsyncIterator[pb.ProcessingRequest], _: object) -> AsyncIterator[pb.ProcessingResponse]:
        async for message in messages:
            if message.HasField("request_headers"):
                yield WAIT
            else:
                yield answer
                return

    server = grpc.aio.server(options=[("grpc.max_receive_message_length", 64 << 20)])
    health = health_aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    handler = grpc.stream_stream_rpc_method_handler(
        process,
        request_deserializer=pb.ProcessingRequest.FromString,
        response_serializer=pb.ProcessingResponse.SerializeToString,
    )
    service = "envoy.service.ext_proc.v3.ExternalProcessor"
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Process": handler}),))
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    await health.set("", health_pb2.HealthCheckResponse.SERVING)
    await server.wait_for_termination()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], sys.argv[2]))
