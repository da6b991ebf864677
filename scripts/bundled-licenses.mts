// Writes the licenses of bundled packages beside the bundle, so that the package includes them.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Plugin } from "rolldown";
import { type BundledPackage, modulesIn, packagesOf } from "./bundled-packages.mts";

function licenseOf({ folder, name, version, license }: BundledPackage): string {
  const file = readdirSync(folder)
    .sort()
    .find((entry) => /^licen[cs]e/i.test(entry));
  const text = file ? readFileSync(join(folder, file), "utf8").trim() : `Licensed under ${license}.`;
  return `${name} ${version} (${license})\n\n${text}\n`;
}

export function bundledLicenses(): Plugin {
  return {
    name: "bundled-licenses",
    generateBundle(_options, bundle) {
      const source = packagesOf(modulesIn(bundle))
        .map(licenseOf)
        .join(`\n${"-".repeat(80)}\n\n`);
      this.emitFile({ type: "asset", fileName: "THIRD-PARTY-LICENSES.txt", source });
    },
  };
}
