// `npm run verify-build <tgz>`: is this package what the sources here make? Builds and packs them again, in a folder that
// is removed afterwards, and compares the bytes. `npm ci` first: what is bundled has to be what the lock file names.
//
//   node scripts/verify-build.mjs <tgz>     exits 0 if they are the same, 1 with what differs, 2 if it could not compare
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { comparePackages } from "./compared-packages.mjs";
import { filesIn } from "./tar.mjs";

const root = resolve(import.meta.dirname, "..");

try {
  const [given, ...more] = process.argv.slice(2);
  if (!given || more.length > 0) throw new Error("give one package: npm run verify-build <tgz>");
  const bytes = readFileSync(resolve(process.env.INIT_CWD ?? ".", given));
  filesIn(bytes);
  const { code, lines } = comparePackages(bytes, rebuilt());
  console.log(lines.join("\n"));
  process.exitCode = code;
} catch (error) {
  console.error(`verify-build: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 2;
}

/** @returns the package that these sources make */
function rebuilt() {
  const folder = mkdtempSync(join(tmpdir(), "integ-verify-"));
  const [dist, out] = [join(folder, "dist"), join(folder, "out")];
  const rolldown = join(dirname(createRequire(import.meta.url).resolve("rolldown/package.json")), "bin", "cli.mjs");
  try {
    mkdirSync(out);
    run([rolldown, "-c", "scripts/rolldown.config.mts", "--dir", dist, "--log-level", "warn"]);
    run([join(root, "scripts", "pack.mjs"), "--dist", dist, "--out", out]);
    return readFileSync(join(out, readdirSync(out)[0]));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function run(words) {
  execFileSync(process.execPath, words, { cwd: root, stdio: ["ignore", "ignore", "inherit"] });
}
