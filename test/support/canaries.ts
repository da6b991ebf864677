// Searches texts and files for every secret of a run (the canaries), in several encodings.
import { lstatSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";

export interface Sighting {
  readonly role: string;
  readonly secret: string;
  readonly form: string;
  readonly place: string;
}

interface Form {
  readonly name: string;
  readonly bytes: Buffer;
}

/** Base64 at three offsets finds a secret within any longer encoded text, such as Basic credentials. */
function formsOf(secret: string): Form[] {
  const raw = Buffer.from(secret);
  const inBase64 = [0, 1, 2].map((offset) => {
    const text = Buffer.concat([Buffer.alloc(offset), raw])
      .toString("base64")
      .replace(/=+$/, "");
    // Characters at the ends can also depend on the neighboring bytes.
    return { name: `base64 (offset ${offset})`, bytes: Buffer.from(text.slice(offset === 0 ? 0 : offset + 1, -1)) };
  });
  return [
    { name: "as it is", bytes: raw },
    { name: "percent-encoded", bytes: Buffer.from(encodeURIComponent(secret)) },
    { name: "hexadecimal", bytes: Buffer.from(raw.toString("hex")) },
    { name: "UTF-16", bytes: Buffer.from(secret, "utf16le") },
    { name: "its first 70 %", bytes: raw.subarray(0, Math.ceil(raw.length * 0.7)) },
    ...inBase64,
    ...inBase64.map(({ name, bytes }) => ({
      name: `${name}, for URLs`,
      bytes: Buffer.from(bytes.toString().replaceAll("+", "-").replaceAll("/", "_")),
    })),
  ];
}

export class Canaries {
  readonly #forms = new Map<string, { role: string; forms: Form[] }>();
  #places = 0;

  /** @throws Error for a secret so short that it could occur by chance */
  add(role: string, secret: string): void {
    if (secret.length < 12) throw new Error(`a ${role} of ${secret.length} characters is too short for a canary`);
    if (!this.#forms.has(secret)) this.#forms.set(secret, { role, forms: formsOf(secret) });
  }

  get secrets(): number {
    return this.#forms.size;
  }

  get places(): number {
    return this.#places;
  }

  rolesOf(sightings: readonly Sighting[]): string[] {
    return [...new Set(sightings.map(({ role }) => role))].sort();
  }

  search(place: string, content: Buffer | string): Sighting[] {
    this.#places += 1;
    const bytes = Buffer.from(content as string);
    const found: Sighting[] = [];
    for (const [secret, { role, forms }] of this.#forms) {
      const form = forms.find((one) => bytes.includes(one.bytes));
      if (form) found.push({ role, secret, form: form.name, place });
    }
    return found;
  }

  /**
   * Searches the names and contents of all files below a folder, but not the targets of links.
   * @param mayHold true for a file that may contain a secret: its content is not searched
   */
  searchFiles(folder: string, mayHold: (file: string) => boolean): Sighting[] {
    const found: Sighting[] = [];
    for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name);
      const name = relative(folder, path);
      found.push(...this.search(`the name ${name}`, name));
      if (entry.isFile() && !mayHold(name)) found.push(...this.search(name, readFileSync(path)));
    }
    return found;
  }
}

export function readableByOthers(folder: string, files: readonly string[]): string[] {
  return files.filter((file) => (lstatSync(join(folder, file)).mode & 0o077) !== 0);
}
