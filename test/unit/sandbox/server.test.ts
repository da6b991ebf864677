import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { describeSandbox, startSandbox } from "../../../src/sandbox/sandbox.ts";
import { removeState } from "../../../src/sandbox/store.ts";
import { aSandbox, send, basic, create, folder, list, setTime } from "./a-sandbox.ts";

describe("starting", () => {
  it("keeps its state in one file that only its owner can read", async () => {
    const stateDir = join(folder(), "deep", "state");
    await aSandbox({ stateDir });
    expect(statSync(stateDir).mode & 0o777).toBe(0o700);
    expect(statSync(join(stateDir, "sandbox.json")).mode & 0o777).toBe(0o600);
  });

  it("continues with the state of its predecessor", async () => {
    const stateDir = folder();
    const first = await startSandbox({ stateDir });
    const { id } = JSON.parse((await create(first.describe().us, "k")).text) as { id: string };
    await first.close();
    const { us } = await aSandbox({ stateDir });
    expect(us.api_key).toBe(first.describe().us.api_key);
    expect(JSON.parse((await create(us, "k")).text)).toMatchObject({ id, client_secret: null });
  });

  it("refuses settings that differ from the stored state's, and accepts the same or none", async () => {
    const stateDir = folder();
    await aSandbox({ stateDir, entities: 40, seed: 7 });
    for (const settings of [{ entities: 41 }, { seed: 1 }, { entities: 40, seed: 8 }])
      await expect(startSandbox({ stateDir, ...settings })).rejects.toMatchObject({
        code: "settings_differ",
        message: expect.stringContaining("integ sandbox reset"),
      });
    await aSandbox({ stateDir, entities: 40, seed: 7 });
    const { us } = await aSandbox({ stateDir });
    expect(JSON.parse((await list(us, "?limit=500")).text).data).toHaveLength(40);
  });

  it.each([
    [{ entities: -1 }, "entities must be"],
    [{ entities: 1.5 }, "entities must be"],
    [{ seed: 2 ** 40 }, "seed must be"],
    [{ portUs: 70_000 }, "portUs must be"],
  ])("refuses %j", async (settings, message) => {
    await expect(startSandbox({ stateDir: folder(), ...settings })).rejects.toThrow(message);
  });

  it("refuses an invalid fault before it listens", async () => {
    await expect(startSandbox({ stateDir: folder(), faults: ["GET /v1/* boom=1"] })).rejects.toMatchObject({
      code: "bad_fault",
    });
  });

  it("listens on the requested ports, and reports a failure", async () => {
    const { us } = await aSandbox();
    const port = Number(new URL(us.base_url!).port);
    await expect(startSandbox({ stateDir: folder(), portEu: port })).rejects.toMatchObject({
      code: "EADDRINUSE",
      message: `Port ${port} is in use already.`,
    });
  });

  it("explains how to fix a damaged state file", async () => {
    const stateDir = folder();
    writeFileSync(join(stateDir, "sandbox.json"), "{}");
    const damaged = { code: "state_damaged", message: expect.stringContaining("integ sandbox reset") };
    await expect(startSandbox({ stateDir })).rejects.toMatchObject(damaged);
    await expect(describeSandbox(stateDir)).rejects.toMatchObject(damaged);
    expect(readFileSync(join(stateDir, "sandbox.json"), "utf8")).toBe("{}");
    await removeState(stateDir);
    await aSandbox({ stateDir });
  });
});

describe("stopping", () => {
  it("closes open connections immediately", async () => {
    const sandbox = await startSandbox({ stateDir: folder() });
    const { us } = sandbox.describe();
    const socket = connect(Number(new URL(us.base_url!).port), "127.0.0.1");
    const closed = new Promise((resolve) => socket.on("close", resolve).on("error", () => undefined));
    await new Promise((resolve) => socket.on("connect", resolve));
    socket.write("GET /v1/entities HTTP/1.1\r\nHost: x\r\n");
    await list(us);
    await sandbox.close();
    await closed;
    await expect(list(us)).rejects.toThrow("ECONNREFUSED");
  });

  it("forgets everything on reset, also while a server runs", async () => {
    const stateDir = folder();
    const running = await aSandbox({ stateDir });
    const before = running.us;
    await create(before, "k");
    await removeState(stateDir);
    expect(existsSync(join(stateDir, "sandbox.json"))).toBe(false);
    expect((await list(before)).status).toBe(401);
    const after = running.describe().us;
    expect(after.api_key).not.toBe(before.api_key);
    expect(JSON.parse((await create(after, "k")).text).client_secret).toEqual(expect.any(String));
  });
});

