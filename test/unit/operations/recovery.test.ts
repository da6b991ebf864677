import { describe, expect, it } from "vitest";
import type { Recovered } from "../../../src/operations/recovery.ts";
import type { Workbench } from "../../../src/operations/workbench.ts";
import { createOAuthClient } from "../../../src/operations/client.ts";
import { rotateOAuthClient } from "../../../src/operations/client-rotation.ts";
import { Failure, worstOf } from "../../../src/errors.ts";
import type { Entry } from "../../../src/journal/entry.ts";
import { AWorld, type Ended } from "./a-world.ts";
import { perform, type Operation, operations, worldFor } from "./every-operation.ts";

function leftUnknown(): { world: AWorld; act: () => Promise<Ended<unknown>> } {
  const world = new AWorld({ fates: { create: ["lost before"] }, retryForMs: 0 });
  const request = { service_account_id: "sa_1", scopes: ["entity:read"] };
  const act = (): Promise<Ended<unknown>> =>
    world.run((bench) =>
      createOAuthClient(bench, request, { destination: world.destination(), waitMs: 0, mayReplace: async () => false }),
    );
  return { world, act };
}

describe("a recovery to another destination", () => {
  it.each(["create", "rotate"] as const)("of a %s never revokes a client whose secret a profile has", async (name) => {
    let delivered = 0;
    for (let crashAt = 1; ; crashAt += 1) {
      const world = new AWorld({ destination: "profile" });
      world.account.addExisting("client", "oc_old");
      const request = { service_account_id: "sa_1", scopes: ["entity:read"] };
      const mayReplace = async (): Promise<boolean> => true;
      world.crashAt = crashAt;
      const ended = await world.run<unknown>((bench) => {
        const options = { destination: world.destination(), waitMs: 0, mayReplace, mayRevokeUnproven: mayReplace };
        const old = { id: "oc_old", ...request, status: "active" };
        return name === "create"
          ? createOAuthClient(bench, request, { ...options, mayReplace: async () => false })
          : rotateOAuthClient(bench, { old, overlapMs: 0, keepOld: false }, options);
      });
      if (ended.kind !== "crash") break;
      world.crashAt = Number.POSITIVE_INFINITY;
      const inProfiles = [...world.profiles.values()].map(({ secret }) => secret);
      delivered += inProfiles.length;
      await world.recover({ destinationOf: async () => world.destination("file"), mayReplace });
      const works = world.account.clients.filter(({ status }) => status === "active").map(({ secret }) => secret);
      expect(works, `crash at ${crashAt}`).toEqual(expect.arrayContaining(inProfiles));
      expect(world.broken).toEqual([]);
    }
    expect(delivered).toBeGreaterThan(0);
  });
});

