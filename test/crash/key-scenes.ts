// Commands for access keys that tests disturb. The legacy contract has no idempotency key, so the conditions are: at most
// one POST, no orphan, and no unreported loss of a secret.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { afterAll, beforeAll } from "vitest";
import { KeysDesk, secretIn } from "../e2e/keys-desk.ts";
import { journalOf, unsettledIn } from "../support/journal-file.ts";
import type { Home } from "../support/program.ts";
import { type Run, type Scene, type Stage, undisturbed } from "./harness.ts";

const secretName = "key.secret";

export interface Arranged {
  readonly at: Home;
  readonly words: readonly string[];
  /** The names of all keys that the run creates start with this text. */
  readonly name: string;
  readonly old?: { readonly id: string; readonly secret: string };
}

export interface KeyWork {
  readonly name: string;
  arrange(desk: KeysDesk, name: string): Promise<Arranged>;
  /** Matches the path of the POST that must be sent at most once. */
  readonly posts: RegExp;
  atOnce?(desk: KeysDesk, arranged: Arranged): Promise<string[]>;
  inTheEnd(desk: KeysDesk, arranged: Arranged): Promise<string[]>;
}

function delivered(at: Home): string | undefined {
  return existsSync(at.path(secretName)) ? secretIn(at, secretName) : undefined;
}

/**
 * If a creation in the journal is done, exactly one new key must be live, with its secret delivered; otherwise none.
 * @returns violations
 */
async function wrongKeys(desk: KeysDesk, { at, name, old }: Arranged): Promise<string[]> {
  const found: string[] = [];
  const live = (await desk.live(name)).filter(({ id }) => id !== old?.id);
  const secret = delivered(at);
  const made = journalOf(at).some(({ operation, state }) => operation === "access_key.create" && state === "done");
  if (live.length !== (made ? 1 : 0)) found.push(`${live.length} live keys, ${made ? "one" : "none"} is the journal's`);
  if (made && (secret === undefined || !(await desk.opens(secret))))
    found.push("the key is live and its secret is nowhere");
  return found;
}

export const create: KeyWork = {
  name: "keys create",
  posts: /^\/api\/v1\/access-keys$/,
  async arrange(desk, name) {
    return { at: desk.withToken(), name, words: ["keys", "create", "--name", name, "--secret-file", secretName] };
  },
  inTheEnd: wrongKeys,
};

export const replace: KeyWork = {
  name: "keys rotate --by-replacement",
  posts: /^\/api\/v1\/access-keys$/,
  async arrange(desk, name) {
    const { at } = await desk.withProfile();
    const old = await desk.makeKey({ name });
    return { at, name, old, words: ["keys", "rotate", old.id, "--by-replacement", "--secret-file", secretName] };
  },
  async atOnce(desk, { at, old }) {
    const secret = delivered(at);
    const works = (await desk.opens(old!.secret)) || (secret !== undefined && (await desk.opens(secret)));
    return works ? [] : ["the old key no longer works and the new one was not delivered"];
  },
  async inTheEnd(desk, arranged) {
    const found = await wrongKeys(desk, arranged);
    const isOldLive = await desk.opens(arranged.old!.secret);
    const made = journalOf(arranged.at).some(
      ({ operation, state }) => operation === "access_key.rotate" && state === "done",
    );
    if (made === isOldLive)
      found.push(`the old key is ${isOldLive ? "live" : "gone"}, and the rotation is ${made ? "" : "not "}done`);
    return found;
  },
};

export const rotate: KeyWork = {
  name: "keys rotate --update-profile",
  posts: /\/rotate$/,
  async arrange(desk) {
    const { at, own } = await desk.withProfile();
    // The first rotation records in the profile which key is the profile's own. The tested rotation is the second.
    const first = await undisturbed(at, ["keys", "rotate", own.id, "--update-profile", "--yes"]);
    if (first.code !== 0) throw new Error(first.stderr);
    return { at, name: "own-", old: own, words: ["keys", "rotate", own.id, "--update-profile", "--yes"] };
  },
  async inTheEnd(_desk, { at }) {
    const { code, stderr } = await undisturbed(at, ["keys", "list"]);
    return code === 0 ? [] : [`the profile is locked out: ${stderr}`];
  },
};

/** After a lost response, recovery finds the key, revokes it and creates another. */
export const recover: KeyWork = {
  name: "journal recover of a key",
  posts: /^\/api\/v1\/access-keys$/,
  async arrange(desk, name) {
    const at = desk.withToken();
    await desk.service.fault("POST /api/v1/access-keys drop=after times=1");
    const words = ["keys", "create", "--name", name, "--marker", "--secret-file", secretName, "--retry-for", "0"];
    const { code, stderr } = await undisturbed(at, words, { env: { INTEG_TIMEOUT: "1s" } });
    if (code !== 7) throw new Error(`a lost response ended with ${code}: ${stderr}`);
    // Recovery searches for the key only after the time limit of the lost request.
    await wait(1200);
    return { at, name, words: ["journal", "recover", "--replace-lost-secret"] };
  },
  inTheEnd: wrongKeys,
};

type Path =
  | "nothing to do"
  | "finished"
  | "replaced"
  | "claimed"
  | "rotated again"
  | "locked out, rotated with another profile"
  | "confirmed";

