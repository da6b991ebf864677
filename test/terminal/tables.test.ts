// People copy ids and commands from tables, so tables show them whole at every width. Tables also show values of a fixed
// set whole, because they share prefixes (`oauth_client.create`, `oauth_client.revoke`). Every command is in `tables`, or
// in `others` with the reason.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { KeysDesk } from "../e2e/keys-desk.ts";
import { Home, root } from "../support/program.ts";
import { recordFigure } from "../support/figures.mjs";
import { integHere } from "../support/program-here.ts";
import { isFull } from "../support/sample.ts";
import { serviceOfFile } from "../support/service.ts";
import { Session } from "./session.ts";

const widths = [40, 80, 100, 120, 200];

type Rows = readonly Readonly<Record<string, unknown>>[];

interface Table {
  readonly words: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Fields whose values are copied, besides ids. */
  readonly copied?: readonly string[];
  readonly notShown?: readonly string[];
}

/** `<…>` is an id that is known only while the service runs. */
const tables: Readonly<Record<string, Table | readonly Table[]>> = {
  "entities list": { words: ["--limit", "5"] },
  "cohorts members": { words: ["<cohort>", "--limit", "5"] },
  "people search": { words: ["a"] },
  "people membership": { words: ["<person>"] },
  api: { words: ["/v1/cohorts/<cohort>/members", "--paginate", "-o", "table"] },
  "oauth-clients list": [{ words: [] }, { words: ["--offline"] }],
  "oauth-clients audit": { words: ["--max-age", "0s"], copied: ["remedy"] },
  "oauth-clients revoke": [
    { words: ["<client>", "<old client>", "--dry-run"], copied: ["what", "url", "body"] },
    { words: ["<spare client>", "<other client>", "--yes"] },
  ],
  "oauth-clients create": {
    words: ["--service-account", "<account>", "--scope", "entity:read", "--dry-run"],
    copied: ["what", "url", "body"],
  },
  "oauth-clients rotate": {
    words: ["<client>", "--secret-file", "never", "--dry-run"],
    copied: ["what", "url", "body"],
  },
  "keys list": { words: [] },
  "keys audit": {
    words: ["--max-age", "0s", "--max-idle", "0s", "--times", "iso"],
    copied: ["remedy"],
    notShown: ["rule", "severity"],
  },
  "keys create": {
    words: ["--name", "n", "--scope", "*", "--expires-in", "9d", "--secret-file", "never", "--dry-run"],
    copied: ["what", "url", "body"],
  },
  "keys rotate": {
    words: ["<key>", "--by-replacement", "--expires-in", "9d", "--secret-file", "never", "--yes", "--dry-run"],
    copied: ["what", "url", "body"],
  },
  "keys revoke": { words: ["<spare key>", "<other key>", "--yes"] },
  "journal list": [
    { words: ["--all"], copied: ["next_step"] },
    { words: [], copied: ["next_step"] },
  ],
  "journal show": { words: ["<entry>"], copied: ["next_step"] },
  "journal recover": [
    { words: ["<done entry>", "<other done entry>"], copied: ["next_step"] },
    { words: ["--dry-run"], copied: ["what", "url", "body"] },
  ],
  "journal verify": { words: [], env: { INTEG_JOURNAL: "damaged.ndjson" }, copied: ["where"] },
  "journal claim": { words: ["<kept entry>", "--dry-run"], copied: ["what"] },
  "journal forget": { words: ["<entry>", "--dry-run"], copied: ["what"] },
  "journal trust": { words: ["<entry>", "--dry-run"], copied: ["what"] },
  "journal prune": { words: ["--older-than", "0s", "--dry-run"], copied: ["what"] },
  "journal move": { words: ["--to", "elsewhere.ndjson", "--dry-run"], copied: ["what"] },
  "journal import": { words: ["export.ndjson", "--dry-run"], copied: ["what"] },
  schema: { words: [], copied: ["name"] },
  status: { words: ["--fields", "topic,name,state,detail,due_at,next_step"], copied: ["name", "next_step"] },
  plan: {
    words: ["--only", "billing-of-the-example-organization"],
    copied: ["name"],
    notShown: ["resource_id", "kind", "state"],
  },
  report: { words: [] },
  apply: [
    { words: ["--dry-run"], copied: ["what", "url", "body"] },
    { words: ["--yes", "--only", "billing-of-the-example-organization"], copied: ["name"], notShown: ["kind"] },
  ],
  "adopt oauth-client": { words: ["<client>", "--name", "adopted", "--dry-run"], copied: ["what"] },
  "adopt access-key": { words: ["<key>", "--name", "adopted", "--dry-run"], copied: ["what"] },
  "policy check": { words: [], copied: ["item"] },
  "profiles list": { words: [], copied: ["name"] },
  "profiles show": { words: ["production-of-the-example-organization"], copied: ["name"] },
  "profiles use": { words: ["sandbox", "--dry-run"], copied: ["what"] },
  "profiles edit": {
    words: ["production-of-the-example-organization", "--region", "us", "--dry-run"],
    copied: ["what"],
  },
  "profiles remove": { words: ["production-of-the-example-organization", "--dry-run"], copied: ["what"] },
  "sandbox reset": { words: ["--dry-run"], copied: ["what"] },
  doctor: { words: ["--times", "iso"], env: { INTEG_API_KEY: "wrong" }, copied: ["next"] },
  "spec check": { words: [], env: { DOCTORED: "yes" }, copied: ["subject"] },
  "oauth-clients get": { words: ["<client>"] },
  "keys get": { words: ["<key>"] },
  commands: { words: ["--ndjson"], copied: ["command"] },
};