describe("the account of an entry", () => {
  it.each([
    [{ baseUrl: "https://other.example" }, "points at"],
    [{ organizationId: "org_2" }, "another organization"],
    [{ profileId: "p2" }, "another profile of the same name"],
  ])("%j: nothing is sent", async (account, why) => {
    const { world, act } = leftUnknown();
    await act();
    world.entries[0] = { ...world.entries[0]!, organization_id: "org_1" };
    let bench: Workbench | undefined;
    await world.run(async (given) => void (bench = given));
    const moved = { ...bench!, account: { ...bench!.account, organizationId: "org_1", ...account } };
    const { value } = await world.recover({ benchFor: async () => moved });
    expect(value![0]!.failure?.message).toContain(why);
    // The entry's own state decides the exit code: unknown.
    expect(value![0]!.failure?.kind).toBe("outcome_unknown");
    expect(world.account.requests).toEqual(["create"]);
  });

  it("one failed entry does not stop the others", async () => {
    const { world, act } = leftUnknown();
    await act();
    world.entries.push({ ...world.entries[0]!, id: "1zzzzzzzzz", idempotency_key: "another" });
    const { value } = await world.recover({
      benchFor: async ({ id }) => {
        if (id !== "1zzzzzzzzz") throw new Failure("auth", "The profile is missing.");
        let bench: Workbench | undefined;
        await new AWorld().run(async (given) => void (bench = given));
        return bench!;
      },
    });
    expect(value!.map(({ failure }) => failure?.kind)).toEqual(["outcome_unknown", undefined]);
  });

  it("an entry of another shell's environment is skipped, and decides the exit code only if it is alone", async () => {
    const { world, act } = leftUnknown();
    await act();
    world.entries.push({ ...world.entries[0]!, id: "1zzzzzzzzz", idempotency_key: "another", profile: "env" });
    let bench: Workbench | undefined;
    const recoverHere = (world: AWorld) =>
      world.recover(
        {
          isOptional: ({ profile }) => profile === "env",
          benchFor: async ({ profile }) => {
            if (profile === "env") throw new Failure("usage", "INTEG_BASE_URL is not set.");
            return bench!;
          },
        },
        (given) => void (bench = given),
      );
    const { value } = await recoverHere(world);
    expect(value!.map(({ isSkipped, entry }) => [entry.profile, isSkipped, entry.state])).toEqual([
      ["p", undefined, "done"],
      ["env", true, "unknown"],
    ]);
    expect(worstOf(value!)).toBeUndefined();
    expect(worstOf((await recoverHere(world)).value!)?.kind).toBe("outcome_unknown");
  });

  it("an operation of a newer version is left alone", async () => {
    const { world, act } = leftUnknown();
    await act();
    world.entries[0] = { ...world.entries[0]!, operation: "moon.launch" as Entry["operation"] };
    const { value } = await world.recover();
    expect(value![0]!.failure?.message).toContain("moon.launch");
  });
});

describe("concurrent recovery", () => {
  const stdout = { kind: "stdout" } as const;
  const file = (path: string) => ({ kind: "file", path, format: { kind: "raw" } }) as unknown as Entry["destination"];
  const profile = { kind: "profile", name: "p", profileId: "p1" } as unknown as Entry["destination"];

  /** Each recovery takes 5 ms and fails. @returns groups of concurrent entries, the oldest first */
  async function together(about: readonly Partial<Entry>[], atOnce: number | undefined): Promise<string[]> {
    const { world, act } = leftUnknown();
    await act();
    const [one] = world.entries.splice(0);
    for (const [index, differs] of about.entries()) {
      const created_at = new Date(Date.UTC(2026, 0, 1) + index * 1000).toISOString();
      world.entries.unshift({
        ...one!,
        idempotency_key: `k${index}`,
        destination: stdout,
        ...differs,
        id: `1zzzzzzzz${index}`,
        created_at,
      });
    }
    const groups: string[] = [];
    let running = 0;
    const { value } = await world.recover({
      atOnce,
      benchFor: async ({ id }) => {
        groups.push(`${running === 0 ? "" : groups.pop()!}${id.at(-1)}`);
        running += 1;
        await new Promise((resolve) => setTimeout(resolve, 5));
        running -= 1;
        throw new Failure("auth", "The profile is missing.");
      },
    });
    expect(value!.map(({ entry }) => entry.id)).toEqual(world.entries.map(({ id }) => id).toReversed());
    return groups;
  }

  it.each<[string, Partial<Entry>[], string[]]>([
    ["independent creations", [{}, {}, {}, {}], ["0123"]],
    ["a rotation between them", [{}, { operation: "oauth_client.rotate" }, {}, {}], ["0", "1", "23"]],
    [
      "a revocation, which may be of the caller's own client",
      [{}, { operation: "oauth_client.revoke" }, {}],
      ["0", "1", "2"],
    ],
    [
      "keys, which have no idempotency key",
      [{ operation: "access_key.create" }, { operation: "access_key.create" }],
      ["0", "1"],
    ],
    ["a replacement of another", [{}, { replaces: "1yyyyyyyyy" }, {}], ["0", "1", "2"]],
    [
      "the same file",
      [{ destination: file("/a") }, { destination: file("/b") }, { destination: file("/a") }],
      ["01", "2"],
    ],
    ["a profile's credential", [{ destination: profile }, {}, {}], ["0", "12"]],
    ["the same client", [{ resource_id: "oc_1" }, { resource_id: "oc_1" }], ["0", "1"]],
  ])("%s: no entry runs at the same time as one that it may need", async (_what, about, groups) => {
    expect(await together(about, 8)).toEqual(groups);
  });

  it("is limited to one at a time unless requested", async () => {
    expect(await together([{}, {}, {}], undefined)).toEqual(["0", "1", "2"]);
    let [running, most] = [0, 0];
    const { world, act } = leftUnknown();
    await act();
    for (let index = 0; index < 8; index += 1)
      world.entries.push({
        ...world.entries[0]!,
        destination: stdout,
        id: `1zzzzzzzz${index}`,
        idempotency_key: `k${index}`,
      });
    let bench: Workbench | undefined;
    const { value } = await world.recover(
      {
        atOnce: 3,
        destinationOf: async () => world.destination("stdout"),
        benchFor: async () => {
          most = Math.max(most, (running += 1));
          await new Promise((resolve) => setTimeout(resolve, 5));
          running -= 1;
          return bench!;
        },
      },
      (given) => void (bench = given),
    );
    expect(most).toBe(3);
    expect(value!.map(({ entry }) => entry.state)).toEqual(Array.from({ length: 9 }, () => "done"));
    expect(new Set(world.account.clients.map(({ id }) => id)).size).toBe(9);
    expect(world.broken).toEqual([]);
  });
});

