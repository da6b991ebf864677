// The rotation that clients and keys share, under a contract that is played here: what it asks, in which order, and how it
// ends, each time with one thing other than usual. overlap.txt has it; `npm run docs` prints it again.
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  finishRotation,
  isWaitedFor,
  overlapDifferences,
  refuseBegunOtherwise,
  type RotationContract,
  type RotationOptions,
} from "../../../src/changes/overlap.ts";
import type { Workbench } from "../../../src/changes/workbench.ts";
import { Failure } from "../../../src/errors.ts";
import type { Entry, EntryProgress } from "../../../src/journal/entry.ts";
import type { EntryLease } from "../../../src/journal/journal.ts";
import type { DestinationRecord } from "../../../src/secrets/destination.ts";
import { AWorld } from "./a-world.ts";
import { intent } from "../journal/intent.ts";

const minutes = 60_000;

interface Turn {
  readonly noun?: "client" | "key";
  readonly detail?: EntryProgress["detail"];
  readonly state?: Entry["state"];
  readonly child?: Partial<Entry>;
  /** The secret came now, and not to an earlier process. */
  readonly isNow?: boolean;
  readonly receipt?: string;
  readonly newId?: string;
  readonly newStatus?: string | undefined;
  readonly oldStatus?: string;
  readonly proves?: boolean | "refused";
  readonly agrees?: boolean;
  readonly overlap?: RotationOptions["overlap"];
  readonly fails?: string;
  readonly rotated?: boolean;
}

async function rotation(bench: Workbench, turn: Turn): Promise<{ lease: EntryLease; child: EntryLease }> {
  const { detail = {}, state, child: its = {}, newId = "new" } = turn;
  const admit = async (changes: object): Promise<EntryLease> =>
    (await bench.journal.admit(intent({ ...changes }), { fresh: true })).lease;
  const begun = { overlap_ms: 0, keep_old: false, ...detail };
  const lease = await admit({ operation: "oauth_client.rotate", detail: begun });
  const child = await admit({ operation: "oauth_client.create", parent: lease.entry.id });
  const place: DestinationRecord = { kind: "file", path: "/secret", as: "raw", force: false };
  await child.record({ state: "done", resource_id: newId || null, destination: place, ...its });
  if (state) await lease.record({ state });
  if (turn.rotated) {
    const next = await admit({ operation: "oauth_client.rotate", detail: { old_client: newId } });
    await next.record({ state: "done", resource_id: "newer", detail: { old_client: newId } });
    const made = await admit({ operation: "oauth_client.create", parent: next.entry.id });
    await made.record({ state: "done", resource_id: "newer" });
  }
  return { lease, child };
}

