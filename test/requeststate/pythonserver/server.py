"""A server made with the official Python SDK, with tools that ask.

usage: python server.py

It keeps what it must remember in the SDK's own request state, and logs where it
listens.
"""

import asyncio
import socket

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

FORM = {"type": "object", "properties": {"yes": {"type": "boolean"}}}

server = MCPServer("foreign")


def confirm(context: Context) -> str | InputRequiredResult:
    """Asks until there is an answer."""
    if context.request_state is not None and context.input_responses:
        return "done"
    question = ElicitRequest(params=ElicitRequestFormParams(message="Go on?", requested_schema=FORM))
    return InputRequiredResult(request_state="asked", input_requests={"go": question})


@server.tool()
async def ask(amount: int | float, context: Context, note: str = "") -> str | InputRequiredResult:
    """Asks for a confirmation."""
    return confirm(context)


@server.tool()
async def ask_too(amount: int | float, context: Context, note: str = "") -> str | InputRequiredResult:
    """Asks for the same confirmation."""
    return confirm(context)


def main() -> None:
    """Serves on a free port until it is ended."""
    listener = socket.create_server(("127.0.0.1", 0))
    print("listening on %s:%d" % listener.getsockname(), flush=True)
    app = server.streamable_http_app(stateless_http=True, json_response=True)
    asyncio.run(uvicorn.Server(uvicorn.Config(app, log_level="warning")).serve(sockets=[listener]))


if __name__ == "__main__":
    main()