describe("the description", () => {
  it("has no addresses without a server, and the same names and keys", async () => {
    const stateDir = folder();
    const still = await describeSandbox(stateDir);
    const { us } = await aSandbox({ stateDir });
    expect(still.us).toMatchObject({
      base_url: null,
      token_endpoint: null,
      access_token_endpoint: null,
      control_url: null,
    });
    const facts = Object.entries(still.us).filter(([name, value]) => value !== null && name !== "access_token");
    expect(Object.fromEntries(facts)).toEqual(
      Object.fromEntries(facts.map(([name]) => [name, us[name as keyof typeof us]])),
    );
  });

  it("has a bearer token that always works, however long the server runs and whatever happens to the key", async () => {
    const now = Date.UTC(2026, 10, 21);
    setTime(now);
    const sandbox = await aSandbox();
    const keys = (method = "GET", path = "") => {
      const { us } = sandbox.describe();
      const headers = { authorization: `Bearer ${us.access_token}`, "x-organization-id": us.organization_id };
      return send(`${us.base_url}/api/v1/access-keys${path}`, { method, headers });
    };
    expect((await keys()).status).toBe(200);
    setTime(now + 86_400_000);
    expect((await keys()).status).toBe(200);
    const { us } = sandbox;
    expect((await keys("POST", `/${us.access_key_id}/rotate`)).status).toBe(200);
    expect(sandbox.describe().us.access_key_secret).not.toBe(us.access_key_secret);
    expect((await keys()).status).toBe(200);
    expect((await keys("DELETE", `/${us.access_key_id}`)).status).toBe(200);
    expect((await keys()).status).toBe(200);
  });
});

describe("several servers with one state", () => {
  it("see each other's changes immediately", async () => {
    const stateDir = folder();
    const [one, other] = [await aSandbox({ stateDir }), await aSandbox({ stateDir })];
    const made = JSON.parse((await create(one.us, "k")).text) as { id: string };
    const url = `${other.us.base_url}/v1/oauth_clients/${made.id}`;
    expect((await send(url, { headers: basic(one.us.api_key) })).status).toBe(200);
    expect((await send(url, { method: "DELETE", headers: basic(one.us.api_key) })).status).toBe(200);
    expect(JSON.parse((await create(one.us, "k")).text)).toMatchObject({ id: made.id, status: "revoked" });
  });

  it("never exceed twenty slots, however many requests arrive together", async () => {
    const stateDir = folder();
    const servers = await Promise.all([1, 2, 3].map(() => aSandbox({ stateDir })));
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, index) => create(servers[index % 3]!.us, `k${index}`)),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(20);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(40);
  });

  it("create one client for one key, and return its secret once", async () => {
    const stateDir = folder();
    const servers = await Promise.all([1, 2].map(() => aSandbox({ stateDir })));
    const answers = await Promise.all(Array.from({ length: 30 }, (_, index) => create(servers[index % 2]!.us, "same")));
    const clients = answers.map(({ text }) => JSON.parse(text) as { id: string; client_secret: string | null });
    expect(new Set(clients.map(({ id }) => id)).size).toBe(1);
    expect(clients.filter(({ client_secret }) => client_secret !== null)).toHaveLength(1);
  });
});

describe("the log line of a request", () => {
  it("has method, path, status and id, no credential, and no control character", async () => {
    const lines: string[] = [];
    const { us } = await aSandbox({ log: (line) => lines.push(line), faults: ["GET /v1/entities drop=after after=1"] });
    const { headers } = await list(us, "?limit=1&x=%1b");
    await list(us).catch(() => undefined);
    expect(lines).toEqual([
      `us GET /v1/entities?limit=1&x=%1b 400 ${String(headers["request-id"])}`,
      expect.stringMatching(/^us GET \/v1\/entities - req_us_\w+ \(200, lost on the way\)$/),
    ]);
  });
});
