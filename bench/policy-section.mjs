// Policies: planning many items, and rotations several at a time against one after the other, in a sandbox of our own.
import { spawn, spawnSync } from "node:child_process";
import { hash } from "node:crypto";
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sideBySide, spread, timed } from "./measure.mjs";

const day = 86_400_000;
/** Clients a service account, of the 20 that it may have. */
const clientsEach = 10;

/** @returns lines as of sections.mjs */
export async function policy({ workplace, plan }) {
  return [...(await planning({ workplace, plan })), ...(await rotating({ workplace, plan }))];
}

/** Every item is asked for with a GET of its own. */
async function planning({ workplace, plan }) {
  const world = new World(workplace, "planning");
  const items = itemsOf(plan.policyItems);
  const service = await world.serviceWith(items);
  try {
    const first = world.integ(["adopt", "oauth-client", items[0].id, "--name", items[0].name]);
    const { status, stderr } = spawnSync(first.command[0], first.command.slice(1), {
      env: first.env,
      encoding: "utf8",
    });
    if (status !== 0) throw new Error(stderr);
    adoptAll(world.path("state", "journal.ndjson"), items);
    const words = (count) => ["plan", "--json", "--file", world.policy(`${count}.yaml`, items.slice(0, count))];
    const contenders = { 1: world.integ(words(1)), [items.length]: world.integ(words(items.length)) };
    const found = await sideBySide(contenders, { rounds: plan.policyRounds });
    const line = found[items.length];
    const what = `plan of ${items.length.toLocaleString("en")} items, a GET each`;
    return [{ what, against: "plan of 1 item", ...line, bar: { mostSeconds: 3 } }];
  } finally {
    await service.stop();
  }
}

/**
 * Of each request to the service, and how many rotations at a time are compared with one after the other. The goal of 3 × is for
 * a service across a network; the less latency there is to share, the more of the time is this machine's own work. 4 is what
 * `apply` does if nothing else is said, and can save three quarters at most.
 */
const comparisons = [
  { latency: "50ms", parallel: 20, bar: { least: 3 } },
  { latency: "50ms", parallel: 4 },
  { latency: "20ms", parallel: 20 },
  { latency: "0ms", parallel: 20 },
];

/** Four requests each and 19 syncs of the disk. Several at a time share the service's latency and two thirds of the syncs. */
async function rotating({ workplace, plan }) {
  const world = new World(workplace, "rotating");
  const service = await world.serviceWith([]);
  const { us } = service;
  const names = Array.from({ length: 20 }, (_, index) => `item-${index}`);
  const accounts = [us.service_account_id, us.caller_service_account_id];
  let round = 0;
  const apply = async (parallel) => {
    // Other scopes are another client: every item is rotated.
    const scopes = round % 2 === 0 ? ["entity:read"] : ["entity:read", "organization:read"];
    round += 1;
    const items = names.map((name, index) => ({ name, account: accounts[index % 2], scopes }));
    const words = [
      "apply",
      "--yes",
      "--quiet",
      "--parallel",
      String(parallel),
      "--file",
      world.policy("p.yaml", items),
    ];
    return timed(world.integ(words));
  };
  try {
    await apply(20);
    const lines = [];
    for (const { latency, parallel: several, bar } of comparisons) {
      await service.fault(latency === "0ms" ? undefined : `* /* latency=${latency}`);
      const seconds = [];
      const ratios = [];
      for (let turn = 0; turn < plan.policyRounds; turn += 1) {
        const order = turn % 2 === 0 ? [1, several] : [several, 1];
        const took = {};
        for (const parallel of order) took[parallel] = await apply(parallel);
        seconds.push(took[1]);
        ratios.push(took[1] / took[several]);
      }
      lines.push({
        what: `20 rotations in turn, ${latency === "0ms" ? "no latency" : `${latency} a request`}`,
        against: several === 4 ? "4 at a time, the default" : `${several} at a time`,
        seconds: spread(seconds),
        ratio: spread(ratios),
        bar,
      });
    }
    return lines;
  } finally {
    await service.stop();
  }
}

/** A home, the service that it acts on, and its policies. */
class World {
  #workplace;
  #folder;
  #service = {};

