// Finds the bundled packages in the bundler's module list, for licenses and the SBOM.
import { readFileSync } from "node:fs";
import { join } from "node:path";

export interface BundledPackage {
  readonly folder: string;
  readonly name: string;
  readonly version: string;
  readonly license: string;
}

type Part =
  | { readonly type: "asset" }
  | { readonly type: "chunk"; readonly modules: Readonly<Record<string, unknown>> };

export function modulesIn(bundle: Readonly<Record<string, Part>>): string[] {
  return Object.values(bundle).flatMap((part) => (part.type === "chunk" ? Object.keys(part.modules) : []));
}

export function packageFolder(module: string): string | undefined {
  return /^(.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+)[\\/]/.exec(module.replace(/^\0/, ""))?.[1];
}

export function packagesOf(modules: readonly string[]): BundledPackage[] {
  const folders = new Set(modules.map(packageFolder).filter((folder) => folder !== undefined));
  return [...folders].map(packageAt).sort((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1));
}

function packageAt(folder: string): BundledPackage {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as BundledPackage;
  if (!name || !version || !license) throw new Error(`${folder}/package.json lacks a name, a version or a license`);
  return { folder, name, version, license };
}

function keyOf({ name, version }: BundledPackage): string {
  return `${name}@${version}`;
}
