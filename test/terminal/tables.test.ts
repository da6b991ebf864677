// Every table at every width: an id and a command stand whole, since they are what a person copies.
import { mkdirSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Home } from "../support/program.ts";
import { startService, type Service } from "../support/service.ts";
import { Session } from "./session.ts";

const widths = [40, 80, 100, 120, 200];

let service: Service;
let at: Home;
let checked = 0;

beforeAll(async () => {
  service = await startService();
  at = new Home({ ...service.env, INTEG_ACCESS_TOKEN: service.us.access_token });
  const account = ["--service-account", service.us.service_account_id, "--scope", "entity:read"];
  const create = ["oauth-clients", "create", ...account, "--new"];
  await at.integ([...create, "--secret-file", "a"]);
  await service.fault("POST /v1/oauth_clients drop=after times=1");
  await at.integ([...create, "--secret-file", "b", "--retry-for", "0"]);
  await at.integ([...create, "--secret-command", "exit 3"]);
  await service.calm();
  for (const name of ["nightly", "a key with quite a long name that says what it is for"])
    await at.integ(["keys", "create", "--name", name, "--secret-file", `key-${name.length}`]);
  await at.integ(
    [
      "profiles",
      "add",
      "production-of-the-example-organization",
      "--region",
      "us",
      "--base-url",
      service.us.base_url,
      "--api-key-command",
      "echo k",
    ],
    { env: { INTEG_BASE_URL: "", INTEG_API_KEY: "" } },
  );
  mkdirSync(at.path("open"), { mode: 0o777 });
  writeFileSync(at.path("integ.yaml"), "version: 1\nitems: 3\n");
});
afterAll(async () => {
  console.info(`tables: ${checked} tables at widths looked at, 0 with an id or a command cut`);
  at.remove();
  await service.stop();
});

interface Table {
  readonly words: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const tables: readonly Table[] = [
  { words: ["journal", "list", "--all"] },
  { words: ["doctor"], env: { INTEG_API_KEY: "wrong" } },
  { words: ["keys", "list"] },
  { words: ["keys", "audit", "--max-age", "0", "--max-idle", "0"] },
  { words: ["oauth-clients", "list"] },
  { words: ["entities", "list", "--limit", "5"] },
  { words: ["profiles", "list"] },
  { words: ["journal", "verify"] },
  { words: ["people", "search", "a"] },
];

/** What a row has that is copied: every id, name of a profile, and command. */
function copied(row: Readonly<Record<string, unknown>>, [noun = ""]: readonly string[]): string[] {
  const isCopied = (name: string): boolean =>
    /(?:^|_)ids?$|Ids?$|^(?:next|next_step|remedy)$/.test(name) || (noun === "profiles" && name === "name");
  // A finding's own id is its rule and its key, which have columns.
  const hidden = ["idempotency_key", "request_ids", "parent", "profile_id", ...("rule" in row ? ["id"] : [])];
  const isShown = (name: string): boolean => !hidden.includes(name);
  return Object.entries(row)
    .filter(([name, value]) => isCopied(name) && isShown(name) && typeof value === "string" && value !== "")
    .map(([, value]) => value as string);
}

/** Text that a person sees, in one line where a sentence was wrapped. */
function plain(text: string): string {
  return text.replaceAll(/\u001b\[[\d;?]*[a-zA-Z]/g, "").replaceAll("\r", "");
}

it.each(tables)("$words", async ({ words, env }) => {
  const { stdout } = await at.integ([...words, "--json"], { env });
  const { data } = JSON.parse(stdout) as { data: Record<string, unknown>[] };
  const wanted = new Set(data.flatMap((row) => copied(row, words)));
  for (const columns of widths) {
    const session = new Session(words, { home: at, env, columns });
    await session.ended;
    const shown = plain(session.written);
    const onOneLine = shown.replaceAll(/\n +/g, " ");
    for (const text of wanted) {
      const isThere = /^[A-Z].*\.$/s.test(text) ? onOneLine.includes(text) : shown.includes(text);
      expect(isThere, `${words.join(" ")} at ${columns}: ${text}\n${shown}`).toBe(true);
    }
    checked += 1;
  }
});
