// `npm run executable`: the flat bundle inside a pinned Node, one file for a machine without Node; the licences of both
// beside it.
//
//   node scripts/executable/build.mjs [--out <folder>] [--cache <folder>] [--node <path of a Node 25.5 or newer>]
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { fetchNode } from "./fetch-node.mjs";

const root = resolve(import.meta.dirname, "../..");
const { values } = parseArgs({
  options: {
    out: { type: "string", default: join(root, "build") },
    cache: { type: "string", default: join(root, "build", "node") },
    node: { type: "string" },
  },
});

try {
  const node = values.node ? resolve(values.node) : fetchNode(resolve(values.cache));
  const { path, size } = buildExecutable(node, resolve(values.out));
  console.log(`${path} (${Math.round(size / 1e6)} MB, Node.js ${versionOf(node)})`);
} catch (error) {
  console.error(`executable: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}

/** @returns the executable and its size in bytes; it appears under its name whole */
function buildExecutable(node, out) {
  const work = join(out, "executable");
  const rolldown = join(dirname(createRequire(import.meta.url).resolve("rolldown/package.json")), "bin", "cli.mjs");
  const config = join(root, "scripts", "executable", "rolldown.config.mts");
  run(process.execPath, [rolldown, "-c", config, "--dir", work, "--log-level", "warn"]);
  const path = join(out, process.platform === "win32" ? "integ.exe" : "integ");
  const unfinished = join(work, "integ");
  mkdirSync(work, { recursive: true });
  const settings = join(work, "sea.json");
  writeFileSync(settings, JSON.stringify(seaSettings(join(work, "integ.cjs"), unfinished)));
  run(node, ["--build-sea", settings]);
  const licenses = `Node.js ${versionOf(node)}\n\n${licenseOf(node)}\n${"-".repeat(80)}\n\n`;
  const bundled = readFileSync(join(work, "THIRD-PARTY-LICENSES.txt"), "utf8");
  writeFileSync(join(out, "THIRD-PARTY-LICENSES.txt"), licenses + bundled);
  renameSync(unfinished, path);
  return { path, size: statSync(path).size };
}

function seaSettings(main, output) {
  return {
    main,
    output,
    disableExperimentalSEAWarning: true,
    useCodeCache: true,
    // What a developer's shell says to Node is not said to this program: no NODE_OPTIONS, no hooks.
    execArgvExtension: "none",
  };
}

function versionOf(node) {
  return execFileSync(node, ["-p", "process.versions.node"], { encoding: "utf8", env: {} }).trim();
}

function licenseOf(node) {
  const found = [join(dirname(node), "..", "LICENSE"), join(dirname(node), "LICENSE")].find((file) => existsSync(file));
  if (!found) throw new Error(`no LICENSE beside ${node}: an executable may not be given away without it`);
  return readFileSync(found, "utf8").trim();
}

function run(program, words) {
  execFileSync(program, words, {
    cwd: root,
    stdio: ["ignore", "ignore", "inherit"],
    env: { ...process.env, NODE_OPTIONS: "" },
  });
}
