// Runs the real kubectl with the server of test/support/kubernetes-server.ts.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { briefKubectl, type KubernetesServer, startKubernetes } from "../../support/kubernetes-server.ts";
import { isFull } from "../../support/sample.ts";
import { canary, delivery, mayReplace } from "./a-secret.ts";
import { deliver, setUp, endOf, isFound, prepared, type StoreSetup } from "./a-store.ts";
import { isMissing } from "../../support/tools.mjs";

const name = "apps/my-app";
const to = `k8s:${name}#client-secret`;
const creation = /^POST .*secrets\?fieldManager/;
const write = /^PATCH .*secrets\/my-app\?fieldManager/;

const path = process.env.PATH ?? "";

function putTool(folder: string, lines: string): void {
  const real = spawnSync("sh", ["-c", "command -v kubectl"], { encoding: "utf8" }).stdout.trim();
  writeFileSync(join(folder, "kubectl"), `#!/bin/sh\n${lines}\nexec '${real}' "$@"\n`, { mode: 0o755 });
}

/** A line that prints the cluster of `config` in place of the slow kubectl, because every step requests the cluster. */
function cachedCluster(config: string): string {
  const words = ["config", "view", "--minify", "--output", "jsonpath={.clusters[0].cluster.server}"];
  const env = { PATH: path, KUBECONFIG: config };
  const { stdout } = spawnSync("kubectl", words, { encoding: "utf8", env });
  return `if [ "$KUBECONFIG $*" = '${config} ${words.join(" ")}' ]; then echo '${stdout}'; exit; fi`;
}

