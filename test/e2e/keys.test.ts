import { statSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Home } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { creation, entries, deskOfTests, type KeysDesk, secretIn, unfinishedEntries } from "./keys-desk.ts";

let desk: KeysDesk;
deskOfTests((opened) => (desk = opened));

describe("keys create", () => {
  it("prints the full response with the secret to standard output, once, and finishes the entry", async () => {
    const at = desk.withToken();
    const made = await at.integ(["keys", "create", "--name", "plain", "--no-marker", "--json"]);
    expect(made.code).toBe(0);
    const key = JSON.parse(made.stdout);
    expect(key).toMatchObject({
      name: "plain",
      keyType: "user_bound",
      status: "active",
      scopes: ["*"],
      expiresAt: null,
    });
    expect(await desk.opens(key.secret)).toBe(true);
    expect(await desk.sent("POST", creation)).toBe(1);
    expect(await entries(at)).toMatchObject([
      {
        operation: "access_key.create",
        state: "done",
        resource_id: key.id,
        idempotency_key: null,
        attempts: 1,
        next_step: null,
      },
    ]);
    expect((await at.integ(["journal", "export"])).stdout).not.toContain(key.secret);
  });

  it("sends type, scopes and expiry, and writes the secret to a file that only its owner can read", async () => {
    const at = desk.withToken();
    const flags = "--type service_account --scope push-ingest:* --expires-in 90d --secret-file key.secret".split(" ");
    const { code, stdout } = await at.integ(["keys", "create", "--name", "typed", "--json", ...flags]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ secret: null, keyType: "service_account", scopes: ["push-ingest:*"] });
    const [created] = await desk.live("typed");
    expect(created!.expiresAt! - created!.createdAt).toBeGreaterThan(89.9 * 86_400_000);
    expect(statSync(at.path("key.secret")).mode & 0o777).toBe(0o600);
    expect(await desk.opens(secretIn(at, "key.secret"))).toBe(true);
  });

  it("--marker adds a marker within 255 characters, and is refused if it does not fit", async () => {
    const at = desk.withToken();
    const made = await at.integ(["keys", "create", "--name", "marked", "--marker", "--json"]);
    expect(JSON.parse(made.stdout).name).toMatch(/^marked-[0-9a-f]{12}$/);
    const before = await desk.sent("POST", creation);
    const long = await at.integ(["keys", "create", "--name", "x".repeat(243), "--marker"]);
    expect(long.code).toBe(2);
    expect(long.stderr).toContain("242 characters");
    expect(await desk.sent("POST", creation)).toBe(before);
  });

  it("exchanges the profile's secret for a token when needed, and logs neither", async () => {
    const { at, own } = await desk.withProfile();
    const made = await at.integ(["keys", "create", "--name", "by-profile", "--secret-file", "k", "--debug"]);
    expect(made.code).toBe(0);
    const secret = secretIn(at, "k");
    const journal = (await at.integ(["journal", "export"])).stdout;
    expect(journal).toContain("access_key.create");
    for (const text of [made.stdout, made.stderr, journal]) {
      expect(text).not.toContain(secret);
      expect(text).not.toContain(own.secret);
      // The output shows the scheme of the header, but not the credential after it.
      expect(text.replaceAll("Bearer <redacted>", "")).not.toMatch(/Bearer|eyJ/);
    }
  });
});

