// The order of system calls shows that the next page is requested before the current page is printed.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Home } from "../support/program.ts";
import { record } from "../support/strace.ts";
import { type ListServer, pagesOf, startListServer } from "./list-server.ts";
import { isMissing } from "../support/tools.mjs";

const sizes = [3, 4, 2, 5, 1];

let server: ListServer;
let at: Home;
beforeAll(async () => {
  server = await startListServer(pagesOf(sizes));
  at = new Home(server.env);
});
afterAll(async () => {
  at.remove();
  await server.stop();
});

describe.skipIf(isMissing("strace"))("--all", () => {
  it("sends the next request before a page is printed", async () => {
    const words = ["entities", "list", "--all", "--limit", "5", "--ndjson"];
    const { ended, points } = await record((under) => at.integ(words, { under }));
    expect(ended.code).toBe(0);
    const order = points.flatMap(({ call, text }) => {
      if (!call.startsWith("write")) return [];
      if (text.includes("GET /v1/entities")) return ["requested"];
      return text.startsWith('1, "{') || text.startsWith('1, [{iov_base="{') ? ["printed"] : [];
    });
    const each = sizes.slice(1).flatMap(() => ["requested", "printed"]);
    expect(order).toEqual(["requested", ...each, "printed"]);
  });
});
