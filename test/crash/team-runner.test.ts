import { readFileSync, writeFileSync } from "node:fs";
import { generateIdentity, identityToRecipient } from "age-encryption";
import { beforeAll, describe, expect, it } from "vitest";
import { recordFigure } from "../support/figures.mjs";
import { askPsql, role } from "../support/postgres.ts";
import { ended, Home } from "../support/program.ts";
import { isFull } from "../support/sample.ts";
import { spread } from "../support/strace.ts";
import { TeamMachines } from "./team-machines.ts";
import { isMissing } from "../support/tools.mjs";

describe.skipIf(isMissing("PostgreSQL"))("a runner that loses its disk", () => {
  const machines = new TeamMachines();
  let identity = "";
  let recipient = "";

  beforeAll(async () => {
    identity = await generateIdentity();
    recipient = await identityToRecipient(identity);
  });

  /** A home with its own journal, unless `env` names a journal. */
  async function machine(env: Readonly<Record<string, string>> = {}): Promise<Home> {
    const { origin } = new URL(machines.service.us.base_url);
    const home = new Home({ ...machines.service.env, INTEG_BASE_URL: await machines.crossing.through(origin), ...env });
    await home.integ(["journal", "init"]);
    return home;
  }

  async function creation(runner: Home, point: number | undefined): Promise<void> {
    const env = {
      CI: "true",
      INTEG_ESCROW: recipient,
      INTEG_JOURNAL: await machines.journalOf(runner),
    };
    const request = ["--service-account", machines.service.us.service_account_id, "--scope", "entity:read"];
    const child = runner.start(["oauth-clients", "create", ...request, "--secret-file", "secret"], { env });
    const kill = (): "cut" => {
      child.kill("SIGKILL");
      return "cut";
    };
    machines.crossing.watch({ plan: point === undefined ? undefined : { at: point, act: kill } });
    const { code, stderr } = await ended(child);
    if (point === undefined) expect(code, stderr).toBe(0);
  }

  function isEscrowed(journal: string): boolean {
    const text = "SELECT count(*) FROM integ_escrow";
    return askPsql(journal, { password: role.password, text }).trim() !== "0";
  }

  const words = ["--secret-file", "secret"];

  async function claim(other: Home): Promise<string> {
    const list = ["journal", "list", "--all", "--json"];
    const { data } = JSON.parse((await other.integ(list)).stdout) as { data: { id: string }[] };
    const claimed = await other.integ(["journal", "claim", data[0]?.id ?? "", ...words]);
    return claimed.code === 0 ? "claimed" : `claim: ${claimed.stderr}`;
  }

  async function finish(other: Home): Promise<string> {
    const first = await other.integ(["journal", "recover", ...words]);
    if (first.code === 0) return "recovered";
    const { data } = JSON.parse((await other.integ(["journal", "list", "--json"])).stdout) as {
      data: { id: string }[];
    };
    const id = data[0]?.id ?? "";
    if (first.code === 12) return claim(other);
    const replaced = await other.integ(["journal", "recover", id, "--replace-lost-secret", ...words]);
    return replaced.code === 0 ? "replaced" : `${first.stderr} then ${replaced.stderr}`;
  }

  it("loses no secret once the journal has its ciphertext: another machine claims the secret", {
    timeout: 3_600_000,
  }, async () => {
    await machines.account.clear();
    const first = await machine();
    await creation(first, undefined);
    const passed = machines.crossing.passed();
    first.remove();
    const response = passed.findIndex(({ link, side }) => link === "service" && side === "response");
    const all = [...passed.keys()].filter((point) => point > response);
    const wrong: string[] = [];
    const ways: Record<string, number> = {};
    for (const point of isFull ? all : spread(all, 3)) {
      await machines.account.clear();
      const runner = await machine();
      const { INTEG_JOURNAL: journal = "" } = runner.env;
      await creation(runner, point);
      runner.remove();
      const isKept = isEscrowed(journal);
      const other = await machine({ INTEG_JOURNAL: journal });
      const file = other.path("identity");
      writeFileSync(file, `${identity}\n`, { mode: 0o600 });
      other.env.INTEG_ESCROW_IDENTITY = file;
      const isDone = (await other.integ(["journal", "list", "--json"])).stdout.includes('"data":[]');
      const way = isDone ? "finished by the runner" : await finish(other);
      // The file was on the lost disk, so the ciphertext is the only copy. A recovery keeps the ciphertext for a claim.
      if (isDone) await other.integ(["journal", "recover"]);
      const isClaimed = isDone && isKept && (await claim(other)) === "claimed";
      if (isDone && isKept && !isClaimed) wrong.push(`message ${point}: ${way}, kept, and not claimed`);
      ways[way] = (ways[way] ?? 0) + 1;
      const [client, ...more] = await machines.account.live();
      if (client === undefined || more.length > 0) wrong.push(`message ${point}: ${more.length + 1} clients, ${way}`);
      if (isKept && !isDone && way !== "claimed" && way !== "recovered")
        wrong.push(`message ${point}: kept, and ${way}`);
      if (isEscrowed(journal)) wrong.push(`message ${point}: ${way}, and its ciphertext is still in the journal`);
      if (client?.client_id && (!isDone || isClaimed)) {
        const secret = readFileSync(other.path("secret"), "utf8").trimEnd();
        if (!(await machines.account.opens(client.client_id, secret)))
          wrong.push(`message ${point}: ${way}, opens nothing`);
      }
      other.remove();
    }
    console.log(JSON.stringify(ways));
    recordFigure("team", { messages: all.length, ...ways, violations: wrong.length }, "runner killed, its disk lost");
    expect(wrong).toEqual([]);
  });
});
