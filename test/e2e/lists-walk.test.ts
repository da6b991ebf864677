import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { Home, type RunOptions } from "../support/program.ts";
import { entity, envelope, idsOf, type ListServer, pagesOf, startListServer } from "./list-server.ts";

const running: { server: ListServer; home: Home }[] = [];

async function start(answer: Parameters<typeof startListServer>[0]) {
  const server = await startListServer(answer);
  const home = new Home(server.env);
  running.push({ server, home });
  const list = (words: readonly string[], options?: RunOptions) => home.integ(["entities", "list", ...words], options);
  return { server, home, list };
}

afterEach(async () => {
  for (const { server, home } of running.splice(0)) {
    home.remove();
    await server.stop();
  }
});

const ids = (from: number, to: number): string[] => Array.from({ length: to - from }, (_, i) => `ent_${from + i}`);

describe("--all", () => {
  it("does not stop at a short or empty page, and returns tokens unchanged", async () => {
    const tokens = ["a/b+c=&?#%20", "é😀 ", "x".repeat(4000)];
    const { server, list } = await start(({ token }) => {
      const page = token === undefined ? 0 : tokens.indexOf(token) + 1;
      return envelope(page === 1 ? [] : [entity(page)], tokens[page] ?? null);
    });
    const { code, stdout } = await list(["--all", "--ndjson"]);
    expect([code, idsOf(stdout)]).toEqual([0, ["ent_0", "ent_2", "ent_3"]]);
    expect(server.requests.map(({ token }) => token)).toEqual([undefined, ...tokens]);
    expect(new Set(server.requests.map(({ limit }) => limit))).toEqual(new Set([500]));
  });

  it.each([
    ["a page with the last rows of the page before", [["a", "b", "c"], ["b", "c", "d"], ["e"]], "1 page has rows"],
    [
      "two such pages",
      [
        ["a", "b"],
        ["b", "c"],
        ["c", "d"],
      ],
      "2 pages have rows",
    ],
    ["nothing if another row only mentions the id", [["a", "b"], ["c"], ["d"]], undefined],
  ] as const)("notes %s: rows came twice (§4.3 rule 4)", async (_what, pages, note) => {
    const row = (id: string): string => JSON.stringify({ id, parent: "b" });
    const { list } = await start(({ token = "0" }) => {
      const page = Number(token);
      return envelope(pages[page]!.map(row), page + 1 < pages.length ? String(page + 1) : null);
    });
    const whole = await list(["--all", "--ndjson"]);
    expect(idsOf(whole.stdout)).toEqual(pages.flat());
    expect(whole.code).toBe(0);
    if (note === undefined) expect(whole.stderr).toBe("");
    else expect(whole.stderr).toContain(`Note: ${note} of the page before again`);
    const unique = await list(["--all", "--ndjson", "--unique"]);
    expect([idsOf(unique.stdout), unique.stderr]).toEqual([[...new Set<string>(pages.flat())], ""]);
  });

  it("offers no --resume after a repeated token: rows would be written twice", async () => {
    const { server, home, list } = await start(({ token }) =>
      envelope([entity(Number(token ?? 0))], String((Number(token ?? 0) % 3) + 1)),
    );
    const walk = ["--all", "--ndjson", "--out", "file"];
    const broken = await list(walk);
    expect([broken.code, idsOf(readFileSync(home.path("file"), "utf8"))]).toEqual([11, ids(0, 4)]);
    expect(broken.stderr).toMatch(/"next_command":"integ entities list [^"]* --force"/);
    expect(broken.stderr).not.toMatch(/--resume|--page-token/);
    const requestCount = server.requests.length;
    const again = await list([...walk, "--resume"]);
    expect([again.code, server.requests.length]).toEqual([2, requestCount]);
    expect(again.stderr).toContain("--force");
  });
});

