// A journal of any length, as creations in the sandbox would have left it: each entry with the records of a creation that
// went well, and some that were cut off before the response came.
import { hash } from "node:crypto";
import { closeSync, mkdirSync, openSync, writeSync } from "node:fs";
import { dirname } from "node:path";

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";
const first = Date.UTC(2026, 0, 1);

function idOf(number) {
  let text = "";
  for (let rest = number; text.length < 10; rest = Math.floor(rest / 32)) text = alphabet[rest % 32] + text;
  return text;
}

const digest = (text) => hash("sha256", text, "hex");

/** One record as a line, chained to the one before in the file. */
class Lines {
  #fd;
  #after;
  #waiting = [];
  #size = 0;

  constructor(path) {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    this.#fd = openSync(path, "wx", 0o600);
  }

  add(content) {
    const body = `${content}${this.#after === undefined ? "" : `,"after":"${this.#after}"`}}`;
    this.#after = digest(body).slice(0, 16);
    const line = `{"sum":"${this.#after}",${body}\n`;
    this.#waiting.push(line);
    this.#size += line.length;
    if (this.#size > 4 * 1024 * 1024) this.#flush();
  }

  #flush() {
    const bytes = Buffer.from(this.#waiting.join(""));
    for (let done = 0; done < bytes.length; ) done += writeSync(this.#fd, bytes, done);
    this.#waiting = [];
    this.#size = 0;
  }

  end() {
    this.#flush();
    closeSync(this.#fd);
  }
}

/**
 * @param path of the journal, which must not exist
 * @param about.entries how many
 * @param about.unsettled how many of them, evenly spread, were cut off
 * @param about.account of which they are, the sandbox's if none is given
 */
export function makeJournal(path, { entries, unsettled = 0, account = sandboxAccount }) {
  const lines = new Lines(path);
  lines.add(`"v":2,"journal":"integ","file":"bench-journal","created_at":"${new Date(first).toISOString()}"`);
  for (let number = 0; number < entries; number += 1) {
    const isCut = Math.floor(((number + 1) * unsettled) / entries) > Math.floor((number * unsettled) / entries);
    for (const record of recordsOf(number, { isCut, account })) lines.add(record);
  }
  lines.end();
}

const sandboxAccount = {
  profile: "sandbox",
  profile_id: "sandbox:us",
  organization_id: "5eed0000-0000-4000-8000-0000000000a5",
  base_url: "sandbox://us",
};

function recordsOf(number, { isCut, account }) {
  const id = idOf(Math.floor((first - Date.UTC(2025, 0, 1)) / 1000) * 2 ** 20 + number * 2 ** 20);
  const name = digest(`entry ${number}`);
  const at = (ms) => new Date(first + number * 1000 + ms).toISOString();
  const key = `${name.slice(0, 8)}-${name.slice(8, 12)}-4${name.slice(13, 16)}-8${name.slice(17, 20)}-${name.slice(20, 32)}`;
  const request = `{\\"service_account_id\\":\\"sa_us_automation\\",\\"scopes\\":[\\"entity:read\\",\\"organization:read\\"]}`;
  const intent = `"v":2,"intent":{"id":"${id}","operation":"oauth_client.create","idempotency_key":"${key}","profile":"${account.profile}","profile_id":"${account.profile_id}","organization_id":${JSON.stringify(account.organization_id)},"region":"us","base_url":"${account.base_url}","service_version":"2026-07-01","method":"POST","path":"/v1/oauth_clients","request_text":"${request}","twin":"[\\"sa_us_automation\\",\\"${isCut ? number : ""}entity:read\\",\\"organization:read\\"]","replaces":null,"parent":null,"created_at":"${at(0)}"}`;
  const by = `"by":{"user":"ada","host":"desk"}`;
  const end = `"last_error":null,"destination":{"kind":"stdout"},"replaced_by":null,"detail":`;
  const open = `"now":{"state":"open","resource_id":null,"attempts":`;
  const placed = `{"attempted_at":["desk:/home/ada/.local/state/integ/undelivered"],"put_off":false`;
  const states = [`${open}0,"updated_at":"${at(0)}",${end}{}}`, `${open}1,"updated_at":"${at(20)}",${end}${placed}}}`];
  if (!isCut)
    states.push(
      `"now":{"state":"done","resource_id":"oac_us_${name.slice(32)}","attempts":1,"request_ids":["req_us_${name.slice(0, 32)}"],"clock_offset_ms":-12,"updated_at":"${at(300)}",${end}${placed},"client_id":"cid_us_${name.slice(16, 48)}"}}`,
    );
  let prev;
  return states.map((now, index) => {
    const content = `${intent},${now},${by}${prev === undefined ? "" : `,"prev":"${prev}"`},"n":${index + 1}`;
    prev = digest(content);
    return content;
  });
}