async function recoverAs(desk: KeysDesk, { at, old }: Arranged): Promise<Path | Error> {
  const isSettled = unsettledIn(journalOf(at)).length === 0;
  const first = await undisturbed(at, ["journal", "recover"]);
  if (isSettled && first.code === 0) return "nothing to do";
  const dead = (after: string, ended: { code: number | null; stderr: string }): Error =>
    new Error(`${after} ended with ${ended.code}: ${ended.stderr}`);
  if (first.code === 0) return "finished";
  if (first.code === 12) {
    const [entry] = unsettledIn(journalOf(at));
    const claimed = await undisturbed(at, ["journal", "claim", entry!.id, "--secret-file", secretName]);
    const rest = claimed.code === 0 ? await undisturbed(at, ["journal", "recover"]) : claimed;
    return rest.code === 0 ? "claimed" : dead("claim", rest);
  }
  if (first.code === 8) {
    const confirmed = await undisturbed(at, ["journal", "recover", "--yes"]);
    return confirmed.code === 0 ? "confirmed" : dead("recover --yes", confirmed);
  }
  if (first.stderr.includes("This profile is locked out.")) return unlockProfile(desk, { at, id: old!.id });
  const second = await undisturbed(at, ["journal", "recover", "--replace-lost-secret"]);
  if (second.code === 0) return first.code === 9 ? "replaced" : "rotated again";
  return dead(`recover (${first.code}), then recover --replace-lost-secret`, second);
}

/** Rotates the key with another profile, because the profile's own secret no longer works. */
async function unlockProfile(desk: KeysDesk, { at, id }: { at: Home; id: string }): Promise<Path | Error> {
  const { base_url, organization_id, access_token_endpoint, access_key_secret } = desk.here;
  const where = ["--region", "us", "--base-url", base_url, "--organization-id", organization_id];
  await undisturbed(
    at,
    ["profiles", "add", "admin", ...where, "--api-key-stdin", "--access-token-endpoint", access_token_endpoint],
    {
      input: access_key_secret,
    },
  );
  const asAdmin = ["-p", "admin", "--secret-profile", "p", "--new", "--yes"];
  const rotated = await undisturbed(at, ["keys", "rotate", id, ...asAdmin]);
  if (rotated.code !== 0)
    return new Error(`the rotation with another profile ended with ${rotated.code}: ${rotated.stderr}`);
  for (const entry of unsettledIn(journalOf(at))) await undisturbed(at, ["journal", "forget", entry.id, "--yes"]);
  return "locked out, rotated with another profile";
}

/** Files outside the destinations that contain a key's secret, or that were reserved for a secret and not removed. */
function strayFiles(at: Home): string[] {
  return readdirSync(at.folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(at.folder.length + 1))
    .filter((file) => file !== secretName && !file.startsWith("config/credentials/"))
    .filter((file) => /\.integ-|undelivered\//.test(file) || readFileSync(at.path(file)).includes("sbx_us_aks_"));
}

export class KeyStage implements Stage {
  readonly #desk: KeysDesk;
  readonly #work: KeyWork;
  readonly #arranged: Arranged;

  constructor(desk: KeysDesk, work: KeyWork, arranged: Arranged) {
    this.#desk = desk;
    this.#work = work;
    this.#arranged = arranged;
  }

  get at(): Home {
    return this.#arranged.at;
  }

  get words(): readonly string[] {
    return this.#arranged.words;
  }

  async audit({ findings, where, ended, fault }: Run): Promise<void> {
    const posts = await this.#desk.sent("POST", this.#work.posts);
    const begun = journalOf(this.at).filter(({ attempts }) => attempts > 0).length;
    if (posts > begun) findings.lostKeys.push(`${where}: ${posts} POSTs, ${begun} in the journal`);
    if (posts > 1) findings.duplicates.push(`${where}: ${posts} POSTs`);
    if (/a bug in integ/.test(ended.stderr)) findings.bugs.push(`${where}: ${ended.stderr}`);
    // A delivery may succeed although its last record is not on disk, but then integ must warn.
    if (fault?.errno && ended.code === 0 && !ended.stderr.includes("could not be"))
      findings.falseSuccesses.push(`${where}: nothing was said`);
    for (const words of (await this.#work.atOnce?.(this.#desk, this.#arranged)) ?? [])
      findings.withoutWorkingClient.push(`${where}: before recovery: ${words}`);
  }

  async recover({ findings, where }: Run): Promise<string> {
    await this.#desk.renew();
    const path = await recoverAs(this.#desk, this.#arranged);
    if (path instanceof Error) findings.unfinished.push(`${where}: ${path.message}`);
    for (const { id, state } of unsettledIn(journalOf(this.at)))
      findings.unfinished.push(`${where}: entry ${id} is still ${state}`);
    for (const words of await this.#work.inTheEnd(this.#desk, this.#arranged))
      findings.withoutOwner.push(`${where}: in the end: ${words}`);
    for (const file of strayFiles(this.at)) findings.strayedSecrets.push(`${where}: a secret stands in ${file}`);
    return path instanceof Error ? "failed" : path;
  }

  remove(): void {
    this.at.remove();
  }
}

export function keyScenes(): (work: KeyWork) => Scene {
  let desk: KeysDesk;
  let number = 0;
  beforeAll(async () => {
    desk = await KeysDesk.open();
  });
  afterAll(() => desk.close());
  return (work) => ({
    name: work.name,
    // `keys rotate` creates no key, so its recovery does not search the list.
    settle: work === rotate ? undefined : () => desk.service.settle(),
    async stage({ through } = {}) {
      await desk.renew();
      await desk.goThrough(through);
      const arranged = await work.arrange(desk, `disturbed-${(number += 1)}-`);
      await desk.service.calm();
      return new KeyStage(desk, work, arranged);
    },
  });
}
