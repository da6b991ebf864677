// Every destination × every format × what goes wrong while it takes the secret: a rotation delivers to it and to others, the old
// client stays as long as one is missing, and a claim and a recovery end it: each holds exactly the bytes that were asked
// for, written once. A sample plays a few cells, a full run all of them.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Account } from "../support/account.ts";
import { recordFigure } from "../support/figures.mjs";
import { startGitHub } from "../support/github-server.ts";
import { journalOf } from "../support/journal-file.ts";
import { startKeyring } from "../support/keyring.ts";
import { briefKubectl, startKubernetes } from "../support/kubernetes-server.ts";
import { waitNoRealTime } from "../support/no-waits.ts";
import { Home, isOtherBinary, stayInThisProcess } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { isFull } from "../support/sample.ts";
import { type Service, startService } from "../support/service.ts";
import { startVault } from "../support/vault-server.ts";
import { type Fault, type Stores, type Target, targets } from "./delivery-targets.ts";
import { isMissing } from "../support/tools.mjs";

stayInThisProcess();
waitNoRealTime();

const withoutKeyring =
  isOtherBinary("the keychain, which needs the package's native library") || isMissing("a keyring");
const absent: Readonly<Record<string, unknown>> = {
  github: isMissing("libsodium"),
  cluster: isMissing("kubectl", "openssl"),
  keyring: withoutKeyring,
};

interface Facts {
  readonly secret: string;
  readonly clientId: string;
  readonly id: string;
  readonly account: string;
  readonly entry: string;
}

/** What a format makes of a secret, as docs/design/destinations.md says it. */
const formats: Readonly<Record<string, (facts: Facts) => string>> = {
  raw: ({ secret }) => secret,
  line: ({ secret }) => `${secret}\n`,
  json: ({ secret, clientId }) => `{"client_id":"${clientId}","client_secret":"${secret}"}\n`,
  "json-string": ({ secret }) => `"${secret}"`,
  env: ({ secret, clientId }) => `INTEG_CLIENT_ID=${clientId}\nINTEG_CLIENT_SECRET=${secret}\n`,
  "A=client_id,B=secret,C=id": ({ secret, clientId, id }) => `A=${clientId}\nB=${secret}\nC=${id}\n`,
  "template:{secret}|{client_id}|{id}|{service_account}|{profile}|{region}|{entry}|{x}": (facts) =>
    [facts.secret, facts.clientId, facts.id, facts.account, "env", "us", facts.entry, "{x}"].join("|"),
};

const formatWords = (format: string): string[] => [/^[A-Z]=/.test(format) ? "--secret-env" : "--secret-format", format];

let service: Service;
let account: Account;
let stores: Stores;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "integ-deliveries-"));
  service = await startService();
  account = new Account(service);
  const cluster = isMissing("kubectl", "openssl") ? {} : { cluster: await startKubernetes() };
  const keyring = withoutKeyring ? {} : { keyring: await startKeyring(folder) };
  stores = { vault: await startVault(), github: await startGitHub(), ...cluster, ...keyring };
  if (stores.cluster) writeFileSync(join(folder, "config"), stores.cluster.config);
});
afterAll(async () => {
  await Promise.all([service.stop(), stores.vault.close(), stores.github.close()]);
  await Promise.all([stores.cluster?.close(), stores.keyring?.end()]);
  rmSync(folder, { recursive: true });
});

async function homeOf(target: Target): Promise<Home> {
  const { us, env } = service;
  const at = new Home({
    ...env,
    INTEG_TOKEN_ENDPOINT: us.token_endpoint,
    VAULT_ADDR: stores.vault.origin,
    VAULT_TOKEN: stores.vault.root,
    GITHUB_API_URL: stores.github.origin,
    GH_ENTERPRISE_TOKEN: stores.github.token,
    ...briefKubectl,
    KUBECONFIG: join(folder, "config"),
    ...(target.needs === "keyring" && { DBUS_SESSION_BUS_ADDRESS: stores.keyring!.env.DBUS_SESSION_BUS_ADDRESS! }),
  });
  if (target.name !== "profile") return at;
  const words = `profiles add target --region us --base-url ${us.base_url} --organization-id ${us.organization_id}`;
  const more = ["--token-endpoint", us.token_endpoint, "--api-key-stdin"];
  const added = await integHere(at, [...words.split(" "), ...more], { input: us.api_key });
  if (added.code !== 0) throw new Error(added.stderr);
  return at;
}

