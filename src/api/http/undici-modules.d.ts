// The types of the few modules of undici that are loaded by themselves: its index would load fetch, WebSocket,
// cache and mocks with them (3.5 × a bare start). The version is pinned: the paths are part of what is pinned.

declare module "undici/lib/dispatcher/client.js" {
  import { Client } from "undici";
  export default Client;
}

declare module "undici/lib/core/connect.js" {
  import { buildConnector } from "undici";
  export default buildConnector;
}

declare module "undici/lib/dispatcher/env-http-proxy-agent.js" {
  import { EnvHttpProxyAgent } from "undici";
  export default EnvHttpProxyAgent;
}

declare module "undici/lib/api/api-connect.js" {
  import type { Dispatcher } from "undici";
  const connect: Dispatcher["connect"];
  export default connect;
}
