import { writeFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { gitHubOfFile } from "../support/github-server.ts";
import { journalOf } from "../support/journal-file.ts";
import { briefKubectl, type KubernetesServer, startKubernetes } from "../support/kubernetes-server.ts";
import type { Home } from "../support/program.ts";
import { isFull } from "../support/sample.ts";
import { creationWords } from "../support/service.ts";
import type { StoreServer } from "../support/store-server.ts";
import { vaultOfFile } from "../support/vault-server.ts";
import { canariesOfTests, type CanaryWorld } from "./canary-world.ts";
import { isMissing } from "../support/tools.mjs";

const tests = canariesOfTests("stores");
let world: CanaryWorld;
const vault = await vaultOfFile();
const github = await gitHubOfFile();
let cluster: KubernetesServer | undefined;

beforeAll(async () => {
  ({ world } = tests);
  if (!isMissing("kubectl", "openssl")) cluster = await startKubernetes();
  for (const token of [vault.root, github.token, cluster?.token]) if (token) world.canaries.add("store token", token);
});
afterEach(() => {
  for (const server of [vault, github, cluster]) server?.calm();
  vault.isSealed = false;
});
afterAll(() => cluster?.close());

interface Row {
  readonly to: string;
  readonly server: () => StoreServer;
  readonly write: RegExp;
  readonly token: () => string;
  readonly env: () => Readonly<Record<string, string>>;
  readonly absent?: boolean;
}

const rows: Readonly<Record<string, Row>> = {
  Vault: {
    to: "vault:secret/apps/ci#client_secret",
    server: () => vault,
    write: /^(?:PATCH|POST) .*\/data\//,
    token: () => vault.root,
    env: () => ({ VAULT_ADDR: vault.origin, VAULT_TOKEN_FILE: world.ownFile("store token", vault.root) }),
  },
  GitHub: {
    to: "github:my-org/my-repo#CLIENT_SECRET",
    server: () => github,
    write: /^PUT /,
    token: () => github.token,
    env: () => ({ GITHUB_API_URL: github.origin, GH_ENTERPRISE_TOKEN: github.token }),
    absent: isMissing("libsodium"),
  },
  Kubernetes: {
    to: "k8s:apps/ci#client-secret",
    server: () => cluster!,
    write: /^PATCH .*\?fieldManager/,
    token: () => cluster!.token,
    env: () => {
      writeFileSync(world.tool("kubeconfig"), cluster!.config);
      return { ...briefKubectl, KUBECONFIG: world.tool("kubeconfig") };
    },
    absent: isMissing("kubectl", "openssl"),
  },
};

const creation = (...more: string[]): string[] => creationWords(world.service, "--json", ...more);

function homeFor({ env }: Row): Home {
  return world.home({ ...world.env, ...env() });
}

/** Tracing kubectl is slow, and stores.test.ts also searches for the cluster's token. */
const testedRows = Object.entries(rows).filter(([name]) => isFull || name !== "Kubernetes");

describe.each(testedRows)("%s", (_name, row) => {
  it.skipIf(row.absent)("a creation and a rotation leak no secret", async () => {
    const home = homeFor(row);
    const to = ["--secret-to", row.to, "--secret-file", "out/beside"];
    const created = await world.run(home, creation(...to));
    expect(created.code, created.stderr).toBe(0);
    const { id } = JSON.parse(created.stdout) as { id: string };
    const rotated = await world.run(home, ["oauth-clients", "rotate", id, "--yes", ...to, "--force"]);
    expect(rotated.code, rotated.stderr).toBe(0);
    for (const words of [["journal", "show", journalOf(home)[0]!.id], ["journal", "verify"], ["doctor"]])
      await world.run(home, [...words, "-o", "json"]);
    expect(world.leftovers(home)).toEqual([]);
  });

  const statuses = isFull ? [400, 401, 403, 404, 409, 422, 429, 500, 503] : [403];
  it.skipIf(row.absent).each(statuses)("a response %d that repeats the token leaks nothing", async (status) => {
    const home = homeFor(row);
    const echoed = `you sent ${row.token()}`;
    const body = { errors: [echoed], message: echoed, reason: echoed, kind: "Status", code: status, status: "Failure" };
    const answer = { status, body, headers: { "x-said": row.token() } };
    row.server().plan(row.write, answer, 99);
    const late = await world.run(home, creation("--secret-to", row.to, "--secret-file", "out/late", "--force"));
    expect([5, 12], late.stderr).toContain(late.code);
    row.server().calm();
    row.server().plan(/./, answer, 99);
    expect((await world.run(home, creation("--secret-to", row.to, "--new", "--force"))).code).not.toBe(0);
    row.server().calm();
    const kept = journalOf(home).find(({ state }) => state === "undelivered")!;
    const claimed = await world.run(home, ["journal", "claim", kept.id]);
    expect(claimed.code, claimed.stderr).toBe(0);
    await world.run(home, ["journal", "list", "--all", "--json"]);
    expect(world.leftovers(home)).toEqual([]);
  });
});

it("a misplaced token is detected", async () => {
  const home = world.home(world.env);
  world.plant(home, "tmp/planted", `x-vault-token: ${vault.root}`);
  await world.run(home, ["journal", "list"]);
  expect(world.canaries.rolesOf(world.sightings.splice(0))).toEqual(["store token"]);
});
