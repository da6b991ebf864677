// The acts overwrite and destroy as tables: existing content × its owner × kind of destination × operation × caller. The
// expected results come from docs/what-integ-never-does.md, not from the code.
import { newEntry } from "../../../../src/journal/admission.ts";
import type { Entry, EntryProgress, Operation } from "../../../../src/journal/entry.ts";
import type { EntryLease, Intent } from "../../../../src/journal/journal.ts";
import { type EntryFilter, fits } from "../../../../src/journal/lookup.ts";
import type * as Destroy from "../../../../src/operations/acts/destroy.ts";
import type * as Overwrite from "../../../../src/operations/acts/overwrite.ts";
import type { DeliveryBench } from "../../../../src/operations/workbench.ts";
import { Failure } from "../../../../src/errors.ts";
import type {
  Destination,
  DestinationRecord,
  Found,
  RecordOf,
  SingleRecord,
} from "../../../../src/secrets/destination.ts";
import { plainDigests } from "../../../model/in-memory.ts";

export interface Acts {
  readonly overwrite: typeof Overwrite;
  readonly destroy: typeof Destroy;
}

export interface Cell {
  readonly name: string;
  readonly expected: string;
  run(acts: Acts): Promise<string>;
}

type Kind = "file" | "profile" | "readable store" | "unreadable store";
const kinds: readonly Kind[] = ["file", "profile", "readable store", "unreadable store"];
const here = "machine-here";

function recordOf(kind: Kind, more: Partial<RecordOf<"file">> = {}): SingleRecord {
  const { proof, consent, machine = here } = more;
  const evidence = { proof, consent };
  if (kind === "file") return { kind: "file", path: "/secret", as: "raw", machine, ...evidence };
  if (kind === "profile") return { kind: "profile", name: "ci", profileId: "profile-of-ci", machine, ...evidence };
  return {
    kind: "store",
    to: kind === "readable store" ? "vault:secret/app#key" : "github:o/r#KEY",
    facts: {},
    ...evidence,
  };
}

function contentOf(kind: Kind, text: string): { readonly found: Found; readonly proof: string } {
  return kind === "unreadable store"
    ? { found: { is: "hidden", version: text }, proof: `version ${text}` }
    : { found: { is: "text", text }, proof: plainDigests.of(text) };
}

let count = 0;

function entryOf(operation: Operation, more: Partial<Entry> = {}): Entry {
  count += 1;
  const intent = {
    operation,
    request_text: "{}",
    base_url: "https://api.example",
    organization_id: null,
    profile_id: "acting",
    ...more,
  };
  const made = { id: `e${String(count).padStart(9, "0")}`, key: null, at: "2026-11-21T02:00:00.000Z" };
  return { ...newEntry({ detail: {}, parent: null, replaces: null, ...intent } as unknown as Intent, made), ...more };
}

interface World {
  readonly entry: Entry;
  readonly others?: readonly Entry[];
  readonly untrusted?: readonly string[];
  readonly allowed?: readonly string[];
}

function benchOf({ entry, others = [], untrusted = [], allowed }: World): {
  readonly bench: DeliveryBench;
  readonly lease: EntryLease;
} {
  const all = [entry, ...others].toSorted((a, b) => (a.id < b.id ? 1 : -1));
  const journal = {
    digests: plainDigests,
    select: async ({ trusted = false, ...filter }: EntryFilter & { readonly trusted?: boolean }) =>
      all.filter((one) => fits(one, filter) && !(trusted && untrusted.includes(one.id))),
    unsettled: async () => all.filter((one) => fits(one, {})),
    untrusted: async (ids: readonly string[]) => new Set(ids.filter((id) => untrusted.includes(id))),
  };
  const secrets = {
    machine: { find: () => here, make: () => here },
    reread: async () => undefined,
    completeDelivery: async () => true,
    isKept: () => false,
    readKept: () => Promise.reject(new Error("nothing is kept")),
    allowed: async () => (allowed === undefined ? [] : [{ from: "profile p", list: allowed }]),
  };
  const lease = { entry, isTrusted: async () => !untrusted.includes(entry.id) } as unknown as EntryLease;
  return { bench: { journal, secrets } as unknown as DeliveryBench, lease };
}

