"""Calls one tool with the official Python client and answers what it asks.

usage: python call.py URL TOOL ARGUMENTS ANSWERS

ARGUMENTS and ANSWERS are JSON objects. A form is accepted with the members of
ANSWERS that its schema names; one of which nothing is known is declined. Prints one
JSON object: `revision`, the negotiated protocol revision, `asked`, the messages of
the questions in order, and `result`, the tool's result.
"""

import asyncio
import json
import sys

from mcp import Client
from mcp.types import ElicitResult


async def main() -> None:
    """Makes the call that the command line describes."""
    url, tool, arguments, answers = sys.argv[1:]
    known = json.loads(answers)
    asked = []

    async def answer(_context, params) -> ElicitResult:
        asked.append(params.message)
        names = [name for name in params.requested_schema["properties"] if name in known]
        if not names:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content={name: known[name] for name in names})

    async with Client(url, elicitation_callback=answer) as client:
        result = await client.call_tool(tool, json.loads(arguments))
        print(json.dumps({
            "revision": client.session.protocol_version,
            "asked": asked,
            "result": result.model_dump(mode="json", by_alias=True, exclude_none=True),
        }))


if __name__ == "__main__":
    asyncio.run(main())
