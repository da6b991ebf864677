import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Failure } from "../../../src/errors.ts";
import {
  describeDestination,
  type DestinationProgress,
  isSamePlace,
  missingPlaces,
  namesOf,
  placesOf,
  type RecordOf,
  type SingleDestinationPlace,
  type SingleRecord,
} from "../../../src/secrets/destination.ts";
import { rememberedSeveral, severalDestinations } from "../../../src/secrets/several.ts";
import { client, delivery } from "./a-secret.ts";

const file = (path: string): SingleRecord => ({ kind: "file", path, as: "raw" });
const profile = (name: string): SingleRecord => ({ kind: "profile", name, profileId: "p1" });
const command = (mark: string): SingleRecord => ({ kind: "command", mark });
const store = (to: string): SingleRecord => ({ kind: "store", to, facts: {} });

function place(
  record: SingleRecord,
  fails: Readonly<Record<string, unknown>> = {},
): SingleDestinationPlace & { readonly calls: string[] } {
  const calls: string[] = [];
  const step = async (name: string): Promise<SingleRecord> => {
    calls.push(name);
    if (fails[name] !== undefined) throw fails[name];
    return Object.assign({ ...record }, { prepared: calls.join() });
  };
  return {
    calls,
    isStdout: false,
    record,
    check: () => step("check"),
    prepare: (work) => step(`prepare ${work}`),
    deliver: async (secret, { record: note }) => {
      await note(Object.assign({ ...record }, { noted: secret.secret }));
      await step("deliver");
    },
    release: async () => void (await step("release")),
  };
}

const statesOf = (record: RecordOf<"several">): string[] => record.places.map(({ at, state }) => `${at.kind} ${state}`);

function several(...places: SingleDestinationPlace[]): ReturnType<typeof severalDestinations> {
  return severalDestinations(places);
}

const no = (kind: "conflict" | "failed", words: string): Failure => new Failure(kind, words);

