// Administrators who share one journal in PostgreSQL, each with a home and their own profile names.
import { expect, onTestFinished } from "vitest";
import { type PostgresServer, teamAccess } from "./postgres.ts";
import { Home } from "./program.ts";
import type { Service } from "./service.ts";

let schemas = 0;

interface ProfileOptions {
  readonly region?: "us" | "eu";
  readonly name?: string;
  readonly key?: string;
  /** True to add the profile without an access token endpoint. */
  readonly isWithoutBearer?: boolean;
}

export class Team {
  readonly schema: string;
  readonly #server: PostgresServer;
  readonly #service: Service;

  private constructor({ server, service, schema }: { server: PostgresServer; service: Service; schema: string }) {
    this.schema = schema;
    this.#server = server;
    this.#service = service;
  }

  static async of(server: PostgresServer, service: Service): Promise<Team> {
    const team = new Team({ server, service, schema: `team_${process.pid}_${(schemas += 1)}` });
    expect((await team.home().integ(["journal", "init"])).code).toBe(0);
    return team;
  }

  home(env: Readonly<Record<string, string>> = {}): Home {
    const home = new Home({ INTEG_JOURNAL: this.#server.address(this.schema), ...teamAccess, ...env });
    onTestFinished(() => home.remove());
    return home;
  }

  async administrator(account: ProfileOptions = {}): Promise<Home> {
    const home = this.home();
    await this.addProfile(home, account);
    return home;
  }

  async addProfile(home: Home, { region = "us", name = "prod", key, isWithoutBearer }: ProfileOptions): Promise<void> {
    const { base_url, organization_id, access_token_endpoint, api_key } = this.#service[region];
    const words = ["--region", region, "--base-url", base_url, "--organization-id", organization_id];
    const exchange = isWithoutBearer ? [] : ["--access-token-endpoint", access_token_endpoint];
    const more = [...exchange, "--api-key-stdin", "--no-verify"];
    const added = await home.integ(["profiles", "add", name, "--no-verify", ...words, ...more], {
      input: key ?? api_key,
    });
    expect(added.code, added.stderr).toBe(0);
  }
}
