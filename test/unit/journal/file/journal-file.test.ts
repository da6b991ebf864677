// The journal's file by itself: what is read of it, how records come behind each other, and that a failure leaves it as it was.
import {
  appendFileSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import type { Fold } from "../../../../src/journal/fold.ts";
import { newEntry } from "../../../../src/journal/admission.ts";
import { FileJournal } from "../../../../src/journal/file/file-journal.ts";
import { realLocks } from "../../../../src/journal/file/locks.ts";
import { JournalFile } from "../../../../src/journal/file/journal-file.ts";
import type { Reading } from "../../../../src/journal/file/reading.ts";
import { headerLine, recordContent, seal, sumIn } from "../../../../src/journal/record.ts";
import { idAt, longJournal, writeJournal } from "../../../support/long-journal.ts";
import { ada, intent, journalPath } from "../intent.ts";

const lines = longJournal(6, { isSettled: true });
/** Long enough for an index. */
let long: readonly string[] | undefined;
let path: string;
beforeEach(() => {
  path = journalPath();
  mkdirSync(dirname(path), { mode: 0o700 });
});

const now = (): number => Date.UTC(2026, 0, 1);
const file = (): JournalFile => new JournalFile(path, { now });
const idsOf = ({ fold }: Pick<Reading, "fold">): string[] => [...fold.ids()].sort();
const all = [0, 1, 2, 3, 4, 5].map((number) => idAt(number));
const content = (number: number): string =>
  recordContent(
    newEntry(intent({ fingerprint: `n${number}` }), {
      id: idAt(number),
      key: `k${number}`,
      at: "2026-01-01T00:00:00.000Z",
    }),
    { by: ada },
  );
const beside = (): string[] => readdirSync(dirname(path)).sort();

describe("a file that its lock has open", () => {
  const opened = (): number => openSync(path, constants.O_RDWR | constants.O_APPEND);

  it("is read and appended to through that, which stays open", () => {
    writeJournal(path, lines);
    const [one, fd] = [file(), opened()];
    one.locked = fd;
    // Whatever has its name now: the lock is on this one.
    renameSync(path, `${path}.moved`);
    one.append(() => [content(8)]);
    one.inOneSync(() => one.append(() => [content(9)]));
    const there = [...all, idAt(8), idAt(9)].sort();
    expect([idsOf(one.read()), existsSync(path), fstatSync(fd).size]).toEqual([
      there,
      false,
      statSync(`${path}.moved`).size,
    ]);
    closeSync(fd);
    renameSync(`${path}.moved`, path);
    one.locked = undefined;
    expect(idsOf(one.read())).toEqual(there);
  });

  it("is opened anew once it is long: its index keeps it open", () => {
    long ??= longJournal(1500, { padding: "x".repeat(500) });
    writeJournal(path, long);
    const [one, fd] = [file(), opened()];
    one.locked = fd;
    one.append(() => [content(8)]);
    const { fold } = one.read();
    closeSync(fd);
    // The number is used again, by a file that no record is in.
    const other = openSync("/dev/null", constants.O_RDONLY);
    expect([other, fold.history(idAt(3)).length > 0]).toEqual([fd, true]);
    closeSync(other);
  });

  it("keeps no lock when it grows so long that it gets an index", async () => {
    const [one, other] = [0, 1].map(
      () => new FileJournal(path, { now, actor: ada, locks: { ...realLocks, waitMs: 200 } }),
    );
    const size = (): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    for (let number = 0; size() < 1024 * 1024; number += 1) {
      for (const journal of [one!, other!]) {
        const fingerprint = `${number} of ${journal === one ? "one" : "another"}`;
        const { lease } = await journal.admit(intent({ fingerprint, request_text: "x".repeat(20_000) }));
        await lease.record({ state: "done" });
        await lease.release();
      }
    }
    expect(await one!.count()).toBe(await other!.count());
    // Each finds the oldest by its index.
    for (const journal of [one!, other!])
      for (const { id } of await journal.entries()) expect(await journal.history(id)).toHaveLength(2);
  });
});

describe("a file that is missing", () => {
  it("is an empty journal, however it is read", async () => {
    const empty = { damage: [], torn: undefined, size: 0, isEmptied: false };
    expect(file().read()).toMatchObject(empty);
    expect(file().readWhole()).toMatchObject(empty);
    expect(await file().readFirst()).toMatchObject(empty);
    expect(await file().watchWhole({ add: () => {}, takes: () => true } as never)).toMatchObject(empty);
    expect([file().size(), file().movedTo(), file().lacksIndex]).toEqual([0, undefined, false]);
    expect(beside()).toEqual([]);
  });

  it("that was there is one again", () => {
    writeJournal(path, lines);
    const one = file();
    expect(idsOf(one.read())).toEqual(all);
    rmSync(path);
    expect(idsOf(one.read())).toEqual([]);
    writeJournal(path, lines);
    expect(idsOf(one.read())).toEqual(all);
  });

  it("that is there and empty is said to be", () => {
    writeFileSync(path, "", { mode: 0o600 });
    expect(file().read()).toMatchObject({ isEmptied: true, size: 0 });
  });
});

describe("a file is read", () => {
  it.each(["read", "readWhole"] as const)("as it is: %s", (how) => {
    writeJournal(path, lines);
    const reading = file()[how]();
    expect([idsOf(reading), reading.size, reading.isEmptied]).toEqual([all, statSync(path).size, false]);
    expect(file().size()).toBe(statSync(path).size);
  });

  it("on from what is known of it", () => {
    const one = file();
    for (let count = 1; count <= lines.length; count += 1) {
      writeJournal(path, lines.slice(0, count));
      const reading = one.read();
      expect(idsOf(reading)).toEqual(idsOf(file().read()));
      expect(one.read().fold).toBe(reading.fold);
    }
  });

  it("anew where it is another, or shorter, or another record stands where the last one was", () => {
    const other = longJournal(6, { isSettled: true }).map((line) => line.replaceAll("oac_", "oca_"));
    for (const next of [
      lines.slice(0, 5),
      other,
      [...lines.slice(0, -1), lines[1]!],
      [headerLine({ file: "x", createdAt: "2026-01-01T00:00:00.000Z" })],
    ]) {
      writeJournal(path, lines);
      const one = file();
      one.read();
      writeFileSync(path, next.join(""));
      expect(idsOf(one.read())).toEqual(idsOf(file().read()));
      expect(one.read().damage).toEqual(file().read().damage);
    }
  });

  it("with damage behind the last record told again, until a record comes behind it", () => {
    writeJournal(path, [...lines, "damage\n"]);
    const one = file();
    for (let times = 0; times < 2; times += 1)
      expect(one.read()).toMatchObject({ damage: [{ reason: "its checksum does not match" }], torn: undefined });
    expect(one.read().fold.damage).toEqual([]);
    appendFileSync(path, seal(content(9), sumIn(lines.at(-1)!)));
    const reading = one.read();
    expect([reading.damage, reading.fold.damage.length, idsOf(reading)]).toEqual([[], 1, [...all, idAt(9)].sort()]);
  });

  it("with an append that was cut short beside it", () => {
    writeJournal(path, [...lines, '{"sum":"00']);
    expect(file().read()).toMatchObject({ torn: { reason: "an incomplete append" }, damage: [] });
  });

  it("only if it is a journal, and no one else's to write", async () => {
    writeFileSync(path, "another file\n", { mode: 0o600 });
    for (const read of [() => file().read(), () => file().readWhole(), () => file().keepIndex()])
      expect(read).toThrow("is not a journal of integ");
    await expect(file().readFirst()).rejects.toThrow("is not a journal of integ");
    writeJournal(path, lines);
    chmodSync(path, 0o622);
    for (const read of [() => file().read(), () => file().size(), () => file().append(() => [])])
      expect(read).toThrow("can be written by others");
    await expect(file().readFirst()).rejects.toThrow("can be written by others");
    await expect(file().watchWhole({ add: () => {} } as never)).rejects.toThrow("can be written by others");
    expect(file().movedTo()).toBeUndefined();
  });
});

describe("records are appended", () => {
  it("behind a header of their own, each naming the one before", () => {
    const one = file();
    one.append(() => [content(1), content(2)]);
    one.append((fold) => {
      expect(idsOf({ fold })).toEqual([idAt(1), idAt(2)].sort());
      return [content(3)];
    });
    const written = readFileSync(path, "utf8").trimEnd().split("\n");
    expect(written).toHaveLength(4);
    for (const [index, line] of written.slice(1).entries())
      expect(line).toContain(`"after":"${sumIn(written[index]!)}"`);
    expect(JSON.parse(written[0]!)).toMatchObject({ journal: "integ", created_at: "2026-01-01T00:00:00.000Z" });
    expect([statSync(path).mode & 0o777, idsOf(file().read()).length]).toEqual([0o600, 3]);
  });

  it("behind a newline where the last one lacks it, and in the place of one that was cut short", () => {
    writeJournal(path, [...lines.slice(0, -1), lines.at(-1)!.trimEnd()]);
    file().append(() => [content(9)]);
    expect(idsOf(file().read())).toEqual([...all, idAt(9)].sort());
    writeJournal(path, [...lines, '{"sum":"00']);
    file().append(() => [content(9)]);
    expect(
      readFileSync(path, "utf8")
        .split("\n")
        .filter((line) => line === '{"sum":"00'),
    ).toEqual([]);
    expect(beside().some((name) => name.startsWith("journal.ndjson."))).toBe(true);
    expect(file().read()).toMatchObject({ damage: [], torn: undefined });
  });

  it("or nothing, where making them fails", () => {
    writeJournal(path, lines);
    const one = file();
    const before = readFileSync(path);
    expect(() =>
      one.append(() => {
        throw new Error("no record");
      }),
    ).toThrow("no record");
    expect(readFileSync(path).equals(before)).toBe(true);
    one.append(() => [content(9)]);
    expect(idsOf(file().read())).toEqual([...all, idAt(9)].sort());
    one.append(() => []);
    expect(idsOf(file().read())).toHaveLength(7);
  });

  it("together in one sync, which counts them", () => {
    const one = file();
    const counts: number[] = [];
    one.inOneSync((count) => {
      for (const number of [1, 2, 3]) {
        one.append(() => [content(number)]);
        counts.push(count());
      }
    });
    expect([counts, idsOf(file().read())]).toEqual([[1, 2, 3], [1, 2, 3].map((number) => idAt(number)).sort()]);
    one.append(() => [content(4)]);
    expect(idsOf(file().read())).toHaveLength(4);
    one.inOneSync(() => {});
    expect(() =>
      one.inOneSync(() => {
        one.append(() => [content(5)]);
        throw new Error("later");
      }),
    ).toThrow("later");
    expect(idsOf(file().read())).toHaveLength(5);
  });

  it("not to a journal of a newer format, nor to one that has moved", () => {
    const moved = headerLine({
      file: "f",
      createdAt: "2026-01-01T00:00:00.000Z",
      moved: { to: "postgres://db/x", isUnfinished: false },
    });
    writeJournal(path, [moved]);
    expect(() => file().append(() => [content(1)])).toThrow("postgres://db/x");
    expect(() => {
      const one = file();
      one.read();
      one.assertHere();
    }).toThrow("postgres://db/x");
    expect(file().movedTo()).toEqual({ to: "postgres://db/x", isUnfinished: false });
    file().append(() => [content(1)], { isMove: true });
    expect(idsOf(file().read())).toEqual([idAt(1)]);
    writeJournal(path, [seal('{"v":99,"journal":"integ","file":"f"'.slice(1))]);
    const before = readFileSync(path);
    expect(() => file().append(() => [content(1)])).toThrow("newer integ");
    expect(readFileSync(path).equals(before)).toBe(true);
  });
});

describe("a file is written again", () => {
  it("with what stays, and what was damaged set aside", () => {
    writeJournal(path, [...lines.slice(0, 3), "damage\n", ...lines.slice(3), '{"sum":"00']);
    const one = file();
    one.replace(one.read(), (header) => [Buffer.from(header({ records: 0, digest: "d", gaps: [] }))]);
    expect(JSON.parse(readFileSync(path, "utf8"))).toMatchObject({ journal: "integ", kept: { records: 0 } });
    const aside = beside()
      .filter((name) => name !== "journal.ndjson")
      .map((name) => readFileSync(`${dirname(path)}/${name}`, "utf8"));
    expect(aside.join()).toContain("damage");
    expect(aside.join()).toContain('{"sum":"00');
    expect(idsOf(one.read())).toEqual([]);
  });

  it("with a mark of where its entries went", () => {
    writeJournal(path, lines);
    const one = file();
    one.replace(one.read(), (header) => [Buffer.from(header({ records: 0, digest: "d", gaps: [] }))], {
      to: "/elsewhere",
      isUnfinished: true,
    });
    expect(one.movedTo()).toEqual({ to: "/elsewhere", isUnfinished: true });
  });

  it("damage is set aside once, and stays in the file", () => {
    writeJournal(path, [...lines, "damage\n"]);
    const one = file();
    for (let times = 0; times < 3; times += 1) one.setAside(one.read());
    expect(beside().filter((name) => name !== "journal.ndjson")).toHaveLength(1);
    expect(readFileSync(path, "utf8")).toContain("damage");
  });
});

describe("the index of a long file", () => {
  const some = (): readonly string[] => (long ??= longJournal(1500, { padding: "x".repeat(500) }));
  const folded = (fold: Fold): number => [...fold.ids()].length;

  it("is made by who keeps it, and read instead of the file", () => {
    writeJournal(path, some());
    const one = file();
    one.read();
    expect(beside()).toEqual(["journal.ndjson"]);
    one.keepIndex();
    expect(beside()).toHaveLength(3);
    const next = file();
    expect(folded(next.read().fold)).toBe(1500);
    expect(next.read().fold.earlier).toBeDefined();
    const whole = file().readWhole();
    expect([folded(whole.fold), whole.size]).toEqual([1500, statSync(path).size]);
    next.append(() => [content(9999)]);
    expect(folded(file().read().fold)).toBe(1501);
    truncateSync(path, Buffer.byteLength(some().slice(0, 10).join("")));
    expect(folded(file().read().fold)).toBe(folded(file().readWhole().fold));
    expect(existsSync(`${path}.index`)).toBe(true);
  });

  it("goes with a file that is written again", () => {
    writeJournal(path, some());
    const one = file();
    one.keepIndex();
    one.replace(one.read(), (header) => [Buffer.from(header({ records: 0, digest: "d", gaps: [] }))]);
    expect(beside()).toEqual(["journal.ndjson"]);
  });
});
