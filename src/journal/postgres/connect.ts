// Connects to the server of a team's journal. Tries the address's hosts in order, each within its share of the time limit.
import { Socket } from "node:net";
import { PassThrough } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, type ClientConfig } from "pg";
import pgpass from "pgpass";
import { Failure } from "../../errors.ts";
import { nothingSent } from "../store.ts";
import type { Address, Host } from "./address.ts";
import { connectionWords, LostConnection, serverErrorOf, withTimeout } from "./failures.ts";
import { tlsTo } from "./tls.ts";

export interface Server {
  readonly isReadOnly: boolean;
  readonly encoding: string;
}

export interface Connected {
  readonly client: Client;
  readonly server: Server;
  disconnect(): void;
}

/** Limits all attempts together, so that a command does not wait long for an unreachable server. */
const limitMs = 4500;

/**
 * @throws LostConnection if no host can be reached, or none that is writable; Failure `usage` for unusable settings; the
 * server's error if it refuses
 */
export async function connect(address: Address): Promise<Connected> {
  const { hosts, mustBeWritable } = address;
  const end = performance.now() + limitMs;
  let errors: readonly unknown[] = [];
  for (let round = 0; ; round += 1) {
    const roundErrors: unknown[] = [];
    for (const [index, host] of hosts.entries()) {
      const share = (end - performance.now()) / (hosts.length - index);
      if (share <= 0) break;
      try {
        const connected = await connectTo(host, address, share);
        if (!mustBeWritable || !connected.server.isReadOnly) return connected;
        connected.disconnect();
        roundErrors.push(new LostConnection(`${nameOf(host)} is read-only`));
      } catch (error) {
        // Other hosts of the cluster would refuse too, unless this host is overloaded, starting or stopping.
        const refusal = serverErrorOf(error);
        if (error instanceof Failure || (refusal && !/^(?:57|53|08)/.test(refusal.code))) throw error;
        roundErrors.push(error);
      }
    }
    const pause = 50 * 2 ** Math.min(round, 3) * (0.5 + Math.random());
    // A round without an attempt keeps the errors of the previous round.
    if (roundErrors.length > 0) errors = roundErrors;
    if (!roundErrors.some(mayConnectSoon) || performance.now() + pause > end) throw unreachable(address, errors);
    await sleep(pause);
  }
}

/** True if the server is starting or has no free connection. */
function mayConnectSoon(error: unknown): boolean {
  return /^(?:53300|57P03)/.test(serverErrorOf(error)?.code ?? "");
}

function unreachable({ hosts, mustBeWritable }: Address, errors: readonly unknown[]): unknown {
  if (hosts.length === 1 && serverErrorOf(errors[0])) return errors[0];
  const words = errors.map((error, index) => {
    if (error instanceof LostConnection) return error.message;
    return `${hosts.length === 1 ? "" : `${nameOf(hosts[index]!)}: `}${connectionWords(error)}`;
  });
  const what = [...new Set(words)].join("; ");
  return new LostConnection(`${what}${mustBeWritable && hosts.length > 1 ? " (none is read-write)" : ""}`);
}

function nameOf({ name, port }: Host): string {
  return `${name}:${port}`;
}

async function connectTo(host: Host, address: Address, share: number): Promise<Connected> {
  const socket = new Socket();
  const client = new Client({ ...configOf(host, address), stream: () => socket });
  const disconnect = (): void => {
    client.end().catch(() => {});
    socket.destroy();
  };
  client.on("error", () => {}); // The interrupted statement reports the error.
  try {
    return { client, server: await withTimeout(share, readServer(client)), disconnect };
  } catch (error) {
    disconnect();
    throw error;
  }
}

async function readServer(client: Client): Promise<Server> {
  await client.connect();
  const { rows } = await client.query<Server>(
    `SELECT current_setting('transaction_read_only') = 'on' AS "isReadOnly",
            current_setting('server_encoding') AS encoding`,
  );
  return rows[0]!;
}

function configOf(host: Host, address: Address): ClientConfig {
  const { user = "", database = user } = address;
  return {
    host: host.name,
    port: host.port,
    user,
    database,
    password: async () => address.password ?? passwordInFile({ host: host.name, port: host.port, database, user }),
    ssl: tlsTo(host, address),
    sslnegotiation: "postgres",
    application_name: address.applicationName,
    keepAlive: true,
  };
}

async function passwordInFile(connection: Parameters<typeof pgpass>[0]): Promise<string> {
  const warnings = new PassThrough({ encoding: "utf8" });
  pgpass.warnTo(warnings);
  const found = await new Promise<string | undefined>((resolve) => pgpass(connection, resolve));
  if (found !== undefined) return found;
  const warning = ((warnings.read() as string | null) ?? "").replace(/^WARNING: /, "").trim();
  throw new Failure(
    "usage",
    `The journal's server requires a password for the role ${connection.user}, and none was found.`,
    {
      meaning: `${nothingSent}${warning && ` The ${warning}.`}`,
      hint: "Set PGPASSWORD, or add a line to ~/.pgpass.",
    },
  );
}
