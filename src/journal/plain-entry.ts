// What `journal verify` needs of an entry, from the text of a record as this program writes it. One expression says that the
// record has each member in its order and of its type: as much as `readEntry` says, in a third of the time. What it does not
// match may be sound anyway: `readEntry` decides then.
import { readDestination } from "./entry-destination.ts";
import { type Entry, formatVersion } from "./entry.ts";
import { hasNeededDetail, isDetail } from "./read-entry.ts";
import { jsonIn, type Slice } from "./record.ts";

export type CheckedEntry = Pick<
  Entry,
  "id" | "base_url" | "idempotency_key" | "replaces" | "parent" | "updated_at" | "replaced_by"
>;

// Bytes are read as Latin-1, so that a text beyond ASCII has other characters: it is checked, and nothing of it is taken.
const text = String.raw`"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"`;
const textOrNull = `(?:null|${text})`;
const plain = String.raw`("[^"\\\x00-\x1f\x7f-\xff]*")`;
const plainOrNull = plain.replace("(", "(null|");
const whole = "(?:0|[1-9][0-9]{0,14})";
/** What has no object within is parsed by itself. */
const flat = String.raw`(\{[^{}\x7f-\xff]*\})`;
const flatOrNull = flat.replace("(", "(null|");

function members(all: Readonly<Record<string, string>>): string {
  const each = Object.entries(all).map(([key, value]) =>
    key.endsWith("?") ? `(?:"${key.slice(0, -1)}":${value},)?` : `"${key}":${value},`,
  );
  return `\\{${each.join("").replace(/,$/, "")}\\}`;
}

const intentMembers = members({
  id: plain,
  operation: plain,
  idempotency_key: plainOrNull,
  profile: text,
  profile_id: text,
  "principal?": text,
  organization_id: textOrNull,
  region: text,
  base_url: plain,
  service_version: text,
  "method?": text,
  "path?": text,
  request_text: text,
  twin: text,
  replaces: plainOrNull,
  parent: plainOrNull,
  created_at: text,
});
const nowMembers = members({
  state: text,
  resource_id: textOrNull,
  attempts: whole,
  "request_ids?": String.raw`\[${text}(?:,${text})*\]`,
  "clock_offset_ms?": `-?${whole}`,
  updated_at: plain,
  last_error: "null",
  destination: flatOrNull,
  replaced_by: plainOrNull,
  detail: flat,
});
const tail = `(?:,"prev":${text})?,"n":${whole},"after":${text}`;
const head = `\\{"sum":${text},"v":${formatVersion},`;
const record = new RegExp(`^${head}"intent":${intentMembers},"now":${nowMembers},"by":${flat}${tail}\\}$`);

/** Few are different in a journal, and many entries have each. */
const mostKnown = 64;

class KnownTexts {
  readonly #known = new Set<string>();
  readonly #isSound: (value: unknown) => boolean;

  constructor(isSound: (value: unknown) => boolean) {
    this.#isSound = isSound;
  }

  has(json: string): boolean {
    if (this.#known.has(json)) return true;
    const isSound = this.#isSound(jsonIn(json));
    if (isSound && this.#known.size < mostKnown) this.#known.add(json);
    return isSound;
  }
}

const actors = new KnownTexts((value) => value !== undefined);
const destinations = new KnownTexts((value) => value === null || readDestination(value) !== undefined);

const taken = (json: string): string => json.slice(1, -1);
const takenOrNull = (json: string): string | null => (json === "null" ? null : taken(json));

/** @param line of a sound record */
export function plainEntry({ bytes, start, end }: Slice): CheckedEntry | undefined {
  const match = record.exec(bytes.toString("latin1", start, end));
  if (match === null) return undefined;
  const [, id, operation, key, base, replaces, parent, updated, destination, replacedBy, detail, by] =
    match as string[];
  if (!actors.has(by!) || !destinations.has(destination!)) return undefined;
  const details = jsonIn(detail!);
  if (!isDetail(details) || !hasNeededDetail(taken(operation!), details)) return undefined;
  return {
    id: taken(id!),
    base_url: taken(base!),
    idempotency_key: takenOrNull(key!),
    replaces: takenOrNull(replaces!),
    parent: takenOrNull(parent!),
    updated_at: taken(updated!),
    replaced_by: takenOrNull(replacedBy!),
  };
}
