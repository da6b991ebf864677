// The real kubectl starts slowly, so these tests simulate it; kubernetes-store.test.ts uses the real one.
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { open } from "../../../src/secrets/kubernetes-store.ts";
import type { Store } from "../../../src/secrets/store.ts";
import { temporaryFolder } from "../../support/bundle-driver.ts";
import { failureOf } from "../profiles/a-profile.ts";

interface Answer {
  readonly status?: number;
  readonly out?: string;
  readonly err?: string;
}

interface FakeKubectl {
  readonly store: Store;
  readonly slept: number[];
  readonly calls: () => readonly (readonly [words: string, input: string, locale: string])[];
}

/** A kubectl that returns the results in order, and repeats the last one. */
function fakeKubectl(answers: readonly Answer[], { to = "apps/my-app#client-secret", env = {} } = {}): FakeKubectl {
  const folder = temporaryFolder();
  for (const [number, { status = 0, out = "", err = "" }] of answers.entries()) {
    writeFileSync(join(folder, `out${number}`), out);
    writeFileSync(join(folder, `err${number}`), err);
    writeFileSync(join(folder, `status${number}`), String(status));
  }
  const lines = [
    "#!/bin/sh",
    `cd '${folder}'`,
    "n=0; while [ -e asked$n ]; do n=$((n + 1)); done",
    'printf "%s\\n%s" "$LC_ALL" "$*" > asked$n',
    'case "$1" in apply|create) cat > input$n;; *) : > input$n;; esac',
    `[ $n -lt ${answers.length} ] || n=${answers.length - 1}`,
    "cat out$n; cat err$n >&2; exit $(cat status$n)",
  ];
  const program = join(folder, "kubectl");
  writeFileSync(program, lines.join("\n"));
  chmodSync(program, 0o755);
  const slept: number[] = [];
  const tools = {
    env: { PATH: `${folder}:/usr/bin:/bin`, ...env },
    sleep: async (ms: number) => void slept.push(ms),
    http: () => Promise.reject(new Error("nothing is sent")),
  };
  return {
    store: open(to, tools),
    slept,
    calls: () => {
      const all: [string, string, string][] = [];
      for (let number = 0; existsSync(join(folder, `asked${number}`)); number += 1) {
        const [locale = "", words = ""] = readFileSync(join(folder, `asked${number}`), "utf8").split("\n");
        all.push([words.trim(), readFileSync(join(folder, `input${number}`), "utf8"), locale]);
      }
      return all;
    },
  };
}

const secret = "s3cr3t";
const base64 = Buffer.from(secret).toString("base64");
const manifest = (text: string, resourceVersion?: string): unknown => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name: "my-app", namespace: "apps", resourceVersion },
  data: { "client-secret": Buffer.from(text).toString("base64") },
});
const applying = (more = ""): string =>
  `apply --server-side --field-manager=integ-client-secret --validate=false ${more} --filename -`.replace("  ", " ");
const creating =
  "create --field-manager=integ-client-secret --validate=false --filename - --output jsonpath={.metadata.resourceVersion}";
const getting =
  "get secret my-app --namespace apps --ignore-not-found --output jsonpath={.metadata.resourceVersion}/{.data.client-secret}";
/** The content to overwrite: the Secret lacks the key, at the version that was read. */
const over = { is: "absent", version: "7" } as const;
const words = ({ calls }: FakeKubectl): string[] => calls().map(([typed]) => typed.replace("  ", " "));
const down = { status: 1, err: "Unable to connect to the server: dial tcp" };

describe("the cluster", () => {
  it("comes from kubectl's configuration", async () => {
    const fake = fakeKubectl([{ out: "https://cluster.example\n" }]);
    expect(await fake.store.check()).toEqual({ server: "https://cluster.example" });
    expect(fake.calls()).toEqual([["config view --minify --output jsonpath={.clusters[0].cluster.server}", "", "C"]]);
    expect(fake.store.address).toBe("apps/my-app#client-secret");
  });

  it.each([
    [{ KUBERNETES_SERVICE_HOST: "10.0.0.1", KUBERNETES_SERVICE_PORT: "6443" }, "https://10.0.0.1:6443"],
    [{ KUBERNETES_SERVICE_HOST: "10.0.0.1" }, "https://10.0.0.1:443"],
  ])("is the one that integ runs in: %j", async (env, server) => {
    expect(await fakeKubectl([{}], { env }).store.check()).toEqual({ server });
  });

  it.each([
    [
      { status: 127 },
      "--secret-to k8s:apps/my-app#client-secret needs kubectl, and it is not installed.",
      "Install kubectl, or name another destination.",
    ],
    [
      { status: 1 },
      "--secret-to k8s:apps/my-app#client-secret: kubectl has no cluster.",
      "Set KUBECONFIG, or choose a context with kubectl config use-context.",
    ],
  ])("is unknown: %j", async (answer, message, hint) => {
    const { env } = { env: { KUBERNETES_SERVICE_PORT: "6443" } };
    const failure = await failureOf(() => fakeKubectl([answer], { env }).store.check());
    expect(failure).toMatchObject({ kind: "usage", message, details: { hint } });
  });
});