async function endOf(work: () => Promise<unknown>): Promise<string> {
  try {
    await work();
    return "replaced";
  } catch (error) {
    if (error instanceof Failure) return `refused (${error.kind})`;
    throw error;
  }
}

function decides(world: World, at: SingleRecord, found: Found): (acts: Acts) => Promise<string> {
  const { bench, lease } = benchOf(world);
  return ({ overwrite }) => endOf(() => overwrite.permission(bench, lease)(at, found));
}

const done = { state: "done" } satisfies Partial<EntryProgress>;

/** Worlds with an earlier entry that has this link to the current one. The links in `otherItems` lead to another item. */
const connections: Readonly<Record<string, (earlier: Partial<Entry>) => { entry: Entry; others: readonly Entry[] }>> = {
  "the client that a rotation replaces": (earlier) => {
    const made = entryOf("oauth_client.create", { ...done, resource_id: "oac_old", ...earlier });
    const rotation = entryOf("oauth_client.rotate", { state: "pending", detail: { old_client: "oac_old" } });
    return { entry: entryOf("oauth_client.create", { parent: rotation.id }), others: [made, rotation] };
  },
  "the key that a rotation replaces": (earlier) => {
    const made = entryOf("access_key.create", { ...done, resource_id: "ak_old", ...earlier });
    const detail = { mode: "replacement", old_key: "ak_old" } as const;
    const rotation = entryOf("access_key.rotate", { state: "pending", detail });
    return { entry: entryOf("access_key.create", { parent: rotation.id }), others: [made, rotation] };
  },
  "the key that is rotated in place": (earlier) => {
    const made = entryOf("access_key.create", { ...done, resource_id: "ak_1", ...earlier });
    const detail = { mode: "in_place", key_id: "ak_1" } as const;
    return { entry: entryOf("access_key.rotate", { detail }), others: [made] };
  },
  "the client whose secret was lost": (earlier) => {
    const lost = entryOf("oauth_client.create", { state: "secret_lost", resource_id: "oac_lost", ...earlier });
    return { entry: entryOf("oauth_client.create", { replaces: lost.id }), others: [lost] };
  },
  "a rotation before the last": (earlier) => {
    const first = entryOf("oauth_client.create", { ...done, resource_id: "oac_1", ...earlier });
    const rotation = entryOf("oauth_client.rotate", { ...done, detail: { old_client: "oac_1" } });
    const second = entryOf("oauth_client.create", { ...done, parent: rotation.id, resource_id: "oac_2" });
    const next = entryOf("oauth_client.rotate", { state: "pending", detail: { old_client: "oac_2" } });
    return { entry: entryOf("oauth_client.create", { parent: next.id }), others: [first, rotation, second, next] };
  },
  "the same item of the same policy": (earlier) => {
    const about = { policy: { id: "p1", item: "app" } };
    const made = entryOf("oauth_client.create", { ...done, resource_id: "oac_1", ...about, ...earlier });
    return { entry: entryOf("oauth_client.create", about), others: [made] };
  },
  "an item of that name in another policy": (earlier) => {
    const about = (id: string) => ({ policy: { id, item: "app" } });
    const made = entryOf("oauth_client.create", { ...done, resource_id: "oac_1", ...about("p2"), ...earlier });
    return { entry: entryOf("oauth_client.create", about("p1")), others: [made] };
  },
  "a key of the same name as a client": (earlier) => {
    const policy = { id: "p1", item: "app" };
    const made = entryOf("access_key.create", { ...done, resource_id: "ak_1", policy, ...earlier });
    return { entry: entryOf("oauth_client.create", { policy }), others: [made] };
  },
  "an item of that name in another organization": (earlier) => {
    const policy = { id: "p1", item: "app" };
    const other = { ...done, resource_id: "oac_1", policy, profile_id: "other" };
    const made = entryOf("oauth_client.create", { ...other, ...earlier });
    return { entry: entryOf("oauth_client.create", { policy, organization_id: "o1" }), others: [made] };
  },
  "an item of that name, when the environment named no organization": (earlier) => {
    const about = { policy: { id: "p1", item: "app" }, profile_id: "" };
    const made = entryOf("oauth_client.create", { ...done, resource_id: "oac_1", ...about, ...earlier });
    return { entry: entryOf("oauth_client.create", { ...about, organization_id: "o1" }), others: [made] };
  },
  "the same item, before its profile had an organization id": (earlier) => {
    const policy = { id: "p1", item: "app" };
    const made = entryOf("oauth_client.create", { ...done, resource_id: "oac_1", policy, ...earlier });
    return { entry: entryOf("oauth_client.create", { policy, organization_id: "o1" }), others: [made] };
  },
  "the same client on another account": (earlier) => {
    const made = entryOf("oauth_client.create", {
      ...done,
      resource_id: "oac_old",
      base_url: "https://other.example",
      ...earlier,
    });
    const rotation = entryOf("oauth_client.rotate", { state: "pending", detail: { old_client: "oac_old" } });
    return { entry: entryOf("oauth_client.create", { parent: rotation.id }), others: [made, rotation] };
  },
  "no client of this one": (earlier) => {
    const made = entryOf("oauth_client.create", { ...done, resource_id: "oac_other", ...earlier });
    return { entry: entryOf("oauth_client.create"), others: [made] };
  },
};
const otherItems = new Set([
  "an item of that name in another policy",
  "an item of that name in another organization",
  "an item of that name, when the environment named no organization",
  "a key of the same name as a client",
  "the same client on another account",
  "no client of this one",
]);
const refused = "refused (usage)";

