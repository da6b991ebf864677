// A creation whose key or request the journal knows: in whatever state its entry is, whatever the service says now. One
// folder for each way to ask in known-key/; `npm run docs` prints them again.
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createOAuthClient } from "../../../src/changes/oauth-client/create.ts";
import type { Entry, EntryProgress } from "../../../src/journal/entry.ts";
import type { OneTimeSecret } from "../../../src/secrets/destination.ts";
import { everyOf } from "../../support/sample.ts";
import { AWorld, type DestinationKind, type Ended } from "./a-world.ts";
import type { Fate } from "./an-account.ts";
import { Report, standing } from "./step-report.ts";

interface Asking {
  readonly key?: string;
  readonly fresh?: boolean;
  readonly waitMs?: number;
  readonly to?: DestinationKind;
  readonly isTeam?: boolean;
  readonly request?: { readonly service_account_id: string; readonly scopes: readonly string[] };
}

function create(
  world: AWorld,
  { key, fresh, waitMs = 60_000, to = "stdout", request }: Asking,
): Promise<Ended<unknown>> {
  const asked = request ?? { service_account_id: "sa_1", scopes: ["entity:read"] };
  return world.run((bench) =>
    createOAuthClient(bench, asked as never, {
      key,
      fresh,
      waitMs,
      destination: world.destination(to),
      conclude: async ({ kind, receipt, requestId }) => `${kind} ${receipt} ${requestId}`,
    }),
  );
}

const secret: OneTimeSecret = {
  secret: "s3cr3t-client-1",
  kind: "oauth_client",
  id: "oc_1",
  clientId: "cid_1",
  receipt: '{"id":"oc_1","client_id":"cid_1","client_secret":"s3cr3t-client-1"}',
};

/** What the journal says before: changes of an entry that is done. */
const before: Readonly<Record<string, Partial<EntryProgress> & { readonly isKept?: boolean }>> = {
  done: {},
  replaced: { state: "replaced" },
  unusable: { state: "unusable" },
  refused: { state: "refused", resource_id: null },
  abandoned: { state: "abandoned" },
  "open, never sent": { state: "open", attempts: 0, resource_id: null },
  "open, put off": { state: "open", resource_id: null, detail: { put_off: true } },
  unknown: { state: "unknown", resource_id: null },
  "unknown, and kept": { state: "unknown", resource_id: null, isKept: true },
  pending: { state: "pending" },
  secret_lost: { state: "secret_lost" },
  undelivered: { state: "undelivered", isKept: true },
  "undelivered, kept elsewhere": { state: "undelivered", detail: { kept_at: "there:/state" } },
};

const fates: readonly (Fate | undefined)[] = [
  undefined,
  "lost before",
  "cut",
  "silent",
  "pending",
  "revoked",
  "disabled",
  "not sent",
  "broken after",
  { refused: 403 },
  { refused: 409, code: "idempotency_key_reuse" },
  { refused: 429, retryAfterSeconds: 30 },
];
const wordOf = (fate: Fate | undefined): string =>
  fate === undefined ? "as usual" : typeof fate === "string" ? fate : `${fate.refused} ${fate.code ?? ""}`.trim();

const ways: Readonly<Record<string, Asking>> = {
  "with its key": { key: "k1" },
  "with its key, in a team": { key: "k1", isTeam: true },
  "with its key, without a wait": { key: "k1", waitMs: 0 },
  "with its request": {},
  "with its request, for several": { to: "three" },
  anew: { fresh: true },
};

async function worldWith(changes: (typeof before)[string], { key, isTeam = false }: Asking): Promise<AWorld> {
  const world = new AWorld({ retryForMs: 0 });
  const first = await create(world, key === undefined ? {} : { key });
  expect(first.kind).toBe("done");
  const [entry] = world.entries;
  const { isKept, detail, ...rest } = changes;
  Object.assign(entry!, { ...rest, detail: { ...entry!.detail, ...detail } } satisfies Partial<Entry>);
  if (isKept) world.kept.set(entry!.id, secret);
  world.isTeam = isTeam;
  world.now += 60_000;
  return world;
}

const fileOf = (name: string): string => name.replaceAll(/\W+/g, "-");

describe.each(Object.entries(ways))("asked again %s", (way, asking) => {
  it.each(everyOf(Object.entries(before), 6))(
    "where the entry is %s, does what the response says",
    async (what, changes) => {
      const report = new Report();
      for (const fate of fates) {
        const world = await worldWith(changes, asking);
        if (fate !== undefined) world.account.fates.create = [fate];
        const line = report.said(world, await create(world, asking));
        expect(world.broken).toEqual([]);
        report.add(wordOf(fate), [line, `    left: ${standing(world)}`]);
      }
      const file = join(import.meta.dirname, "known-key", fileOf(way), `${fileOf(what)}.txt`);
      await expect(String(report)).toMatchFileSnapshot(file);
    },
  );
});

describe("a creation", () => {
  it.each([
    ["of no service account", { service_account_id: "", scopes: ["entity:read"] }],
    ["of no scopes", { service_account_id: "sa_1", scopes: [] }],
  ])("%s is refused before anything is written", async (_what, request) => {
    const world = new AWorld();
    expect((await create(world, { request })).kind).toBe("usage");
    expect([world.entries, world.calls]).toEqual([[], []]);
  });

  it("sends nothing more once the disk has failed", async () => {
    const world = new AWorld();
    const { kind, failure } = await world.run((bench) => {
      bench.disk.markFailed("it is full");
      const request = { service_account_id: "sa_1", scopes: ["entity:read"] };
      return createOAuthClient(bench, request as never, {
        waitMs: 0,
        destination: world.destination("stdout"),
        conclude: async () => 0,
      });
    });
    expect([kind, failure?.message]).toEqual([
      "failed",
      "The disk failed during the command, and nothing more is sent: it is full",
    ]);
    expect(world.account.requests).toEqual([]);
  });
});
