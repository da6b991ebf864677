// Starts the PostgreSQL server that has the journals of the project `team`.
import type { TestProject } from "vitest/node";
import { PostgresServer, role } from "./postgres.ts";
import type { TeamServer } from "./team-journal.ts";
import { isMissing } from "./tools.mjs";

declare module "vitest" {
  interface ProvidedContext {
    readonly teamServer: TeamServer | null;
  }
}

export default async function startEngine(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (isMissing("PostgreSQL")) {
    project.provide("teamServer", null);
    return undefined;
  }
  const server = await PostgresServer.start();
  project.provide("teamServer", { address: server.address(), password: role.password });
  return () => server.remove();
}
