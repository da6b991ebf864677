import { createServer, type Server } from "node:http";
import { errorCode } from "../disk/error-words.ts";
import { invalidRequest, problemAnswer } from "./call.ts";
import { randomName } from "./credentials.ts";
import { type Addresses, type SandboxDescription, describe } from "./description.ts";
import { FaultPlan, seededRandom } from "./fault-plan.ts";
import { Host, type HostSettings } from "./host.ts";
import { newState } from "./seed.ts";
import { type Region, type State, regions } from "./state.ts";
import { Store } from "./store.ts";

export interface SandboxSettings {
  /** For the state file; created with mode 0700. */
  stateDir: string;
  /** Entities of each region's main organization, 0 to 100,000,000; default: the stored number, else 120. */
  entities?: number;
  /** For the population and random faults; default: the stored seed, else 1. */
  seed?: number;
  /** For both hosts, in the syntax of `parseFault`. */
  faults?: string[];
  /** On loopback; default and 0: any free port. */
  portUs?: number;
  portEu?: number;
  log?: (line: string) => void;
  /** Milliseconds since 1970; default: the machine's clock. */
  now?: () => number;
}

const maxEntities = 100_000_000;
const maxSeed = 4_294_967_295;

function checkSettings(settings: SandboxSettings): void {
  const inRange = (name: string, given: { value: number | undefined; most: number }) => {
    const { value, most } = given;
    if (value === undefined || (Number.isInteger(value) && value >= 0 && value <= most)) return;
    const message = `${name} must be a whole number from 0 to ${most} (not ${value}).`;
    throw Object.assign(new Error(message), { code: "bad_setting" });
  };
  inRange("entities", { value: settings.entities, most: maxEntities });
  inRange("seed", { value: settings.seed, most: maxSeed });
  inRange("portUs", { value: settings.portUs, most: 65_535 });
  inRange("portEu", { value: settings.portEu, most: 65_535 });
}

function checkStoredSettings(settings: SandboxSettings, state: State): void {
  for (const name of ["entities", "seed"] as const) {
    const wanted = settings[name];
    const stored = state.settings[name];
    if (wanted === undefined || wanted === stored) continue;
    const message =
      `The sandbox's state has ${name} ${stored}, not ${wanted}. ` +
      `Leave the setting out, or delete the state: integ sandbox reset`;
    throw Object.assign(new Error(message), { code: "settings_differ" });
  }
}

export interface RunningSandbox {
  /** The document of `sandbox start -o json`, with a new legacy bearer token. */
  describe(): SandboxDescription;
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
  const code = errorCode(error);
  const message =
    code === "EADDRINUSE" ? `Port ${port} is in use already.` : `Port ${port} cannot be listened on (${code}).`;
  return Object.assign(new Error(message, { cause: error }), { code });
}

const controlled: HostSettings["control"] = async (host, request) =>
  (await import("./control.ts")).control(host, request);

function hostOf(region: Region, given: { settings: SandboxSettings; store: Store; state: State }): Host {
  const { settings, store, state } = given;
  const random = seededRandom(state.settings.seed + regions.indexOf(region));
  const plan = new FaultPlan({ specs: settings.faults ?? [], random });
  return new Host({ region, store, plan, control: controlled, log: settings.log, now: settings.now ?? Date.now });
}

/**
 * Starts both hosts on 127.0.0.1.
 * @throws Error, such as one with code `bad_setting`, `bad_fault`, `settings_differ`, `state_damaged` or
 * `state_folder`, or with the code of a port that cannot be used, such as `EADDRINUSE`
 */
export async function startSandbox(settings: SandboxSettings): Promise<RunningSandbox> {
  checkSettings(settings);
  const { entities, seed, now = Date.now } = settings;
  const store = new Store(settings.stateDir, () => newState({ now: now(), entities, seed }));
  const state = await store.current();
  checkStoredSettings(settings, state);
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
  return {
    describe: () => describe(store.latest(), { addresses: addressesOf(hosts), now: now() }),
    close: async () => void (await Promise.all(servers.map(close))),
  };
}

function addressesOf(hosts: { us: Host; eu: Host }): Addresses {
  return { us: hosts.us.baseUrl, eu: hosts.eu.baseUrl };
}

/** Without addresses. Creates a missing state. */
export async function describeSandbox(stateDir: string): Promise<SandboxDescription> {
  const store = new Store(stateDir, () => newState({ now: Date.now() }));
  return describe(await store.current(), { addresses: { us: null, eu: null }, now: Date.now() });
}
