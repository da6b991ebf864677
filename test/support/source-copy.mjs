// Copies the project without its build, so that a script can change the sources. The copy uses the same installed packages.
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../..");
const parts = [
  ..."bin completions docs scripts src test CHANGELOG.md CONTRIBUTING.md LICENSE README.md SECURITY.md".split(" "),
  ..."package.json package-lock.json tsconfig.json vitest.config.mts".split(" "),
];

/** @param {string} name the purpose of the copy, for its folder's name */
export function sourceCopy(name) {
  const folder = mkdtempSync(join(tmpdir(), `integ-${name}-`));
  for (const part of parts) cpSync(join(root, part), join(folder, part), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));

  /**
   * @param {string} file a path below `src/`, or below the project if it begins with `/`
   * @param {(text: string) => string} change
   * @returns {() => void} restores the file
   */
  function rewrite(file, change) {
    const path = join(folder, file.startsWith("/") ? "" : "src", file);
    const text = readFileSync(path, "utf8");
    const changed = change(text);
    if (changed === text) throw new Error(`${file} does not have what was to be changed`);
    writeFileSync(path, changed);
    return () => writeFileSync(path, text);
  }

  /**
   * Replaces a text, which must occur exactly once in the file, with a defect.
   * @param {readonly [file: string, text: string, defect: string]} change
   * @returns {() => void} restores the file
   */
  const put = ([file, text, defect]) =>
    rewrite(file, (content) => {
      if (content.split(text).length !== 2) throw new Error(`${file} does not have this once: ${text}`);
      return content.replace(text, () => defect);
    });
  return { folder, rewrite, put, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
