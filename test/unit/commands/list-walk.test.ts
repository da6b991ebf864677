import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { Attempt } from "../../../src/api/call/attempt.ts";
import type { ListRequest, RawPage } from "../../../src/api/entities-and-cohorts.ts";
import { printList, type ListFlags } from "../../../src/commands/running/list-walk.ts";
import type { Context } from "../../../src/context.ts";
import { Failure } from "../../../src/errors.ts";
import { envelope, entity, idsOf } from "../../e2e/list-server.ts";
import { stage } from "../output/streams.ts";

const folder = mkdtempSync(join(tmpdir(), "integ-list-walk-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Run {
  readonly flags?: ListFlags;
  readonly format?: "ndjson" | "json" | "table";
  readonly typedFormat?: "ndjson" | "table";
  readonly fields?: readonly string[];
  readonly profile?: Record<string, unknown>;
  /** The number of rows at the service, whose page tokens are offsets. */
  readonly rows?: number;
  /** The service responds with 500 from this row on. */
  readonly breaksAt?: number;
  readonly secondsEach?: number;
  /** Rows of a page beyond the requested number. */
  readonly surplus?: number;
}

async function list(run: Run) {
  const {
    flags = {},
    format = "ndjson",
    typedFormat,
    fields,
    profile = {},
    rows = 10,
    breaksAt,
    surplus = 0,
    secondsEach = 0,
  } = run;
  const { output, stdout, stderr } = stage({ format, typedFormat, ...(fields && { fields }) });
  const sent: ListRequest[] = [];
  const shown: string[] = [];
  const progress = () => ({ update: (label: string) => void shown.push(label), done() {} });
  const page = async (request: ListRequest): Promise<Attempt<RawPage>> => {
    sent.push(request);
    const from = Number(request.pageToken ?? 0);
    if (breaksAt !== undefined && from >= breaksAt)
      return { kind: "unknown", status: 500, reason: "status", detail: "the service answered 500" };
    const to = Math.min(rows, from + (request.limit ?? 25) + surplus);
    const data = Array.from({ length: to - from }, (_, row) => entity(from + row));
    const body = Buffer.from(envelope(data, to < rows ? String(to) : null));
    return { kind: "answered", status: 200, value: { body, requestId: undefined }, body: Buffer.alloc(0) };
  };
  const active = { id: "p1", name: "prod", region: "us", baseUrl: "https://a.example.com", ...profile };
  const context = {
    settings: { cwd: folder, retryForMs: 0, ownPlaces: [] },
    profiles: { active: async () => active },
    connect: async () => ({}),
    output: { ...output, progress },
    clock: {
      now: () => 0,
      elapsed: () => sent.length * secondsEach * 1000,
      random: () => 0,
      sleep: async () => {},
      interruption: new AbortController().signal,
    },
  } as unknown as Context;
  const view = { columns: [{ path: "id", heading: "id" }], singular: "entity", plural: "entities" };
  let failure: unknown;
  try {
    await printList(context, view, { flags, name: "entities", pagesOf: () => page });
  } catch (error) {
    failure = error;
  }
  // The stream accepts one note in each turn of the event loop.
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
  const tokens = sent.map(({ pageToken }) => pageToken);
  return { failure: failure as Failure | undefined, printed: stdout.text, notes: stderr.text, sent, tokens, shown };
}

let files = 0;
const newFile = (): string => `rows-${++files}`;
const written = (file: string): string => readFileSync(join(folder, file), "utf8");
const ids = (count: number): string[] => Array.from({ length: count }, (_, i) => `ent_${i}`);

describe("a list that fails", () => {
  it("reports the number of rows, and the token to continue with", async () => {
    const { failure, printed } = await list({ flags: { all: true, limit: "3" }, breaksAt: 6 });
    expect(idsOf(printed)).toEqual(ids(6));
    expect(failure?.details.meaning).toContain("after 6 entities");
    expect(failure?.details.nextCommand).toEqual({ add: ["--page-token", "6"] });
  });

  it("before its first row reports no rows", async () => {
    const { failure } = await list({ flags: { all: true }, breaksAt: 0 });
    expect(failure?.kind).toBe("failed");
    expect(JSON.stringify(failure?.details)).not.toMatch(/rows|list stopped|page-token/);
  });

  it("into a file names --resume, which continues there and requests nothing twice", async () => {
    const out = newFile();
    const broken = await list({ flags: { all: true, limit: "3", out }, breaksAt: 6 });
    expect(broken.failure?.details.nextCommand).toEqual({ add: ["--resume"], without: ["--force"] });
    const { failure, tokens } = await list({ flags: { all: true, limit: "3", out, resume: true } });
    expect([failure, tokens]).toEqual([undefined, ["6", "9"]]);
    expect(idsOf(written(out))).toEqual(ids(10));
  });

  it("into a file with repeated rows cannot be resumed, and does not offer it", async () => {
    const { failure } = await list({ flags: { all: true, limit: "3", unique: true, out: newFile() }, breaksAt: 6 });
    expect(failure?.details.nextCommand).toEqual({ add: ["--page-token", "6"] });
  });
});

describe("--resume", () => {
  it("shows the speed of this run, without rows of an earlier one", async () => {
    const out = newFile();
    await list({ flags: { all: true, limit: "5", out }, rows: 10, breaksAt: 5 });
    const { shown } = await list({ flags: { all: true, limit: "5", out, resume: true }, rows: 10, secondsEach: 1 });
    expect(shown).toEqual(["Reading entities: 10 (5 rows/s, 1 s)"]);
  });

  it("requests nothing if only the end of the file was missing", async () => {
    const out = newFile();
    await list({ flags: { all: true, limit: "3", out }, breaksAt: 9, format: "json" });
    const place = join(folder, `${out}.resume`);
    const noted = JSON.parse(readFileSync(place, "utf8")) as Record<string, unknown>;
    writeFileSync(place, JSON.stringify({ ...noted, nextPageToken: null, hasMore: false }));
    const { failure, sent } = await list({ flags: { all: true, limit: "3", out, resume: true }, format: "json" });
    expect([failure, sent]).toEqual([undefined, []]);
    expect((JSON.parse(written(out)) as { data: unknown[] }).data).toHaveLength(9);
  });

  it("counts earlier rows towards --max", async () => {
    const out = newFile();
    await list({ flags: { max: "8", limit: "3", out }, breaksAt: 6 });
    const { failure, sent, notes } = await list({ flags: { max: "8", limit: "3", out, resume: true } });
    expect([failure, sent.map(({ pageToken, limit }) => [pageToken, limit])]).toEqual([undefined, [["6", 2]]]);
    expect(idsOf(written(out))).toEqual(ids(8));
    expect(notes).toContain("--page-token 8");
  });

  it.each([
    ["profile", { id: "p2" }],
    ["base url", { baseUrl: "https://b.example.com" }],
    ["organization", { organizationId: "11111111-2222-4333-8444-555555555555" }],
    ["service version", { serviceVersion: "2026-08-01" }],
  ])("with another %s is refused before any request", async (what, profile) => {
    const out = newFile();
    await list({ flags: { all: true, limit: "3", out }, breaksAt: 6 });
    const before = written(out);
    const { failure, sent } = await list({ flags: { all: true, limit: "3", out, resume: true }, profile });
    expect([failure?.kind, failure?.message]).toEqual(["usage", expect.stringContaining(`(${what})`)]);
    expect([sent, written(out)]).toEqual([[], before]);
  });

  it.each<ListFlags>([{ all: true }, { max: "5" }, {}])(
    "of a finished list requests and changes nothing: %j",
    async (flags) => {
      const out = newFile();
      await list({ flags: { ...flags, limit: "3", out } });
      expect(existsSync(join(folder, `${out}.resume`))).toBe(false);
      const before = written(out);
      const { failure, sent } = await list({ flags: { ...flags, limit: "3", out, resume: true } });
      expect([failure?.kind, failure?.message]).toEqual([
        "usage",
        expect.stringContaining("there is nothing to resume"),
      ]);
      expect([sent, written(out)]).toEqual([[], before]);
    },
  );
});

describe("--out", () => {
  it.each([
    ["rows.ndjson", undefined, "ndjson"],
    ["rows.jsonl", undefined, "ndjson"],
    ["rows.JSON", undefined, "json"],
    ["rows.csv", undefined, "csv"],
    ["rows.yml", undefined, "yaml"],
    ["rows.yaml", undefined, "yaml"],
    ["typed.csv", "ndjson", "ndjson"],
  ] as const)("%s, typed format %s: %s", async (name, typedFormat, format) => {
    const { failure, notes } = await list({ flags: { limit: "2", out: name }, format: "table", typedFormat });
    expect(failure).toBeUndefined();
    const text = written(name);
    const begins = { ndjson: '{"id":"ent_0"', json: '{"object":"list"', csv: "id\r\n", yaml: "" }[format];
    expect(text.startsWith(begins), text).toBe(true);
    if (format === "yaml") expect(text).toMatch(/^object: "?list/);
    expect(notes).toContain(`Note: Wrote ${name}: 2 entities, ${text.length} bytes.\n`);
  });

  it.each([
    ["rows", undefined, false],
    ["rows.txt", undefined, true],
    ["rows.csv", "table", false],
  ] as const)("of a table is refused: %s, typed format %s", async (out, typedFormat, resume) => {
    const flags: ListFlags = { all: true, out, ...(resume && { resume }) };
    const { failure, sent } = await list({ flags, format: "table", typedFormat });
    expect([failure?.kind, failure?.details.hint, sent]).toEqual(["usage", expect.stringContaining("-o ndjson"), []]);
  });
});

describe("rows that are not printed", () => {
  it("are reported after one page and after --max, with the way to continue", async () => {
    expect((await list({ flags: { limit: "4" } })).notes).toContain("--all fetches every page, --page-token 4");
    const { notes } = await list({ flags: { max: "5" } });
    expect(notes).toContain("--page-token 5");
    expect(notes).not.toContain("--all");
    expect((await list({ flags: { all: true } })).notes).toBe("");
  });

  it("are the whole last page if --max leaves no space for it", async () => {
    const { failure, printed } = await list({ flags: { max: "5", limit: "3" }, surplus: 1 });
    expect(failure?.kind).toBe("unreachable");
    expect(idsOf(printed)).toEqual(ids(4));
  });
});
