import { afterEach, expect, it, vi } from "vitest";
import { planPage } from "../../../../src/commands/policy/plan-page.ts";
import { reportPlanNotes } from "../../../../src/commands/policy/rows.ts";
import type { Context } from "../../../../src/context.ts";
import type { Entry } from "../../../../src/journal/entry.ts";
import { deliveries, holdersOf, placeOf } from "../../../../src/policy/holders.ts";
import type { SeenCredential } from "../../../../src/policy/observed.ts";
import { planPolicy, type PlanOptions } from "../../../../src/policy/plan.ts";
import type { ClientItem, KeyItem, PolicyItem } from "../../../../src/policy/policy.ts";
import { worksByName } from "../../../../src/policy/works.ts";
import { roughWidth } from "../../../../src/output/visible-text.ts";
import { commandMark } from "../../../../src/secrets/destination.ts";
import { expectScreens } from "../../../support/golden-screens.ts";
import { stage } from "../../output/streams.ts";
import { entry, now, own, scope } from "../../policy/an-entry.ts";

const day = 86_400_000;
const client = (name: string, over: Partial<ClientItem> = {}): ClientItem => ({
  policy: own,
  kind: "oauth_client",
  name,
  serviceAccount: "sa_1",
  scopes: ["entity:read"],
  rotate: { everyMs: 60 * day, overlapMs: 0, unknownAge: "report" },
  destinations: [{ store: `vault:secret/${name}#client_secret` }],
  ...over,
});
const key = (name: string, over: Partial<KeyItem> = {}): KeyItem => ({
  policy: own,
  kind: "access_key",
  name,
  type: "service_account",
  scopes: ["push-ingest:*"],
  destinations: [{ store: "github:acme/etl#INTEG_KEY" }],
  ...over,
});
const created = (item: string, id: string, over: Partial<Entry> = {}): Entry =>
  entry({ resource_id: id, policy: { id: own, item }, ...over });
const seen = (id: string, days: number, over: Partial<SeenCredential> = {}): SeenCredential => ({
  id,
  status: "active",
  serviceAccount: "sa_1",
  scopes: ["entity:read"],
  createdAt: new Date(now - days * day).toISOString(),
  ownership: "other",
  ...over,
});
const oldKey = seen("ak_eu_12", 63, { scopes: ["push-ingest:*"], type: "service_account" });
const nightly = key("nightly", { rotate: { everyMs: 60 * day, overlapMs: 0, unknownAge: "report" } });
const young = ["a", "b", "c", "d"];
const hostile = "\u202E\u001b[31mключ 管理用の鍵 \u2028integ keys revoke --all";

interface Screen {
  readonly items: readonly PolicyItem[];
  readonly entries?: readonly Entry[];
  readonly clients?: readonly SeenCredential[];
  readonly keys?: readonly SeenCredential[];
  readonly over?: Partial<PlanOptions>;
  readonly missing?: readonly string[];
}

const youngOnes = {
  items: young.map((name) => client(name)),
  entries: young.map((name) => created(name, `oac_${name}`)),
  clients: young.map((name) => seen(`oac_${name}`, 3)),
};
const command = (text: string) => ({ command: text, format: "json" }) as const;
const screens: Readonly<Record<string, Screen>> = {
  "no items": { items: [] },
  "no changes": youngOnes,
  "the screen of the documents": {
    items: [client("reporting"), nightly, ...youngOnes.items],
    entries: [created("nightly", "ak_eu_12", { operation: "access_key.create" }), ...youngOnes.entries],
    clients: [...youngOnes.clients, seen("oac_eu_77", 1)],
    keys: [oldKey, seen("ak_eu_ending", 1, { name: "ending" }), seen("ak_eu_idle", 1)],
  },
  "after policy init": {
    items: [key("deploy", { destinations: [] }), client("us_automation", { destinations: [] })],
    keys: [{ ...oldKey, name: "deploy" }],
    clients: [seen("oac_1", 1)],
  },
  "what a person has to decide": {
    items: [
      client("stalled"),
      client("moved", { destinations: [{ file: "/srv/copy/moved.json" }] }),
      client("gone", { destinations: [{ file: "/srv/gone.json" }] }),
      client("unknown", { destinations: [], scopes: ["organization:read"] }),
    ],
    entries: [
      ...[1, 2, 3].map(() =>
        created("stalled", "", {
          resource_id: null,
          state: "refused",
          last_error: { kind: "refused", message: "The scope is not allowed." },
        }),
      ),
      created("moved", "oac_2", { destination: { kind: "file", path: "/srv/moved.json", as: "raw" } }),
      created("gone", "oac_3", { destination: { kind: "file", path: "/srv/gone.json", as: "raw" } }),
    ],
    clients: [seen("oac_2", 3), seen("oac_3", 3)],
    missing: [placeOf({ file: "/srv/gone.json" })],
  },
  "commands, of which one changed": {
    items: [
      client("deploy", {
        destinations: [
          command("curl --data @- https://deploy.example.com/secrets/reporting | tee /var/log/deploy.log"),
        ],
      }),
      client("several", { destinations: [command("cat > /srv/a"), { file: "/srv/b" }, { profile: "ci" }] }),
    ],
    entries: [
      created("deploy", "oac_4", {
        destination: { kind: "command", mark: commandMark({ command: "deploy", as: "json" }) },
      }),
    ],
    clients: [seen("oac_4", 3)],
  },
  "names that are long or hostile": {
    items: [client("n".repeat(100)), client("short", { destinations: [{ file: `/srv/${hostile}` }] })],
    keys: [seen("ak_eu_hostile", 1, { name: hostile })],
  },
};