function contentCells(kind: Kind): Cell[] {
  const { found, proof } = contentOf(kind, "the secret that was delivered");
  const changed = contentOf(kind, "what someone put there since").found;
  const at = recordOf(kind);
  const cells: Cell[] = [];
  const add = (name: string, expected: string, run: Cell["run"]): void =>
    void cells.push({ name: `${kind}: ${name}`, expected, run });
  const alone = { entry: entryOf("oauth_client.create") };
  add("nothing is there", "replaced", decides(alone, at, { is: "absent" }));
  add("another's content", refused, decides(alone, at, found));
  add("what this delivery itself writes", "replaced", decides(alone, recordOf(kind, { proof }), found));
  add("what this delivery wrote, changed since", refused, decides(alone, recordOf(kind, { proof }), changed));
  const own = { entry: entryOf("oauth_client.create", { destination: recordOf(kind, { proof }) }) };
  add("what this entry delivered before", "replaced", decides(own, at, found));
  const elsewhere = {
    entry: entryOf("oauth_client.create", { destination: recordOf(kind, { proof, machine: "other" }) }),
  };
  const isEverywhere = kind.endsWith("store");
  add(
    "what this entry delivered on another machine",
    isEverywhere ? "replaced" : refused,
    decides(elsewhere, at, found),
  );
  add("what was there when --force was typed", "replaced", decides(alone, recordOf(kind, { consent: proof }), found));
  add(
    "other content than when --force was typed",
    refused,
    decides(alone, recordOf(kind, { consent: proof }), changed),
  );
  add(
    "nothing was there when --force was typed",
    refused,
    decides(alone, recordOf(kind, { consent: undefined }), found),
  );
  const delivered = entryOf("oauth_client.create", {
    ...done,
    resource_id: "oac_x",
    destination: recordOf(kind, { proof }),
  });
  const revocation = entryOf("oauth_client.revoke", { ...done, resource_id: "oac_x" });
  const other = entryOf("oauth_client.revoke", { ...done, resource_id: "oac_y" });
  const revoked = { entry: entryOf("oauth_client.create"), others: [delivered, revocation] };
  add("delivered for another client, revoked since", "replaced", decides(revoked, at, found));
  const forgedEnd = { ...revoked, untrusted: [revocation.id] };
  add("delivered for another client, revoked by an untrusted entry", refused, decides(forgedEnd, at, found));
  const forgedStart = { ...revoked, untrusted: [delivered.id] };
  add("delivered by an untrusted entry for another client, revoked since", refused, decides(forgedStart, at, found));
  const alive = { ...revoked, others: [delivered, other] };
  add("delivered for another client, another one revoked", refused, decides(alive, at, found));
  for (const [connection, make] of Object.entries(connections)) {
    const isOwn = !otherItems.has(connection);
    const delivered = { destination: recordOf(kind, { proof }) };
    const world = make(delivered);
    add(`delivered for ${connection}`, isOwn ? "replaced" : refused, decides(world, at, found));
    add(`delivered for ${connection}, changed since`, refused, decides(make(delivered), at, changed));
    const forged = make(delivered);
    const untrusted = forged.others.map(({ id }) => id);
    add(`delivered for ${connection}, by an untrusted entry`, refused, decides({ ...forged, untrusted }, at, found));
    const linked = make(delivered);
    const links = linked.others.slice(1).map(({ id }) => id);
    if (links.length > 0)
      add(
        `delivered for ${connection}, linked by untrusted entries`,
        refused,
        decides({ ...linked, untrusted: links }, at, found),
      );
    const away = make({ destination: recordOf(kind, { proof, machine: "other" }) });
    add(
      `delivered for ${connection}, on another machine`,
      isOwn && isEverywhere ? "replaced" : refused,
      decides(away, at, found),
    );
    const several: DestinationRecord = {
      kind: "several",
      places: [{ state: "delivered", at: recordOf(kind, { proof }) }],
    };
    add(
      `one of several for ${connection}`,
      isOwn ? "replaced" : refused,
      decides(make({ destination: several }), at, found),
    );
  }
  return cells;
}

