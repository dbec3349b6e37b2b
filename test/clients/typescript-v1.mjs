// Runs one request with version 1 of the official TypeScript SDK, which speaks
// 2025-11-25 and older. See request.mjs for its arguments.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { endpoint, run } from './request.mjs';

const { url, requestInit } = endpoint();
const client = new Client({ name: 'berth-e2e-typescript-v1', version: '1.0.0' });
await client.connect(new StreamableHTTPClientTransport(url, { requestInit }));
console.log(JSON.stringify(await run(client, (params, options) => client.callTool(params, undefined, options))));
await client.close();
