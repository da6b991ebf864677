import { describe, expect, it } from "vitest";
import type { Home } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import { creationWords } from "../support/service.ts";
import { deskOfTests, entries, type KeysDesk, unfinishedEntries } from "./keys-desk.ts";

let desk: KeysDesk;
deskOfTests((opened) => (desk = opened));

function withApiKey(): Home {
  const { api_key, token_endpoint } = desk.service.us;
  return desk.withToken({ INTEG_API_KEY: api_key, INTEG_TOKEN_ENDPOINT: token_endpoint });
}

async function clientHome(): Promise<{ at: Home; id: string }> {
  const at = withApiKey();
  const { id } = await client(at);
  return { at, id };
}

async function client(at: Home): Promise<{ id: string }> {
  const created = await integHere(at, [...creationWords(desk.service), "--secret-file", "old.secret", "--json"]);
  return JSON.parse(created.stdout) as { id: string };
}

const changes = [
  {
    work: "oauth-clients create",
    path: "/v1/oauth_clients",
    words: async () => ({ at: withApiKey(), words: creationWords(desk.service) }),
  },
  {
    work: "oauth-clients rotate",
    path: "/v1/oauth_clients",
    words: async () => {
      const { at, id } = await clientHome();
      return { at, words: ["oauth-clients", "rotate", id, "--overlap", "0", "--yes"] };
    },
  },
  {
    work: "keys create",
    path: "/api/v1/access-keys",
    words: async () => ({ at: desk.withToken(), words: ["keys", "create", "--name", "ci", "--scope", "*"] }),
  },
  {
    work: "keys rotate --by-replacement",
    path: "/api/v1/access-keys",
    words: async () => {
      const { id } = await desk.makeKey({ name: "old" });
      return { at: desk.withToken(), words: ["keys", "rotate", id, "--by-replacement", "--overlap", "0", "--yes"] };
    },
  },
] as const;

/** Recovers each change by its entry's id, and a rotation also without the id. */
const cases = changes.flatMap((row) => [
  { ...row, named: true },
  ...(/rotate/.test(row.work) ? [{ ...row, named: false }] : []),
]);

describe("a creation that was refused as too early", () => {
  it.each(cases)(
    "of $work shows a next step that finishes it (id typed: $named)",
    async ({ path, words: prepare, named }) => {
      const { at, words } = await prepare();
      await desk.service.fault(`POST ${path} status=429 retry-after=4 times=1`);
      const first = await integHere(at, [...words, "--secret-file", "new.secret", "--retry-for", "0"]);
      expect(first.code, first.stderr).toBe(6);
      const open = await unfinishedEntries(at);
      const work = open.find(({ parent }) => parent === undefined || parent === null)!;
      const ids = named ? [work.id] : [];
      const early = await integHere(at, ["journal", "recover", ...ids, "--retry-for", "0", "--yes"]);
      expect(early.code, early.stderr).toBe(6);
      const page = await integHere(at, ["status"], { columns: 160 });
      expect(page.stdout).toContain(/rotate/.test(work.operation) ? "not sent yet" : "refused as too early (429), due");
      const [, next] = /^ {2}Next: integ (.+)$/m.exec(early.stderr) ?? [];
      expect(next).toBe(`journal recover ${work.id} --retry-for 3m`);
      // A bearer token alone cannot prove a new key, so its rotation needs a person's consent.
      const agreed = path === "/api/v1/access-keys" && words.includes("rotate") ? ["--accept-unproven"] : [];
      const ended = await at.integ([...next!.split(" "), "--yes", ...agreed]);
      expect(ended.code, ended.stderr).toBe(0);
      expect(await unfinishedEntries(at)).toEqual([]);
      expect((await entries(at)).some(({ id, state }) => id === work.id && state === "done")).toBe(true);
    },
  );
});