function entryCells(): Cell[] {
  const cells: Cell[] = [];
  const add = (name: string, expected: string, world: World, at: SingleRecord): void => {
    const { bench, lease } = benchOf(world);
    const destination = {
      record: at,
      prepare: async () => at,
      deliver: async () => {},
    } as unknown as Destination;
    const prepare = ({ overwrite }: Acts): Promise<string> =>
      endOf(() => overwrite.prepareOverwrite(bench, lease, destination, { before: null, isKept: false }));
    cells.push({ name: `before the request: ${name}`, expected, run: prepare });
    if (expected === "refused (pending)") return;
    const secret = { secret: "s", kind: "oauth_client", id: "oac_1", receipt: "" } as const;
    const deliver = ({ overwrite }: Acts): Promise<string> =>
      endOf(() => overwrite.overwrite(bench, lease, destination, secret));
    cells.push({ name: `with the secret in hand: ${name}`, expected, run: deliver });
  };
  const entry = entryOf("oauth_client.create");
  const ahead = (more: Partial<Entry>): World => {
    const older = entryOf("oauth_client.create", { state: "unknown", destination: recordOf("file"), ...more });
    return { entry: entryOf("oauth_client.create"), others: [older] };
  };
  for (const kind of kinds) {
    add(`${kind}, a trusted entry`, "replaced", { entry }, recordOf(kind));
    add(`${kind}, an untrusted entry`, "refused (auth)", { entry, untrusted: [entry.id] }, recordOf(kind));
    const isLocal = !kind.endsWith("store");
    const there = recordOf(kind, { machine: "other" });
    add(`${kind}, of another machine`, isLocal ? refused : "replaced", { entry }, there);
    const begunThere = { entry: { ...entry, destination: there } };
    add(`${kind}, asked for on another machine`, isLocal ? refused : "replaced", begunThere, recordOf(kind));
    add(
      `${kind}, that the list does not name`,
      refused,
      { entry, allowed: ["file:/another", "vault:other/*"] },
      recordOf(kind),
    );
    const names = ["file:/secret", "profile:ci", "vault:secret/*", "github:o/r#KEY"];
    add(`${kind}, that the list names`, "replaced", { entry, allowed: names }, recordOf(kind));
    const older = ahead({ destination: recordOf(kind) });
    add(`${kind}, an older unfinished entry goes there`, "refused (pending)", older, recordOf(kind));
  }
  const keychain = { kind: "store", to: "keychain:app/key", facts: {}, machine: "other" } as const;
  add("a keychain of another machine", refused, { entry }, keychain);
  for (const state of ["open", "pending", "undelivered"] as const)
    add(`an older entry is ${state}`, "refused (pending)", ahead({ state }), recordOf("file"));
  for (const state of ["waiting", "secret_lost", "done", "refused"] as const)
    add(`an older entry is ${state}`, "replaced", ahead({ state }), recordOf("file"));
  add("an older entry goes elsewhere", "replaced", ahead({ destination: recordOf("profile") }), recordOf("file"));
  const away = ahead({ destination: recordOf("file", { machine: "other" }) });
  add("an older entry goes there on another machine", "replaced", away, recordOf("file"));
  add("an older entry revokes", "replaced", ahead({ operation: "oauth_client.revoke" }), recordOf("file"));
  const first = entryOf("oauth_client.create");
  const younger = entryOf("oauth_client.create", { state: "unknown", destination: recordOf("file") });
  add("a younger unfinished entry goes there", "replaced", { entry: first, others: [younger] }, recordOf("file"));
  const forged = ahead({});
  const isForged = { ...forged, untrusted: forged.others!.map(({ id }) => id) };
  add("an older untrusted entry goes there", "refused (pending)", isForged, recordOf("file"));
  const lost = entryOf("oauth_client.create", { state: "unknown", destination: recordOf("file") });
  const instead = entryOf("oauth_client.create", { replaces: lost.id });
  add("an older entry of the same work goes there", "replaced", { entry: instead, others: [lost] }, recordOf("file"));
  add("the command of an older entry", "replaced", ahead({ destination: { kind: "command", mark: "m" } }), {
    kind: "command",
    mark: "m",
  });
  const acting = { kind: "profile", name: "prod", profileId: "acting", machine: here } as const;
  add("the profile that acts", refused, { entry }, acting);
  add("the profile that acts, agreed", "replaced", { entry }, { ...acting, own: true });
  add("standard output, not in the list", refused, { entry, allowed: ["file:/secret"] }, { kind: "stdout" });
  return cells;
}

