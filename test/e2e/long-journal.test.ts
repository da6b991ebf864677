import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { fileJournal } from "../support/file-journal.ts";
import { longJournal, writeJournal } from "../support/long-journal.ts";
import { program } from "../support/program.ts";
import { ada } from "../unit/journal/intent.ts";

it("reports damage, its place and all unfinished entries in a long journal", async () => {
  const folder = mkdtempSync(join(tmpdir(), "integ-long-"));
  try {
    const path = join(folder, "state", "journal.ndjson");
    const lines = longJournal(2600, { padding: "x".repeat(4700) });
    lines[4000] = lines[4000]!.replace('"now"', '"n0w"');
    writeJournal(path, lines);
    const integ = (...words: string[]): string => {
      const [file, ...first] = program;
      const env = { PATH: process.env.PATH, HOME: folder, INTEG_JOURNAL: path };
      const { stdout, signal } = spawnSync(file, [...first, ...words], { encoding: "utf8", env, maxBuffer: 1e8 });
      expect(signal).toBeNull();
      return stdout;
    };
    const printed = JSON.parse(integ("journal", "verify", "--json")) as { data: unknown };
    const journal = fileJournal(path, { now: Date.now, actor: ada });
    const findings = await journal.verify();
    expect(findings.map(({ where }) => where)).toContainEqual(expect.stringContaining("line 4001"));
    expect(printed.data).toEqual(findings);
    const listed = JSON.parse(integ("journal", "list", "--json")) as { data: { id: string }[] };
    expect(listed.data.map(({ id }) => id)).toEqual((await journal.unsettled()).map(({ id }) => id));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
