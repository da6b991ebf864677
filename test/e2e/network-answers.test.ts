// Every status × body × framing of an answer to a creation: none is taken for a success that is none, no secret that could
// be read is thrown away. All of them read by the client, a sample through the built program, its journal and its files.
import { existsSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect, type Service } from "../../src/api/connect.ts";
import { decideCreation } from "../../src/api/oauth-client-creation.ts";
import { createTransport } from "../../src/api/http/transport.ts";
import { readJournal } from "../support/journal-file.ts";
import { type Ended, Home } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { type ScriptedPeer, startScriptedPeer } from "../support/scripted-peer.ts";
import { spread } from "../support/strace.ts";
import { type Answer, bytesOf, everyAnswer, meaningsOf, secretText } from "./network-answer-cases.ts";
import { isFull } from "../support/sample.ts";
import { recordFigure } from "../support/figures.mjs";

let due: Answer;
let peer: ScriptedPeer;

beforeAll(async () => {
  // A look at a pending client finds it pending; everything else gets the answer that is due.
  const pending: Answer = { status: 200, body: "pending", framing: "json" };
  peer = await startScriptedPeer((request) => bytesOf(request.startsWith("POST ") ? due : pending));
});
afterAll(() => peer.close());

function nameOf({ status, body, framing }: Answer): string {
  return `${status}, body ${body}, framing ${framing}`;
}

describe("read by the client", () => {
  const meaningOf = {
    store_secret: "delivered",
    secret_lost: "lost",
    pending: "pending",
    unusable: "unusable",
    key_reuse: "refused",
    refused: "refused",
    wait: "wait",
    not_sent: "not_sent",
  } as const;

  function here(): Service {
    const transport = createTransport({
      locate: async (baseUrl) => baseUrl,
      timeoutMs: 20_000,
      signal: new AbortController().signal,
      userAgent: "integ-test",
    });
    return connect({
      transport,
      baseUrl: peer.origin,
      credential: async () => ({ kind: "api_key", key: "k", style: "apikey-user" }),
      legacyCredential: () => Promise.reject(new Error("not asked for")),
      now: Date.now,
    });
  }

  it("every answer comes to what the document says", { timeout: 600_000 }, async () => {
    const service = here();
    const all = everyAnswer();
    const wrong: string[] = [];
    let falseSuccesses = 0;
    for (const answer of isFull ? all : all.filter((_, index) => index % 29 === 0)) {
      due = answer;
      const decision = decideCreation(await service.oauthClients.create("{}", "key"));
      const meaning =
        decision.kind === "unknown"
          ? decision.secret?.secret === secretText
            ? "kept"
            : "unknown"
          : meaningOf[decision.kind];
      const expected: readonly string[] = meaningsOf(answer);
      if (meaning === "delivered" && !expected.includes("delivered")) falseSuccesses += 1;
      if (!expected.includes(meaning)) wrong.push(`${nameOf(answer)}: ${meaning}, not ${expected.join(" or ")}`);
    }
    service.close();
    const found = { answers: all.length, tried: peer.requests.length, falseSuccesses, wrong: wrong.length };
    recordFigure("network answers", found, "client");
    expect(wrong).toEqual([]);
  });
});

describe("through the built program", () => {
  const exitOf: Readonly<Record<string, readonly number[]>> = {
    delivered: [0],
    lost: [9],
    pending: [8],
    unusable: [13],
    kept: [12],
    unknown: [7],
    refused: [1, 3, 4, 5],
    wait: [6],
  };
  const stateOf: Readonly<Record<string, string>> = {
    delivered: "done",
    lost: "secret_lost",
    pending: "pending",
    unusable: "unusable",
    kept: "undelivered",
    unknown: "unknown",
    refused: "refused",
    wait: "open",
  };

  function create(at: Home): Promise<Ended> {
    const words =
      "oauth-clients create --service-account sa_1 --scope entity:read --secret-file s --retry-for 0 --wait 0s";
    return integHere(at, words.split(" "));
  }

  /** What is not as the answer says, in words. */
  async function faultsOf(answer: Answer): Promise<string[]> {
    due = answer;
    const at = new Home({ INTEG_REGION: "us", INTEG_BASE_URL: peer.origin, INTEG_API_KEY: "k" });
    try {
      const { code, stderr } = await create(at);
      const expected = meaningsOf(answer);
      const meaning = expected.find((one) => exitOf[one]!.includes(code ?? -1));
      if (meaning === undefined) return [`${nameOf(answer)}: exit ${code}, not ${expected.join(" or ")}: ${stderr}`];
      const [entry] = readJournal(at.path("state", "journal.ndjson"));
      const file = existsSync(at.path("s")) ? readFileSync(at.path("s"), "utf8") : undefined;
      const faults: string[] = [];
      if (entry?.state !== stateOf[meaning]) faults.push(`the entry is ${entry?.state}, not ${stateOf[meaning]}`);
      if (file !== (meaning === "delivered" ? secretText : undefined)) faults.push(`its file: ${file}`);
      if (meaning === "kept" && entry) {
        const claimed = await integHere(at, ["journal", "claim", entry.id, "--secret-file", "claimed"]);
        if (claimed.code !== 0 || readFileSync(at.path("claimed"), "utf8") !== secretText)
          faults.push(`claim ended with ${claimed.code}: ${claimed.stderr}`);
      }
      return faults.map((fault) => `${nameOf(answer)}, exit ${code}: ${fault}`);
    } finally {
      at.remove();
    }
  }

  /** One answer of every sort that the table tells apart, then more of the statuses and framings that matter most. */
  function sample(): Answer[] {
    const seen = new Set<string>();
    const all = everyAnswer();
    const sorts = all.filter(({ status, body, framing }) => {
      const sort = `${status === 201 ? "201" : Math.floor(status / 100)} ${meaningsOf({ status, body, framing }).join()}`;
      return seen.size < seen.add(sort).size;
    });
    const created = all.filter(({ status }) => status === 201);
    return isFull ? [...spread(all, 1500), ...created] : [...sorts, ...spread(created, 12)];
  }

  it("exit code, journal and file say the same", { timeout: 7_200_000 }, async () => {
    const answers = sample();
    const faults: string[] = [];
    for (const answer of answers) faults.push(...(await faultsOf(answer)));
    recordFigure("network answers", { answers: answers.length, wrong: faults.length }, "program");
    expect(faults).toEqual([]);
  });
});