/** The evidence for unreadable content is weaker: the entry started to write the content, which changed afterwards. */
function unreadableCells(): Cell[] {
  const at = recordOf("unreadable store");
  const began = {
    entry: entryOf("oauth_client.create", { destination: recordOf("unreadable store", { proof: "after v1" }) }),
  };
  const changed = (ms: number): Found => {
    const version = new Date(Date.parse(began.entry.updated_at) + ms).toISOString();
    return { is: "hidden", version };
  };
  const instead = { entry: entryOf("oauth_client.create", { replaces: began.entry.id }), others: [began.entry] };
  const forced = entryOf("oauth_client.create", {
    destination: recordOf("unreadable store", { consent: "version v1" }),
  });
  const again = { entry: entryOf("oauth_client.create", { replaces: forced.id }), others: [forced] };
  const cell = (name: string, expected: string, world: World, found: Found): Cell => ({
    name: `unreadable: ${name}`,
    expected,
    run: decides(world, at, found),
  });
  return [
    cell("changed since this entry began to write it", "replaced", began, { is: "hidden", version: "v2" }),
    cell("changed since the entry that this one replaces began to write it", "replaced", instead, {
      is: "hidden",
      version: "v2",
    }),
    cell("changed a minute after the entry's last record", "replaced", began, changed(60_000)),
    cell("changed an hour after the entry's last record", refused, began, changed(3_600_000)),
    cell("with consent for the entry that this one replaces", "replaced", again, { is: "hidden", version: "v1" }),
    cell("as it was when this entry began to write it", refused, began, { is: "hidden", version: "v1" }),
    cell("a text where none can be", refused, began, { is: "text", text: "v2" }),
  ];
}

