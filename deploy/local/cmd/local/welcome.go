package main

// welcome is what a person reads once the suite is ready. Its two commands work as
// printed, from the root of the checkout; a test runs them.
const welcome = `
The suite is ready. It serves the Model Context Protocol at

  http://127.0.0.1:8080/mcp

A refund, with its two questions answered at the terminal:

  ./build/bin/countersign call refund order_id=A-1001

The same request as it is on the wire; the reply asks which items to refund:

  curl -s http://127.0.0.1:8080/mcp \
    -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
    -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/call' -H 'Mcp-Name: refund' \
    -d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"refund","arguments":{"order_id":"A-1001"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}'

Metrics: http://127.0.0.1:8081/metrics   Readiness: http://127.0.0.1:8081/readyz
Ctrl-C ends the suite.`
