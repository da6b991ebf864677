// Starts a real PostgreSQL in a temporary folder, as an ordinary user, on a socket and on loopback, and PgBouncer for it.
import { teamKey } from "./team-journal.ts";
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { databasesFolder } from "./databases-folder.ts";

/** The role of the tests. Its password is valid only on servers in temporary folders. */
export const role = { name: "integ", password: "of-a-test" } as const;

/** The environment variables of a team's machine, except INTEG_JOURNAL. */
export const teamAccess = { PGPASSWORD: role.password, INTEG_JOURNAL_KEY: teamKey } as const;

function newestBinaries(): string | undefined {
  const base = "/usr/lib/postgresql";
  const versions = existsSync(base) ? readdirSync(base).sort((a, b) => Number(b) - Number(a)) : [];
  const found = [...versions.map((version) => join(base, version, "bin")), ...(process.env.PATH ?? "").split(":")];
  return found.find((folder) => existsSync(join(folder, "initdb")) && existsSync(join(folder, "postgres")));
}

const binaries = newestBinaries();
const isRoot = process.geteuid?.() === 0;

export function askPsql(
  address: string,
  { password, text }: { readonly password: string; readonly text: string },
): string {
  const env = { PATH: process.env.PATH ?? "", PGPASSWORD: password };
  return execFileSync(join(binaries!, "psql"), ["-X", "-A", "-t", "-c", text, address], { encoding: "utf8", env });
}

/** PostgreSQL refuses to run as root: a test run by root starts it as the user `postgres`. */
const account = isRoot ? accountOf("postgres") : undefined;

function accountOf(name: string): { readonly uid: number; readonly gid: number } | undefined {
  const [uid, gid] = ["-u", "-g"].map((flag) => spawnSync("id", [flag, name], { encoding: "utf8" }).stdout.trim());
  return uid && gid ? { uid: Number(uid), gid: Number(gid) } : undefined;
}

const bouncer = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/usr/local/bin/pgbouncer"].find((path) =>
  existsSync(path),
);

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address ? address.port : 0));
    });
  });
}

function giveToServer(path: string): void {
  if (account) chownSync(path, account.uid, account.gid);
}

function run(words: readonly [string, ...string[]], env: Readonly<Record<string, string>> = {}): void {
  const [file, ...rest] = words;
  execFileSync(file, rest, {
    stdio: "pipe",
    cwd: "/",
    env: { PATH: process.env.PATH ?? "", LC_ALL: "C.UTF-8", ...env },
    ...account,
  });
}

export interface PostgresOptions {
  readonly settings?: readonly string[];
  readonly standbyOf?: PostgresServer;
  readonly encoding?: string;
}

export class PostgresServer {
  readonly folder: string;
  readonly port: number;
  #process: ChildProcess | undefined;

  private constructor(folder: string, port: number) {
    this.folder = folder;
    this.port = port;
  }

  static async start({ settings = [], standbyOf, encoding = "UTF8" }: PostgresOptions = {}): Promise<PostgresServer> {
    const server = await PostgresServer.#inNewFolder();
    if (standbyOf !== undefined) {
      const from = ["-h", "127.0.0.1", "-p", String(standbyOf.port), "-U", "postgres"];
      run([join(binaries!, "pg_basebackup"), "-D", server.data, "-R", "--checkpoint=fast", "--no-sync", ...from]);
    } else if (encoding === "UTF8") {
      run(["cp", "-r", await PostgresServer.#template(), server.data]);
    } else server.#initialize(encoding);
    server.#configure(settings);
    await server.up();
    return server;
  }

  static async #inNewFolder(): Promise<PostgresServer> {
    // Prefers a folder in memory, because the tests do not measure the speed of syncs.
    const folder = mkdtempSync(join(databasesFolder(), "integ-pg-"));
    chmodSync(folder, 0o755);
    giveToServer(folder);
    return new PostgresServer(folder, await freePort());
  }

  /** The initial data of UTF-8 servers, with the tests' role and database. All processes of a run share it. */
  static async #template(): Promise<string> {
    const data = join(process.env.INTEG_TEST_POSTGRES!, "data");
    if (existsSync(data)) return data;
    const server = await PostgresServer.#inNewFolder();
    server.#initialize("UTF8");
    server.#configure([]);
    await server.up();
    await server.sql(`CREATE ROLE ${role.name} LOGIN PASSWORD '${role.password}'`);
    await server.sql(`CREATE DATABASE ${role.name} OWNER ${role.name}`);
    await server.stop("SIGINT");
    try {
      renameSync(server.data, data);
    } catch {
      // Another process of the run created the folder first.
    }
    await server.remove();
    return data;
  }

