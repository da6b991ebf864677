// Checks how the client reads the responses of the cases, from a plain server on a real socket.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Attempt } from "../../src/api/call/attempt.ts";
import { mayRetryRead } from "../../src/api/call/retry.ts";
import type { Rows } from "../../src/api/json/unknown-list.ts";
import { decideCreation } from "../../src/api/oauth-client-creation.ts";
import type { RawPage } from "../../src/api/entities-and-cohorts.ts";
import { checkPage } from "../../src/api/pages.ts";
import { Failure } from "../../src/errors.ts";
import { type Answer, type ContractCase, type JsonObject, readCases, type RequestStep } from "./case.ts";
import { AnsweringServer, namesIn, requestId, type Served, completeResponse } from "./client-answers.ts";
import { type OpenClient, openClient } from "./client-service.ts";
import { fillRequest, type FilledRequest, type Call, callOf, rawCall } from "./client-call.ts";

const server = new AnsweringServer();
let service: OpenClient;
let exchanging: OpenClient;

beforeAll(async () => {
  const address = await server.start();
  service = openClient(address, { kind: "access_token", token: "a-token" });
  exchanging = openClient(address, {
    kind: "exchange_endpoint",
    url: `${address}/api/v1/access-tokens`,
    secret: "a-secret",
  });
});

afterAll(() => {
  service.close();
  exchanging.close();
  server.close();
});

beforeEach(() => void server.received.splice(0));

/** Sends the typed call, or the raw call if the client refuses the typed call. */
async function sendOr(
  call: Call,
  request: FilledRequest,
): Promise<{ attempt: Attempt<unknown>; call: Call } | "nothing sent"> {
  try {
    const attempt = await call.send(call.operation === "key token" ? exchanging : service);
    if (attempt!.kind !== "not_sent" || attempt!.reason !== "unsendable") return { attempt: attempt!, call };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    expect(error.kind, error.message).toBe("usage");
  }
  expect(server.received).toEqual([]);
  const raw = rawCall(request);
  if (typeof raw === "string" || call.operation === "raw") return "nothing sent";
  return await sendOr(raw, request);
}

/** Steps that no client call can send, each with the reason. */
const unread = new Set<string>();
let read = 0;

async function readStep(one: ContractCase, step: RequestStep, index: number): Promise<void> {
  const names = namesIn(one);
  const request = fillRequest(step, names);
  const place = `§${one.section} ${one.name}, step ${index + 1}: ${step.request}`;
  const call = callOf(request);
  if (typeof call === "string") {
    unread.add(`${place}: ${call}`);
    return;
  }
  server.next = step.answer === "lost" ? "lost" : completeResponse({ ...step, answer: step.answer }, names);
  server.received.splice(0);
  const sent = await sendOr(call, request);
  if (sent === "nothing sent") {
    unread.add(`${place}: HTTP cannot carry it`);
    return;
  }
  read += 1;
  expectArrived(request, sent.call, place);
  expectOutcome(sent.attempt, { ...sent, step, place });
}

function expectArrived(request: FilledRequest, { operation }: Call, place: string): void {
  const [arrived, ...more] = server.received;
  // If a request for a specification is refused, the client repeats it with credentials.
  if (operation !== "specification") expect(more, place).toEqual([]);
  expect(arrived!.method, place).toBe(request.method);
  const at = new URL(arrived!.path, "http://host");
  expect(at.pathname, place).toBe(new URL(request.path, "http://host").pathname);
  expect(Object.fromEntries(at.searchParams), place).toEqual(Object.fromEntries(request.pairs));
  expect([...at.searchParams].length, place).toBe(request.pairs.length);
  if (request.text !== undefined) expect(arrived!.body, place).toBe(request.text);
  if (request.key !== undefined) expect(arrived!.headers["idempotency-key"], place).toBe(request.key);
  expect(arrived!.headers["x-organization-id"] !== undefined, place).toBe(
    request.path.startsWith("/api/v1/") && operation !== "key token",
  );
}

