// Posts one MCP request with undici, the HTTP client that is built into Node, and
// writes the answer, or the code of the error:
//
//   node silent.mjs URL LIMIT_MS BODY
//
// LIMIT_MS is how long it waits for headers, and for each piece of the body.
import { Agent, request } from 'undici';

const [url, limit, body] = process.argv.slice(2);
const dispatcher = new Agent({ headersTimeout: Number(limit), bodyTimeout: Number(limit) });
try {
  const answer = await request(url, {
    method: 'POST',
    dispatcher,
    headers: {
      authorization: 'Bearer alice',
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-11-25',
      'x-session-id': 's',
    },
    body,
  });
  console.log(answer.statusCode, await answer.body.text());
} catch (error) {
  console.log(error.code);
  process.exitCode = 1;
}
await dispatcher.destroy();
