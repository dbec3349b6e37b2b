// What a client program of this folder is asked to do, and where.
//
//   node CLIENT.mjs list
//   node CLIENT.mjs call TOOL '{"argument":"value"}'
//   node CLIENT.mjs stream TOOL '{"argument":"value"}'
//   node CLIENT.mjs read URI
//
// BERTH_URL, BERTH_TOKEN and BERTH_SESSION say which gateway, caller and session.
// The result goes to stdout as one JSON object; a protocol error to stderr, with
// exit status 1. stream puts each progress notification, as it comes, on a line
// before it.

function required(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
}

/** The gateway's endpoint and the headers of every request to it. */
export function endpoint() {
  return {
    url: new URL(required('BERTH_URL')),
    requestInit: {
      headers: {
        Authorization: `Bearer ${required('BERTH_TOKEN')}`,
        'X-Session-ID': required('BERTH_SESSION'),
      },
    },
  };
}

/**
 * Runs the request of the command line on a connected client; gives its result.
 * callTool(params, options) is how that client calls a tool.
 */
export function run(client, callTool) {
  const [method, target, args] = process.argv.slice(2);
  switch (method) {
    case 'list':
      return client.listTools();
    case 'call':
      return callTool({ name: target, arguments: JSON.parse(args) }, {});
    case 'stream':
      return callTool(
        { name: target, arguments: JSON.parse(args) },
        { onprogress: (progress) => console.log(JSON.stringify(progress)) },
      );
    case 'read':
      return client.readResource({ uri: target });
    default:
      throw new Error(`unknown method ${method}: use list, call, stream or read`);
  }
}
