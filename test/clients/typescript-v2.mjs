// Runs one request with version 2 of the official TypeScript SDK. BERTH_PROTOCOL
// pins the protocol's version; without it the client negotiates as it does by
// default, from 2025-11-25 on down. See request.mjs for its arguments.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { endpoint, run } from './request.mjs';

const pin = process.env.BERTH_PROTOCOL;
const { url, requestInit } = endpoint();
const client = new Client(
  { name: 'berth-e2e-typescript-v2', version: '1.0.0' },
  { versionNegotiation: { mode: pin ? { pin } : 'legacy' } },
);
await client.connect(new StreamableHTTPClientTransport(url, { requestInit }));
console.log(JSON.stringify(await run(client, (params, options) => client.callTool(params, options))));
await client.close();
