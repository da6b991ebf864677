// `node scripts/executable/build.mjs`: builds a single executable from the sources and Node, with licenses and an SBOM.
//
//   node scripts/executable/build.mjs [--archive] [--out <folder>] [--cache <folder>] [--node <path of Node 25.5 or newer>]
//
// --archive also packs the three files into integ-<version>-<platform>.tar.gz.
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { fetchNode } from "./fetch-node.mjs";

const root = resolve(import.meta.dirname, "../..");
const { values } = parseArgs({
  options: {
    out: { type: "string", default: join(root, "build") },
    cache: { type: "string", default: join(root, "build", "node") },
    node: { type: "string" },
    archive: { type: "boolean", default: false },
  },
});

try {
  const node = values.node ? resolve(values.node) : fetchNode(resolve(values.cache));
  const path = buildExecutable(node, resolve(values.out));
  console.log(`${path} (${megabytes(path)}, Node.js ${versionOf(node)})`);
  if (values.archive) {
    const archive = archived(path);
    console.log(`${archive} (${megabytes(archive)})`);
  }
} catch (error) {
  console.error(`executable: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}

/** The executable appears in `out` only when it is complete. */
function buildExecutable(node, out) {
  const work = join(out, "executable");
  const rolldown = join(dirname(createRequire(import.meta.url).resolve("rolldown/package.json")), "bin", "cli.mjs");
  const config = join(root, "scripts", "executable", "rolldown.config.mts");
  run(process.execPath, [rolldown, "-c", config, "--dir", work, "--log-level", "warn"]);
  const path = join(out, process.platform === "win32" ? "integ.exe" : "integ");
  const unfinished = join(work, "integ");
  const settings = join(work, "sea.json");
  const sea = {
    main: join(work, "integ.cjs"),
    output: unfinished,
    disableExperimentalSEAWarning: true,
    useCodeCache: true,
    // Otherwise NODE_OPTIONS, which is meant for other programs, would change how integ runs.
    execArgvExtension: "none",
  };
  writeFileSync(settings, JSON.stringify(sea));
  run(node, ["--build-sea", settings]);
  const licenses = `Node.js ${versionOf(node)}\n\n${licenseOf(node)}\n${"-".repeat(80)}\n\n`;
  const bundled = readFileSync(join(work, "THIRD-PARTY-LICENSES.txt"), "utf8");
  writeFileSync(join(out, "THIRD-PARTY-LICENSES.txt"), licenses + bundled);
  writeFileSync(join(out, "sbom.cdx.json"), withNode(join(work, "sbom.cdx.json"), versionOf(node)));
  renameSync(unfinished, path);
  return path;
}

function archived(path) {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const name = `integ-${version}-${process.platform}-${process.arch}`;
  const out = dirname(path);
  const staging = join(out, "executable", name);
  mkdirSync(staging, { recursive: true });
  for (const file of [basename(path), "THIRD-PARTY-LICENSES.txt", "sbom.cdx.json"])
    copyFileSync(join(out, file), join(staging, file));
  const archive = join(out, `${name}.tar.gz`);
  execFileSync("tar", ["-czf", archive, "-C", dirname(staging), name]);
  return archive;
}

function megabytes(path) {
  return `${Math.round(statSync(path).size / 1e6)} MB`;
}

/** Adds Node under the names by which scanners know it. */
function withNode(file, version) {
  const sbom = JSON.parse(readFileSync(file, "utf8"));
  const ref = `pkg:generic/node@${version}`;
  sbom.components.push({
    type: "platform",
    "bom-ref": ref,
    name: "node",
    version,
    scope: "required",
    licenses: [{ license: { id: "MIT" } }],
    cpe: `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`,
    purl: ref,
  });
  sbom.dependencies[0].dependsOn.push(ref);
  sbom.dependencies.push({ ref, dependsOn: [] });
  return `${JSON.stringify(sbom, null, 2)}\n`;
}

function versionOf(node) {
  return execFileSync(node, ["-p", "process.versions.node"], { encoding: "utf8", env: {} }).trim();
}

function licenseOf(node) {
  const path = [join(dirname(node), "..", "LICENSE"), join(dirname(node), "LICENSE")].find((file) => existsSync(file));
  if (!path) throw new Error(`no LICENSE beside ${node}: an executable may not be given away without it`);
  return readFileSync(path, "utf8").trim();
}

function run(program, words) {
  execFileSync(program, words, {
    cwd: root,
    stdio: ["ignore", "ignore", "inherit"],
    env: { ...process.env, NODE_OPTIONS: "" },
  });
}