describe.skipIf(isMissing("kubectl", "openssl"))("a key of a Secret", () => {
  let cluster: KubernetesServer;
  let folder: string;
  let tools: string;
  beforeAll(async () => {
    cluster = await startKubernetes();
    folder = mkdtempSync(join(tmpdir(), "integ-kubectl-"));
    writeFileSync(join(folder, "config"), cluster.config);
    tools = join(folder, "tools");
    mkdirSync(tools);
    if (!isFull) putTool(tools, cachedCluster(join(folder, "config")));
  });
  afterEach(() => {
    cluster.calm();
    cluster.forgetSecrets();
    cluster.through(undefined);
    for (const verb of ["get", "patch", "create"]) cluster.may.add(verb);
    cluster.writes = 0;
  });
  afterAll(async () => {
    await cluster.close();
    rmSync(folder, { recursive: true });
  });

  const at = (env: Readonly<Record<string, string | undefined>> = {}, more?: Parameters<typeof setUp>[1]): StoreSetup =>
    setUp(
      { PATH: `${tools}:${path}`, HOME: folder, KUBECONFIG: join(folder, "config"), ...briefKubectl, ...env },
      more,
    );

  it("is exactly the secret; other keys keep their values and managers, and no annotation has it", async () => {
    cluster.put(name, "other", "kept", "somebody");
    const here = at();
    await deliver(here, await prepared(here, to));
    await deliver(here, await prepared(here, `k8s:${name}#tls.key`));
    expect(cluster.secret(name)).toEqual({ other: "kept", "client-secret": canary, "tls.key": canary });
    expect(cluster.owner(name, "client-secret")).toBe("integ-client-secret");
    expect(cluster.owner(name, "tls.key")).toBe("integ-tls.key");
    expect([cluster.writes, await isFound(here)]).toEqual([2, true]);
    expect(JSON.stringify(cluster.requests.map(({ body }) => body))).not.toContain("annotations");
    await deliver(here, await prepared(here, to));
    expect(here.record).toMatchObject({ facts: { server: expect.stringMatching(/^https:\/\/127\.0\.0\.1:/) } });
  });

  it("is written next to those of other processes that write other keys at the same time", async () => {
    cluster.put(name, "other", "kept", "somebody");
    const keys = Array.from({ length: 8 }, (_, number) => `key-${number}`);
    const ready = await Promise.all(
      keys.map(async (key) => {
        const here = at({}, { sleep: (ms) => setTimeout(ms) });
        return { here, destination: await prepared(here, `k8s:${name}#${key}`) };
      }),
    );
    const ended = ready.map(({ here, destination }) => endOf(() => deliver(here, destination)));
    expect(await Promise.all(ended)).toEqual(keys.map(() => "delivered"));
    expect(cluster.secret(name)).toEqual({ other: "kept", ...Object.fromEntries(keys.map((key) => [key, canary])) });
  });

  it("reaches kubectl on standard input, never in its arguments or environment", async () => {
    const watched = mkdtempSync(join(tmpdir(), "integ-kubectl-"));
    putTool(watched, `{ tr '\\0' '\\n' < /proc/$$/cmdline; env; } >> '${watched}/seen'`);
    const here = at({ PATH: `${watched}:${path}`, INTEG_API_KEY: "canary-key" });
    await deliver(here, await prepared(here, to));
    const seen = readFileSync(join(watched, "seen"), "utf8");
    expect(seen).toContain("config\nview");
    expect(seen).toContain("--field-manager=integ-client-secret");
    for (const secret of [canary, Buffer.from(canary).toString("base64"), "canary-key"])
      expect(seen).not.toContain(secret);
    expect(cluster.secret(name)).toEqual({ "client-secret": canary });
    rmSync(watched, { recursive: true });
  });

  it.each<[string, () => void, string]>([
    ["a response lost before the write", () => cluster.plan(write, "lost before"), "delivered"],
    ["a response lost after the write", () => cluster.plan(write, "lost after"), "delivered"],
    [
      "an error of the server",
      () => cluster.plan(write, { status: 500, body: { kind: "Status", reason: "InternalError", code: 500 } }),
      "delivered",
    ],
    [
      "a lost permission",
      () =>
        cluster.plan(write, { status: 403, body: { kind: "Status", reason: "Forbidden", message: canary, code: 403 } }),
      "undelivered",
    ],
    [
      "another manager that writes first",
      () => cluster.plan(write, () => cluster.put(name, "client-secret", "theirs", "kubectl-edit")),
      "conflict",
    ],
    [
      "another integ that creates the Secret first",
      () => cluster.plan(creation, () => cluster.put(name, "client-secret", "theirs", "integ-client-secret")),
      "conflict",
    ],
    [
      "another integ that writes first",
      () => cluster.plan(write, () => cluster.put(name, "client-secret", "theirs", "integ-client-secret")),
      "conflict",
    ],
    [
      "another key that is written first",
      () => cluster.plan(write, () => cluster.put(name, "other", "theirs", "integ-other")),
      "delivered",
    ],
    ["a response lost after the creation", () => cluster.plan(creation, "lost after"), "delivered"],
    [
      "a Secret made immutable before the write",
      () =>
        cluster.plan(write, () => {
          cluster.put(name, "other", "x", "somebody");
          cluster.freeze(name);
        }),
      "undelivered",
    ],
    // Only in a full run, because kubectl itself repeats a read for ten seconds.
    ...(isFull
      ? [
          ["no server any more", () => cluster.plan(/./, "lost before", 9999), "undelivered"] as [
            string,
            () => void,
            string,
          ],
        ]
      : []),
    [
      "another change after the write",
      () =>
        cluster.plan(write, () =>
          cluster.plan(/^GET .*secrets/, () => cluster.put(name, "client-secret", "theirs", "kubectl-edit")),
        ),
      "undelivered",
    ],
  ])("with %s", async (_what, arrange, expected) => {
    const here = at();
    const destination = await prepared(here, to);
    cluster.calm();
    arrange();
    const ended = await endOf(() => deliver(here, destination, mayReplace()));
    expect(ended.split(":")[0]).toBe(expected);
    expect(cluster.hits).toBeGreaterThan(0);
    cluster.calm();
    const there = cluster.secret(name)?.["client-secret"];
    if (expected === "delivered") expect(there).toBe(canary);
    if (expected === "conflict") expect(there).toBe("theirs");
    expect(await isFound(here)).toBe(there === canary);
  });

  it("is not written if another manager has the key, or the token may not write", async () => {
    cluster.put(name, "client-secret", "theirs", "argocd");
    expect(await endOf(() => prepared(at(), to, delivery.may))).toMatch(/^usage: .*managed by argocd/);
    cluster.may.delete("patch");
    expect(await endOf(() => prepared(at(), to, delivery.may))).toMatch(/^auth: .*permission denied/);
    expect(cluster.writes).toBe(0);
  });

  it("is written only to the requested cluster", async () => {
    const here = at();
    await deliver(here, await prepared(here, to));
    writeFileSync(join(folder, "other"), cluster.config.replace("https://127.0.0.1", "https://localhost"));
    const moved = { ...here, tools: { ...here.tools, env: { ...here.tools.env, KUBECONFIG: join(folder, "other") } } };
    expect(await endOf(() => isFound(moved))).toMatch(/^usage: .*the server was https:\/\/127/);
  });
});
