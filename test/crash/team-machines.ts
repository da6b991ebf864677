// Machines that share a journal in PostgreSQL. A fault can occur before any of their messages.
import { afterAll, beforeAll } from "vitest";
import { Account } from "../support/account.ts";
import { Crossing } from "../support/crossing.ts";
import { PostgresServer, role } from "../support/postgres.ts";
import type { Home } from "../support/program.ts";
import { type Service, startService } from "../support/service.ts";
import { keepJournalsIn } from "../support/team-journal.ts";

export class TeamMachines {
  readonly crossing = new Crossing();
  service!: Service;
  account!: Account;
  #server!: PostgresServer;

  constructor() {
    beforeAll(async () => {
      [this.#server, this.service] = await Promise.all([PostgresServer.start(), startService()]);
      this.account = new Account(this.service);
      keepJournalsIn({ address: this.#server.address(), password: role.password });
    });
    afterAll(async () => {
      keepJournalsIn(undefined);
      await this.crossing.close();
      await this.service?.stop();
      await this.#server?.remove();
    });
  }

  async journalOf({ env }: Home): Promise<string> {
    const port = await this.crossing.portTo("journal", this.#server.port);
    return env.INTEG_JOURNAL!.replace(`:${this.#server.port}/`, `:${port}/`);
  }
}
