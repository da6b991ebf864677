import { execFileSync, spawnSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { anotherUser, Home, isOtherBinary, root } from "../support/program.ts";

const home = new Home();
afterAll(() => home.remove());
const isSkipped = isOtherBinary("how the package is built");

interface Surroundings {
  readonly folder: string;
  readonly umask: string;
  readonly env: Readonly<Record<string, string>>;
  readonly uid?: number;
}

const { files, version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  files: string[];
  version: string;
};
const packed = `integ-${version}.tgz`;

function cloneInto(folder: string): void {
  const sources = ["src", "scripts", "package.json", "package-lock.json", "tsconfig.json"];
  for (const name of [...sources, ...files.filter((file) => file !== "dist")])
    cpSync(join(root, name), join(folder, name), { recursive: true });
  mkdirSync(join(folder, "node_modules"));
  for (const name of readdirSync(join(root, "node_modules")))
    if (/^@?rolldown$|^@oxc-project$/.test(name))
      symlinkSync(join(root, "node_modules", name), join(folder, "node_modules", name));
  const { components } = JSON.parse(readFileSync(join(root, "dist/sbom.cdx.json"), "utf8")) as {
    components: { group?: string; name: string }[];
  };
  for (const { group, name } of components) {
    const path = join("node_modules", group ?? "", name);
    cpSync(join(root, path), join(folder, path), { recursive: true });
  }
}

function packIn({ folder, umask, env, uid }: Surroundings): Buffer {
  const rolldown = join(root, "node_modules/rolldown/bin/cli.mjs");
  const words = [process.execPath, rolldown, "-c", "scripts/rolldown.config.mts", "--log-level", "warn"];
  const pack = [process.execPath, join(folder, "scripts/pack.mjs")];
  const fresh = { PATH: process.env.PATH, npm_config_update_notifier: "false", ...env };
  for (const line of [words, pack])
    execFileSync("sh", ["-c", `umask ${umask}; exec "$@"`, "sh", ...line], {
      cwd: folder,
      env: fresh,
      stdio: ["ignore", "ignore", "pipe"],
      ...(uid === undefined ? {} : { uid, gid: uid }),
    });
  return readFileSync(join(folder, packed));
}

function verify(bytes: Buffer): [code: number | null, printed: string] {
  const file = home.path("given.tgz");
  writeFileSync(file, bytes);
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, "scripts/verify-build.mjs"), file], {
    encoding: "utf8",
  });
  return [status, stdout + stderr];
}

describe.skipIf(isSkipped)("the package's bytes", () => {
  const far = home.path("a rather longer name", "far");
  let otherBytes: Buffer;

  it("are the same from two folders, users and times", { timeout: 240_000 }, () => {
    mkdirSync(far, { recursive: true });
    cloneInto(far);
    const clock = home.path("clock.cjs");
    writeFileSync(
      clock,
      "const Real = Date; globalThis.Date = class extends Real {" +
        "constructor(...all) { super(...(all.length ? all : [981_173_106_000])); } static now() { return 981_173_106_000; } };",
    );
    for (const name of readdirSync(far, { recursive: true, encoding: "utf8" }))
      if (!name.startsWith("node_modules")) utimesSync(join(far, name), 981_173_106, 981_173_106);
    const uid = anotherUser([process.execPath, join(root, "node_modules/rolldown/bin/cli.mjs"), "--version"]);
    if (uid === undefined) console.warn("skipped: packing as another user: only root can become one");
    else execFileSync("chown", ["-R", `${uid}:${uid}`, home.path("a rather longer name")]);
    chmodSync(home.folder, 0o755);
    otherBytes = packIn({
      folder: far,
      umask: "077",
      env: {
        HOME: far,
        TMPDIR: far,
        TZ: "Pacific/Chatham",
        LANG: "tr_TR.UTF-8",
        NODE_OPTIONS: `--require=${clock}`,
      },
      ...(uid === undefined ? {} : { uid }),
    });
    expect(verify(otherBytes)).toEqual([0, expect.stringContaining("The same content")]);
  });

  it("are compared by verify-build, which names differences", () => {
    const folder = home.path("doctored");
    mkdirSync(folder);
    writeFileSync(home.path("elsewhere.tgz"), otherBytes);
    execFileSync("tar", ["-xzf", home.path("elsewhere.tgz"), "-C", folder]);
    const at = (name: string): string => join(folder, "package", name);
    appendFileSync(at("dist/main.cjs"), "//");
    writeFileSync(at("dist/extra.cjs"), "");
    rmSync(at("LICENSE"));
    execFileSync("tar", ["-czf", home.path("doctored.tgz"), "-C", folder, "package"]);
    const [code, printed] = verify(readFileSync(home.path("doctored.tgz")));
    expect([code, printed.match(/main\.cjs|extra\.cjs|LICENSE/g)?.sort()]).toEqual([
      1,
      ["LICENSE", "extra.cjs", "main.cjs", "main.cjs"],
    ]);
    expect(verify(Buffer.from("no archive"))).toEqual([2, expect.stringMatching(/verify-build: /)]);
  });
});
