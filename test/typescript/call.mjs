// Calls one tool with the official TypeScript client and answers what it asks.
//
// usage: node call.mjs URL TOOL ARGUMENTS ANSWERS
//
// ARGUMENTS and ANSWERS are JSON objects. A form is accepted with the members of
// ANSWERS that its schema names; one of which nothing is known is declined. Prints
// one JSON object: `revision`, the negotiated protocol revision, `asked`, the
// messages of the questions in order, and `result`, the tool's result.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const [url, tool, callArguments, answers] = process.argv.slice(2);
const known = JSON.parse(answers);
const asked = [];

const client = new Client(
  { name: 'countersign-test-typescript', version: '1.0.0' },
  {
    capabilities: { elicitation: { form: {} } },
    versionNegotiation: { mode: { pin: '2026-07-28' } },
  },
);
client.setRequestHandler('elicitation/create', async (request) => {
  asked.push(request.params.message);
  const names = Object.keys(request.params.requestedSchema.properties).filter((name) => name in known);
  if (names.length === 0) {
    return { action: 'decline' };
  }
  return { action: 'accept', content: Object.fromEntries(names.map((name) => [name, known[name]])) };
});

await client.connect(new StreamableHTTPClientTransport(new URL(url)));
try {
  const result = await client.callTool({ name: tool, arguments: JSON.parse(callArguments) });
  console.log(JSON.stringify({ revision: client.getNegotiatedProtocolVersion(), asked, result }));
} finally {
  await client.close();
}