describe("keys list and revoke", () => {
  it("list prints the API's rows in the list envelope", async () => {
    const at = desk.withToken();
    const { stdout } = await at.integ(["keys", "list", "--json"]);
    const list = JSON.parse(stdout);
    expect(list).toMatchObject({ object: "list", next_page_token: null, has_more: false });
    expect(list.data.map(({ id }: { id: string }) => id)).toContain("ak_us_automation");
    const table = await at.integ(["key", "list"]);
    expect(table.stdout).toContain("LAST USED");
  });

  it("list --status agrees with the table: a key whose expiry is over is expired, not active", async () => {
    const at = desk.withToken();
    const made = await at.integ(["keys", "create", "--name", "short", "--expires-in", "1s", "--json"]);
    const { id } = JSON.parse(made.stdout) as { id: string };
    const idsOf = async (status: string): Promise<string> =>
      (await at.integ(["keys", "list", "--status", status, "--fields", "id"])).stdout;
    // integ reads the service's clock in whole seconds, so it may notice the end two seconds late.
    await expect.poll(() => idsOf("expired"), { timeout: 10_000, interval: 300 }).toContain(id);
    expect(await idsOf("active")).not.toContain(id);
    const shown = (format: string) =>
      at.integ(["keys", "list", "--name", "short*", "--fields", "id,status", "-o", format]);
    const words = { table: "expired", json: "active", csv: "active", yaml: "active", markdown: "active" };
    for (const [format, word] of Object.entries(words)) expect((await shown(format)).stdout, format).toContain(word);
    const { stdout: help } = await at.integ(["help", "keys", "list"]);
    expect(help).toContain("integ keys list --status active --json | jq -r '.data[].id'");
    expect(help.replaceAll(/\s+/g, " ")).toContain(
      "a table and --status show the key as expired; the other formats show it as active",
    );
  });

  it("revoke asks, revokes the key, can be repeated, and is in the journal", async () => {
    const at = desk.withToken();
    const { id, secret } = await desk.makeKey({ name: "goes" });
    expect((await at.integ(["keys", "revoke", id])).code).toBe(2);
    expect(await desk.opens(secret)).toBe(true);
    const revoked = await at.integ(["keys", "revoke", id, "--yes", "--json"]);
    expect(JSON.parse(revoked.stdout)).toMatchObject({ id, status: "revoked" });
    expect(await desk.opens(secret)).toBe(false);
    expect((await at.integ(["keys", "revoke", id, "--yes"])).code).toBe(0);
    expect(await entries(at)).toMatchObject([{ operation: "access_key.revoke", state: "done" }, { state: "done" }]);
  });

  it("revoke handles the profile's own key last, because nothing works after it", async () => {
    const { at, own } = await desk.withProfile();
    const { id } = await desk.makeKey({ name: "other" });
    expect((await at.integ(["keys", "revoke", own.id, id, "--yes"])).code).toBe(0);
    expect(await entries(at)).toMatchObject([{ resource_id: own.id }, { resource_id: id }]);
  });

  it("a revocation of unknown outcome is exit 7, and journal recover finishes it", async () => {
    const at = desk.withToken();
    const { id } = await desk.makeKey({ name: "goes" });
    await desk.service.fault("DELETE /api/v1/access-keys/* status=503 effect=none");
    const ended = await at.integ(["keys", "revoke", id, "--yes", "--retry-for", "0"]);
    expect(ended.code).toBe(7);
    expect((await unfinishedEntries(at))[0]).toMatchObject({ operation: "access_key.revoke", state: "unknown" });
    await desk.service.calm();
    expect((await integHere(at, ["journal", "recover"])).code).toBe(0);
    expect((await desk.key(id)).status).toBe("revoked");
  });

  it("an unknown id is exit 4, an id that is not a path segment exit 2", async () => {
    const at = desk.withToken();
    expect((await at.integ(["keys", "revoke", "ak_nobody", "--yes"])).code).toBe(4);
    expect((await at.integ(["keys", "revoke", "..", "--yes"])).code).toBe(2);
    expect(await unfinishedEntries(at)).toEqual([]);
  });

  it.each([
    ["an unknown token", { INTEG_ACCESS_TOKEN: "nobody" }],
    ["a token of the other region", {}],
  ])("%s is exit 3", async (_name, env) => {
    const at: Home = desk.withToken(
      "INTEG_ACCESS_TOKEN" in env ? env : { INTEG_ACCESS_TOKEN: desk.service.eu.access_token },
    );
    for (const words of [
      ["keys", "list"],
      ["keys", "create", "--name", "n"],
      ["people", "search", "a"],
    ])
      expect((await at.integ(words)).code).toBe(3);
  });

  it("a key for ingestion may not administer: exit 3, and the message says which permission is missing", async () => {
    const { at } = await desk.withProfile();
    const narrow = await desk.makeKey({ name: "narrow", scopes: ["push-ingest:*"] });
    await integHere(at, ["profiles", "edit", "p", "--api-key-stdin"], { input: narrow.secret });
    const { code, stderr } = await at.integ(["keys", "list"]);
    expect(code).toBe(3);
    expect(stderr).toContain("403");
  });
});
