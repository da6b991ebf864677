// Compares the end of every operation with ends.txt, for each outcome of its requests, destination and journal. A line
// shows the kind of end, the account's credentials and each secret's place, also after `journal recover` without and with
// consent, and after the command is typed again. `npm run docs` generates ends.txt.
import { isGuess } from "../../../src/journal/entry.ts";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { AWorld, DestinationKind, Setting } from "./a-world.ts";
import type { Fate, Request } from "./an-account.ts";
import { perform, type Operation, operations, worldFor } from "./every-operation.ts";

const fatesOf: Readonly<Record<Request, readonly Fate[]>> = {
  create: outcomesOfChange(["cut", "silent", "pending", "revoked", "disabled"]),
  rotate: outcomesOfChange(["cut", "silent"]),
  revoke: outcomesOfChange([]),
  get: ["lost before", { refused: 404 }],
  list: ["lost before", { refused: 403 }],
  exchange: ["lost before", { refused: 401 }, { refused: 429, retryAfterSeconds: 90 }],
};

function outcomesOfChange(more: readonly Fate[]): readonly Fate[] {
  const statuses = [400, 401, 403, 404, 409, 422, 500].map((refused) => ({ refused }));
  return [
    ...["lost before", "lost after", "broken after", "not sent"].map((fate) => fate as Fate),
    ...more,
    ...statuses,
    { refused: 409, code: "idempotency_key_reuse" },
    { refused: 429, retryAfterSeconds: 30 },
    { refused: 429, retryAfterSeconds: 90_000 },
  ];
}

const failures: readonly (readonly [DestinationKind, readonly string[]])[] = [
  ["file", ["check"]],
  ["file", ["prepare"]],
  ["file", ["reserve"]],
  ["file", ["write"]],
  ["file", ["deliver"]],
  ["file", ["deliver", "keep"]],
  ["file", ["admit"]],
  ["file", ["record 1"]],
  ["file", ["record 2"]],
  ["file", ["record 3"]],
  ["file", ["release"]],
  ["stdout", []],
  ["stdout", ["deliver"]],
  ["profile", ["deliver"]],
  ["command", ["deliver"]],
  ["store", ["prepare store"]],
  ["store", ["write store"]],
  ["store", ["read store"]],
  ["three", []],
  ["three", ["deliver"]],
  ["three", ["write store"]],
];

interface Cell {
  readonly name: string;
  readonly setting: Setting;
}

function cellsOf({ before, sends }: Operation): Cell[] {
  const first: Cell = { name: "as asked", setting: {} };
  const fates = (["create", "rotate", "revoke", "get", "list", "exchange"] as const).flatMap((what) =>
    fatesOf[what].map((fate) => ({ name: `${what}: ${wordsOf(fate)}`, setting: { fates: { [what]: [fate] } } })),
  );
  const again = (["create", "rotate", "revoke"] as const).map((what) => {
    const fate: Fate[] = ["lost after", { refused: 409 }, { refused: 403 }];
    return { name: `${what}: lost after, then refused`, setting: { fates: { [what]: fate } } };
  });
  const places = failures.map(([destination, failing]) => ({
    name: `to ${destination}, failing: ${failing.join(", ") || "nothing"}`,
    setting: { destination, failing },
  }));
  const unproven = { name: "without a token endpoint", setting: { proves: false } };
  const hasty = (["lost before", { refused: 429, retryAfterSeconds: 30 }] as const).map((fate) => ({
    name: `${sends}: ${wordsOf(fate)}, without --retry-for`,
    setting: { fates: { [sends]: [fate] }, retryForMs: 0 },
  }));
  return sends === "revoke" && before
    ? [first, ...hasty, ...fates, ...again]
    : [first, unproven, ...hasty, ...fates, ...again, ...places];
}

function wordsOf(fate: Fate): string {
  if (typeof fate === "string") return fate;
  const { refused, code, retryAfterSeconds: after } = fate;
  return [`refused with ${refused}`, code, after && `after ${after} s`].filter(Boolean).join(", ");
}

function accountState(world: AWorld): string {
  const { clients, keys } = world.account;
  const kept = [...world.kept.values()].map(({ secret }) => secret);
  const where = (secret: string): string =>
    !world.isSafe(secret) ? "lost" : kept.includes(secret) ? "kept" : "delivered";
  const made = [...clients, ...keys].filter(({ id }) => id !== "ak_own");
  return made
    .map(({ id, status, secret }) => `${id} ${status}${id === "old" || status !== "active" ? "" : ` ${where(secret)}`}`)
    .join(", ");
}

async function recovered(world: AWorld): Promise<string[]> {
  const ends: string[] = [];
  for (const isYes of [false, true, true]) {
    if (world.unsettled().length === 0) break;
    world.now += 3_600_000;
    const agrees = async (): Promise<boolean> => isYes;
    const revokes = isYes ? world.unsettled().find(isGuess)?.resource_id : undefined;
    const answers = { mayReplace: agrees, mayRevokeUnproven: agrees, namedRevocation: revokes ?? undefined };
    const { value = [] } = await world.recover(answers);
    ends.push(value.map(({ failure }) => failure?.kind ?? "done").join(" and "));
  }
  return ends;
}

async function lineOf(operation: Operation, { name, setting }: Cell): Promise<string> {
  const [world, other] = [worldFor(operation, structuredClone(setting)), worldFor(operation, structuredClone(setting))];
  const first = await perform(world, operation);
  const left = accountState(world);
  const ends = await recovered(world);
  await perform(other, operation);
  other.now += 60_000;
  const again = await perform(other, operation);
  const broken = [...world.broken, ...other.broken].map((what) => ` | BROKEN: ${what}`);
  const after = ends.length === 0 ? "" : ` | recovered ${ends.join(", then ")}: ${accountState(world)}`;
  return `${name}: ${first.kind}: ${left}${after} | again ${again.kind}: ${accountState(other)}${broken.join("")}`;
}

/** Drops lines that end like the first: the operation never sends their request, or its outcome has no effect. */
function linesThatDiffer(lines: readonly string[]): string[] {
  const endOf = (line: string): string => line.replace(/^.*?: (?=(?:done|[a-z_]+): )/, "");
  const [plain = ""] = lines;
  return lines.filter((line, at) => at === 0 || endOf(line) !== endOf(plain));
}

it("every operation ends as in ends.txt", async () => {
  const parts: string[] = [];
  for (const [name, operation] of Object.entries(operations)) {
    const lines: string[] = [];
    for (const cell of cellsOf(operation)) lines.push(await lineOf(operation, cell));
    parts.push([`# ${name}`, ...linesThatDiffer(lines)].join("\n"));
  }
  const text = `${parts.join("\n\n")}\n`;
  expect(text).not.toContain("BROKEN");
  await expect(text).toMatchFileSnapshot(join(import.meta.dirname, "ends.txt"));
});