describe("before a secret exists", () => {
  it("a dry run checks that the server would accept the key", async () => {
    const fake = fakeKubectl([{}]);
    expect(await fake.store.prepare({})).toEqual({});
    expect(words(fake)).toEqual([applying("--dry-run=server")]);
    expect(JSON.parse(fake.calls()[0]![1])).toEqual(manifest("integ asks whether it may write here"));
  });

  const refused = "--secret-to k8s:apps/my-app#client-secret cannot be written";
  it.each<[string, string, string, unknown]>([
    [
      'Apply failed with 1 conflict: conflict with "helm" using v1',
      "usage",
      "--secret-to k8s:apps/my-app#client-secret: the key is managed by helm, and is not overwritten.",
      "Name another key. If helm no longer needs this one, remove it there and run the command again.",
    ],
    [
      "Error from server (Forbidden): no",
      "auth",
      `${refused}: permission denied.`,
      "Give the account the verbs get, create and patch on this Secret.",
    ],
    [
      "error: You must be logged in to the server",
      "auth",
      `${refused}: the cluster does not accept the credential.`,
      "Renew the login to the cluster.",
    ],
    [
      'namespaces "apps" not found',
      "usage",
      `${refused}: the namespace does not exist.`,
      "Create it, or name another one.",
    ],
    ["field is immutable when set", "usage", `${refused}: the Secret is immutable.`, "Name another Secret."],
    ["Unable to connect to the server", "unreachable", `${refused}: the cluster gave no response.`, undefined],
    [
      "something else",
      "usage",
      `${refused}: kubectl failed.`,
      "Check what kubectl says: kubectl apply --server-side --dry-run=server.",
    ],
  ])("an obstacle is reported: %s", async (err, kind, message, hint) => {
    const failure = await failureOf(() => fakeKubectl([{ status: 1, err }]).store.prepare({}));
    expect(failure).toEqual({ kind, message, details: { hint } });
  });

  it("a key that cannot be read is refused", async () => {
    const failure = await failureOf(() => fakeKubectl([{ status: 1, err: "(Forbidden)" }]).store.look({}));
    expect(failure.message).toBe("--secret-to k8s:apps/my-app#client-secret cannot be read: permission denied.");
  });
});

