// Creates journals of any length: runs one operation, exports it, copies it under other names, and imports the copies.
import { hash, randomUUID } from "node:crypto";

/** The names of the copied operation's service account, client and policy item contain this number. */
export const templateNumber = 1_000_000;

export function emptyJournal(workplace, name) {
  return {
    ...workplace.account(),
    INTEG_STATE_DIR: workplace.path(name),
    INTEG_JOURNAL: workplace.path(name, "journal.ndjson"),
  };
}

export function liveJournal(workplace, live) {
  const env = emptyJournal(workplace, `live-${live}`);
  create(workplace, env);
  addCopies(workplace, { env, count: live - 1 });
  return env;
}

/** @param entries the number of finished entries: half creations, half their revocations */
export function finishedJournal(workplace, entries) {
  const env = emptyJournal(workplace, `finished-${entries}`);
  workplace.run(["oauth-clients", "revoke", create(workplace, env), "--yes"], env);
  addCopies(workplace, { env, count: entries / 2 - 1 });
  return env;
}

function create(workplace, env) {
  const words = ["oauth-clients", "create", "--service-account", `sa_${templateNumber}`, "--scope", "entity:read"];
  return JSON.parse(workplace.run([...words, "--json", "--secret-file", `${env.INTEG_STATE_DIR}.secret`], env)).id;
}

export function addCopies(workplace, { env, count }) {
  const before = entriesOf(workplace, env);
  const exported = workplace.run(["journal", "export", "--quiet"], env);
  const copies = workplace.write(`copies-of-${count}.ndjson`, copiesOf(exported, count));
  workplace.run(["journal", "import", copies, "--trust", "--yes"], env);
  const after = entriesOf(workplace, env);
  if (after !== before * (count + 1))
    throw new Error(`the journal has ${after} entries, of ${before} and ${count} copies`);
}

function entriesOf(workplace, env) {
  return workplace.run(["journal", "list", "--all", "--ndjson"], env).trimEnd().split("\n").length;
}

/**
 * Copies records of the form {"sum": digest of the rest, "v", "after", "mac", then the content: "id", "n", "prev": digest of
 * the entry's previous content, "intent", …}.
 */
function copiesOf(exported, count) {
  const [header, ...lines] = exported.trimEnd().split("\n");
  const records = lines.map((line) => JSON.parse(line));
  const ids = [...new Set(records.map(({ id }) => id))];
  const keys = [...new Set(records.map(({ intent }) => intent.idempotency_key))].filter((key) => key !== null);
  const copied = Array.from({ length: count }, (_, copy) => {
    const names = new Map([
      [String(templateNumber), String(templateNumber + copy + 1)],
      ...ids.map((id, place) => [id, earlierId(ids[0], copy * ids.length + place + 1)]),
      ...keys.map((key) => [key, randomUUID()]),
    ]);
    const renamed = new RegExp([...names.keys()].join("|"), "g");
    const last = new Map();
    return lines.map((line, place) => {
      const { id } = records[place];
      const content = line
        .replace(/^.*?"mac":"[^"]*",/, "")
        .replace(/\}$/, "")
        .replace(renamed, (name) => names.get(name))
        .replace(/"prev":"\w{64}"/, () => `"prev":"${hash("sha256", last.get(id))}"`);
      last.set(id, content);
      return unsigned(content);
    });
  });
  return `${[header, ...copied.flat()].join("\n")}\n`;
}

function unsigned(content) {
  const body = `"v":3,"after":"","mac":"",${content}}`;
  return `{"sum":"${hash("sha256", body).slice(0, 16)}",${body}`;
}

/** An id is base 32: seconds, then 20 random bits. @returns the id `seconds` earlier */
function earlierId(id, seconds) {
  const digits = "0123456789abcdefghjkmnpqrstvwxyz";
  let rest = [...id].reduce((sum, digit) => sum * 32 + digits.indexOf(digit), 0) - seconds * 2 ** 20;
  let text = "";
  for (; text.length < id.length; rest = Math.floor(rest / 32)) text = digits[rest % 32] + text;
  return text;
}
