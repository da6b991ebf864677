// A store is named in three files of the program (src/README.md): its own, destination.ts and registry.ts.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type StoreScheme, storeKinds } from "../../../src/secrets/destination.ts";
import { recordFigure } from "../../support/figures.mjs";

const source = join(import.meta.dirname, "../../../src");
const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
const textOf = (file: string): string =>
  readFileSync(join(source, file), "utf8").replaceAll(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, "");

const own: Readonly<Record<StoreScheme, string>> = {
  vault: "vault-store",
  github: "github-store",
  k8s: "kubernetes-store",
  keychain: "keychain-store",
};
const examples = ["policy/schema.ts"];

it.each(Object.keys(storeKinds) as StoreScheme[])("%s is named in three files only", (scheme) => {
  const isNamed = new RegExp(`["'\`\\s]${scheme}:(?:[<$a-z]| \\{| \\(\\) =>)|/${own[scheme]}\\.ts"`);
  const naming = files.filter((file) => isNamed.test(textOf(file)) && !examples.includes(file));
  expect(naming.toSorted()).toEqual(
    ["secrets/destination.ts", `secrets/${own[scheme]}.ts`, "secrets/registry.ts"].toSorted(),
  );
  recordFigure("store files", { program: naming.length }, scheme);
});
