// Builds the measured commands: `integ` as users run it, and the alternatives.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { tokenOf } from "./service.mjs";

export const root = dirname(import.meta.dirname);
const key = "bench-key";

/** The API's maximum of rows per page (§8). */
export const pageRows = 500;

export async function startProcess(command, { env, isComplete }) {
  const child = spawn(command[0], command.slice(1), { env, stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.once("close", resolve));
  let text = "";
  await new Promise((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`${command.join(" ")} ended with ${code}`)));
    child.stdout.setEncoding("utf8").on("data", (chunk) => {
      text += chunk;
      if (isComplete(text)) resolve();
    });
  });
  const stop = () => {
    child.kill("SIGINT");
    return ended;
  };
  return { text, stop };
}

/** A temporary folder with a home without configuration, and with the files of the measurements. */
export class Workplace {
  constructor({ node, port }) {
    this.node = node;
    this.port = port;
    this.folder = mkdtempSync(join(tmpdir(), "integ-bench-"));
    // Other variables are omitted, because NODE_EXTRA_CA_CERTS slows down every start of Node.
    this.env = { PATH: process.env.PATH, LANG: process.env.LANG ?? "C.UTF-8", HOME: this.folder };
  }

  remove() {
    // A process that has just exited may still be writing its cache.
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 10 });
  }

  path(...parts) {
    return join(this.folder, ...parts);
  }

  write(name, text) {
    const file = this.path(name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    return file;
  }

  bareNode() {
    return { command: [this.node, "-e", "0"], env: this.env };
  }

  integ(words, env = {}) {
    return { command: [this.node, join(root, "bin", "integ.js"), ...words], env: { ...this.env, ...env } };
  }

  run(words, env) {
    const { command, env: all } = this.integ(words, env);
    const how = { env: all, encoding: "utf8", maxBuffer: 2 ** 30 };
    const { status, stdout, stderr } = spawnSync(command[0], command.slice(1), how);
    if (status !== 0) throw new Error(`integ ${words.join(" ")} ended with ${status}: ${stderr}`);
    return stdout;
  }

  #service(path) {
    return { INTEG_REGION: "us", INTEG_BASE_URL: `http://127.0.0.1:${this.port}${path}`, INTEG_API_KEY: key };
  }

  /** Every creation succeeds in this account. */
  account() {
    const organization = "7d4f7a2e-2d9c-4c1c-9b53-0a3c3f1f0b11";
    return { ...this.#service("/account"), INTEG_ACCESS_TOKEN: "bench", INTEG_ORGANIZATION_ID: organization };
  }

  list({ rows, delayMs = 0 }) {
    return this.#service(`/lists/${rows}/${delayMs}`);
  }

  allRows(list, words) {
    return this.integ(["entities", "list", "--all", "--limit", String(pageRows), ...words], this.list(list));
  }

  /** Each run creates a client, and writes its secret to a new file. */
  creation(env) {
    const words = ["oauth-clients", "create", "--service-account", "sa_1", "--scope", "entity:read", "--new", "--json"];
    const contender = this.integ(words, { ...this.account(), ...env });
    const folder = mkdtempSync(this.path("secrets-"));
    let runs = 0;
    return {
      ...contender,
      get command() {
        runs += 1;
        return [...contender.command, "--secret-file", join(folder, String(runs))];
      },
    };
  }

  /** As a baseline, curl fetches the pages over one connection, with all URLs known in advance. */
  curl(list) {
    return { command: ["curl", "-sS", "-K", this.#urls(list)], env: this.env };
  }

  curlIntoJq(list) {
    const line = `curl -sS -K ${this.#urls(list)} | jq -c '.data[]'`;
    return { command: ["bash", "-o", "pipefail", "-c", line], env: this.env };
  }

  shellLoop(list) {
    const line = `token=
while :; do
  page=$(curl -sS -u apikey:${key} "${this.#entities(list)}\${token:+&page_token=$token}") || exit 1
  jq -c '.data[]' <<<"$page" || exit 1
  [ "$(jq -r .has_more <<<"$page")" = true ] || break
  token=$(jq -r .next_page_token <<<"$page")
done`;
    return { command: ["bash", "-c", line], env: this.env };
  }

  #entities(list) {
    return `${this.list(list).INTEG_BASE_URL}/v1/entities?limit=${pageRows}`;
  }

  #urls({ rows, delayMs = 0 }) {
    const lines = [`user = "apikey:${key}"`];
    for (let page = 0; page * pageRows < rows; page += 1)
      lines.push(`url = "${this.#entities({ rows, delayMs })}${page === 0 ? "" : `&page_token=${tokenOf(page)}`}"`);
    return this.write(`curl-${rows}-${delayMs}`, `${lines.join("\n")}\n`);
  }

  /** @returns the peak memory of one run, in megabytes (10⁶ bytes) */
  async peakMegabytes({ command: [node, ...words], env }, measure) {
    const file = this.path("peak");
    const hook = join(import.meta.dirname, "peak-memory.cjs");
    await measure({ command: [node, "--require", hook, ...words], env: { ...env, BENCH_PEAK_FILE: file } });
    return (Number(readFileSync(file, "utf8")) * 1024) / 1e6;
  }
}