/** A command whose check is missing or fails shows no content: the deliveries by the same command decide. */
function commandCells(): Cell[] {
  const at = (more: Partial<RecordOf<"command">> = {}) => ({ kind: "command", mark: "m", ...more }) as const;
  const given = { destination: at({ proof: "digest" }) };
  const cell = (
    name: string,
    expected: string,
    world: World,
    {
      to = at(),
      by = [],
    }: { readonly to?: SingleRecord; readonly by?: readonly ("serviceAccount" | "profile")[] } = {},
  ): Cell => ({
    name: `command: ${name}`,
    expected,
    run: decides(world, to, { is: "hidden", version: "unknown", differsBy: by }),
  });
  const requestOf = (id: string) => ({ request_text: JSON.stringify({ service_account_id: id }) });
  const ofFirst = entryOf("oauth_client.create", { ...done, resource_id: "oac_x", ...given, ...requestOf("sa_1") });
  const of = (id: string): World => ({ entry: entryOf("oauth_client.create", requestOf(id)), others: [ofFirst] });
  const delivered = entryOf("oauth_client.create", { ...done, resource_id: "oac_x", ...given });
  const entry = entryOf("oauth_client.create");
  const isRevokedBy = (resource_id: string) => ({
    entry,
    others: [delivered, entryOf("oauth_client.revoke", { ...done, resource_id })],
  });
  const expiring = (expiresAt: string): World => ({
    entry: entryOf("access_key.create"),
    others: [entryOf("access_key.create", { ...done, ...given, request_text: JSON.stringify({ expiresAt }) })],
  });
  const revoked = isRevokedBy("oac_x");
  const untrusted = [revoked.others[1]!.id];
  return [
    cell("no secret yet", "replaced", { entry }),
    cell("the secret of another client", refused, { entry, others: [delivered] }),
    cell(
      "that secret, with --force",
      "replaced",
      { entry, others: [delivered] },
      { to: at({ consent: "version unknown" }) },
    ),
    cell("the secret of another service account's client", refused, of("sa_2")),
    cell("that secret, and the place depends on the service account", "replaced", of("sa_2"), {
      by: ["serviceAccount"],
    }),
    cell("the secret of the same service account's client", refused, of("sa_1"), { by: ["serviceAccount"] }),
    cell("the secret of another profile's client", refused, { entry, others: [{ ...delivered, profile: "q" }] }),
    cell(
      "that secret, and the place depends on the profile",
      "replaced",
      { entry, others: [{ ...delivered, profile: "q" }] },
      { by: ["profile"] },
    ),
    cell("the secret of a key", refused, { entry, others: [{ ...delivered, operation: "access_key.create" }] }),
    cell("another command", "replaced", { entry, others: [delivered] }, { to: at({ mark: "other" }) }),
    cell("an entry without a secret", "replaced", {
      entry,
      others: [entryOf("oauth_client.create", { destination: at() })],
    }),
    cell("a delivery that failed", refused, { entry, others: [{ ...delivered, state: "undelivered" }] }),
    cell("the secret of an expired key", "replaced", expiring("2026-11-20T00:00:00Z")),
    cell("the secret of a key that is not expired", refused, expiring("2026-11-22T00:00:00Z")),
    cell("the secret of a revoked client", "replaced", revoked),
    cell("the secret of a client that another entry revoked", refused, isRevokedBy("oac_y")),
    cell("the secret of a client that an untrusted entry revoked", refused, { ...revoked, untrusted }),
    ...Object.entries(connections).map(([connection, make]) =>
      cell(`delivered for ${connection}`, otherItems.has(connection) ? refused : "replaced", make(given)),
    ),
  ];
}

function credentialCells(): Cell[] {
  const at = recordOf("profile");
  const found = (of: string): Found => ({ is: "text", text: "typed by hand", of });
  const rotation = entryOf("oauth_client.rotate", { state: "pending", detail: { old_client: "oac_old" } });
  const made = entryOf("oauth_client.create", { ...done, resource_id: "oac_old", detail: { client_id: "cid_old" } });
  const world = { entry: entryOf("oauth_client.create", { parent: rotation.id }), others: [rotation, made] };
  const inPlace = { entry: entryOf("access_key.rotate", { detail: { mode: "in_place", key_id: "ak_1" } }) };
  const creation = { entry: entryOf("oauth_client.create"), others: [made] };
  const cell = (name: string, expected: string, of: string, about: World): Cell => ({
    name: `profile: ${name}`,
    expected,
    run: decides(about, at, found(of)),
  });
  return [
    cell("with the client that is replaced", "replaced", "cid_old", world),
    cell("with another client", refused, "cid_other", world),
    cell("with the key that is rotated in place", "replaced", "ak_1", inPlace),
    cell("with another key", refused, "ak_2", inPlace),
    cell("with a client that a creation does not replace", refused, "cid_old", creation),
  ];
}

