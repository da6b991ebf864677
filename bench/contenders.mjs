// Who is measured: `integ` as a person starts it, and what would be used in its place, as command lines.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { tokenOf } from "./page-server.mjs";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
const script = join(root, "bin", "integ.js");
const key = "bench-key";
/** Rows per page: the largest (§8). */
export const limit = 500;

/** A folder that is removed after the benchmark: a home without configuration, and the lists of addresses for curl. */
export class Workplace {
  /** @param server a page server that runs */
  constructor({ port }) {
    this.port = port;
    this.use(process.execPath);
  }

  /** In a folder that nothing was done in. @param node the file of the Node that is measured from now on */
  use(node) {
    this.remove();
    this.folder = mkdtempSync(join(tmpdir(), "integ-bench-"));
    const { PATH, LANG } = process.env;
    // Nothing else of the environment: NODE_EXTRA_CA_CERTS alone costs Node 20 three times its start.
    this.env = { PATH, LANG: LANG ?? "C.UTF-8", HOME: this.folder };
    const { status, stdout, error } = spawnSync(node, ["-p", "process.versions.node"], { encoding: "utf8" });
    if (status !== 0) throw new Error(`--node: ${node} is not a Node binary`, { cause: error });
    this.node = node;
    this.nodeVersion = stdout.trim();
  }

  /** @param most of Node 20, and of Node 24 if it differs @returns what is promised of a ratio with this Node; nothing if it is not */
  bar([older, newer] = []) {
    const most = Number.parseInt(this.nodeVersion, 10) >= 24 ? (newer ?? older) : older;
    return most === undefined ? undefined : { most };
  }

  /** Processor time that the server has used so far. */
  async serverSeconds() {
    const answer = await fetch(`http://127.0.0.1:${this.port}/processor-time`);
    return (await answer.json()).microseconds / 1e6;
  }

  /** @param list `rows` in all, `delayMs` before each page, the `kind` of row (page-server.mjs) */
  baseUrl({ rows, delayMs = 0, kind = "usual" }) {
    return `http://127.0.0.1:${this.port}/${rows}/${delayMs}/${kind}`;
  }

  bareNode() {
    return { name: "node -e 0", command: [this.node, "-e", "0"], env: this.env };
  }

  /** @param nodeWords options of Node itself */
  integ(words, { list, nodeWords = [], env = {} } = {}) {
    const service =
      list === undefined ? {} : { INTEG_REGION: "us", INTEG_BASE_URL: this.baseUrl(list), INTEG_API_KEY: key };
    return {
      name: `integ ${words.join(" ")}`,
      command: [this.node, ...nodeWords, script, ...words],
      env: { ...this.env, ...service, ...env },
    };
  }

  /** A client whose secret goes to a file, another one at each run. @param url of an account server @param env further variables */
  creation({ url, env = {} }) {
    const words = ["oauth-clients", "create", "--service-account", "sa_1", "--scope", "entity:read", "--new", "--json"];
    const service = { INTEG_REGION: "us", INTEG_BASE_URL: url, INTEG_API_KEY: key };
    const contender = this.integ(words, { env: { ...service, ...env } });
    const folder = mkdtempSync(join(this.folder, "secrets-"));
    let made = 0;
    return {
      ...contender,
      get command() {
        made += 1;
        return [...contender.command, "--secret-file", join(folder, String(made))];
      },
    };
  }

  /** One curl, one connection, every address known beforehand: the floor of a walk that goes page by page. */
  curl(list) {
    return { name: "one curl, all pages", command: ["curl", "-sS", "-K", this.#addresses(list)], env: this.env };
  }

  curlIntoJq(list) {
    const line = `curl -sS -K ${this.#addresses(list)} | jq -c '.data[]'`;
    return { name: "one curl | jq", command: ["bash", "-o", "pipefail", "-c", line], env: this.env };
  }

  /** What a person would write. */
  shellLoop(list) {
    const line = `token=
while :; do
  page=$(curl -sS -u apikey:${key} "${this.baseUrl(list)}/v1/entities?limit=${limit}\${token:+&page_token=$token}") || exit 1
  jq -c '.data[]' <<<"$page" || exit 1
  [ "$(jq -r .has_more <<<"$page")" = true ] || break
  token=$(jq -r .next_page_token <<<"$page")
done`;
    return { name: "shell loop of curl and jq", command: ["bash", "-c", line], env: this.env };
  }

  #addresses(list) {
    const base = `${this.baseUrl(list)}/v1/entities?limit=${limit}`;
    const lines = [`user = "apikey:${key}"`];
    for (let page = 0; page * limit < list.rows; page += 1)
      lines.push(`url = "${base}${page === 0 ? "" : `&page_token=${tokenOf(page)}`}"`);
    const file = join(this.folder, `curl-${list.rows}-${list.delayMs ?? 0}-${list.kind ?? "usual"}`);
    writeFileSync(file, `${lines.join("\n")}\n`);
    return file;
  }

  remove() {
    // A program that has just ended may still be putting its cache there.
    if (this.folder) rmSync(this.folder, { recursive: true, force: true, maxRetries: 10 });
  }
}
