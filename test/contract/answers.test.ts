// That every sandbox of the run is recorded, wherever it lives, and that a wrong answer among them is seen.
import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { Home, isOtherBinary, root } from "../support/program.ts";
import { answersIn } from "../support/recorded-answers.ts";
import { startService } from "../support/service.ts";
import { AnswersCheck, type RecordedAnswer } from "./answers-check.ts";
import { type Document, readDocuments } from "./openapi-check.ts";
import { startWorld } from "./world.ts";

let documents: Document[] = [];
/** Two answers as they are recorded: a page, and a refusal. */
let page: RecordedAnswer;
let refusal: RecordedAnswer;

/** What was recorded of a path that only one request of the run has. */
async function recordedOf(path: string): Promise<RecordedAnswer[]> {
  const found: RecordedAnswer[] = [];
  for await (const answer of answersIn(process.env.INTEG_TEST_ANSWERS!)) if (answer.path === path) found.push(answer);
  return found;
}

const uniquePath = (): string => `/v1/oauth_clients/oac_${randomUUID()}`;
const basic = (key: unknown): string => `Basic ${Buffer.from(`apikey:${String(key)}`).toString("base64")}`;

beforeAll(async () => {
  const world = await startWorld();
  const { base_url, api_key, cohort_ids } = world.description.us;
  documents = await readDocuments(String(base_url));
  // A blank, encoded: nobody else asks for this cohort so.
  const path = `/v1/cohorts/${encodeURIComponent(String((cohort_ids as string[])[0])).replace("c", "%63")}/members`;
  const headers = { authorization: basic(api_key) };
  await (await fetch(`${String(base_url)}${path}?limit=2`, { headers })).text();
  const lost = uniquePath();
  await (await fetch(String(base_url) + lost, { headers })).text();
  await world.close();
  [page] = (await recordedOf(path)) as [RecordedAnswer];
  [refusal] = (await recordedOf(lost)) as [RecordedAnswer];
});

const isOther = isOtherBinary("answers of its sandboxes are recorded");

describe("the sandbox's answers are recorded", () => {
  it("in the process that runs the tests, as they go to the socket", () => {
    expect(page).toMatchObject({ method: "GET", status: 200, faults: [] });
    expect(JSON.parse(page.text!).data).toHaveLength(2);
    expect(refusal.headers).toMatchObject({ "request-id": JSON.parse(refusal.text!).request_id });
  });

  it.skipIf(isOther)("of a standing one, with the faults that met the request", async () => {
    const service = await startService();
    const [calm, faulty] = [uniquePath(), uniquePath()];
    await service.fault(`GET ${faulty} status=503`);
    for (const path of [calm, faulty])
      await fetch(service.us.base_url + path, { headers: { authorization: basic(service.us.api_key) } });
    await service.stop();
    expect(await recordedOf(calm)).toMatchObject([{ status: 404, faults: [] }]);
    expect(await recordedOf(faulty)).toMatchObject([{ status: 503, faults: ["status"] }]);
  });

  it.skipIf(isOther)("of the one inside a command", async () => {
    const at = new Home();
    const path = uniquePath();
    expect((await at.integ(["api", path, "-p", "sandbox"])).code).toBe(4);
    at.remove();
    expect(await recordedOf(path)).toMatchObject([{ method: "GET", status: 404 }]);
  });
});

type Editable = Record<string, unknown> & { readonly data: Record<string, unknown>[] };

describe("a recorded answer", () => {
  const wrongOf = (answer: RecordedAnswer): string[] => {
    const check = new AnswersCheck(documents);
    check.take(answer);
    return check.wrong;
  };
  const edited = (answer: RecordedAnswer, edit: (body: Editable) => void): RecordedAnswer => {
    const body: Editable = JSON.parse(answer.text!);
    edit(body);
    return { ...answer, text: JSON.stringify(body) };
  };

  it("as it came is right", () => {
    expect([wrongOf(page), wrongOf(refusal)]).toEqual([[], []]);
  });

  it.each<[string, () => RecordedAnswer]>([
    ["a field more", () => edited(page, (body) => (body.extra = 1))],
    ["a field less", () => edited(page, (body) => delete body.next_page_token)],
    ["a field of a row of another type", () => edited(page, (body) => (body.data[1]!.created_at = 5))],
    ["a time without milliseconds", () => edited(page, (body) => (body.data[0]!.created_at = "2026-01-01T00:00:00Z"))],
    ["a body that is no JSON", () => ({ ...page, text: page.text!.slice(1) })],
    ["a status that the operation does not have", () => ({ ...page, status: 206 })],
    ["no request id", () => ({ ...page, headers: {} })],
    ["a secret where none may be stored", () => edited(refusal, (body) => (body.client_secret = "s"))],
    ["an error object that says another status", () => edited(refusal, (body) => (body.status = 400))],
    [
      "an error object of no operation that says another status",
      () => edited({ ...refusal, path: "/x" }, (body) => (body.status = 400)),
    ],
    ["another request id in the body", () => edited({ ...refusal, path: "/x" }, (body) => (body.request_id = "r"))],
    ["a page where nothing is", () => ({ ...page, path: "/nowhere" })],
    ["a page where a fault chose the status", () => ({ ...page, faults: ["status"] })],
  ])("with %s is wrong", (_, broken) => {
    expect(wrongOf(broken())).toHaveLength(1);
  });

  it("that a fault broke on purpose is excluded, by the fault's name alone", () => {
    const broken = edited(page, (body) => (body.has_more = "yes"));
    for (const fault of ["envelope", "body", "cut", "drop"])
      expect(wrongOf({ ...broken, faults: [fault] }), fault).toEqual([]);
    for (const fault of ["times", "latency", "slow", "token", "pending", "secret", "cleanup", "text", "rate"])
      expect(wrongOf({ ...broken, faults: [fault] }), fault).toHaveLength(1);
  });
});

describe("a run of tests that all pass", () => {
  /** Runs vitest over one test that leaves this answer behind. */
  function runWith(answer: RecordedAnswer): { status: number | null; told: string } {
    const folder = mkdtempSync(join(tmpdir(), "integ-run-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const setup = join(root, "test/support/recorded-answers.ts");
    const test = { globals: true, include: ["*.test.mjs"], globalSetup: [setup], teardownTimeout: 60_000 };
    writeFileSync(join(folder, "vitest.config.mjs"), `export default ${JSON.stringify({ test })};`);
    const line = JSON.stringify(`${JSON.stringify(answer)}\n`);
    const keep = `process.env.INTEG_TEST_ANSWERS + "/one.ndjson", ${line}`;
    const text = `import { writeFileSync } from "node:fs"; test("one", () => writeFileSync(${keep}));`;
    writeFileSync(join(folder, "one.test.mjs"), text);
    const vitest = join(root, "node_modules/vitest/vitest.mjs");
    // A run of its own, with a folder of its own for the answers.
    const { INTEG_TEST_ANSWERS: _outer, ...env } = process.env;
    const run = spawnSync(process.execPath, [vitest, "run", "--root", folder], { encoding: "utf8", env });
    return { status: run.status, told: run.stdout + run.stderr };
  }

  it("ends well with right answers, and tells how many there were", () => {
    const { status, told } = runWith(page);
    expect(told).toContain("sandbox: 1 answers of 1 kinds checked, 0 wrong");
    expect(status, told).toBe(0);
  });

  it("fails where one answer is wrong", () => {
    const { status, told } = runWith({ ...page, status: 206 });
    expect(told).toContain("GET /v1/cohorts/{id}/members 206: the document knows no such status");
    expect(status, told).toBe(1);
  });
});