describe("a second replacement of one lost credential", () => {
  it.each([
    ["that was never sent is refused, and nothing is sent", {}, 0, "refused"],
    [
      "of a forgotten creation is refused, and nothing is sent",
      { replaced_by: null, state: "abandoned" },
      0,
      "refused",
    ],
    ["is created if there is no valid one", { replaced_by: null }, 0, "done"],
    ["that may have been sent is finished", {}, 1, "done"],
  ] as const)("%s", async (_what, about, attempts, state) => {
    const { world, act } = leftUnknown();
    await act();
    const [entry] = world.entries;
    const lost = { ...entry!, id: "1yyyyyyyyy", idempotency_key: "k0", state: "replaced", replaced_by: "1xxxxxxxxx" };
    world.entries[0] = { ...entry!, state: "open", attempts, replaces: lost.id };
    world.entries.push({ ...lost, ...about } as Entry);
    const { value } = await world.recover();
    expect(value![0]!.entry.state).toBe(state);
    expect(world.account.clients).toHaveLength(state === "done" ? 1 : 0);
    expect(world.messages.some((text) => /already replaces|needs no/.test(text))).toBe(state === "refused");
  });
});

describe("an untrusted entry that claims to be a step of the work", () => {
  it.each([
    ["a client's creation", "replaces"],
    ["a key's creation", "replaces"],
    ["a client's rotation", "parent"],
    ["a key's replacement", "parent"],
    ["a key's rotation in place", "parent"],
  ] as const)("%s, by %s: nothing is sent, and the work stays unfinished", async (name, link) => {
    const { sends } = operations[name]!;
    const fates = { [sends]: [{ refused: 429, retryAfterSeconds: 1 }] };
    const world = worldFor(operations[name]!, { fates, retryForMs: 0 });
    await perform(world, operations[name]!);
    const root = world.entries.find(({ parent }) => parent === null)!;
    const state = link === "parent" ? "replaced" : "done";
    const forged = {
      ...world.entries.at(-1)!,
      id: "1zzzzzzzzz",
      idempotency_key: "k0",
      state,
      [link]: root.id,
    } as const;
    world.entries.push(forged);
    world.machine.tampered.add(forged.id);
    const sent = world.account.requests.length;
    world.now += 60_000;
    const failures = [(await world.recover()).value?.[0]?.failure];
    // A rotation in place that is typed again has no steps: its secret goes where the command says.
    if (sends === "create") failures.push((await perform(world, operations[name]!)).failure);
    for (const failure of failures) expect(failure?.details.nextCommand).toBe(`integ journal trust ${forged.id}`);
    expect(world.account.requests.slice(sent).filter((request) => !/list|get|exchange/.test(request))).toEqual([]);
    expect(world.unsettled().map(({ id }) => id)).toContain(root.id);
  });
});