describe("a secret", () => {
  it("is applied once if that works", async () => {
    const fake = fakeKubectl([{}]);
    await fake.store.write(secret, {}, over);
    expect([words(fake), fake.slept]).toEqual([[applying()], []]);
    expect(JSON.parse(fake.calls()[0]![1])).toEqual(manifest(secret, "7"));
  });

  it("in a Secret that does not exist is applied over the empty Secret that integ creates", async () => {
    const fake = fakeKubectl([down, { out: "8\n" }, down, {}]);
    expect(await fake.store.write(secret, {}, { is: "absent" })).toBe(true);
    expect(words(fake)).toEqual([creating, creating, applying(), applying()]);
    const [, created, , applied] = fake.calls();
    expect(JSON.parse(created![1])).toEqual({ ...(manifest("") as object), data: undefined });
    expect(JSON.parse(applied![1])).toEqual(manifest(secret, "8"));
  });

  it.each([
    ["exists now", { is: "absent" } as const, 'Error from server (AlreadyExists): secrets "my-app" already exists'],
    ["was changed", over, 'error: Operation cannot be fulfilled on secrets "my-app": the object has been modified'],
  ])("is not written if the Secret %s: another look decides", async (_what, found, err) => {
    for (const [out, isWritten] of [
      ["9/", false],
      [`9/${base64}`, true],
    ] as const) {
      const fake = fakeKubectl([{ status: 1, err }, { out }]);
      expect(await fake.store.write(secret, {}, found)).toBe(isWritten);
      expect(words(fake)).toEqual([found === over ? applying() : creating, getting]);
    }
  });

  it.each([1, 2])("is applied again after %i lost responses, with longer and longer waits", async (lost) => {
    const fake = fakeKubectl([...Array.from({ length: lost }, () => down), {}]);
    await fake.store.write(secret, {}, over);
    expect(words(fake)).toEqual(Array.from({ length: lost + 1 }, () => applying()));
    expect(fake.slept).toEqual([1000, 2000].slice(0, lost));
  });

  it("is looked for after three failed attempts", async () => {
    const fake = fakeKubectl([down, down, down, { out: `9/${base64}` }]);
    await fake.store.write(secret, {}, over);
    expect(words(fake)).toEqual([applying(), applying(), applying(), getting]);
    expect(fake.slept).toEqual([1000, 2000]);
  });

  it.each([
    ["another secret", { out: `9/${Buffer.from("other").toString("base64")}` }],
    ["no secret", { out: "9/" }],
    ["no read permission", { status: 1, err: "(Forbidden)" }],
  ])("is not delivered if a read finds %s", async (_what, found) => {
    const fake = fakeKubectl([{ status: 1, err: 'conflict with "helm"' }, found]);
    expect((await failureOf(() => fake.store.write(secret, {}, over))).kind).toBe("conflict");
    expect(words(fake)).toEqual([applying(), getting]);
  });

  it("may be there after a lost response, a conflict and a failed read: the write does not count as refused", async () => {
    const conflict = { status: 1, err: 'error: Operation cannot be fulfilled on secrets "my-app"' };
    const fake = fakeKubectl([down, conflict, down]);
    expect((await failureOf(() => fake.store.write(secret, {}, over))).kind).toBe("unreachable");
    expect(words(fake)).toEqual([applying(), applying(), getting]);
  });

  it.each([
    ["the secret", { out: `7/${base64}` }, { is: "text", text: secret, version: "7" }],
    ["with a newline after it", { out: `7/${base64}\n` }, { is: "text", text: secret, version: "7" }],
    ["no key", { out: "7/" }, over],
    ["no Secret", { out: "" }, { is: "absent" }],
    ["an empty line", { out: "\n" }, { is: "absent" }],
  ])("is read: %s", async (_what, answer, found) => {
    const fake = fakeKubectl([answer]);
    expect(await fake.store.look({})).toEqual(found);
    expect(words(fake)).toEqual([getting]);
  });

  it("may have a key with a dot, which is not a nested field", async () => {
    const fake = fakeKubectl([{ out: `7/${base64}` }], { to: "apps/my-app#tls.key" });
    expect(await fake.store.look({})).toEqual({ is: "text", text: secret, version: "7" });
    expect(words(fake)).toEqual([getting.replace("client-secret}", "tls\\.key}")]);
  });
});

describe("an address", () => {
  const long = (length: number): string => `${"a".repeat(63)}.`.repeat(5).slice(0, length - 1) + "a";
  it.each([
    ["apps/my-app#a", true],
    ["apps/my.app#A_b-c.d", true],
    ["apps/my-app#.a", true],
    ["apps/my-app#a..", true],
    ["apps/my-app#.", false],
    ["apps/my-app#..", false],
    ["apps/my-app#..a", false],
    ["apps/my-app#", false],
    ["apps/my-app", false],
    ["/my-app#a", false],
    ["apps/#a", false],
    ["Apps/my-app#a", false],
    ["apps/my-app#a b", false],
    ["apps/my-app/b#a", false],
    ["apps/-a#a", false],
    ["apps/a#b;true", false],
    ["apps/$(true)#a", false],
    ["apps/my-app#a\n", false],
    [`apps/${long(253)}#a`, true],
    [`apps/${long(254)}#a`, false],
  ])("%s is valid: %s", async (text, is) => {
    const opening = (): unknown => open(text, { env: {} } as never);
    if (is) {
      expect(opening()).toMatchObject({ address: text });
      return;
    }
    expect(await failureOf(opening)).toEqual({
      kind: "usage",
      message: expect.stringContaining(`k8s:${text}`),
      details: { hint: "Write it like --secret-to k8s:my-namespace/my-app#client-secret." },
    });
  });
});