describe("several destinations", () => {
  it("are checked and prepared in order", async () => {
    const [a, b] = [place(file("/a")), place(profile("p"))];
    const both = several(a, b);
    expect(both.isStdout).toBe(false);
    expect(statesOf((await both.check()) as RecordOf<"several">)).toEqual(["file pending", "profile pending"]);
    const record = (await both.prepare("w")) as RecordOf<"several">;
    expect([a.calls, b.calls]).toEqual([
      ["check", "prepare w"],
      ["check", "prepare w"],
    ]);
    expect(record.places.map(({ at }) => (at as { prepared?: string }).prepared)).toEqual([
      a.calls.join(),
      b.calls.join(),
    ]);
  });

  it("all get the secret, and each is recorded before and after", async () => {
    const [a, b] = [place(file("/a")), place(profile("p"))];
    const seen: string[][] = [];
    await several(a, b).deliver(client, {
      ...delivery,
      record: async (now) => void seen.push(statesOf(now as RecordOf<"several">)),
    });
    expect(seen).toEqual([
      ["file pending", "profile pending"],
      ["file delivered", "profile pending"],
      ["file delivered", "profile pending"],
      ["file delivered", "profile delivered"],
    ]);
    expect(b.calls).toEqual([`prepare ${delivery.origin.entry}`, "deliver"]);
  });

  it.each([
    ["conflict", "conflict"],
    ["failed", "undelivered"],
  ] as const)("get the secret even if one of them refuses it: %s is reported as %s", async (kind, ends) => {
    const [a, b, c] = [
      place(file("/a"), { deliver: no(kind, "It is full.") }),
      place(profile("p")),
      place(command("m"), { deliver: no("conflict", "It changed.") }),
    ];
    const seen: string[][] = [];
    const failure: unknown = await several(a, b, c)
      .deliver(client, { ...delivery, record: async (now) => void seen.push(statesOf(now as RecordOf<"several">)) })
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({
      kind: ends,
      message: "1 of 3 destinations have it, but not /a, a command. It is full. It changed.",
    });
    expect(seen.at(-1)).toEqual(["file failed", "profile delivered", "command failed"]);
  });

  it("report a defect of the program", async () => {
    const a = place(file("/a"), { deliver: new Error("a bug") });
    await expect(several(a, place(profile("p"))).deliver(client, delivery)).rejects.toThrow("a bug");
  });

  it("fail if one cannot be prepared, unless the secret is already safe", async () => {
    const failing = { "prepare w": no("failed", "It is full.") };
    const of = (): SingleDestinationPlace[] => [place(file("/a")), place(profile("p"), failing)];
    await expect(several(...of()).prepare("w")).rejects.toThrow("It is full.");
    expect(statesOf((await several(...of()).prepare("w", { isKept: true })) as RecordOf<"several">)).toEqual([
      "file pending",
      "profile pending",
    ]);
    const broken = place(profile("p"), { "prepare w": new Error("a bug") });
    await expect(several(place(file("/a")), broken).prepare("w", { isKept: true })).rejects.toThrow("a bug");
  });

  it("with a recorded delivery are not written again, and are included if they were not named", async () => {
    const before = {
      kind: "several",
      places: [
        { at: file("/a"), state: "delivered" },
        { at: store("vault:a/b#c"), state: "delivered" },
        { at: command("m"), state: "failed" },
      ],
    } as const;
    for (const step of ["check", "prepare"] as const) {
      const [a, b] = [place(file("/a")), place(profile("p"))];
      const both = several(a, b);
      const record = step === "check" ? await both.check({ before }) : await both.prepare("w", { before });
      expect(statesOf(record as RecordOf<"several">)).toEqual(["file delivered", "profile pending", "store delivered"]);
      expect(a.calls).toEqual([]);
      await both.deliver(client, delivery);
      expect([a.calls, b.calls.at(-1)]).toEqual([[], "deliver"]);
    }
    const one = several(place(file("/a")), place(profile("p")));
    expect(statesOf((await one.check({ before: file("/a") })) as RecordOf<"several">)).toEqual([
      "file pending",
      "profile pending",
    ]);
  });

  it("are all released, and the first failure is reported", async () => {
    const [a, b, c] = [
      place(file("/a"), { release: no("failed", "first") }),
      place(profile("p"), { release: no("failed", "second") }),
      place(command("m")),
    ];
    await expect(several(a, b, c).release()).rejects.toThrow("first");
    expect([a.calls, b.calls, c.calls]).toEqual([["release"], ["release"], ["release"]]);
    await expect(several(c).release()).resolves.toBeUndefined();
  });

  it("may not be one place twice, under any names", async () => {
    const folder = mkdtempSync(join(tmpdir(), "integ-several-"));
    try {
      symlinkSync(folder, `${folder}-link`);
      for (const [one, other] of [
        [file("/a"), file("/a")],
        [file(join(folder, "a")), file(join(`${folder}-link`, "a"))],
        [profile("p"), profile("p")],
        [command("m"), command("m")],
        [store("vault:a/b#c"), store("vault:a/b#c")],
      ] as const) {
        expect(() => several(place(one), place(other))).toThrow("is given twice as a destination of the secret.");
        expect(() => several(place(one), place(file("/x")), place(other))).toThrow("given twice");
      }
      expect(() => several(place(file(join(folder, "a"))), place(file(join(folder, "b"))))).not.toThrow();
    } finally {
      rmSync(folder, { recursive: true });
      rmSync(`${folder}-link`);
    }
    const before = { kind: "several", places: [{ at: profile("p"), state: "delivered" }] } as const;
    await expect(several(place(file("/a")), place(profile("q"))).check({ before })).resolves.toBeDefined();
  });
});

