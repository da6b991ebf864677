// Checks which tools of tools.json this machine has. `probe` is a line of shell, and `package` names Debian packages. A tool
// without a package (a right of the user, PowerShell) is optional. `node test/support/tools.mjs` prints the missing packages.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const table = JSON.parse(readFileSync(join(import.meta.dirname, "tools.json"), "utf8"));
const missing = new Map();

/** @throws Error for an unknown tool, and for a missing one that has a package if this run requires all packages */
function isOneMissing(name) {
  const tool = table[name];
  if (!tool) throw new Error(`no tool of tools.json: ${name}`);
  if (!missing.has(name)) missing.set(name, spawnSync("sh", ["-c", tool.probe], { stdio: "ignore" }).status !== 0);
  if (missing.get(name) && tool.package !== undefined && process.env.INTEG_TEST_REQUIRE_TOOLS === "1")
    throw new Error(`these tests need ${name} (Debian: ${tool.package}), and INTEG_TEST_REQUIRE_TOOLS is set`);
  return missing.get(name);
}

export function isMissing(...names) {
  return names.some(isOneMissing);
}

export function missingTools() {
  return Object.keys(table).filter((name) => isMissing(name));
}

if (process.argv[1] === import.meta.filename) {
  const packages = missingTools().flatMap((name) => table[name].package?.split(" ") ?? []);
  console.log(packages.join(" "));
}