  constructor(workplace, name) {
    this.#workplace = workplace;
    this.#folder = join(workplace.folder, name);
    mkdirSync(this.#folder);
  }

  path(...parts) {
    return join(this.#folder, ...parts);
  }

  integ(words) {
    const own = { INTEG_STATE_DIR: this.path("state"), INTEG_CONFIG_DIR: this.path("config"), ...this.#service };
    return this.#workplace.integ(words, { env: own });
  }

  /** @returns the path of a policy with these items */
  policy(name, items) {
    const lines = items.map(
      ({ name: item, account, scopes }) =>
        `  ${item}:\n    service_account: ${account}\n    scopes: [${scopes.join(", ")}]\n    rotate: { every: 60d, overlap: 0s }\n    secret: { file: ${item}.json, format: json }\n`,
    );
    const text = `version: 1\nunmanaged: ignore\nlimits: { changes_per_run: 100 }\noauth_clients:\n${lines.join("")}`;
    writeFileSync(this.path(name), text);
    return this.path(name);
  }

  /** A service that has the clients of the items. */
  async serviceWith(items) {
    if (items.length > 0) {
      const { stop } = await this.#start();
      await stop();
      addClients(this.path("service", "sandbox.json"), items);
    }
    const service = await this.#start();
    const { us } = service;
    this.#service = {
      INTEG_REGION: "us",
      INTEG_BASE_URL: us.base_url,
      INTEG_API_KEY: us.api_key,
      INTEG_TOKEN_ENDPOINT: us.token_endpoint,
    };
    return service;
  }

  async #start() {
    const env = { INTEG_STATE_DIR: this.path("service"), INTEG_CONFIG_DIR: this.path("config") };
    const { command, env: all } = this.#workplace.integ(["sandbox", "start", "-o", "json"], { env });
    const child = spawn(command[0], command.slice(1), { env: all, stdio: ["ignore", "pipe", "inherit"] });
    const ended = new Promise((resolve) => child.once("close", resolve));
    let text = "";
    const { us } = await new Promise((resolve) => {
      child.stdout.on("data", (chunk) => {
        text += chunk;
        if (text.endsWith("\n")) resolve(JSON.parse(text));
      });
    });
    return {
      us,
      async fault(text) {
        await fetch(us.control_url, { method: "DELETE" });
        if (text === undefined) return;
        const order = { headers: { "content-type": "application/json" }, body: JSON.stringify({ fault: text }) };
        const answer = await fetch(us.control_url, { method: "POST", ...order });
        if (!answer.ok) throw new Error(await answer.text());
      },
      stop() {
        child.kill("SIGINT");
        return ended;
      },
    };
  }
}

function itemsOf(count) {
  return Array.from({ length: count }, (_, number) => ({
    name: `item-${number}`,
    account: `sa_us_team_${Math.floor(number / clientsEach)}`,
    scopes: ["entity:read"],
    id: `oac_us_${hash("sha256", `client ${number}`).slice(0, 32)}`,
    clientId: `cid_us_${hash("sha256", `name ${number}`).slice(0, 32)}`,
  }));
}

/** Into the state of a sandbox that does not run. */
function addClients(file, items) {
  const { state } = JSON.parse(readFileSync(file, "utf8").split("\n")[0]);
  for (const id of new Set(items.map(({ account }) => account)))
    state.us.serviceAccounts.push({
      id,
      status: "active",
      permissions: ["service_account:manage", "organization:read", "entity:read"],
      assignedVersion: "2026-07-01",
    });
  for (const { id, clientId, account, scopes } of items)
    state.us.oauthClients.push({
      id,
      clientId,
      scopes,
      serviceAccountId: account,
      createdAt: Date.now() - 30 * day,
      secretHash: hash("sha256", id),
      status: "active",
      pending: null,
      cleanup: null,
    });
  const text = JSON.stringify(state);
  writeFileSync(file, `{"format":1,"sha256":"${hash("sha256", text)}","state":${text}}\n`, { mode: 0o600 });
}

/** The adoption of the first item, which the program has recorded, for each of the others. */
function adoptAll(journal, [first, ...others]) {
  const records = readFileSync(journal, "utf8").trimEnd().split("\n").slice(1);
  const { intent } = JSON.parse(records[0]);
  const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";
  const start = [...intent.id].reduce((sum, letter) => sum * 32 + alphabet.indexOf(letter), 0);
  const idOf = (number) => {
    let text = "";
    for (let rest = start + number; text.length < 10; rest = Math.floor(rest / 32)) text = alphabet[rest % 32] + text;
    return text;
  };
  let after = JSON.parse(records.at(-1)).sum;
  const lines = others.flatMap((item, index) => {
    const values = [
      [intent.id, idOf(index + 1)],
      [first.id, item.id],
      [first.clientId, item.clientId],
      [`"${first.name}"`, `"${item.name}"`],
      [`"${first.account}"`, `"${item.account}"`],
      [`\\"${first.account}\\"`, `\\"${item.account}\\"`],
    ];
    let prev;
    return records.map((record) => {
      let content = record.replace(/^\{"sum":"[0-9a-f]{16}",/, "").replace(/(?:,"after":"[0-9a-f]{16}")?\}$/, "");
      for (const [from, to] of values) content = content.replaceAll(from, to);
      if (prev !== undefined) content = content.replace(/"prev":"[0-9a-f]{64}"/, `"prev":"${prev}"`);
      prev = hash("sha256", content);
      const body = `${content},"after":"${after}"}`;
      after = hash("sha256", body).slice(0, 16);
      return `{"sum":"${after}",${body}\n`;
    });
  });
  appendFileSync(journal, lines.join(""));
}
