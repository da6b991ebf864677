// Several fields of one Vault secret in one delivery: each write keeps the other fields and other people's values. The tests
// interrupt a delivery at each write and continue it in another process, with another person's write between any two.
import { afterEach, describe, expect, it } from "vitest";
import type { Destination, DestinationRecord, MayReplace, RecordOf } from "../../../src/secrets/destination.ts";
import { destinationFor, rememberedDestination } from "../../../src/secrets/registry.ts";
import { isFull } from "../../support/sample.ts";
import { vaultOfFile } from "../../support/vault-server.ts";
import { canary, client, delivery, mayReplace, onlyNew } from "./a-secret.ts";
import { closeConnections, deliver as deliverTo, setUp, endOf, prepared, type StoreSetup } from "./a-store.ts";

const vault = await vaultOfFile();
afterEach(() => {
  closeConnections();
  vault.calm();
  vault.secrets.clear();
});

const path = "secret/two";
const fields = ["a", "b", "c"];
const to = fields.map((field) => ({ kind: "store", to: `vault:${path}#${field}` }) as const);
const write = /^(?:PATCH|POST) \/v1\/secret\/data/;
const get = /^GET \/v1\/secret\/data/;
const allWritten = Object.fromEntries(fields.map((field) => [field, canary]));

interface Work {
  readonly at: StoreSetup;
  record: DestinationRecord;
  readonly destination: Destination;
}

class Killed extends Error {}

async function begin(at: StoreSetup, remembered?: DestinationRecord): Promise<Work> {
  const several = remembered?.kind === "several" ? remembered : undefined;
  const destination = await destinationFor({ to: several ? [] : to, remembered: several }, at.tools);
  await destination.check();
  return { at, destination, record: await destination.prepare("6k2f9", { isKept: several !== undefined }) };
}

/** @param hooks.recorded is called after the journal's nth record, from 1; if it throws, the process ends */
async function deliver(
  work: Work,
  hooks: { readonly recorded?: (nth: number) => void; readonly may?: MayReplace } = {},
): Promise<string> {
  let nth = 0;
  const record: typeof delivery.record = async (now) => {
    work.record = now;
    nth += 1;
    hooks.recorded?.(nth);
  };
  try {
    return await endOf(() =>
      work.destination.deliver(client, { ...delivery, ...(hooks.may && { may: hooks.may }), record }),
    );
  } catch (error) {
    if (error instanceof Killed) return "killed";
    throw error;
  }
}

function killAt(point: number): { readonly recorded: (nth: number) => void } {
  return {
    recorded: (nth) => {
      if (nth === point) throw new Killed();
    },
  };
}

const severalIn = ({ record }: Work): RecordOf<"several"> => {
  if (record.kind !== "several") throw new Error("not several");
  return record;
};

/** Records the secrets that are at their destinations as delivered, as a recovery does first. */
async function checkDelivered(work: Work): Promise<DestinationRecord> {
  const profiles = () => Promise.reject(new Error("no profile is needed"));
  const places = [];
  for (const place of severalIn(work).places) {
    const remembered = await rememberedDestination(place.at, { ...work.at.tools, profiles });
    const isThere = place.state === "delivered" || (await remembered.completeDelivery(async () => {}));
    places.push(isThere ? ({ ...place, state: "delivered" } as const) : place);
  }
  return { kind: "several", places };
}

const at = (capabilities: readonly string[]): StoreSetup =>
  setUp({ VAULT_ADDR: vault.origin, VAULT_TOKEN: vault.token(...capabilities) });

function nextProcess(before: StoreSetup): StoreSetup {
  return { record: undefined, tools: { ...before.tools, http: (choice) => before.tools.http(choice) } };
}

const versions = (): number => vault.secrets.get(path)?.length ?? 0;
const states = (work: Work): string[] => severalIn(work).places.map(({ state }) => state);

const ways: readonly [string, readonly string[], () => void, Readonly<Record<string, string>>][] = [
  ["patched", ["create", "read", "patch"], () => vault.put(path, { a: "old", other: "kept" }), { other: "kept" }],
  ["replaced", ["create", "read", "update"], () => vault.put(path, { a: "old", other: "kept" }), { other: "kept" }],
  ["created, then patched", ["create", "read", "patch"], () => {}, {}],
  ["created, then replaced", ["create", "read", "update"], () => {}, {}],
];