const others: Readonly<Record<string, string>> = {
  "oauth-clients token": "prints a token response: a heading and a value on each line, nothing cut",
  adopt: "prints what apply does",
  "journal path": "prints a path",
  "journal export": "prints records as they are stored",
  "journal init": "prints notes",
  "journal release": "prints notes",
  "policy init": "writes a file",
  "profiles add": "prints the profile as profiles show does",
  "sandbox start": "prints lines to paste (sandbox-start.test.ts)",
  "sandbox status": "prints lines to paste, at any width the same",
  "sandbox tour": "prints commands and what they print",
  "spec show": "prints a document",
  completion: "prints a script",
};

const itemName = "reporting-of-the-example-organization";
const profileName = "production-of-the-example-organization";

const service = await serviceOfFile();
let at: Home;
let checked = 0;
let idsByName: Readonly<Record<string, string>>;

beforeAll(async () => {
  const { us } = service;
  const desk = new KeysDesk(service, us);
  at = new Home({
    ...service.env,
    INTEG_ACCESS_TOKEN: us.access_token,
    INTEG_TOKEN_ENDPOINT: us.token_endpoint,
  });
  const account = ["--service-account", us.service_account_id, "--scope", "entity:read"];
  const create = ["oauth-clients", "create", ...account, "--new", "--json"];
  const created = async (...more: string[]): Promise<string> =>
    (JSON.parse((await at.integ([...create, ...more])).stdout) as { id: string }).id;
  const clients = [];
  for (const name of ["a", "b", "c", "d"]) clients.push(await created("--secret-file", name));
  const rotate = ["oauth-clients", "rotate", clients[3]!, "--overlap", "36h", "--secret-file", "rotated"];
  expect((await at.integ(rotate)).code).toBe(0);
  await service.fault("POST /v1/oauth_clients drop=after times=1");
  await at.integ([...create, "--secret-file", "e", "--retry-for", "0"]);
  await service.calm();
  await at.integ([...create, "--secret-command", "exit 3"]);
  for (const name of ["nightly", "a key with quite a long name that says what it is for"])
    await at.integ(["keys", "create", "--name", name, "--secret-file", `key-${name.length}`]);
  const keys = [];
  for (const name of ["one", "two", "three"]) keys.push((await desk.makeKey({ name })).id);
  const add = ["profiles", "add", profileName, "--no-verify", "--region", "us", "--base-url", us.base_url];
  await at.integ([...add, "--api-key-command", "echo k"], { env: { INTEG_BASE_URL: "", INTEG_API_KEY: "" } });
  writeFileSync(
    at.path("integ.yaml"),
    `version: 1
id: pol_of_this_test
oauth_clients:
  ${itemName}: { service_account: ${us.service_account_id}, scopes: [entity:read], secret: { file: r.secret } }
  billing-of-the-example-organization: { service_account: ${us.service_account_id}, scopes: [entity:read], secret: unknown }
access_keys:
  deploy: { type: service_account, scopes: ["push-ingest:*"], expires_in: 400d, secret: { file: k.secret } }
`,
  );
  await at.integ(["apply", "--yes", "--only", itemName]);
  await at.integ(["journal", "export", "--out", "export.ndjson"]);
  const journal = readFileSync(at.path("state", "journal.ndjson"), "utf8").split("\n");
  writeFileSync(at.path("damaged.ndjson"), journal.toSpliced(2, 1, "damaged").join("\n"), { mode: 0o600 });
  const { data: people } = JSON.parse((await at.integ(["people", "search", "a", "--json"])).stdout) as { data: Rows };
  const { data: entries } = JSON.parse((await at.integ(["journal", "list", "--all", "--json"])).stdout) as {
    data: { id: string; state: string }[];
  };
  const inState = (state: string): string[] => entries.filter((one) => one.state === state).map(({ id }) => id);
  idsByName = {
    cohort: us.cohort_ids[0]!,
    account: us.service_account_id,
    person: people[0]!.id as string,
    client: clients[0]!,
    "spare client": clients[1]!,
    "other client": clients[2]!,
    "old client": clients[3]!,
    key: keys[0]!,
    "spare key": keys[1]!,
    "other key": keys[2]!,
    entry: inState("unknown")[0]!,
    "done entry": inState("done")[0]!,
    "other done entry": inState("done")[1]!,
    "kept entry": inState("undelivered")[0]!,
  };
});
afterAll(async () => {
  recordFigure("tables", { "looked at": checked, "with an id, a command or a fixed word cut": 0 });
  at.remove();
});

