// How often a change waits for the server of a team's journal: a person on another continent waits a tenth of a second each time.
import { connect, createServer, type AddressInfo, type Server } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Team } from "../support/administrators.ts";
import { PostgresServer } from "../support/postgres.ts";
import type { Home } from "../support/program.ts";
import { type Service, startService } from "../support/service.ts";
import { isMissing } from "../support/tools.mjs";

/** Passes everything on between a client and a server, and counts how often the client speaks after the server did. */
class CountingRelay {
  trips = 0;
  readonly #server: Server;

  private constructor(port: number) {
    this.#server = createServer((client) => {
      const upstream = connect(port, "127.0.0.1");
      let isClientsTurn = true;
      client.on("data", (bytes) => {
        // A client that says good-bye waits for nothing.
        if (isClientsTurn && bytes[0] !== 0x58) this.trips += 1;
        isClientsTurn = false;
        upstream.write(bytes);
      });
      upstream.on("data", (bytes) => {
        isClientsTurn = true;
        client.write(bytes);
      });
      for (const [one, other] of [
        [client, upstream],
        [upstream, client],
      ] as const)
        one.on("close", () => other.destroy()).on("error", () => other.destroy());
    });
  }

  static async before(port: number): Promise<CountingRelay> {
    const relay = new CountingRelay(port);
    await new Promise<void>((done) => relay.#server.listen(0, "127.0.0.1", done));
    return relay;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  close(): void {
    this.#server.close();
  }
}

describe.skipIf(isMissing("PostgreSQL"))("a change in a team's journal", () => {
  let server: PostgresServer;
  let service: Service;
  let relay: CountingRelay;
  let ada: Home;
  beforeAll(async () => {
    [server, service] = await Promise.all([PostgresServer.start(), startService()]);
    relay = await CountingRelay.before(server.port);
  });
  afterAll(async () => {
    relay?.close();
    await service?.stop();
    await server?.remove();
  });

  const create = (...more: string[]): string[] => {
    const of = ["--service-account", service.us.service_account_id, "--scope", "entity:read"];
    return ["oauth-clients", "create", ...of, "--json", ...more];
  };

  async function run(words: readonly string[], exit = 0): Promise<{ trips: number; id: string }> {
    const before = relay.trips;
    const { code, stdout, stderr } = await ada.integ([...words]);
    expect(code, stderr).toBe(exit);
    const { id } = (exit === 0 ? JSON.parse(stdout) : {}) as { id: string };
    return { trips: relay.trips - before, id };
  }

  /**
   * Half of it is the connection: its start, the password, what the server is, and which tables it has. Before a secret is sent
   * for, other unfinished entries of its destination are looked for, those of the same client, and an entry's own signatures.
   */
  it.each<[string, number, () => Promise<number>]>([
    ["create", 15, async () => (await run(create("--secret-file", "s"))).trips],
    [
      "rotate",
      27,
      async () => {
        const { id } = await run(create("--secret-file", "r", "--new"));
        return (await run(["oauth-clients", "rotate", id, "--secret-file", "r2", "--yes", "--json"])).trips;
      },
    ],
    [
      "revoke",
      13,
      async () => {
        const { id } = await run(create("--secret-file", "v", "--new"));
        return (await run(["oauth-clients", "revoke", id, "--yes", "--json"])).trips;
      },
    ],
    [
      "recover",
      34,
      async () => {
        await service.fault("POST /v1/oauth_clients drop=after times=1");
        await run(create("--secret-file", "l", "--new", "--retry-for", "0"), 7);
        return (await run(["journal", "recover", "--yes", "--json"])).trips;
      },
    ],
  ])("waits for the server at most as often as it did: %s, %i times", async (what, most, trips) => {
    ada = await (await Team.of(server, service)).administrator();
    ada.env.INTEG_JOURNAL = ada.env.INTEG_JOURNAL!.replace(`:${server.port}`, `:${relay.port}`);
    // A rotation proves its new client there.
    await ada.integ(["profiles", "edit", "prod", "--token-endpoint", service.us.token_endpoint]);
    const waited = await trips();
    console.log(`${what}: ${waited} round trips`);
    expect(waited).toBeLessThanOrEqual(most);
  });
});