describe.each(isFull ? ways : [ways[0]!, ways[3]!])(
  "fields of one secret that is %s",
  (way, capabilities, arrange, others) => {
    it("are delivered in one version each", async () => {
      arrange();
      const before = versions();
      const work = await begin(at(capabilities));
      expect(await deliver(work)).toBe("delivered");
      expect([vault.current(path), versions()]).toEqual([{ ...others, ...allWritten }, before + fields.length]);
    });

    it("are not overwritten if someone else writes them in between, without consent", async () => {
      for (const gap of [1, 2]) {
        vault.secrets.clear();
        vault.calm();
        arrange();
        const work = await begin(at(capabilities));
        vault.plan(write, () => vault.put(path, { ...vault.current(path), [fields[gap]!]: "theirs", new: "1" }));
        vault.plan(write, () => {}, gap);
        expect(await deliver(work, { may: mayReplace("old") })).toMatch(/^conflict: /);
        expect(states(work)).toEqual(fields.map((_, index) => (index === gap ? "failed" : "delivered")));
        expect(vault.current(path)).toEqual({ ...others, ...allWritten, [fields[gap]!]: "theirs", new: "1" });
        vault.calm();
        const again = await begin(nextProcess(work.at), work.record);
        expect(await deliver(again, { may: mayReplace("old") })).toMatch(/^conflict: /);
        expect(vault.log.filter((line) => write.test(line))).toEqual([]);
        const claimed = await begin(nextProcess(work.at), again.record);
        expect(await deliver(claimed, { may: mayReplace("theirs") })).toBe("delivered");
        expect(vault.current(path)).toEqual({ ...others, ...allWritten, new: "1" });
      }
    });

    it("are finished by the next process, wherever the first one ended, and are not written twice", async () => {
      const ends: string[] = [];
      for (let killedAt = 1; ends.at(-1) !== "delivered"; killedAt += 1) {
        for (const isForeign of [false, true]) {
          vault.secrets.clear();
          vault.calm();
          arrange();
          const before = versions();
          const first = await begin(at(capabilities));
          const ended = await deliver(first, killAt(killedAt));
          if (!isForeign) ends.push(ended);
          if (ended === "delivered") continue;
          if (isForeign) vault.put(path, { ...vault.current(path), new: "1" });
          const second = await begin(nextProcess(first.at), await checkDelivered(first));
          expect(await deliver(second, { may: mayReplace("old") })).toBe("delivered");
          expect(vault.current(path)).toEqual({ ...others, ...allWritten, ...(isForeign && { new: "1" }) });
          expect(versions()).toBe(before + fields.length + (isForeign ? 1 : 0));
        }
      }
      // Each field has a record before and a record after its write.
      expect(ends.filter((end) => end === "killed")).toHaveLength(2 * fields.length);
    });

    it("are recognized as integ's own write even if that reported a failure", async () => {
      arrange();
      const before = versions();
      const work = await begin(at(capabilities));
      // The first write succeeds and its response is lost; the read that follows gets no response.
      vault.calm();
      vault.plan(write, "lost after");
      const isRead = way !== "patched";
      const ended = await deliver(work, {
        recorded: (nth) => {
          if (nth !== 1) return;
          vault.plan(get, "lost before", 5);
          if (isRead) vault.plan(get, () => {});
        },
      });
      expect(ended).toMatch(/^undelivered: 2 of 3 destinations have it, but not /);
      expect(states(work)).toEqual(["failed", "delivered", "delivered"]);
      expect(versions()).toBe(before + fields.length);
      expect(vault.current(path)).toEqual({ ...others, ...allWritten });
    });
  },
);

it.each(ways)("entries of one process share a secret that is %s", async (_way, capabilities, arrange, others) => {
  arrange();
  const before = versions();
  const here = at(capabilities);
  const works = fields.map((field) => ({ here, to: `vault:${path}#${field}` }));
  // All deliveries read the secret before the first delivery writes.
  const destinations = await Promise.all(works.map(async ({ to: address }) => prepared(here, address)));
  const ends = await Promise.all(destinations.map((destination) => endOf(() => deliverTo(here, destination))));
  expect(ends).toEqual(fields.map(() => "delivered"));
  expect([vault.current(path), versions()]).toEqual([{ ...others, ...allWritten }, before + fields.length]);
  const late = await prepared(here, `vault:${path}#late`);
  vault.put(path, { ...vault.current(path), late: "theirs" });
  expect(await endOf(() => deliverTo(here, late, onlyNew))).toMatch(/^conflict: /);
});

it("the permission for the second write is required before anything is sent", async () => {
  expect(await endOf(() => begin(at(["create", "read"])))).toMatch(/^auth: .* may not write there\./);
  expect(vault.log.filter((line) => write.test(line))).toEqual([]);
});
