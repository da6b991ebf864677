// Compares the SBOM with the bundler's source maps, which do not depend on the module list behind the SBOM.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import Ajv from "ajv";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import executableConfig from "../../scripts/executable/rolldown.config.mts";
import packageConfig from "../../scripts/rolldown.config.mts";
import { Home, isOtherBinary, root } from "../support/program.ts";

interface Sbom {
  readonly metadata: { readonly component: { readonly version: string; readonly "bom-ref": string } };
  readonly components: readonly Record<string, unknown>[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

/** Schemas of the parts of CycloneDX 1.6 that the SBOM uses. */
const licenses = {
  type: "array",
  minItems: 1,
  items: {
    oneOf: [
      {
        type: "object",
        required: ["license"],
        additionalProperties: false,
        properties: { license: { type: "object", required: ["id"], properties: { id: { type: "string" } } } },
      },
      {
        type: "object",
        required: ["expression"],
        additionalProperties: false,
        properties: { expression: { type: "string" } },
      },
    ],
  },
};
const component = {
  type: "object",
  // CycloneDX requires only `type` and `name`. Scanners need the other keys.
  required: ["type", "name", "version", "licenses", "purl", "bom-ref"],
  additionalProperties: false,
  properties: {
    type: { enum: ["application", "library", "platform"] },
    "bom-ref": { type: "string", minLength: 1 },
    group: { type: "string" },
    name: { type: "string", minLength: 1 },
    version: { type: "string", minLength: 1 },
    description: { type: "string" },
    scope: { enum: ["required", "optional", "excluded"] },
    hashes: {
      type: "array",
      items: {
        type: "object",
        required: ["alg", "content"],
        additionalProperties: false,
        properties: { alg: { const: "SHA-512" }, content: { type: "string", pattern: "^[a-f0-9]{128}$" } },
      },
    },
    licenses,
    cpe: { type: "string" },
    purl: { type: "string", pattern: "^pkg:(npm|generic)/" },
  },
};
const schema = {
  type: "object",
  required: ["bomFormat", "specVersion", "version", "metadata", "components", "dependencies"],
  additionalProperties: false,
  properties: {
    $schema: { const: "http://cyclonedx.org/schema/bom-1.6.schema.json" },
    bomFormat: { const: "CycloneDX" },
    specVersion: { const: "1.6" },
    version: { const: 1 },
    metadata: {
      type: "object",
      required: ["component"],
      additionalProperties: false,
      properties: {
        lifecycles: { type: "array", items: { type: "object", required: ["phase"] } },
        component,
      },
    },
    components: { type: "array", uniqueItems: true, items: component },
    dependencies: { type: "array", uniqueItems: true, items: { type: "object", required: ["ref"] } },
    compositions: { type: "array", items: { type: "object", required: ["aggregate"] } },
  },
};

const home = new Home();
afterAll(() => home.remove());
const isSkipped = isOtherBinary("what is in the bundle");

function packagesMapped(folder: string): string[] {
  const maps = readdirSync(folder).filter((name) => name.endsWith(".map"));
  const sources = maps.flatMap((name) => {
    const { sources: all } = JSON.parse(readFileSync(join(folder, name), "utf8")) as { sources: string[] };
    return all.map((source) => join(folder, source));
  });
  const folders = sources.map((source) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(source)?.[0]);
  return [...new Set(folders.filter((one) => one !== undefined).map(nameAndVersion))].sort();
}

function nameAndVersion(folder: string): string {
  const { name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Record<string, string>;
  return `${name}@${version}`;
}

const nameOf = ({ group, name, version }: Record<string, unknown>): string =>
  `${group ? `${group as string}/` : ""}${name as string}@${version as string}`;

describe.skipIf(isSkipped).each([
  ["package", packageConfig],
  ["executable", executableConfig],
])("the list of components of the %s", (kind, config) => {
  const folder = home.path(kind);
  let sbom: Sbom;

  beforeAll(async () => {
    const building = await rolldown(config);
    await building.write({ ...config.output, dir: folder, cleanDir: false, sourcemap: true });
    await building.close();
    sbom = JSON.parse(readFileSync(join(folder, "sbom.cdx.json"), "utf8")) as Sbom;
  });

  it("has every package of the bundle and no other", () => {
    const listed = sbom.components.map(nameOf).sort();
    expect(listed.length).toBeGreaterThan(20);
    expect(listed).toEqual(packagesMapped(folder));
    console.log(`components of the ${kind}: ${listed.length}`);
  });

  it("has the fields that CycloneDX requires, and version, license, checksum and package URL of each", () => {
    const check = new Ajv({ allErrors: true }).compile(schema);
    check(sbom);
    expect(check.errors ?? []).toEqual([]);
    for (const one of sbom.components) {
      expect(one.purl).toBe(`pkg:npm/${nameOf(one).replace(/^@/, "%40")}`);
      const path = `node_modules/${nameOf(one).replace(/@[^@]+$/, "")}/package.json`;
      const { license } = JSON.parse(readFileSync(join(root, path), "utf8")) as { license: string };
      expect(one).toMatchObject({ hashes: [{ alg: "SHA-512" }], licenses: [{ license: { id: license } }] });
    }
  });

  it("has the dependencies of each package: all are reachable from this program", () => {
    const needed = new Map(sbom.dependencies.map(({ ref, dependsOn }) => [ref, dependsOn]));
    const reached = new Set<string>();
    const visit = (ref: string): void => {
      if (reached.has(ref)) return;
      reached.add(ref);
      for (const next of needed.get(ref)!) visit(next);
    };
    const own = sbom.metadata.component["bom-ref"];
    visit(own);
    expect([...reached].sort()).toEqual([own, ...sbom.components.map((one) => String(one["bom-ref"]))].sort());
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
    expect(own).toBe(`pkg:npm/integ@${version}`);
  });

  it("has the same packages as the licenses file", () => {
    const text = readFileSync(join(folder, "THIRD-PARTY-LICENSES.txt"), "utf8");
    const licensed = [...text.matchAll(/^((?:@[\w.-]+\/)?[\w.-]+) (\d+\.\d+\.\S+) \(.+\)$/gm)];
    expect(licensed.map(([, name, version]) => `${name}@${version}`).sort()).toEqual(
      sbom.components.map(nameOf).sort(),
    );
  });
});