function sentencesOf(row: Rows[number]): string[] {
  return sentences.flatMap((name) => (typeof row[name] === "string" && row[name] !== "" ? [row[name]] : []));
}

/**
 * True if the text shows the sentence, even wrapped, with other cells between its lines. An age in seconds may differ,
 * because it grows between two commands.
 */
function hasInOrder(shown: string, sentence: string): boolean {
  const words = sentence
    .split(/\s+/)
    .map((word, at, all) =>
      /^seconds?$/.test(all[at + 1] ?? "") ? "\\d+" : word.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"),
    )
    .map((word) => word.replace(/^seconds?$/, "seconds?"));
  return new RegExp(words.join("(?:\\s+|[^\\n]*\\n[^\\n]*?)"), "si").test(shown);
}

function plain(text: string): string {
  return text.replaceAll(/\u001b\[[\d;?]*[a-zA-Z]/g, "").replaceAll("\r", "");
}

/** Fields with a sentence, which may wrap and is never truncated. */
const sentences = ["message", "detail", "reason", "summary", "hint"];

/** Fields with a value of a fixed set, by which readers distinguish rows. */
const wordName = /^(?:operation|kind|type|keyType|state|status|action|result|severity|rule|topic|role)$/;

function wordsIn(rows: Rows, { notShown = [] }: Table): Map<string, number> {
  const counts = new Map<string, number>();
  // `doctor` shows checks with the same result in one row of its table.
  const shown = new Map(
    rows.map(({ check, ...row }) => [JSON.stringify(row["message"] ? row : { ...row, check }), row]),
  );
  for (const row of shown.values())
    for (const [name, value] of Object.entries(row))
      if (wordName.test(name) && !notShown.includes(name) && typeof value === "string" && value !== "")
        counts.set(shownFor(row, value), (counts.get(shownFor(row, value)) ?? 0) + 1);
  return counts;
}

/** A table shows an active key as expired after its time, and `left` as `to decide`; JSON has the exact values. */
function shownFor(row: Rows[number], value: string): string {
  if (value === "left" && row["result"] === "left") return "to decide";
  const end = row["expiresAt"];
  return value === "active" && typeof end === "string" && Date.parse(end) < Date.now() ? "expired" : value;
}

function timesIn(shown: string, word: string): number {
  const text = word.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return shown.match(new RegExp(`(?<![\\w.…-])${text}(?![\\w.…-])`, "g"))?.length ?? 0;
}

function copiedOf(row: Rows[number], { copied = [], notShown = [] }: Table): string[] {
  // A finding's id consists of its rule and its key, which have columns.
  const hidden = [
    ...notShown,
    "idempotency_key",
    "request_ids",
    "parent",
    "profile_id",
    "policy_id",
    ...("rule" in row ? ["id"] : []),
  ];
  // A table names no step for an overlap that is not due yet.
  if (row["state"] === "waiting") hidden.push("next_step");
  return Object.entries(row)
    .filter(([name]) => !hidden.includes(name))
    .filter(([name]) => /(?:^|_)ids?$|Ids?$/.test(name) || copied.includes(name))
    .flatMap(([, value]) => (typeof value === "string" && value !== "" ? [value] : []));
}

async function rowsOf(words: readonly string[], env?: Table["env"]): Promise<Rows> {
  const { stdout, stderr } = await at.integ(
    [...words.filter((word) => word !== "-o" && word !== "table"), "--ndjson"],
    { env },
  );
  const lines = stdout.split("\n").filter((line) => line !== "");
  expect(lines, stderr).not.toEqual([]);
  return lines.map((line) => JSON.parse(line) as Rows[number]);
}

const cases = Object.entries(tables).flatMap(([name, some]) =>
  [some]
    .flat()
    .map((table): [string, Table] => [
      [name, ...table.words].join(" "),
      { ...table, words: [...name.split(" "), ...table.words] },
    ]),
);

describe("ids, commands and fixed words are whole at every width", () => {
  it.each(cases)("%s", async (title, table) => {
    // A sample uses a real terminal for every sixth table, at one width, and three widths in this process.
    const number = cases.findIndex(([name]) => name === title);
    const typed = isFull ? widths : [widths[number % 5]!].filter(() => number % 6 === 0);
    const { words: pattern, env } = table;
    const words = pattern.map((word) => word.replace(/<(.*)>/, (_all, name: string) => idsByName[name] ?? "unknown"));
    const isDoctored = env?.DOCTORED !== undefined;
    if (isDoctored) await service.fault("GET /v1-reference/* document=no-operation");
    const rows = await rowsOf(words, env);
    const wanted = new Set(rows.flatMap((row) => copiedOf(row, table)));
    expect([...wanted]).not.toEqual([]);
    const expectedSentences = new Set(rows.flatMap(sentencesOf));
    const expectedWords = wordsIn(rows, table);
    const command = words.filter((word) => word !== "--ndjson");
    const outputAt = async (columns: number): Promise<string> => {
      const session = new Session(command, { home: at, env, columns, isReadWhole: true });
      await session.ended;
      return session.written;
    };
    const checkTable = (columns: number, written: string): void => {
      const shown = plain(written);
      const onOneLine = shown.replaceAll(/\n +/g, " ");
      for (const text of wanted) {
        const isSentence = /^[A-Z]/.test(text);
        const isThere = isSentence ? onOneLine.includes(text) : shown.includes(text);
        expect(isThere, `${words.join(" ")} at ${columns}: ${text}\n${shown}`).toBe(true);
      }
      for (const [word, count] of expectedWords)
        if (!onOneLine.includes(`(${word} in every row)`))
          expect(timesIn(shown, word), `at ${columns}: ${word}\n${shown}`).toBeGreaterThanOrEqual(count);
      for (const text of expectedSentences)
        expect(hasInOrder(shown, text), `at ${columns}: ${text}\n${shown}`).toBe(true);
      checked += 1;
    };
    // Simultaneous runs of a change would wait for each other's entry, so changes run one at a time.
    const together = words.includes("--yes") ? 1 : 3;
    for (let first = 0; first < typed.length; first += together)
      await Promise.all(
        typed.slice(first, first + together).map(async (columns) => checkTable(columns, await outputAt(columns))),
      );
    for (const columns of isFull ? [] : [40, 80, widths[2 + (number % 3)]!]) {
      const { stdout, stderr } = await integHere(at, command, { columns, ...(env ? { env } : {}) });
      checkTable(columns, stdout + stderr);
    }
    if (isDoctored) await service.calm();
  });
});

describe("the list of commands", () => {
  interface Listed {
    readonly command: string;
  }
  let names: readonly string[];

  beforeAll(async () => {
    const { stdout } = await at.integ(["commands", "--ndjson"]);
    names = stdout
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as Listed).command.replace(/^integ /, ""));
  });

  it("is complete: every table is tested", () => {
    expect([...Object.keys(tables), ...Object.keys(others)].sort()).toEqual([...names].sort());
  });

  it("names no command that prints rows among the others", () => {
    const files: Readonly<Record<string, string>> = {
      adopt: "policy/adopt-all",
      "policy init": "policy/init",
      schema: "schema/print",
      completion: "completion/print",
    };
    for (const name of Object.keys(others)) {
      const file = join(root, "src/commands", `${files[name] ?? name.replace(" ", "/")}.ts`);
      expect(existsSync(file), file).toBe(true);
      const rows = /\b(?:output\.(?:list|report)|printList|printRows|printFindings|printPlanRows|changeEach)\(/;
      expect(readFileSync(file, "utf8"), name).not.toMatch(rows);
    }
  });
});
