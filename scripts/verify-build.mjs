// `npm run verify-build <tgz>`: is this package what the sources here make? Builds and packs them again, in a folder that
// is removed afterwards, and compares the bytes. `npm ci` first: what is bundled has to be what the lock file names.
//
//   node scripts/verify-build.mjs <tgz>     exits 0 if they are the same, 1 with what differs, 2 if it could not compare
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { gunzipSync } from "node:zlib";
import { filesIn } from "./tar.mjs";

const root = resolve(import.meta.dirname, "..");

try {
  const [given, ...more] = process.argv.slice(2);
  if (!given || more.length > 0) throw new Error("give one package: npm run verify-build <tgz>");
  const bytes = readFileSync(resolve(process.env.INIT_CWD ?? ".", given));
  const files = filesIn(bytes);
  process.exitCode = report({ bytes, files }, rebuilt());
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

/** @returns the exit code */
function report({ bytes: given, files }, made) {
  console.log(`given:   sha512-${checksumOf(given)}`);
  console.log(`rebuilt: sha512-${checksumOf(made)}`);
  if (given.equals(made)) {
    console.log("The same bytes: this package is what these sources make.");
    return 0;
  }
  const differences = differencesOf(files, filesIn(made));
  if (differences.length === 0 && gunzipSync(given).equals(gunzipSync(made))) {
    console.log("The same archive, compressed differently (another npm, Node or processor): its content is verified.");
    return 0;
  }
  for (const line of differences) console.log(line);
  const what =
    differences.length === 0 ? "only the archive's headers differ" : `files that differ: ${differences.length}`;
  console.log(`The package is not what these sources make (${what}).`);
  return 1;
}

function differencesOf(given, made) {
  const paths = [...new Set([...given.keys(), ...made.keys()])].sort((one, other) => (one < other ? -1 : 1));
  return paths.flatMap((path) => {
    const [one, other] = [given.get(path), made.get(path)];
    if (!other) return [`only in the given package: ${path}`];
    if (!one) return [`missing in the given package: ${path}`];
    if (!one.content.equals(other.content))
      return [`different content: ${path} (${one.content.length} and ${other.content.length} bytes)`];
    return one.mode === other.mode
      ? []
      : [`different mode: ${path} (${one.mode.toString(8)}, ${other.mode.toString(8)})`];
  });
}

function checksumOf(bytes) {
  return createHash("sha512").update(bytes).digest("base64");
}