function calm(): void {
  stores.vault.calm();
  stores.vault.secrets.clear();
  stores.vault.put("secret/apps/ci", { other: "kept" });
  stores.github.calm();
  stores.github.forgetSecrets();
  stores.cluster?.calm();
  stores.cluster?.forgetSecrets();
}

interface Cell {
  readonly target: Target;
  readonly format: string;
  readonly fault: Fault;
}

async function play({ target, format, fault }: Cell): Promise<string[]> {
  calm();
  await account.clear();
  const at = await homeOf(target);
  const old = await account.make(["entity:read"]);
  const own = [...(fault.words ?? target.words), ...(target.isFormatted ? formatWords(format) : [])];
  const beside = target.isFormatted ? [] : ["--secret-file", "beside", ...formatWords(format)];
  fault.arrange?.(at, stores);
  const wrong: string[] = [];
  const rotate = ["oauth-clients", "rotate", old.id, "--yes", "--secret-file", "raw"];
  const { code, stderr } = await integHere(at, [...rotate, ...(fault.before ?? []), ...own, ...beside]);
  if (code !== fault.code) wrong.push(`exit ${code}: ${stderr}`);
  const isLive = async (): Promise<boolean> => (await account.live()).some(({ id }) => id === old.id);
  if ((await isLive()) !== (code !== 0)) wrong.push(`exit ${code}, the old client ${code === 0 ? "stays" : "is gone"}`);
  stores.vault.calm();
  stores.github.calm();
  stores.cluster?.calm();
  fault.lift?.(at, stores);
  const made = journalOf(at).findLast(({ operation }) => operation === "oauth_client.create")!;
  const { id, parent } = made;
  if (code !== 0) {
    const words = [...(target.isForgotten ? own : []), ...(fault.isTheirs ? ["--force"] : [])];
    const claimed = await integHere(at, ["journal", "claim", id, ...words]);
    if (claimed.code !== 0) wrong.push(`the claim: exit ${claimed.code}: ${claimed.stderr}`);
    const recovered = await integHere(at, ["journal", "recover", parent!, "--yes"]);
    if (recovered.code !== 0) wrong.push(`the recovery: exit ${recovered.code}: ${recovered.stderr}`);
  }
  const live = await account.live();
  const secret = readFileSync(at.path("raw"), "utf8");
  const facts: Facts = {
    secret,
    clientId: live[0]!.client_id!,
    id: live[0]!.id,
    account: service.us.service_account_id,
    entry: id,
  };
  if (live.length !== 1 || live[0]!.id === old.id) wrong.push(`live: ${live.map((one) => one.id).join(", ")}`);
  if (!(await account.opens(facts.clientId, secret))) wrong.push("the secret opens nothing");
  const text = formats[format]!(facts);
  const held = target.held(at, stores);
  if (held !== (target.isFormatted ? text : secret)) wrong.push(`it holds ${JSON.stringify(held)}`);
  if (!target.isFormatted && readFileSync(at.path("beside"), "utf8") !== text) wrong.push("the file beside it differs");
  const writes = target.writes?.(stores, secret) ?? 1;
  if (writes !== 1) wrong.push(`written ${writes} times`);
  if (stores.vault.current("secret/apps/ci")?.other !== "kept") wrong.push("another field was changed");
  at.remove();
  return wrong.map((what) => `${target.name}, ${format}, ${fault.name}: ${what}`);
}

it("each holds exactly the secret, once, and the old client stayed until then", { timeout: 3_600_000 }, async () => {
  const there = targets.filter(({ needs }) => needs === undefined || !absent[needs]);
  const cells = there.flatMap((target) =>
    target.faults.flatMap((fault) => Object.keys(formats).map((format): Cell => ({ target, format, fault }))),
  );
  // Another format each time, and each destination.
  const chosen = isFull ? cells : cells.filter((_cell, index) => index % 22 === 0);
  const wrong: string[] = [];
  for (const cell of chosen) wrong.push(...(await play(cell)));
  const faults = there.reduce((sum, target) => sum + target.faults.length, 0);
  recordFigure("deliveries", {
    destinations: there.length,
    formats: Object.keys(formats).length,
    faults,
    cells: cells.length,
    played: chosen.length,
    wrong: wrong.length,
  });
  expect(wrong).toEqual([]);
});
