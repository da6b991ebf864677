// A team's journal in a PostgreSQL of its own, beside the journal in a file: a creation, a long list, a hundred at the same time.
import { execFileSync, spawn } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { sideBySide, timed } from "./measure.mjs";

const base = "/usr/lib/postgresql";

function newestServer() {
  const versions = existsSync(base) ? readdirSync(base).sort((a, b) => b - a) : [];
  return versions.map((version) => join(base, version, "bin")).find((folder) => existsSync(join(folder, "initdb")));
}

/** As an ordinary user: PostgreSQL does not run as the superuser. */
function account() {
  if (process.geteuid?.() !== 0) return {};
  const [uid, gid] = ["-u", "-g"].map((flag) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" })));
  return { uid, gid };
}

/** @returns nothing if there is no PostgreSQL */
async function startPostgres() {
  const binaries = newestServer();
  if (binaries === undefined) return undefined;
  const folder = mkdtempSync(join(tmpdir(), "integ-bench-pg-"));
  const own = account();
  if (own.uid !== undefined) chownSync(folder, own.uid, own.gid);
  const data = join(folder, "data");
  execFileSync(join(binaries, "initdb"), ["-D", data, "-A", "trust", "-U", "integ", "--locale=C", "-E", "UTF8"], {
    cwd: "/",
    stdio: "pipe",
    ...own,
  });
  const words = ["-D", data, "-k", folder, "-c", "listen_addresses="];
  const child = spawn(join(binaries, "postgres"), words, { cwd: "/", stdio: "ignore", ...own });
  const sql = (text) =>
    execFileSync(join(binaries, "psql"), ["-h", folder, "-U", "integ", "-qtA", "-d", "integ"], {
      input: text,
      stdio: ["pipe", "pipe", "pipe"],
    });
  for (let round = 0; round < 200; round += 1) {
    await sleep(50);
    try {
      execFileSync(join(binaries, "createdb"), ["-h", folder, "-U", "integ", "integ"], { stdio: "pipe" });
      break;
    } catch {
      // it does not answer yet
    }
  }
  return {
    address: `postgresql://integ@/integ?host=${encodeURIComponent(folder)}`,
    sql,
    async stop() {
      const ended = new Promise((resolve) => child.once("close", resolve));
      child.kill("SIGQUIT");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function startSandbox(workplace) {
  const { command, env } = workplace.integ(["sandbox", "start", "-o", "json"]);
  const child = spawn(command[0], command.slice(1), { env, stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  const us = await new Promise((resolve) => {
    child.stdout.on("data", (chunk) => {
      text += chunk;
      if (text.endsWith("\n")) resolve(JSON.parse(text).us);
    });
  });
  return { us, stop: () => child.kill("SIGINT") };
}

/** Settled entries, as many as asked for, made by the server from one that integ wrote. */
function fill({ sql }, count) {
  sql(`INSERT INTO integ_entries SELECT lpad(to_hex(n), 10, '0'), operation, state, is_settled, profile, base_url,
         'k' || n, fingerprint, parent, replaces, resources, updated_at, content, hash, position, epoch
       FROM (SELECT * FROM integ_entries WHERE is_settled LIMIT 1) AS one, generate_series(1, ${count}) AS n;
       ANALYZE integ_entries`);
}

export async function team({ workplace, plan }) {
  const server = await startPostgres();
  if (server === undefined) {
    console.log("  skipped: no PostgreSQL here (initdb)");
    return [];
  }
  const sandbox = await startSandbox(workplace);
  try {
    const { base_url, organization_id, access_key_secret: key, access_token_endpoint: endpoint } = sandbox.us;
    const add = [
      "profiles",
      "add",
      "bench",
      "--region",
      "us",
      "--base-url",
      base_url,
      "--organization-id",
      organization_id,
    ];
    const typed = workplace.integ([
      ...add,
      "--api-key-stdin",
      "--access-token-endpoint",
      endpoint,
      "--no-verify",
      "--use",
    ]);
    execFileSync(typed.command[0], typed.command.slice(1), { env: typed.env, input: key, stdio: "pipe" });
    const journal = { INTEG_JOURNAL: server.address };
    const create = [
      "keys",
      "create",
      "--name",
      "bench",
      "--no-name-marker",
      "--new",
      "--expires-in",
      "1d",
      "--secret-command",
      "cat >/dev/null",
    ];
    await timed(workplace.integ(["journal", "init"], { env: journal }));
    const creation = await sideBySide(
      { file: workplace.integ(create), team: workplace.integ(create, { env: journal }) },
      { rounds: plan.teamRounds },
    );
    const started = performance.now();
    const many = workplace.integ(create, { env: journal });
    await Promise.all(Array.from({ length: plan.teamAtOnce }, () => timed(many)));
    const seconds = (performance.now() - started) / 1000;
    fill(server, plan.teamEntries);
    const list = await sideBySide(
      { version: workplace.integ(["--version"]), list: workplace.integ(["journal", "list"], { env: journal }) },
      { rounds: plan.teamRounds },
    );
    const beyond = list.list.seconds.median - list.version.seconds.median;
    const entries = plan.teamEntries.toLocaleString("en");
    return [
      { what: "creation in a team's journal", against: "in a file", ...creation.team, bar: { most: 1.5 } },
      {
        what: `journal list, ${entries} entries, beyond the start`,
        against: "integ --version",
        ...list.list,
        seconds: { median: beyond },
        bar: { mostSeconds: 0.2 },
        note: `${list.list.seconds.median.toFixed(2)} s in all`,
      },
      {
        what: `${plan.teamAtOnce} creations at the same time`,
        against: "one",
        seconds: { ...creation.team.seconds, median: seconds },
        ratio: { ...creation.team.ratio, median: seconds / creation.team.seconds.median },
        note: `all done, in ${seconds.toFixed(1)} s`,
      },
    ];
  } finally {
    sandbox.stop();
    await server.stop();
  }
}
