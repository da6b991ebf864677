import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Home } from "../support/program.ts";
import { type ScriptedPeer, startScriptedPeer } from "../support/scripted-peer.ts";
import { homeOfTest, serviceOfFile } from "../support/service.ts";

const service = await serviceOfFile();
function home(env: Readonly<Record<string, string>>): Home {
  return homeOfTest(env);
}

describe("integ api on GitHub Actions", () => {
  const words = (key: string): string[] => {
    const fields = ["-f", `service_account_id=${service.us.service_account_id}`, "-f", "scopes[]=entity:read"];
    return ["api", "/v1/oauth_clients", "-X", "POST", "-H", `Idempotency-Key: ${key}`, ...fields];
  };

  it("masks a new secret before it prints it", async () => {
    const at = home({ ...service.env, GITHUB_ACTIONS: "true" });
    const created = await at.integ(words("masked"));
    expect(created.code, created.stderr).toBe(0);
    const { client_secret } = JSON.parse(created.stdout) as { client_secret: string };
    expect(created.stderr).toContain(`::add-mask::${client_secret}\n`);
  });

  it("masks a new token", async () => {
    const { access_token, access_key_secret } = service.us;
    const at = home({ ...service.env, INTEG_ACCESS_TOKEN: access_token, GITHUB_ACTIONS: "true" });
    const created = await at.integ(["api", "/api/v1/access-tokens", "-f", `secret=${access_key_secret}`, "-X", "POST"]);
    expect(created.code, created.stderr).toBe(0);
    const token = /"(?:accessToken|access_token|token)": ?"([^"]+)"/.exec(created.stdout)?.[1];
    expect(token, created.stdout).toBeDefined();
    expect(created.stderr).toContain(`::add-mask::${token}\n`);
  });

  it("refuses to send a change if nothing can be masked", async () => {
    const at = home({ ...service.env, GITHUB_ACTIONS: "true" });
    const ended = await at.spawned(words("unmasked"), { under: ["sh", "-c", 'exec "$@" 2>&-', "sh"] });
    expect(ended.code).toBe(2);
    const again = await at.integ(words("unmasked"));
    expect((JSON.parse(again.stdout) as { client_secret: string | null }).client_secret).not.toBeNull();
  });

  it("masks nothing elsewhere", async () => {
    const created = await home(service.env).integ(words("elsewhere"));
    expect(created.stderr).not.toContain("add-mask");
  });
});

describe("a secret that the response repeats in other fields", () => {
  const secret = "sec_9f8e7d6c5b4a";
  let peer: ScriptedPeer;
  afterAll(() => peer?.close());
  beforeAll(async () => {
    peer = await startScriptedPeer((request) => {
      const { scopes } = JSON.parse(request.split("\r\n\r\n")[1] || '{"scopes":[]}') as { scopes: string[] };
      const client = {
        id: "oac_1",
        object: "oauth_client",
        status: "active",
        service_account_id: "sa_1",
        client_id: "cid_1",
        scopes,
        created_at: "2026-07-01T00:00:00.000Z",
        client_secret: secret,
        hint: `Store ${secret} now.`,
        links: { [secret]: [secret] },
      };
      const body = JSON.stringify(client);
      return Buffer.from(
        `HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
      );
    });
  });

  it.each(["json", "yaml", "csv", "table"])("is written to its file and not printed (%s)", async (format) => {
    const at = home({ INTEG_REGION: "us", INTEG_BASE_URL: peer.origin, INTEG_API_KEY: "key-of-a-test" });
    const create = ["oauth-clients", "create", "--service-account", "sa_1", "--scope", "entity:read"];
    const created = await at.integ([...create, "--secret-file", "client.secret", "-o", format]);
    expect(created.code, created.stderr).toBe(0);
    expect(readFileSync(at.path("client.secret"), "utf8")).toBe(secret);
    expect(created.stdout + created.stderr).not.toContain(secret);
    expect(created.stdout).toContain("oac_1");
  });
});
