// Module hooks of house-trace.mjs: src/ runs as it is, and each of its files says that it was loaded.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { transformSync } from "rolldown/utils";

let source;

export function initialize(data) {
  source = data.source;
}

export async function resolve(name, context, next) {
  // The package is CommonJS to Node and its sources are modules; a version is all that is read of package.json.
  if (!name.endsWith("/package.json")) return next(name, context);
  const one = await next(name, { ...context, importAttributes: { type: "json" } });
  return { ...one, importAttributes: {} };
}

export async function load(url, context, next) {
  if (url.startsWith(source) && url.endsWith(".ts")) {
    const { code } = transformSync(fileURLToPath(url), readFileSync(fileURLToPath(url), "utf8"), { lang: "ts" });
    const name = JSON.stringify(url.slice(source.length));
    return { format: "module", shortCircuit: true, source: `globalThis.loadedFiles.push(${name});${code}` };
  }
  if (!url.endsWith("/package.json") || context.format === "commonjs") return next(url, context);
  const { version } = JSON.parse(readFileSync(fileURLToPath(url), "utf8"));
  return { format: "module", shortCircuit: true, source: `export const version = ${JSON.stringify(version)};` };
}