describe("readers of --all", () => {
  /** An endless list. Each page has half a megabyte, more than pipes and sockets buffer. */
  const endless: Parameters<typeof startListServer>[0] = ({ token }) => {
    const page = Number(token ?? 0);
    const rows = Array.from({ length: 8 }, (_, i) => `{"id":"ent_${page * 8 + i}","fill":"${"x".repeat(65_536)}"}`);
    return envelope(rows, String(page + 1));
  };

  it("that do not read limit the requests to three pages", async () => {
    const { server, home } = await start(endless);
    const child = home.start(["entities", "list", "--all", "--ndjson"]);
    child.stdin!.end();
    child.stdout!.pause();
    while (server.requests.length === 0) await wait(20);
    let before = -1;
    while (before !== server.requests.length) {
      before = server.requests.length;
      await wait(1000);
    }
    expect(before).toBeLessThanOrEqual(3);
    const closed = new Promise((resolve) => child.on("close", resolve));
    child.kill("SIGKILL");
    await closed;
  });

  it("that stop early end the listing with success", async () => {
    const { server, home } = await start(endless);
    const child = home.start(["entities", "list", "--all", "--ndjson"]);
    child.stdin!.end();
    let stderr = "";
    child.stderr!.on("data", (chunk) => (stderr += String(chunk)));
    child.stdout!.once("data", () => child.stdout!.destroy());
    const code = await new Promise((resolve) => child.on("exit", resolve));
    expect([code, stderr]).toEqual([0, ""]);
    expect(server.requests.length).toBeLessThanOrEqual(5);
  });

  it.each(["ndjson", "csv"])("get complete rows on Ctrl-C: %s", async (format) => {
    const { home } = await start(({ token }) => {
      const page = Number(token ?? 0);
      const given = envelope([entity(2 * page), entity(2 * page + 1)], String(page + 1));
      return (response) =>
        void setTimeout(() => response.writeHead(200, { "content-type": "application/json" }).end(given), 20);
    });
    const child = home.start(["entities", "list", "--all", "-o", format]);
    child.stdin!.end();
    let stdout = "";
    child.stdout!.on("data", (chunk) => {
      stdout += String(chunk);
      // Sends no second signal: near its exit, the process no longer handles signals.
      if (stdout.split("\n").length > 12 && !child.killed) child.kill("SIGINT");
    });
    const code = await new Promise((resolve) => child.on("close", resolve));
    expect(code).toBe(130);
    const printedIds =
      format === "ndjson" ? idsOf(stdout) : [...stdout.matchAll(/^(ent_\d+),.*Z\r\n/gm)].map(([, id]) => id);
    expect(printedIds).toEqual(ids(0, printedIds.length));
    expect(stdout.split("\n").length - 1).toBe(printedIds.length + (format === "csv" ? 1 : 0));
    expect(printedIds.length % 2).toBe(0);
  });
});

