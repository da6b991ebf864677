import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Account } from "../support/account.ts";
import { Team } from "../support/administrators.ts";
import { PostgresServer, role } from "../support/postgres.ts";
import { creationWords, type Service, startService } from "../support/service.ts";
import { isMissing } from "../support/tools.mjs";

let server: PostgresServer;
let service: Service;
let account: Account;

const create = (): string[] => creationWords(service, "--new", "--secret-file", "s");

/** Makes the server fail, as with a full disk, for record `position` of each entry and all later records. */
async function fillDisk({ schema }: Team, position: number): Promise<void> {
  await server.sql(
    `CREATE FUNCTION ${schema}.full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$;
     CREATE TRIGGER full_disk BEFORE INSERT ON ${schema}.integ_records FOR EACH ROW
       WHEN (NEW.n >= ${position}) EXECUTE FUNCTION ${schema}.full()`,
    role.name,
  );
}

describe.skipIf(isMissing("PostgreSQL"))("a team's journal", () => {
  beforeAll(async () => {
    [server, service] = await Promise.all([PostgresServer.start(), startService()]);
    account = new Account(service);
  });
  afterAll(async () => {
    await service?.stop();
    await server?.remove();
  });

  it("on a full disk: no change starts", async () => {
    const team = await Team.of(server, service);
    const ada = await team.administrator();
    for (const position of [1, 2]) {
      await fillDisk(team, position);
      await account.clear();
      const { code, stderr } = await ada.integ(create());
      expect([code, stderr]).toEqual([11, expect.stringContaining("has no space left on its disk")]);
      expect(await account.creations()).toEqual([]);
      await server.sql(
        `DROP TRIGGER full_disk ON ${team.schema}.integ_records; DROP FUNCTION ${team.schema}.full`,
        role.name,
      );
    }
  });

  it("that fills up after the request was sent: the result is printed with a warning, and recovery finishes it", async () => {
    const team = await Team.of(server, service);
    const ada = await team.administrator();
    await account.clear();
    await fillDisk(team, 3);
    const { code, stdout, stderr } = await ada.integ(create());
    expect([code, stderr]).toEqual([0, expect.stringContaining("Warning: The journal could not be updated.")]);
    expect(stdout).toContain("oac_us_");
    await server.sql(`DROP TRIGGER full_disk ON ${team.schema}.integ_records`, role.name);
    const recovered = await ada.integ(["journal", "recover"]);
    expect(recovered.code, recovered.stderr).toBe(0);
    expect(await account.live()).toHaveLength(1);
  });

  it("that cannot be reached: commands without a journal work", async () => {
    const ada = await (await Team.of(server, service)).administrator();
    const env = { INTEG_JOURNAL: "postgresql://integ@127.0.0.1:9/integ" };
    const list = await ada.integ(["entities", "list", "--json"], { env });
    expect(list.code, list.stderr).toBe(0);
    expect((await ada.integ(["profiles", "list"], { env })).code).toBe(0);
    const doctor = await ada.integ(["doctor", "--json"], { env });
    expect([doctor.code, doctor.stdout]).toEqual([expect.any(Number), expect.stringContaining("connection refused")]);
    expect(doctor.code).not.toBe(0);
  });
});
