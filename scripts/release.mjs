// `npm run release`: puts the package and its SBOM into build/release, and writes checksums of all files of this
// version there.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "..");
const folder = join(root, "build", "release");
const { name, version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

mkdirSync(folder, { recursive: true });
const pack = [join(root, "scripts", "pack.mjs"), "--out", folder];
execFileSync(process.execPath, pack, { stdio: ["ignore", "ignore", "inherit"] });
copyFileSync(join(root, "dist", "sbom.cdx.json"), join(folder, `${name}-${version}.cdx.json`));

const files = readdirSync(folder).filter((file) => file.startsWith(`${name}-${version}`));
const lines = files.sort().map((file) => {
  const checksum = createHash("sha256").update(readFileSync(join(folder, file)));
  return `${checksum.digest("hex")}  ${file}\n`;
});
writeFileSync(join(folder, "SHA256SUMS"), lines.join(""));
process.stdout.write(lines.join(""));