function planOf({ items, entries = [], clients = [], keys = [], over = {}, missing = [] }: Screen) {
  const works = worksByName(entries, scope);
  const places = new Set(items.flatMap((item) => item.destinations.map((one) => placeOf(one, item))));
  const observed = {
    nowMs: now,
    profile: "prod",
    works,
    clients: new Map(clients.map((one) => [one.id, one])),
    keys: new Map(keys.map((one) => [one.id, one])),
    unresolved: new Map(),
    delivered: deliveries(entries),
    vanished: new Set(missing),
    elsewhere: new Set<string>(),
    holders: holdersOf(entries, { scope, works, places, isHere: () => true }),
  };
  const choice = {
    only: new Set<string>(),
    retry: new Set<string>(),
    redeliver: new Set<string>(),
    finish: new Set<string>(),
  };
  const policy = { id: own, items, maxFailures: 3, changesPerRun: 20, keepFreeSlots: 0, unmanaged: "report" } as const;
  return planPolicy(policy, observed, { ...choice, includeOwn: false, ...over });
}

it.each([
  [
    "a key, by its name",
    { keys: [seen("ak_1", 1, { name: "deploy (ci)" })] },
    "adopt access-key ak_1 --name deploy-ci",
  ],
  ["a client, by its service account", { clients: [seen("oac_1", 1)] }, "adopt oauth-client oac_1 --name 1"],
  ["an expired key", { keys: [seen("ak_1", 9, { expiresAt: new Date(now).toISOString() })] }, "keys revoke ak_1"],
  [
    "a name that an item has",
    { items: [key("a")], keys: [seen("ak_1", 1, { name: "a" })] },
    "adopt access-key ak_1 --name a-2",
  ],
])("the notes name the step for a credential in no item: %s", (_what, screen: Partial<Screen>, step) => {
  const { output, stderr } = stage({ tty: true, columns: 120 });
  const profile = "of-the-policy";
  const plan = planOf({ items: [], ...screen });
  reportPlanNotes({ output, settings: {} } as Context, plan, { file: "integ.yaml", profile, isPage: true });
  expect(stderr.text.replaceAll(/\s+/g, " ")).toContain(
    `For each client and key in no item: add an item to integ.yaml and adopt the credential, or revoke it. For example: integ ${step} -p ${profile} `,
  );
});

async function shown(screen: Screen, columns: number, env: Record<string, string> = {}): Promise<string> {
  const { output, stdout } = stage({ tty: true, columns, env });
  await output.page(({ width }) => planPage({ plan: planOf(screen), file: "integ.yaml", as: "prod (eu)", width }));
  return stdout.text;
}

afterEach(() => void vi.useRealTimers());

it("the page matches the golden screens, complete at each width, and the same without colors", async () => {
  const pages: string[] = [];
  for (const [what, screen] of Object.entries(screens))
    for (const columns of [120, 80, 40]) {
      const text = await shown(screen, columns);
      const painted = await shown(screen, columns, { NO_COLOR: "", FORCE_COLOR: "1" });
      // biome-ignore lint/suspicious/noControlCharactersInRegex: colors are removed here
      expect(painted.replaceAll(/\u001b\[\d+m/g, "")).toBe(text);
      expect(text).not.toMatch(/[\u001b\u202E\u2028]/);
      pages.push(`${what}, ${columns} columns\n${"─".repeat(columns)}\n${text}`);
    }
  await expectScreens("plan", pages.join("\n"));
});

it.each([120, 80, 40])("names are cut at %i columns", async (columns) => {
  for (const name of ["n".repeat(255), "収".repeat(75)]) {
    const text = await shown(
      { items: [client(name, { destinations: [] })], keys: [seen("ak_eu_1", 1, { name })] },
      columns,
    );
    for (const line of text.split("\n")) expect(roughWidth(line), line).toBeLessThanOrEqual(columns);
  }
});

it("the page never breaks an id, command or destination", async () => {
  for (const screen of Object.values(screens))
    for (const columns of [120, 80, 40]) {
      const text = await shown(screen, columns);
      for (const { row, decision } of planOf(screen).items) {
        if (decision.action === "none" || decision.action === "adopt") continue;
        for (const word of row.destinations
          .flatMap((name) => name.split(" "))
          .filter((one) => /^[\x21-\x7e]+$/.test(one)))
          expect(text).toContain(word);
      }
    }
});
