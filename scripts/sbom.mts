// Writes the SBOM (CycloneDX 1.6) beside the bundle, for scanners: `npm sbom` and `npm audit` do not see bundled
// packages. The SBOM contains no time and no serial number, so that builds are reproducible.
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Plugin } from "rolldown";
import { type BundledPackage, modulesIn, packageFolder, packagesOf } from "./bundled-packages.mts";

export const sbomFile = "sbom.cdx.json";

const root = resolve(import.meta.dirname, "..");

type Imports = (module: string) => readonly string[];

export function sbom(): Plugin {
  return {
    name: "sbom",
    generateBundle(_options, bundle) {
      const importsOf: Imports = (module) => {
        const info = this.getModuleInfo(module);
        return [...(info?.importedIds ?? []), ...(info?.dynamicallyImportedIds ?? [])];
      };
      const source = `${JSON.stringify(describe(modulesIn(bundle), importsOf), null, 2)}\n`;
      this.emitFile({ type: "asset", fileName: sbomFile, source });
    },
  };
}

function describe(modules: readonly string[], importsOf: Imports): object {
  const { name, version, license, description } = readJson(join(root, "package.json")) as Record<string, string>;
  const own = { name: name!, version: version! };
  const packages = packagesOf(modules);
  const checksums = lockedChecksums();
  return {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      lifecycles: [{ phase: "build" }],
      component: {
        type: "application",
        "bom-ref": purlOf(own),
        ...own,
        description,
        licenses: licensesOf(license!),
        purl: purlOf(own),
      },
    },
    components: packages.map((one) => componentOf(one, checksums)),
    dependencies: dependenciesOf({ modules, importsOf, packages, own: purlOf(own) }),
    compositions: [{ aggregate: "complete", assemblies: [purlOf(own)] }],
  };
}

function componentOf(one: BundledPackage, checksums: ReadonlyMap<string, string>): object {
  const purl = purlOf(one);
  const [group, name] = one.name.startsWith("@") ? one.name.split("/") : [undefined, one.name];
  const checksum = checksums.get(purl);
  return {
    type: "library",
    "bom-ref": purl,
    ...(group && { group }),
    name,
    version: one.version,
    scope: "required",
    ...(checksum && { hashes: [{ alg: "SHA-512", content: checksum }] }),
    licenses: licensesOf(one.license),
    purl,
  };
}

function licensesOf(license: string): object[] {
  return / (OR|AND|WITH) /.test(license) ? [{ expression: license }] : [{ license: { id: license } }];
}

/** A package URL escapes the `@` of a scope: https://github.com/package-url/purl-spec. */
export function purlOf({ name, version }: Pick<BundledPackage, "name" | "version">): string {
  return `pkg:npm/${name.replace("@", "%40")}@${version}`;
}

interface Lock {
  readonly packages: Readonly<Record<string, { readonly version?: string; readonly integrity?: string }>>;
}

/** @returns checksums in hexadecimal, by package URL */
function lockedChecksums(): Map<string, string> {
  const { packages } = readJson(join(root, "package-lock.json")) as Lock;
  const checksums = Object.entries(packages).flatMap(([path, { version, integrity }]) => {
    const name = path.split("node_modules/").at(-1)!;
    if (!version || !integrity?.startsWith("sha512-")) return [];
    const checksum = Buffer.from(integrity.slice("sha512-".length), "base64").toString("hex");
    return [[purlOf({ name, version }), checksum] as const];
  });
  return new Map(checksums);
}

interface Graph {
  readonly modules: readonly string[];
  readonly importsOf: Imports;
  readonly packages: readonly BundledPackage[];
  readonly own: string;
}

function dependenciesOf({ modules, importsOf, packages, own }: Graph): object[] {
  const names = new Map(packages.map((one) => [one.folder, purlOf(one)]));
  const ownerOf = (module: string): string => names.get(packageFolder(module) ?? "") ?? own;
  const needs = new Map([own, ...names.values()].map((ref) => [ref, new Set<string>()]));
  for (const module of modules) {
    const owner = ownerOf(module);
    for (const imported of importsOf(module).map(ownerOf))
      if (imported !== owner && imported !== own) needs.get(owner)!.add(imported);
  }
  return [...needs].map(([ref, needed]) => ({ ref, dependsOn: [...needed].sort() }));
}

function readJson(file: string): unknown {
  return JSON.parse(readFileSync(file, "utf8"));
}
