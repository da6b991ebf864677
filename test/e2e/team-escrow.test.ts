import { existsSync, writeFileSync } from "node:fs";
import { generateIdentity, identityToRecipient } from "age-encryption";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Team } from "../support/administrators.ts";
import { PostgresServer, role } from "../support/postgres.ts";
import { creationWords, type Service, startService } from "../support/service.ts";
import { isMissing } from "../support/tools.mjs";

let server: PostgresServer;
let service: Service;

const create = (...more: string[]): string[] =>
  creationWords(service, "--new", "--secret-command", ": $INTEG_RESOURCE_ID; exit 1", ...more);

describe.skipIf(isMissing("PostgreSQL"))("recipients of a team's secrets", () => {
  beforeAll(async () => {
    [server, service] = await Promise.all([PostgresServer.start(), startService()]);
  });
  afterAll(async () => {
    await service?.stop();
    await server?.remove();
  });

  it("each identity of several recipients decrypts the secret, however the recipients are given", async () => {
    const team = await Team.of(server, service);
    const identities = [await generateIdentity(), await generateIdentity()];
    const recipients = await Promise.all(identities.map((identity) => identityToRecipient(identity)));
    const option = ["--escrow", ...recipients];
    const given: readonly { env?: Record<string, string>; words?: string[]; profile?: string[] }[] = [
      { env: { INTEG_ESCROW: recipients.join(", ") } },
      { words: option },
      { profile: option },
    ];
    for (const [number, { env, words = [], profile }] of given.entries()) {
      const runner = await team.administrator();
      if (profile) expect((await runner.integ(["profiles", "edit", "prod", ...profile])).code).toBe(0);
      for (const identity of number === 0 ? identities : [identities[number % 2]]) {
        const failed = await runner.integ(create(...words), env && { env });
        expect([failed.code, failed.stderr]).toEqual([12, expect.stringContaining("encrypted in the team's journal")]);
        const eve = await team.administrator({ name: "work" });
        const file = eve.path("identity");
        writeFileSync(file, `${identity}\n`, { mode: 0o600 });
        const list = await eve.integ(["journal", "list", "--json"]);
        const [{ id }] = (JSON.parse(list.stdout) as { data: [{ id: string }] }).data;
        const claimed = await eve.integ(["journal", "claim", id, "--secret-file", "s"], {
          env: { INTEG_ESCROW_IDENTITY: file },
        });
        expect(claimed.code, claimed.stderr).toBe(0);
      }
    }
  });

  it("a text of another entry is not delivered: exit 3, the entry and the text stay", async () => {
    const team = await Team.of(server, service);
    const identity = await generateIdentity();
    const runner = await team.administrator();
    const escrow = ["--escrow", await identityToRecipient(identity)];
    for (const _ of [1, 2]) expect((await runner.integ(create(...escrow))).code).toBe(12);
    const table = `${team.schema}.integ_escrow`;
    const swap = `UPDATE ${table} e SET ciphertext = (SELECT ciphertext FROM ${table} f WHERE f.entry <> e.entry)`;
    const eve = await team.administrator();
    const file = eve.path("identity");
    writeFileSync(file, `${identity}\n`, { mode: 0o600 });
    const [{ id }] = (JSON.parse((await eve.integ(["journal", "list", "--json"])).stdout) as { data: [{ id: string }] })
      .data;
    const claim = () =>
      eve.integ(["journal", "claim", id, "--secret-file", "s"], { env: { INTEG_ESCROW_IDENTITY: file } });
    await server.sql(swap, role.name);
    const refused = await claim();
    expect([refused.code, refused.stderr]).toEqual([3, expect.stringContaining("was not signed for this entry")]);
    expect(existsSync(eve.path("s"))).toBe(false);
    await server.sql(swap, role.name);
    expect((await claim()).code).toBe(0);
  });

  it("recovery elsewhere reports that the secret is encrypted in the journal, and forget names what it destroys", async () => {
    const team = await Team.of(server, service);
    const env = { INTEG_ESCROW: await identityToRecipient(await generateIdentity()) };
    const [runner, eve] = [await team.administrator(), await team.administrator()];
    const { service_account_id: account } = service.us;
    const old = await runner.integ(
      [..."oauth-clients create --scope entity:read --new --json".split(" "), "--service-account", account],
      { env },
    );
    const { id: client } = JSON.parse(old.stdout) as { id: string };
    const rotation = ["oauth-clients", "rotate", client, "--secret-command", ": $INTEG_RESOURCE_ID; exit 1"];
    for (const words of [create(), rotation])
      expect((await runner.integ(words, { env })).code, words.join(" ")).toBe(12);
    const recovered = await eve.integ(["journal", "recover", "--replace-lost-secret"]);
    expect(recovered.code, recovered.stderr).toBe(12);
    expect(recovered.stderr).not.toContain("on this machine");
    const list = await eve.integ(["journal", "list", "--json"]);
    const { data } = JSON.parse(list.stdout) as { data: { id: string; operation: string; state: string }[] };
    const kept = data.filter(({ operation, state }) => operation === "oauth_client.create" && state === "undelivered");
    expect(kept).toHaveLength(2);
    for (const { id } of kept) {
      const one = await eve.integ(["journal", "recover", id]);
      expect([one.code, one.stderr]).toEqual([12, expect.stringContaining("any machine with an identity")]);
      const dry = await eve.integ(["journal", "forget", id, "--dry-run"]);
      expect([dry.code, dry.stdout + dry.stderr]).toEqual([0, expect.stringContaining(`kept for ${id}`)]);
    }
  });
});