describe("remembered destinations", () => {
  const remembered = async (
    places: DestinationProgress[],
    typed: SingleDestinationPlace[],
  ): Promise<{ states: string[]; rebuilt: string[]; delivered: string[] }> => {
    const rebuilt: string[] = [];
    const made: ReturnType<typeof place>[] = [];
    const all = await rememberedSeveral({ kind: "several", places }, typed, async (at) => {
      rebuilt.push(namesOf(at));
      const one = place(at);
      made.push(one);
      return one;
    });
    const names = placesOf(all.record).map((at) => describeDestination(at).name);
    const states = statesOf(all.record as RecordOf<"several">).map(
      (state, index) => `${state.split(" ")[1]} ${names[index]}`,
    );
    const seen: string[] = [];
    await all.deliver(client, { ...delivery, record: async () => {} });
    for (const one of [...made, ...(typed as ReturnType<typeof place>[])])
      if (one.calls.includes("deliver")) seen.push(describeDestination(one.record).name);
    return { states, rebuilt, delivered: seen };
  };
  const done = (at: SingleRecord): DestinationProgress => ({ at, state: "delivered" });
  const open = (at: SingleRecord): DestinationProgress => ({ at, state: "failed" });

  it("are the missing ones, reconstructed", async () => {
    expect(await remembered([done(file("/a")), open(profile("p"))], [])).toEqual({
      states: ["delivered /a", "failed profile p"],
      rebuilt: ["profile p"],
      delivered: ["profile p"],
    });
  });

  it("include a typed one of them; the others are reconstructed", async () => {
    expect(await remembered([open(file("/a")), open(profile("p"))], [place(profile("p"))])).toEqual({
      states: ["failed /a", "failed profile p"],
      rebuilt: ["/a"],
      delivered: ["/a", "profile p"],
    });
  });

  it("are replaced by options that name none of them", async () => {
    expect(await remembered([done(file("/a")), open(profile("p"))], [place(file("/b"))])).toEqual({
      states: ["delivered /a", "pending /b"],
      rebuilt: [],
      delivered: ["/b"],
    });
  });

  it("are extended by further options", async () => {
    expect(await remembered([open(file("/a"))], [place(file("/a")), place(file("/b"))])).toEqual({
      states: ["failed /a", "pending /b"],
      rebuilt: [],
      delivered: ["/a", "/b"],
    });
  });

  it("stay unchanged if a destination that has the secret is typed again", async () => {
    expect(await remembered([done(file("/a")), open(profile("p"))], [place(file("/a"))])).toEqual({
      states: ["delivered /a", "failed profile p"],
      rebuilt: ["profile p"],
      delivered: ["profile p"],
    });
  });

  it("take a typed command for a missing one, whose text is not recorded; the same command first", async () => {
    expect((await remembered([open(command("m"))], [place(command("n"))])).rebuilt).toEqual([]);
    const [m, n] = [place(command("m")), place(command("n"))];
    expect((await remembered([open(command("x")), open(command("m"))], [n, m])).rebuilt).toEqual([]);
    expect([m.calls.length, n.calls.length]).toEqual([2, 2]);
    expect((await remembered([open(command("m")), open(command("x"))], [place(command("m"))])).rebuilt).toEqual([
      "a command",
    ]);
    expect((await remembered([open(file("/a"))], [place(command("n"))])).states).toEqual(["pending a command"]);
  });
});

describe("a record", () => {
  const all = [file("/a"), profile("p"), command("m"), store("vault:a/b#c"), { kind: "stdout" } as const];

  it("of one destination is its own place", () => {
    for (const [index, one] of all.entries())
      expect(all.map((other) => isSamePlace(one, other))).toEqual(all.map((_, at) => at === index));
    expect(isSamePlace(file("/a"), file("/b"))).toBe(false);
    expect(isSamePlace(profile("p"), profile("q"))).toBe(false);
    expect(isSamePlace(command("m"), command("n"))).toBe(false);
    expect(isSamePlace(store("vault:a/b#c"), store("vault:a/b#d"))).toBe(false);
  });

  it("lists its places, and the missing ones", () => {
    const record: RecordOf<"several"> = {
      kind: "several",
      places: all.map((at, index) => ({ at, state: index === 1 ? "delivered" : "failed" })),
    };
    expect(namesOf(record)).toBe("/a, profile p, a command, vault:a/b#c, standard output");
    expect(missingPlaces(record)).toEqual(all.filter((_, index) => index !== 1));
    expect([missingPlaces(null), missingPlaces(file("/a")), placesOf(file("/a"))]).toEqual([[], [], [file("/a")]]);
  });

  it("names the proof of a delivery, and if it can be checked later", () => {
    const facts = all.map((at) => {
      const { proof, leavesTrace, option } = describeDestination(at);
      return [proof, leavesTrace, option?.kind];
    });
    expect(facts).toEqual([
      ["written and synced", true, "file"],
      ["stored", true, "profile"],
      ["the command ended with 0", false, undefined],
      ["read back", false, "store"],
      ["written", false, undefined],
    ]);
    const checked = (check?: "exit" | "output"): string =>
      describeDestination({ kind: "command", mark: "m", check }).proof;
    expect([checked("exit"), checked("output"), checked()]).toEqual([
      "the check ended with 0",
      "the check printed the secret",
      "the command ended with 0",
    ]);
    expect(describeDestination(store("other:x")).proof).toBe("written");
  });
});
