// One connection to the server of a team's journal: the hosts of the address in their order, each within its share of the
// time, protected as its place asks for, and of the kind that is wanted.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import Client, { type ClientConfig } from "pg/lib/client.js";
import { Failure } from "../../errors.ts";
import { type Address, type Environment, type Host, type SessionKind } from "./address.ts";
import { protection } from "./certificates.ts";
import { connectionWords, LostConnection, serverErrorOf } from "./failures.ts";
import { passwordFor } from "./password.ts";

export interface Surroundings {
  readonly env: Environment;
  readonly home: string;
  /** Name of the user of this machine: the role if nothing else names one. */
  readonly user: string;
}

/** What is known of the server at the other end. */
export interface Server {
  readonly isReadOnly: boolean;
  readonly isStandby: boolean;
  readonly encoding: string;
}

export interface Connected {
  readonly client: Client;
  readonly server: Server;
}

/** The whole search for a server takes no longer: with the program's start, a command ends within 5 s. */
const limitMs = 4500;

/**
 * @throws LostConnection if no host can be reached; Failure `usage` for what cannot be read here or needs a password that
 * is nowhere; the server's own error if it refuses
 */
export async function connect(address: Address, surroundings: Surroundings): Promise<Connected> {
  const hosts = address.hosts.length > 0 ? address.hosts : [localServer(address.port)];
  const end = performance.now() + limitMs;
  let met: readonly unknown[] = [];
  for (let round = 0; ; round += 1) {
    const found = await search(hosts, { address, surroundings, end });
    if (!Array.isArray(found)) return found;
    // After the last pause there may be no time to ask anyone: then what they said before it counts.
    if (found.length > 0) met = found;
    const pause = 50 * 2 ** Math.min(round, 3) * (0.5 + Math.random());
    if (!found.some(isSoonOver) || performance.now() + pause > end) throw whyNone(hosts, met, address.sessionKind);
    await sleep(pause);
  }
}

/** A server that starts, or all of whose connections are in use, may have one in a moment. */
function isSoonOver(met: unknown): boolean {
  return /^(?:53300|57P03)/.test(serverErrorOf(met)?.code ?? "");
}

/** @returns the first that fits, or what each of them said instead */
async function search(
  hosts: readonly Host[],
  { address, surroundings, end }: Omit<Attempt, "limitMs"> & { readonly end: number },
): Promise<Connected | unknown[]> {
  const met: unknown[] = [];
  for (const kind of kindsInTurn(address.sessionKind)) {
    for (const [index, host] of hosts.entries()) {
      const share = (end - performance.now()) / (hosts.length - index);
      if (share <= 0) break;
      try {
        const connected = await connectTo(host, { address, surroundings, limitMs: share });
        if (isOfKind(connected.server, kind)) return connected;
        hangUp(connected.client);
        met.push(
          new LostConnection(`${host.name}:${host.port} is ${connected.server.isReadOnly ? "" : "not "}read-only`),
        );
      } catch (error) {
        // What the server itself refuses, another host of the same cluster refuses too; a starting one does not count.
        const refusal = serverErrorOf(error);
        if (error instanceof Failure || (refusal && !/^(?:57|53|08)/.test(refusal.code))) throw error;
        met.push(error);
      }
    }
  }
  return met;
}

function whyNone(hosts: readonly Host[], met: readonly unknown[], wanted: SessionKind): unknown {
  if (hosts.length === 1 && serverErrorOf(met[0])) return met[0];
  const words = met.map((error, index) => {
    const said = error instanceof LostConnection ? error.message : connectionWords(error);
    const host = hosts[index % hosts.length];
    return hosts.length === 1 || error instanceof LostConnection ? said : `${host?.name}:${host?.port}: ${said}`;
  });
  const which = wanted === "any" || hosts.length === 1 ? "" : ` (none is ${wanted})`;
  return new LostConnection(
    `${[...new Set(words)].join("; ") || `no response within ${Math.ceil(limitMs / 1000)} s`}${which}`,
  );
}

/** The local server's socket, where Debian and others, or where PostgreSQL itself puts it. */
function localServer(port: number): Host {
  const folder = ["/var/run/postgresql", "/tmp"].find((path) => existsSync(join(path, `.s.PGSQL.${port}`)));
  return { name: folder ?? "localhost", port };
}

function kindsInTurn(kind: SessionKind): SessionKind[] {
  return kind === "prefer-standby" ? ["standby", "any"] : [kind];
}

function isOfKind({ isReadOnly, isStandby }: Server, kind: SessionKind): boolean {
  if (kind === "read-write") return !isReadOnly;
  if (kind === "read-only") return isReadOnly;
  if (kind === "primary") return !isStandby;
  return kind !== "standby" || isStandby;
}

interface Attempt {
  readonly address: Address;
  readonly surroundings: Surroundings;
  readonly limitMs: number;
}

async function connectTo(host: Host, { address, surroundings, limitMs: share }: Attempt): Promise<Connected> {
  const config = configOf(host, address, surroundings);
  const client = new Client(config);
  // PGOPTIONS, which pg adds by itself: start-up options do not pass through PgBouncer.
  client.connectionParameters.options = undefined;
  client.on("error", () => {}); // each statement that it ends says so
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new LostConnection(`no response within ${Math.ceil(share / 1000)} s`)), share);
  });
  try {
    return await Promise.race([late, greet(client)]);
  } catch (error) {
    hangUp(client);
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

async function greet(client: Client): Promise<Connected> {
  await client.connect();
  const { rows } = await client.query(
    `SELECT current_setting('transaction_read_only') = 'on' AS read_only, pg_is_in_recovery() AS standby,
            current_setting('server_encoding') AS encoding`,
  );
  const [row] = rows;
  const server = {
    isReadOnly: row?.read_only === true,
    isStandby: row?.standby === true,
    encoding: String(row?.encoding),
  };
  return { client, server };
}

/** Ends a connection without waiting for anyone. */
export function hangUp(client: Client): void {
  client.end().catch(() => {});
  client.connection.stream.destroy();
}

function configOf(host: Host, address: Address, { env, home, user: ownName }: Surroundings): ClientConfig {
  const user = address.user ?? ownName;
  const database = address.database ?? user;
  const found = passwordFor(address, { host, database, user, env, home });
  return {
    host: host.name,
    port: host.port,
    user,
    database,
    // Asked for only if the server wants one.
    password: async () => {
      if (found.password !== undefined) return found.password;
      throw new Failure("usage", `The journal's server requires a password for the role ${user}, and none was found.`, {
        meaning: `Nothing was sent and nothing changed.${found.ignored === undefined ? "" : ` ${found.ignored}.`}`,
        hint: "Set PGPASSWORD, or add a line to ~/.pgpass.",
      });
    },
    ssl: protection(host, address, home),
    sslnegotiation: "postgres",
    application_name: address.applicationName ?? "integ",
    keepAlive: true,
  };
}
