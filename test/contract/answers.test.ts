import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { Home, isOtherBinary } from "../support/program.ts";
import { answersIn } from "../support/recorded-answers.ts";
import { startService } from "../support/service.ts";
import { AnswersCheck, type RecordedAnswer } from "./answers-check.ts";
import { type Document, readDocuments } from "./openapi-check.ts";
import { startWorld } from "./world.ts";

let documents: Document[] = [];
let page: RecordedAnswer;
let refusal: RecordedAnswer;

async function recordedOf(path: string): Promise<RecordedAnswer[]> {
  const answers: RecordedAnswer[] = [];
  for await (const answer of answersIn(process.env.INTEG_TEST_ANSWERS!)) if (answer.path === path) answers.push(answer);
  return answers;
}

const uniquePath = (): string => `/v1/oauth_clients/oac_${randomUUID()}`;
const basic = (key: unknown): string => `Basic ${Buffer.from(`apikey:${String(key)}`).toString("base64")}`;

beforeAll(async () => {
  const world = await startWorld();
  const { base_url, api_key, cohort_ids } = world.description.us;
  documents = await readDocuments(String(base_url));
  // A percent-encoded letter makes the path unique: no other test writes this cohort's id in that way.
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

describe("recorded sandbox responses", () => {
  it("include those of a sandbox in the test process, as sent to the socket", () => {
    expect(page).toMatchObject({ method: "GET", status: 200, faults: [] });
    expect(JSON.parse(page.text!).data).toHaveLength(2);
    expect(refusal.headers).toMatchObject({ "request-id": JSON.parse(refusal.text!).request_id });
  });

  it.skipIf(isOther)("include those of a sandbox process, with the faults that applied", async () => {
    const service = await startService();
    const [calm, faulty] = [uniquePath(), uniquePath()];
    await service.fault(`GET ${faulty} status=503`);
    for (const path of [calm, faulty])
      await fetch(service.us.base_url + path, { headers: { authorization: basic(service.us.api_key) } });
    await service.stop();
    expect(await recordedOf(calm)).toMatchObject([{ status: 404, faults: [] }]);
    expect(await recordedOf(faulty)).toMatchObject([{ status: 503, faults: ["status"] }]);
  });

  it.skipIf(isOther)("include those of a sandbox that a command starts for itself", async () => {
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

  it("passes the check unchanged", () => {
    expect([wrongOf(page), wrongOf(refusal)]).toEqual([[], []]);
  });

  it.each<[string, () => RecordedAnswer]>([
    ["an extra field", () => edited(page, (body) => (body.extra = 1))],
    ["a missing field", () => edited(page, (body) => delete body.next_page_token)],
    ["a row's field of another type", () => edited(page, (body) => (body.data[1]!.created_at = 5))],
    ["a time without milliseconds", () => edited(page, (body) => (body.data[0]!.created_at = "2026-01-01T00:00:00Z"))],
    ["a body that is not JSON", () => ({ ...page, text: page.text!.slice(1) })],
    ["an undocumented status", () => ({ ...page, status: 206 })],
    ["no request id", () => ({ ...page, headers: {} })],
    ["a secret in a field without one", () => edited(refusal, (body) => (body.client_secret = "s"))],
    ["an error object with another status", () => edited(refusal, (body) => (body.status = 400))],
    [
      "an error object without an operation, with another status",
      () => edited({ ...refusal, path: "/x" }, (body) => (body.status = 400)),
    ],
    ["another request id in the body", () => edited({ ...refusal, path: "/x" }, (body) => (body.request_id = "r"))],
    ["a page at an unknown path", () => ({ ...page, path: "/nowhere" })],
    ["a page in place of a fault's error", () => ({ ...page, faults: ["status"] })],
  ])("fails the check with %s", (_, broken) => {
    expect(wrongOf(broken())).toHaveLength(1);
  });

  it("is excluded from the check only by the name of the fault that broke it", () => {
    const broken = edited(page, (body) => (body.has_more = "yes"));
    for (const fault of ["envelope", "body", "cut", "drop"])
      expect(wrongOf({ ...broken, faults: [fault] }), fault).toEqual([]);
    for (const fault of ["times", "latency", "slow", "token", "pending", "secret", "cleanup", "text", "rate"])
      expect(wrongOf({ ...broken, faults: [fault] }), fault).toHaveLength(1);
  });
});
