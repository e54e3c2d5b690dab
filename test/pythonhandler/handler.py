"""A handler service in Python, written straight against the generated stubs.

It shows that the contract belongs to no language: there is no kit here, only gRPC.
Run generate.py first, then

    PYTHONPATH=build/pythonhandler python test/pythonhandler/handler.py --listen 127.0.0.1:0
"""

import argparse
import json
import signal
from concurrent import futures

import grpc
from countersign.handler.v1 import catalog_pb2, content_pb2, handler_pb2, handler_pb2_grpc, question_pb2

CATALOG = catalog_pb2.Catalog(
    # Anything that changes when the catalog does, and is the same on all replicas.
    revision="1",
    tools=[
        catalog_pb2.Tool(
            name="greet_politely",
            description="Asks for the user's name and greets.",
            # JSON of others is bytes: its exact text, so that no number is rounded.
            input_schema=b'{"type":"object","properties":{"greeting":{"type":"string"}},"additionalProperties":false}',
        )
    ],
)

NAME_FORM = b'{"type":"object","properties":{"name":{"type":"string","minLength":1}},"required":["name"]}'


class PoliteGreeter(handler_pb2_grpc.HandlerServiceServicer):
    """Implements Describe and Invoke. Watch and Complete stay unimplemented, as they may."""

    def Describe(self, request, context):
        return handler_pb2.DescribeResponse(catalog=CATALOG)

    def Invoke(self, requests, context):
        begin = next(requests).begin
        if begin.call_tool.name != "greet_politely":
            yield failed(handler_pb2.ERROR_KIND_INVALID_PARAMS, "there is no such tool")
            return
        greeting = json.loads(begin.call_tool.arguments or b"{}").get("greeting", "Good day")

        # What comes before the question runs again on every attempt, so it must be safe to repeat.
        question = question_pb2.Question(
            key="name",
            elicit_form=question_pb2.ElicitForm(message="How may I call you?", requested_schema=NAME_FORM),
        )
        # Send the question, with the state this chain already has, and wait. Either the edge answers here
        # or it cuts the stream; `next` then raises, this function is unwound, and it runs again later.
        yield handler_pb2.InvokeResponse(ask=handler_pb2.Ask(questions=[question], state=begin.state))
        reply = next(requests, None)
        if reply is None:
            return  # the edge closed its side: no answer can come
        if reply.HasField("ask_refused"):
            yield failed(handler_pb2.ERROR_KIND_INTERNAL, reply.ask_refused.message)
            return

        elicited = reply.answers.answers[0].elicited
        if elicited.action == question_pb2.ELICIT_ACTION_ACCEPT:
            text = f"{greeting}, {json.loads(elicited.content)['name']}!"
        else:  # declining and cancelling are answers, not errors
            text = f"{greeting}, stranger!"
        content = content_pb2.ContentBlock(text=content_pb2.TextContent(text=text))
        yield handler_pb2.InvokeResponse(
            finish=handler_pb2.Finish(call_tool=handler_pb2.CallToolResult(content=[content]))
        )


def failed(kind, message):
    """A protocol error. A tool that ran and failed returns a CallToolResult with is_error instead."""
    error = handler_pb2.Error(kind=kind, message=message)
    return handler_pb2.InvokeResponse(finish=handler_pb2.Finish(error=error))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--listen", default="127.0.0.1:0", help="host:port on loopback; port 0 picks a free one")
    host, _, port = parser.parse_args().listen.rpartition(":")
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=16))
    handler_pb2_grpc.add_HandlerServiceServicer_to_server(PoliteGreeter(), server)
    bound = server.add_insecure_port(f"{host}:{port}")
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, lambda *_: server.stop(grace=5))
    server.start()
    print(f"listening on {host}:{bound}", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