  #initialize(encoding: string): void {
    const options = ["--no-sync", "--auth=trust", "--username=postgres", "--locale=C", `--encoding=${encoding}`];
    run([join(binaries!, "initdb"), "-D", this.data, ...options]);
  }

  #configure(settings: readonly string[]): void {
    const lines = [
      `port = ${this.port}`,
      "listen_addresses = '127.0.0.1'",
      `unix_socket_directories = '${this.folder}'`,
      "max_connections = 200",
      "shared_buffers = 32MB",
      "logging_collector = off",
      // Shared memory is in the server's folder, so that a killed server leaves none elsewhere.
      "dynamic_shared_memory_type = mmap",
      ...settings,
    ];
    appendFileSync(join(this.data, "postgresql.conf"), `${lines.join("\n")}\n`);
    const rules = [
      "local all all trust",
      "host replication all 127.0.0.1/32 trust",
      "host all postgres 127.0.0.1/32 trust",
      "host all all 127.0.0.1/32 scram-sha-256",
    ];
    writeFileSync(join(this.data, "pg_hba.conf"), `${rules.join("\n")}\n`);
  }

  get data(): string {
    return join(this.folder, "data");
  }

  async up(): Promise<void> {
    const child = spawn(join(binaries!, "postgres"), ["-D", this.data], {
      stdio: ["ignore", "ignore", "pipe"],
      cwd: "/",
      env: { PATH: process.env.PATH ?? "", LC_ALL: "C.UTF-8" },
      ...account,
    });
    let stderr = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr = (stderr + text).slice(-4000)));
    this.#process = child;
    for (let round = 0; round < 400; round += 1) {
      if (child.exitCode !== null) throw new Error(`postgres ended: ${stderr}`);
      if (
        await this.sql("SELECT 1").then(
          () => true,
          () => false,
        )
      )
        return;
      await sleep(25);
    }
    throw new Error(`postgres does not answer: ${stderr}`);
  }

  async kill(): Promise<void> {
    const child = this.#process;
    if (child?.pid === undefined) return;
    const ended = new Promise((resolve) => child.once("close", resolve));
    const below = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "latin1").trim().split(" ");
    for (const pid of [child.pid, ...below.filter(Boolean).map(Number)]) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // The process has already ended.
      }
    }
    await ended;
    this.#process = undefined;
    rmSync(join(this.data, "postmaster.pid"), { force: true });
  }

  async stop(signal: "SIGQUIT" | "SIGINT" = "SIGQUIT"): Promise<void> {
    const child = this.#process;
    if (child === undefined) return;
    const ended = new Promise((resolve) => child.once("close", resolve));
    child.kill(signal);
    await ended;
    this.#process = undefined;
  }

  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  give(path: string): void {
    giveToServer(path);
  }

  async promote(): Promise<void> {
    await this.sql("SELECT pg_promote()");
  }

  async sql(text: string, database = "postgres"): Promise<readonly Record<string, unknown>[]> {
    const client = new Client({
      host: this.folder,
      port: this.port,
      user: "postgres",
      database,
      password: async () => "",
      ssl: false,
      sslnegotiation: "postgres",
      application_name: "test",
      keepAlive: false,
    });
    client.on("error", () => {});
    try {
      await client.connect();
      return (await client.query(text)).rows;
    } finally {
      await client.end().catch(() => {});
    }
  }

  /** An address without the password, which is in PGPASSWORD. */
  address(schema?: string): string {
    return addressAt(`127.0.0.1:${this.port}`, schema);
  }
}

/** @param hosts one or more hosts with their ports, separated by commas */
export function addressAt(hosts: string, schema?: string): string {
  const query = schema === undefined ? "" : `?options=-csearch_path%3D${schema}`;
  return `postgresql://${role.name}@${hosts}/${role.name}${query}`;
}

export type PoolMode = "session" | "transaction" | "statement";

export class Bouncer {
  readonly port: number;
  readonly #child: ChildProcess;
  readonly #folder: string;

  private constructor(port: number, child: ChildProcess, folder: string) {
    this.port = port;
    this.#child = child;
    this.#folder = folder;
  }

  /** The default is transaction mode, in which each transaction can use a different server connection. */
  static async start(server: PostgresServer, mode: PoolMode = "transaction"): Promise<Bouncer> {
    const folder = mkdtempSync(join(tmpdir(), "integ-bouncer-"));
    chmodSync(folder, 0o755);
    mkdirSync(join(folder, "run"));
    const port = await freePort();
    writeFileSync(join(folder, "users.txt"), `"${role.name}" "${role.password}"\n`);
    const settings = [
      "[databases]",
      `* = host=127.0.0.1 port=${server.port}`,
      "[pgbouncer]",
      "listen_addr = 127.0.0.1",
      `listen_port = ${port}`,
      "auth_type = scram-sha-256",
      `auth_file = ${join(folder, "users.txt")}`,
      `pool_mode = ${mode}`,
      "default_pool_size = 4",
      "max_client_conn = 300",
      "unix_socket_dir =",
    ];
    writeFileSync(join(folder, "pgbouncer.ini"), `${settings.join("\n")}\n`);
    for (const name of ["", "run", "users.txt", "pgbouncer.ini"]) giveToServer(join(folder, name));
    const child = spawn(bouncer!, ["-q", join(folder, "pgbouncer.ini")], { stdio: "ignore", cwd: "/", ...account });
    const made = new Bouncer(port, child, folder);
    await sleep(300);
    return made;
  }

  async remove(): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once("close", resolve));
    this.#child.kill("SIGKILL");
    await ended;
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