function destroyCells(): Cell[] {
  const entry = entryOf("access_key.create", { ...done, resource_id: "ak_1" });
  const inPlace = (more: Partial<Entry> = {}): Entry =>
    entryOf("access_key.rotate", { ...done, detail: { mode: "in_place", key_id: "ak_1" }, ...more });
  const earlier = inPlace();
  const kept = entryOf("access_key.rotate", {
    state: "undelivered",
    resource_id: "ak_1",
    detail: { mode: "in_place", key_id: "ak_1" },
  });
  const cell = (
    name: string,
    expected: "destroyed" | "kept",
    evidence: (acts: Acts) => Promise<Destroy.DestroyEvidence> | Destroy.DestroyEvidence,
    { of = entry, untrusted = [] as string[] } = {},
  ): Cell => ({
    name: `destroy: ${name}`,
    expected,
    run: async (acts) => {
      const gone: string[] = [];
      const journal = {
        untrusted: async (ids: readonly string[]) => new Set(ids.filter((id) => untrusted.includes(id))),
      };
      const bench = { journal, secrets: { destroyKept: async (id: string) => void gone.push(id) } };
      const isGone = await acts.destroy.destroy(bench as unknown as DeliveryBench, of, await evidence(acts));
      return isGone && gone.join() === of.id ? "destroyed" : gone.length > 0 ? "another's" : "kept";
    },
  });
  const at = ({ overwrite }: Acts, id: string): Promise<Destroy.DestroyEvidence> =>
    overwrite.AtDestination.after(id, async () => {});
  const later = inPlace();
  return [
    cell("a person typed forget", "destroyed", () => ({ typed: "forget" })),
    cell("a person typed claim", "destroyed", () => ({ typed: "claim" })),
    cell("the secret is at its destination", "destroyed", (acts) => at(acts, entry.id)),
    cell("another entry's secret is at its destination", "kept", (acts) => at(acts, later.id)),
    cell("an untrusted record names the destination", "kept", (acts) => at(acts, entry.id), { untrusted: [entry.id] }),
    ...(["revoked", "disabled", "expired", "pending", "active", "unheard of"] as const).map((shown) =>
      cell(`the service shows it ${shown}`, shown === "revoked" ? "destroyed" : "kept", () => ({ shown })),
    ),
    ...(["done", "undelivered", "secret_lost"] as const).map((state) => {
      const rotatedAgain = inPlace({ state });
      return cell(`a later rotation in place is ${state}`, "destroyed", () => ({ rotatedAgain }), { of: kept });
    }),
    ...(["open", "unknown", "refused", "replaced", "abandoned"] as const).map((state) => {
      const rotatedAgain = inPlace({ state });
      return cell(`a later rotation in place is ${state}`, "kept", () => ({ rotatedAgain }), { of: kept });
    }),
    cell("a later rotation in place is untrusted", "kept", () => ({ rotatedAgain: later }), {
      of: kept,
      untrusted: [later.id],
    }),
    cell("an earlier rotation in place", "kept", () => ({ rotatedAgain: earlier }), { of: kept }),
    cell(
      "a later rotation in place of another key",
      "kept",
      () => ({ rotatedAgain: inPlace({ detail: { mode: "in_place", key_id: "ak_2" } }) }),
      { of: kept },
    ),
    cell(
      "a later creation of that key",
      "kept",
      () => ({ rotatedAgain: entryOf("access_key.create", { ...done, detail: { key_id: "ak_1" } }) }),
      { of: kept },
    ),
  ];
}

export const cells: readonly Cell[] = [
  ...kinds.flatMap(contentCells),
  ...entryCells(),
  ...unreadableCells(),
  ...commandCells(),
  ...credentialCells(),
  ...destroyCells(),
];
