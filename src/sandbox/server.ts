// Owns: the two regional hosts as HTTP servers on loopback, their start and their end.
// Must not know: the rules of the service.
import { codeOf } from "./failure-code.ts";
import { createServer, type Server } from "node:http";
import { type Addresses, describe, type SandboxDescription } from "./description.ts";
import { FaultPlan, seededRandom } from "./fault-plan.ts";
import { Host } from "./host.ts";
import { invalidRequest, problemAnswer } from "./problem.ts";
import { newState } from "./seed.ts";
import { checkKept, checkSettings, type SandboxSettings } from "./settings.ts";
import { randomName } from "./signing.ts";
import { regions, type Region, type State } from "./state.ts";
import { memoryStore, openStore, removeState, type Store } from "./store.ts";

export interface RunningSandbox {
  /** The object of `sandbox start -o json`, with a legacy bearer token issued now. */
  describe(): SandboxDescription;
  /** Ends at once: open connections are dropped. */
  close(): Promise<void>;
}

function listen(host: Host, port: number): Promise<Server> {
  const server = createServer({ keepAlive: true, keepAliveTimeout: 60_000 }, (request, response) => {
    void host.serve(request, response);
  });
  server.on("clientError", (_error, socket) => {
    if (socket.writable) socket.end(refusal(host.region));
    else socket.destroy();
  });
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host: "127.0.0.1", port, backlog: 1024 }, () => {
      const address = server.address();
      if (address !== null && typeof address === "object") host.baseUrl = `http://127.0.0.1:${address.port}`;
      resolve(server);
    });
  });
}

/** The answer to what is no HTTP: no request was read, so it goes to the socket as it stands. */
function refusal(region: Region): string {
  const requestId = randomName(`req_${region}_`);
  const { body = "" } = problemAnswer(invalidRequest("The request is not HTTP/1.1."), requestId);
  const headers = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\nRequest-Id: ${requestId}\r\n`;
  return `HTTP/1.1 400 Bad Request\r\n${headers}Connection: close\r\n\r\n${body}`;
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

function portError(error: unknown, port: number): Error {
  const code = codeOf(error);
  const message =
    code === "EADDRINUSE" ? `Port ${port} is in use already.` : `Port ${port} cannot be listened on (${code}).`;
  return Object.assign(new Error(message, { cause: error }), { code });
}

function hostOf(region: Region, given: { settings: SandboxSettings; store: Store; state: State }): Host {
  const { settings, store, state } = given;
  const random = seededRandom(state.settings.seed + regions.indexOf(region));
  const plan = new FaultPlan({ specs: settings.faults ?? [], random });
  return new Host({ region, store, plan, now: settings.now ?? Date.now, log: settings.log });
}

function storeOf(settings: SandboxSettings): Store {
  const now = (settings.now ?? Date.now)();
  const world = {
    now,
    ...(settings.entities === undefined ? {} : { entities: settings.entities }),
    ...(settings.seed === undefined ? {} : { seed: settings.seed }),
  };
  return settings.persist === false
    ? memoryStore(newState(world))
    : openStore(settings.stateDir, () => newState(world));
}

/**
 * Starts both hosts on 127.0.0.1; ready when it resolves.
 * @throws Error with code `settings_differ`, `state_damaged`, `EADDRINUSE`, or a sentence on a bad setting or fault
 */
export async function startSandbox(settings: SandboxSettings): Promise<RunningSandbox> {
  checkSettings(settings);
  const store = storeOf(settings);
  const state = await store.current();
  checkKept(settings, state);
  const hosts = { us: hostOf("us", { settings, store, state }), eu: hostOf("eu", { settings, store, state }) };
  const ports = { us: settings.portUs ?? 0, eu: settings.portEu ?? 0 };
  const servers: Server[] = [];
  for (const region of regions) {
    try {
      servers.push(await listen(hosts[region], ports[region]));
    } catch (error) {
      await Promise.all(servers.map(close));
      throw portError(error, ports[region]);
    }
  }
  const now = settings.now ?? Date.now;
  return {
    describe: () => describe(store.latest(), { addresses: addressesOf(hosts), now: now() }),
    close: async () => void (await Promise.all(servers.map(close))),
  };
}

function addressesOf(hosts: { us: Host; eu: Host }): Addresses {
  return { us: hosts.us.baseUrl, eu: hosts.eu.baseUrl };
}

/** The sandbox over `stateDir` while nothing listens, for `sandbox status`; makes the state where it is missing. */
export async function describeSandbox(stateDir: string): Promise<SandboxDescription> {
  const store = openStore(stateDir, () => newState({ now: Date.now() }));
  return describe(await store.current(), { addresses: { us: null, eu: null }, now: Date.now() });
}

/** Forgets everything that the sandbox over `stateDir` keeps. */
export async function resetSandbox(stateDir: string): Promise<void> {
  await removeState(stateDir);
}