async function lived(turn: Turn): Promise<string[]> {
  const world = new AWorld({ destination: "stdout" });
  const asked: string[] = [];
  const say = (what: string): void => {
    asked.push(what);
    world.steps.push(`* ${what}`);
    if (what === turn.fails) throw new Failure("unreachable", `no ${what}`);
  };
  const { noun = "client", isNow = true, newId = "new", newStatus = "active", oldStatus = "active" } = turn;
  const end = await world.run(async (bench) => {
    const { lease, child } = await rotation(bench, turn);
    world.steps.length = 0;
    const contract: RotationContract = {
      noun,
      creation: "oauth_client.create",
      oldId: "old",
      deliverNew: async (destination) => {
        say("deliver");
        const secret = {
          secret: "s",
          kind: "oauth_client",
          id: newId,
          clientId: "cid",
          receipt: "{its receipt}",
        } as const;
        if (isNow)
          await destination.deliver(secret, {
            origin: { entry: "e", profile: "p", region: "us" },
            record: async () => {},
          });
        return { entry: child.entry, ...(turn.receipt === undefined ? {} : { receipt: turn.receipt }) };
      },
      learned: (id) => (say(`learned ${id}`), { resource_id: id }),
      checkNew: async ({ id }) => say(`check ${id === child.entry.id}`),
      prove: async (_child, { secret }) => {
        say(`prove with ${secret}`);
        if (turn.proves === "refused") throw new Failure("auth", "It is refused.");
        return turn.proves ?? true;
      },
      whyUnproven: (_child, hasSecret) => `cannot be proven (${hasSecret})`,
      statusOf: async (id) => {
        say(`status of ${id}`);
        if (id === "old") return oldStatus;
        return newStatus === "unsaid" ? undefined : newStatus;
      },
      again: { say: "again" } as never,
      revokeOld: async (by) => say(`revoke old, by ${JSON.stringify(by)}`),
      unfinished: (error, how) => {
        say(`unfinished ${JSON.stringify(how)}`);
        return error;
      },
    };
    const options: RotationOptions = {
      destination: world.destination(),
      mayRevokeUnproven: async ({ id }) => {
        say(`may revoke unproven ${id === lease.entry.id}`);
        return turn.agrees ?? false;
      },
      delivered: async (receipt, due) => say(`delivered ${receipt} ${due === undefined ? "" : "until a time"}`),
      ...(turn.overlap === undefined ? {} : { overlap: turn.overlap }),
    };
    try {
      const done = await finishRotation({ bench, lease, options }, contract);
      return JSON.stringify(done);
    } finally {
      world.steps.push(`left ${JSON.stringify([lease.entry.state, lease.entry.detail, lease.entry.last_error])}`);
    }
  });
  const { kind, value, failure } = end;
  const { cause: _, ...details } = { cause: undefined, ...failure?.details };
  const said = failure ? `${kind}: ${failure.message} ${JSON.stringify(details)}` : `${kind} ${value}`;
  return [said, ...world.steps].map((line) => line.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>"));
}

const short = { overlap_ms: 10 * minutes };
const long = { overlap_ms: 30 * minutes };
const earlier = { proven: "token exchange", overlap_until: "2026-11-20T00:00:00.000Z" } as const;
const later = { proven: "token exchange", overlap_until: "2026-11-21T12:00:00.000Z" } as const;

const turns: Readonly<Record<string, Turn>> = {
  "as asked": {},
  "of a key": { noun: "key" },
  "that keeps the old one": { detail: { keep_old: true } },
  "that keeps the old one, with an overlap": { detail: { ...long, keep_old: true } },
  "with a receipt of the service": { receipt: "{as it is now}" },
  "with a secret that came before": { isNow: false },
  "with a secret and a receipt that came before": { isNow: false, receipt: "{as it is now}" },
  "that is not proven": { proves: false },
  "that is not proven, and agreed to": { proves: false, agrees: true },
  "that is not proven, whose secret is not known": { isNow: false, proves: false },
  "whose proof is refused": { proves: "refused" },
  "with a child without a destination": { isNow: false, child: { destination: null }, agrees: true },
  "with the id of the old one": { newId: "old" },
  "without an id": { newId: "" },
  "with a short overlap": { detail: short },
  "with a short overlap that is left": { detail: short, overlap: "leave" },
  "with a short overlap that is ended": { detail: short, overlap: "end" },
  "with a long overlap": { detail: long },
  "with a long overlap that is ended": { detail: long, overlap: "end" },
  "with an overlap that is over": { detail: { ...long, ...earlier }, state: "waiting", isNow: false },
  "with an overlap that is over, of a process before": {
    detail: { ...long, ...earlier },
    state: "pending",
    isNow: false,
  },
  "with an overlap that runs": { detail: { ...long, ...later }, state: "waiting", isNow: false },
  "with an overlap that runs, not waiting yet": { detail: { ...long, ...later }, state: "pending", isNow: false },
  "with an overlap whose old one was revoked by hand": {
    detail: { ...long, ...earlier },
    state: "waiting",
    isNow: false,
    oldStatus: "revoked",
  },
  "without an overlap, whose old one was revoked by hand": { isNow: false, oldStatus: "revoked" },
  "whose new one is disabled": { isNow: false, newStatus: "disabled" },
  "whose new one is absent": { isNow: false, newStatus: "absent" },
  "whose new key is absent": { noun: "key", isNow: false, newStatus: "absent" },
  "whose new one is not said": { isNow: false, newStatus: "unsaid" },
  "whose new one is disabled after an overlap": {
    detail: { ...long, ...earlier },
    state: "waiting",
    isNow: false,
    newStatus: "disabled",
  },
  "whose new one was rotated": { isNow: false, newStatus: "revoked", rotated: true },
  "whose new key was rotated": { noun: "key", isNow: false, newStatus: "revoked", rotated: true },
  "that was proven before": { detail: { ...earlier } },
  "whose creation is not done": { child: { state: "unknown" }, fails: "deliver" },
  "whose creation was refused": { child: { state: "refused" }, fails: "deliver" },
  "that could not be delivered": { fails: "deliver" },
  "that could not be checked": { fails: "check true" },
  "that could not be proven": { fails: "prove with s" },
  "whose status cannot be asked": { isNow: false, fails: "status of new" },
  "whose old status cannot be asked": {
    detail: { ...long, ...earlier },
    state: "waiting",
    isNow: false,
    fails: "status of old",
  },
  "that is not shown": { fails: "delivered {its receipt} " },
  "with a missing place": {
    child: {
      destination: {
        kind: "several",
        places: [
          { state: "delivered", at: { kind: "file", path: "/a", as: "raw", force: false } },
          { state: "pending", at: { kind: "file", path: "/b", as: "raw", force: false } },
        ],
      },
    },
  },
};

it("does what it says, whatever is other than usual", async () => {
  const lines: string[] = [];
  for (const [name, turn] of Object.entries(turns)) {
    const [end, ...steps] = await lived(turn);
    lines.push(`${name}: ${end}`, ...steps.map((step) => `    ${step}`));
  }
  await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot(join(import.meta.dirname, "overlap.txt"));
});

it.each([
  [0, true],
  [15 * minutes - 1, true],
  [15 * minutes, true],
  [15 * minutes + 1, false],
])("an overlap of %i ms is waited for: %s", (ms, is) => expect(isWaitedFor(ms)).toBe(is));

describe("a rotation that is typed otherwise", () => {
  const entry = (detail: EntryProgress["detail"]): Entry => ({ detail }) as Entry;
  it.each<[EntryProgress["detail"], { overlapMs: number; keepOld?: boolean }, unknown]>([
    [{}, { overlapMs: 0 }, ["0s", "0s", "not given", "not given"]],
    [{ overlap_ms: 5000 }, { overlapMs: 60_000, keepOld: true }, ["5s", "60s", "not given", "given"]],
    [{ keep_old: true }, { overlapMs: 1, keepOld: false }, ["0s", "0.001s", "given", "not given"]],
  ])("%j as %j", (detail, typed, words) => {
    const said = overlapDifferences(entry(detail), typed);
    expect(said.map(({ flag }) => flag)).toEqual(["--overlap", "--keep-old"]);
    expect(said.flatMap(({ begun, typed }) => [begun, typed])).toEqual(words);
  });

  const file = (path: string): DestinationRecord => ({ kind: "file", path, as: "raw", force: false });
  it.each<
    [string, Turn["child"], DestinationRecord | undefined, readonly (readonly [string, string])[], string | undefined]
  >([
    ["nothing", {}, file("/secret"), [["a", "a"]], undefined],
    ["one flag", {}, file("/secret"), [["a", "b"]], "--f was a, and is b now"],
    [
      "two flags",
      {},
      undefined,
      [
        ["a", "b"],
        ["c", "c"],
        ["d", "e"],
      ],
      "--f was a, and is b now; --f was d, and is e now",
    ],
    ["the place", {}, file("/other"), [], "the destination of the secret was /secret, and is /other now"],
    ["the place, which was not asked for", {}, { kind: "stdout" }, [], undefined],
    ["the place of one that is not done", { state: "unknown" }, file("/other"), [], undefined],
    ["the place of one without any", { destination: null }, file("/other"), [], undefined],
    ["no place", {}, undefined, [], undefined],
  ])("%s", async (_what, child, place, pairs, words) => {
    const world = new AWorld();
    const { kind, failure } = await world.run(async (bench) => {
      const { lease } = await rotation(bench, { child });
      const differences = pairs.map(([begun, typed]) => ({ flag: "--f", begun, typed }));
      await refuseBegunOtherwise(
        { bench, lease, creation: "oauth_client.create" },
        { place, differences, wayOut: "go" },
      );
    });
    if (words === undefined) expect(kind).toBe("done");
    else
      expect([kind, failure?.message, failure?.details]).toMatchObject([
        "usage",
        `The unfinished rotation 1000000001 was started with other options: ${words}.`,
        {
          meaning: "Nothing was sent. It continues as it was started; go.",
          nextCommand: "integ journal recover 1000000001",
        },
      ]);
  });
});
