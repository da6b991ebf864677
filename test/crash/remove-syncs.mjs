// Removes each sync of syncs.ts in a copy of the sources, and runs the scenes without it. An argument selects files by a
// part of their names.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { rolldown } from "rolldown";
import { recordFigure } from "../support/figures.mjs";
import { sourceCopy } from "../support/source-copy.mjs";

const [, , wanted = ""] = process.argv;

async function listOf() {
  const bundle = await rolldown({ input: join(import.meta.dirname, "syncs.ts"), platform: "node" });
  const { output } = await bundle.generate({ format: "esm" });
  await bundle.close();
  const { syncs } = await import(`data:text/javascript,${encodeURIComponent(output[0].code)}`);
  return syncs.filter(({ file }) => file.includes(wanted));
}

function without(text, { call, nth = 1 }) {
  let at = -1;
  const lines = text.split("\n");
  for (const [index, line] of lines.entries()) {
    if (line.trim() !== call) continue;
    at += 1;
    if (at !== nth - 1) continue;
    lines[index] = line.replace(/\b(?:fs\.)?(?:f(?:data)?syncSync|syncFolder|folderSynced)\(.*\);/, "void 0;");
    return lines.join("\n");
  }
  throw new Error(`not there: ${call}, ${nth}`);
}

function run(copy, { scenes, test = "test/crash/power-loss" }) {
  const env = { ...process.env, INTEG_TEST_SCENES: scenes, INTEG_TEST_NO_BUILD: "" };
  const vitest = join(copy, "node_modules", "vitest", "vitest.mjs");
  const { status, stdout, stderr } = spawnSync(process.execPath, [vitest, "run", test], {
    cwd: copy,
    env,
    encoding: "utf8",
    maxBuffer: 2 ** 28,
  });
  const violation = /power loss: (\w+: .*(?:before step|after its end).*)/.exec(stderr + stdout)?.[1];
  if (status !== 0 && violation === undefined)
    throw new Error(`the tests do not run: ${(stdout + stderr).slice(-2000)}`);
  return { isRed: status !== 0, violation };
}

const copy = sourceCopy("syncs");
let removed = 0;
let green = 0;
let unseen = 0;
try {
  for (const sync of await listOf()) {
    const restore = copy.rewrite(sync.file, (text) => without(text, sync));
    const { isRed, violation } = run(copy.folder, sync);
    restore();
    removed += 1;
    if (!isRed && sync.unseen === undefined) green += 1;
    if (!isRed && sync.unseen !== undefined) unseen += 1;
    const name = `${sync.file}: ${sync.call}${sync.nth ? ` (${sync.nth})` : ""}`;
    const how = isRed ? "red  " : sync.unseen === undefined ? "GREEN" : "kept ";
    console.log(
      `${how} ${name}\n      ${sync.keeps}\n      ${(isRed ? violation : (sync.unseen ?? "")).slice(0, 240)}`,
    );
  }
} finally {
  copy.remove();
}
recordFigure("syncs", { "taken away": removed, "without a failing test": green, unseen });
process.exitCode = green === 0 ? 0 : 1;
