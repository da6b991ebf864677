// Verifies that a package was built from these sources: builds and packs them in a temporary folder, and compares. Run
// `npm ci` first, so that the bundled packages match the lock file.
//
//   node scripts/verify-build.mjs <tgz>     exits 0 if they are the same, 1 if they differ, 2 if it could not compare
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { gunzipSync } from "node:zlib";

const root = resolve(import.meta.dirname, "..");
const folder = mkdtempSync(join(tmpdir(), "integ-verify-"));

try {
  const [given, ...more] = process.argv.slice(2);
  if (!given || more.length > 0) throw new Error("give one package: node scripts/verify-build.mjs <tgz>");
  const path = resolve(process.env.INIT_CWD ?? ".", given);
  unpack(path, "given");
  const rebuiltPath = rebuilt();
  const isSame = gunzipSync(readFileSync(path)).equals(gunzipSync(readFileSync(rebuiltPath)));
  console.log(isSame ? "The same content: this package is what these sources make." : differences(rebuiltPath));
  process.exitCode = isSame ? 0 : 1;
} catch (error) {
  console.error(`verify-build: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 2;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function rebuilt() {
  const [dist, out] = [join(folder, "dist"), join(folder, "out")];
  const rolldown = join(dirname(createRequire(import.meta.url).resolve("rolldown/package.json")), "bin", "cli.mjs");
  mkdirSync(out);
  run([rolldown, "-c", "scripts/rolldown.config.mts", "--dir", dist, "--log-level", "warn"]);
  run([join(root, "scripts", "pack.mjs"), "--dist", dist, "--out", out]);
  return join(out, readdirSync(out)[0]);
}

function run(words) {
  execFileSync(process.execPath, words, { cwd: root, stdio: ["ignore", "ignore", "inherit"] });
}

function unpack(path, name) {
  mkdirSync(join(folder, name));
  execFileSync("tar", ["-xzf", path, "-C", join(folder, name)], { stdio: ["ignore", "ignore", "inherit"] });
}

function differences(rebuiltPath) {
  unpack(rebuiltPath, "rebuilt");
  const { stdout } = spawnSync("diff", ["-rq", "given", "rebuilt"], { cwd: folder, encoding: "utf8" });
  const files = stdout.trim() || "The files are the same; their modes or the order of the archive differ.";
  return `${files}\nThis package is not what these sources make. Only scripts/pack.mjs makes the published one.`;
}
