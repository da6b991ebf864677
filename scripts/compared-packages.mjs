// What differs between a package that was given and the one that the sources make, for verify-build.mjs.
import { createHash } from "node:crypto";
import { gunzipSync } from "node:zlib";
import { filesIn } from "./tar.mjs";

/** @returns the exit code, and what to print */
export function comparePackages(given, made) {
  const files = filesIn(given);
  const lines = [`given:   sha512-${checksumOf(given)}`, `rebuilt: sha512-${checksumOf(made)}`];
  if (given.equals(made))
    return { code: 0, lines: [...lines, "The same bytes: this package is what these sources make."] };
  const differences = differencesOf(files, filesIn(made));
  if (differences.length === 0 && gunzipSync(given).equals(gunzipSync(made))) {
    const why = "compressed differently (another npm, Node or processor): its content is verified.";
    return { code: 0, lines: [...lines, `The same archive, ${why}`] };
  }
  const what =
    differences.length === 0 ? "only the archive's headers differ" : `files that differ: ${differences.length}`;
  const hint = hasManifestOfClone(files)
    ? [
        "Its package.json is that of a clone, as `npm pack` writes it: `npm run pack` makes the package that is published.",
      ]
    : [];
  return {
    code: 1,
    lines: [...lines, ...differences, `The package is not what these sources make (${what}).`, ...hint],
  };
}

/** Whether the clone itself was packed: only scripts/pack.mjs takes the development's fields out. */
function hasManifestOfClone(files) {
  try {
    return "devDependencies" in JSON.parse(files.get("package/package.json")?.content.toString("utf8") ?? "");
  } catch {
    return false;
  }
}

function differencesOf(given, made) {
  const paths = [...new Set([...given.keys(), ...made.keys()])].sort((one, other) => (one < other ? -1 : 1));
  return paths.flatMap((path) => {
    const [one, other] = [given.get(path), made.get(path)];
    if (!other) return [`only in the given package: ${path}`];
    if (!one) return [`missing in the given package: ${path}`];
    if (!one.content.equals(other.content))
      return [`different content: ${path} (${one.content.length} and ${other.content.length} bytes)`];
    return one.mode === other.mode
      ? []
      : [`different mode: ${path} (${one.mode.toString(8)}, ${other.mode.toString(8)})`];
  });
}

function checksumOf(bytes) {
  return createHash("sha512").update(bytes).digest("base64");
}