describe("--out", () => {
  it("never overwrites a file, follows a link, or writes to a folder", async () => {
    const { server, home, list } = await start(pagesOf([2]));
    writeFileSync(home.path("there"), "mine");
    mkdirSync(home.path("folder"));
    for (const name of ["there", "folder", "/dev/null"]) {
      const { code } = await list(["--all", "--out", name]);
      expect([name, code]).toEqual([name, 2]);
    }
    expect(readFileSync(home.path("there"), "utf8")).toBe("mine");
    expect(server.requests).toEqual([]);
    expect((await list(["--all", "--ndjson", "--out", "there", "--force"])).code).toBe(0);
    expect(idsOf(readFileSync(home.path("there"), "utf8"))).toEqual(ids(0, 2));
  });

  it("leaves only the finished file, and --resume then says that there is nothing to resume", async () => {
    const { server, home, list } = await start(pagesOf([2, 1]));
    const first = await list(["--all", "--out", "rows.csv"]);
    expect([first.code, first.stdout]).toEqual([0, ""]);
    expect(first.stderr).toMatch(/(?:^|\n)Note: Wrote rows\.csv: 3 entities, \d+ bytes\.\n$/);
    const before = readFileSync(home.path("rows.csv"), "utf8");
    const again = await list(["--all", "--out", "rows.csv", "--resume"]);
    expect([again.code, again.stderr]).toEqual([2, expect.stringContaining("there is nothing to resume")]);
    expect([existsSync(home.path("rows.csv.resume")), server.requests.length]).toEqual([false, 2]);
    expect(readFileSync(home.path("rows.csv"), "utf8")).toBe(before);
    expect((await list(["--all", "--out", "rows.txt"])).code).toBe(2);
    expect((await list(["--all", "--out", "rows.txt"], { env: { INTEG_OUTPUT: "yaml" } })).code).toBe(0);
  });

  it("--resume continues at the failed page; another filter, profile or contract version is refused", async () => {
    let isBroken = true;
    const pages = pagesOf([2, 0, 3, 1]);
    const { server, home, list } = await start((request) =>
      request.token === "token-2" && isBroken ? (response) => void response.writeHead(500).end("{}") : pages(request),
    );
    const walk = ["--all", "--ndjson", "--out", "file", "--filter", "status=active"];
    const broken = await list([...walk, "--retry-for", "0"]);
    expect(broken.code).toBe(1);
    expect(broken.stderr).toContain("--resume");
    const before = readFileSync(home.path("file"), "utf8");
    expect(idsOf(before)).toEqual(ids(0, 2));
    const requestCount = server.requests.length;
    const other = ["--all", "--ndjson", "--out", "file", "--resume"];
    const others: [string, readonly string[], Record<string, string>][] = [
      ["filters", other, {}],
      ["filters", [...other, "--filter", "status=other"], {}],
      ["list", [...walk, "--resume", "--type", "person"], {}],
      ["service version", [...walk, "--resume", "--service-version", "2026-08-01"], {}],
      [
        "base url",
        [...walk, "--resume"],
        { INTEG_BASE_URL: server.env.INTEG_BASE_URL!.replace("127.0.0.1", "localhost") },
      ],
      ["fields", [...walk, "--resume", "--fields", "id"], {}],
      ["format", [...walk.filter((word) => word !== "--ndjson"), "--resume", "-o", "csv"], {}],
    ];
    for (const [what, words, env] of others) {
      const { code, stderr } = await list(words, { env });
      expect([what, code, stderr]).toEqual([what, 2, expect.stringContaining(what)]);
    }
    expect(server.requests.length).toBe(requestCount);
    expect(readFileSync(home.path("file"), "utf8")).toBe(before);
    isBroken = false;
    expect((await list([...walk, "--resume"])).code).toBe(0);
    expect(idsOf(readFileSync(home.path("file"), "utf8"))).toEqual(ids(0, 6));
    expect(server.requests[requestCount]!.token).toBe("token-2");
  });

  it("--resume with another profile of the same service is refused, and with the first one continues", async () => {
    let isBroken = true;
    const pages = pagesOf([2, 1]);
    const { server, home, list } = await start((request) =>
      request.token === "token-1" && isBroken ? (response) => void response.writeHead(500).end("{}") : pages(request),
    );
    const baseUrl = server.env.INTEG_BASE_URL!;
    for (const name of ["first", "second"]) {
      const address = ["--region", "us", "--base-url", baseUrl];
      const words = ["profiles", "add", name, "--no-verify", ...address, "--api-key-stdin"];
      expect((await home.integ(words, { input: "the-same-key\n" })).code).toBe(0);
    }
    const walk = ["--all", "--ndjson", "--out", "file", "--quiet", "--retry-for", "0"];
    expect((await list([...walk, "-p", "first"])).code).toBe(1);
    isBroken = false;
    const { code, stderr } = await list([...walk, "--resume", "-p", "second"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("belongs to another list (profile)")]);
    expect(server.requests).toHaveLength(2);
    expect((await list([...walk, "--resume", "-p", "first"])).code).toBe(0);
    expect(idsOf(readFileSync(home.path("file"), "utf8"))).toEqual(ids(0, 3));
  });
});