it("a kept secret is not outdated by an untrusted rotation", async () => {
  const operation = operations["a key's rotation in place"]!;
  const world = worldFor(operation, { failing: ["deliver"] });
  await perform(world, operation);
  const [entry] = world.entries;
  expect(entry!.state).toBe("undelivered");
  world.entries.push({ ...entry!, id: "1zzzzzzzzz", state: "done" });
  world.machine.tampered.add("1zzzzzzzzz");
  const { value } = await world.recover();
  expect(value![0]!.failure?.details.nextCommand).toBe("integ journal trust 1zzzzzzzzz");
  expect([world.entries[0]!.state, world.kept.size]).toEqual(["undelivered", 1]);
});

describe("a secret that is kept on another machine", () => {
  it("is not lost: nothing is revoked, with any consent", async () => {
    const world = new AWorld({ failing: ["deliver"] });
    const request = { service_account_id: "sa_1", scopes: ["entity:read"] };
    await world.run((bench) =>
      createOAuthClient(bench, request, {
        destination: world.destination("command"),
        waitMs: 0,
        mayReplace: async () => false,
      }),
    );
    const [kept] = world.kept;
    world.kept.clear();
    world.place = "elsewhere:/state";
    const { value } = await world.recover();
    expect([value![0]!.failure?.kind, value![0]!.entry.state]).toEqual(["undelivered", "undelivered"]);
    expect(value![0]!.failure?.message).toContain("here:/state");
    expect(world.account.live("client")).toHaveLength(1);
    world.place = "here:/state";
    world.kept.set(...kept!);
    expect((await world.recover()).value![0]!.failure?.kind).toBe("undelivered");
  });
});

/** Ends the process once its entry is on disk. */
async function leftOpen(operation: Operation): Promise<AWorld> {
  for (let crashAt = 1; ; crashAt += 1) {
    const world = worldFor(operation);
    world.crashAt = crashAt;
    expect((await perform(world, operation)).kind).toBe("crash");
    world.crashAt = Number.POSITIVE_INFINITY;
    if (world.entries.length > 0) return world;
  }
}

describe.each(Object.entries(operations))("%s, whose journal is deleted during the request", (name, operation) => {
  it.each(["typed", "recovered"])("%s: keeps its outcome", async (how) => {
    const { sends } = operation;
    const world = how === "recovered" ? await leftOpen(operation) : worldFor(operation);
    const audit = world.account.onRequest;
    world.account.onRequest = (what, about) => {
      audit(what, about);
      if (what === sends) world.journalIsGone = true;
    };
    const ended = how === "recovered" ? await world.recover() : await perform(world, operation);
    const [recovered] = how === "recovered" ? (ended.value as Recovered[]) : [];
    const kind = recovered?.failure?.kind ?? ended.kind;
    // Without a journal, a rotation sends no further request and keeps the old credential.
    expect(kind).toBe(/rotation(?: with an overlap)?$|replacement/.test(name) ? "pending" : "done");
    const made = [...world.account.live("client"), ...world.account.live("key")];
    for (const { id, secret } of made) if (!/own|old/.test(id)) expect(world.isSafe(secret)).toBe(true);
  });
});
