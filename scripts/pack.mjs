// `npm run pack`: packs the package for publishing. Its manifest has no scripts, because `prepare` would build from
// sources that the package lacks. Fixed file modes make the bytes reproducible.
//
//   node scripts/pack.mjs [--out <folder>] [--dist <folder>]     prints the output of `npm pack --json`
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";

const root = resolve(import.meta.dirname, "..");
const { values } = parseArgs({
  options: { out: { type: "string", default: root }, dist: { type: "string", default: join(root, "dist") } },
});
const {
  scripts: _scripts,
  devDependencies: _tools,
  ...manifest
} = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
if (!existsSync(join(values.dist, "main.cjs"))) throw new Error("nothing is built: npm run build");

const folder = mkdtempSync(join(tmpdir(), "integ-pack-"));
try {
  for (const name of manifest.files)
    cpSync(name === "dist" ? resolve(values.dist) : join(root, name), join(folder, name), { recursive: true });
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  setModes();
  const words = ["pack", folder, "--json", "--ignore-scripts", "--pack-destination", resolve(values.out)];
  execFileSync("npm", words, { stdio: "inherit" });
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function setModes() {
  const programs = Object.values(manifest.bin).map((name) => join(folder, name));
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    chmodSync(path, entry.isDirectory() || programs.includes(path) ? 0o755 : 0o644);
  }
}