interface Outcome {
  readonly call: Call;
  readonly step: RequestStep;
  readonly place: string;
}

function expectOutcome(attempt: Attempt<unknown>, { call, step, place }: Outcome): void {
  if (call.operation === "create client")
    expect(decideCreation(attempt as Attempt<never>).kind, place).toBe(decisionOf(server.next));
  if (server.next === "lost") {
    expect(attempt, place).toMatchObject({ kind: "unknown", reason: "closed" });
    return;
  }
  const { status, text, headers } = server.next;
  const body = server.next.body as JsonObject;
  if (status < 300) {
    expect(attempt, place).toMatchObject({ kind: "answered", status, requestId, body: Buffer.from(text) });
    expectValue(attempt as Extract<Attempt<unknown>, { kind: "answered" }>, { call, body, place });
    return;
  }
  const { type: _type, ...fields } = body;
  const oauth = typeof body.error === "string";
  const retryAfterSeconds = headers["retry-after"] === undefined ? undefined : Number(headers["retry-after"]);
  expect(attempt, place).toMatchObject({
    kind: status < 500 ? "refused" : "unknown",
    status,
    problem: oauth ? { status, code: body.error, detail: body.error_description, request_id: requestId } : fields,
    retryAfterSeconds,
  });
  if (status === 429) {
    expect(retryAfterSeconds, place).toBeGreaterThan(0);
    expect(mayRetryRead(attempt), place).toBe(true);
  }
  const answer = step.answer as Answer;
  if (answer.problem?.param !== undefined) expect(fields.param, place).toBeTruthy();
}

function expectValue(
  { value }: Extract<Attempt<unknown>, { kind: "answered" }>,
  { call, body, place }: { call: Call; body: JsonObject; place: string },
): void {
  switch (call.operation) {
    case "entities":
    case "members": {
      const page = checkPage(value as RawPage, { what: call.operation });
      expect(page.nextPageToken, place).toBe(body.next_page_token);
      const rows = page.rows.map((row): unknown => JSON.parse(row.text));
      expect(page.hasMore, place).toBe(body.has_more);
      expect(rows, place).toEqual(body.data);
      return;
    }
    case "create key":
    case "rotate key": {
      const { secret, ...key } = body;
      expect(value, place).toEqual({ key, secret });
      return;
    }
    case "list keys":
    case "search people": {
      const { rows } = value as Rows;
      expect(
        rows.map((row) => ({ value: row.value, text: row.text })),
        place,
      ).toEqual((body.data as JsonObject[]).map((row) => ({ value: row, text: JSON.stringify(row) })));
      return;
    }
    case "client token":
    case "key token":
      expect(value, place).toEqual({ token: body.access_token, expiresInSeconds: body.expires_in });
      return;
    case "raw":
      expect(JSON.parse(String((value as { body: Buffer }).body)), place).toEqual(body);
      return;
    default:
      expect(value, place).toEqual(body);
  }
}

/** The caller decision table of §4.2. */
function decisionOf(served: Served | "lost"): string {
  if (served === "lost" || served.status >= 500) return "unknown";
  const { client_secret, code, ...body } = served.body as JsonObject;
  if (served.status === 429) return "wait";
  if (served.status === 409) return code === "idempotency_key_reuse" ? "key_reuse" : "refused";
  if (served.status >= 400) return "refused";
  if (body.status === "pending") return "pending";
  if (body.status !== "active") return "unusable";
  return client_secret === null ? "secret_lost" : "store_secret";
}

for (const { file, cases } of readCases())
  describe(`the client reads ${file}`, () => {
    for (const one of cases)
      it(`§${one.section}: ${one.name}`, async () => {
        for (const [index, step] of one.steps.entries()) if ("request" in step) await readStep(one, step, index);
      });
  });

it("only these steps have no client call", async () => {
  console.log(`${read} answers of the cases read by the client, ${unread.size} requests without a client call`);
  expect(read).toBeGreaterThan(200);
  await expect(`${[...unread].toSorted().join("\n")}\n`).toMatchFileSnapshot("client-unread.txt");
});
