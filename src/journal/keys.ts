// The keys that records are signed with: the machine's own, or a team's. A record with a valid HMAC was made by who has the key.
import { createHmac, hash, randomBytes, timingSafeEqual } from "node:crypto";
import { Failure } from "../errors.ts";
import { flags } from "../next-step.ts";
import { formatVersion } from "./entry.ts";
import type { Signed } from "./record.ts";

/** `unknown`: signed with no key of ours, or not at all; `wrong`: with one of ours, and it does not fit. */
export type Judgement = "valid" | "unknown" | "wrong";

export interface Keys {
  /** @returns the name of the first key and the HMAC; empty if there is no key */
  sign(content: string): string;
  judge(record: Signed): Judgement;
  readonly digests: SecretDigests;
  /** @throws Failure `usage` if nothing can be signed, so nothing may be changed */
  assertCanSign(): void;
}

/** Digests by which a secret that integ delivered is recognized where it went: HMACs under the journal's keys. */
export interface SecretDigests {
  /** @param text as it is at its destination @throws Failure `usage` if there is no key and none can be made */
  of(text: string): string;
  /** False of a digest under a key that is not here. */
  fits(text: string, digest: string): boolean;
}

/** The keys of a machine that has none of its team's: it reads, trusts no record, and changes nothing. */
export function missingKeys(path: string): Keys {
  const refuse = (): never => {
    throw new Failure("usage", `The journal ${path} is a team's, and this machine has no key of it.`, {
      meaning: "Nothing was sent and nothing changed.",
      hint: `Set INTEG_JOURNAL_KEY to the team's key, which integ journal init printed, or ${flags.journalKeyCommand} of the profile to a command that prints it.`,
    });
  };
  return { ...keyRing({ read: () => [], make: refuse }), assertCanSign: refuse };
}

const keyPattern = /^[A-Za-z0-9_-]{32,}$/;

/** @throws Failure `usage` if the list has anything but keys */
export function parseKeys(list: string, where: string): string[] {
  const keys = list.split(",").map((key) => key.trim());
  if (keys.every((key) => keyPattern.test(key))) return keys;
  throw new Failure("usage", `${where} is not a list of journal keys.`, {
    meaning: "Nothing was sent and nothing changed.",
    hint: "Write keys of at least 32 characters of base64url, separated by commas.",
  });
}

export function newKey(): string {
  return randomBytes(32).toString("base64url");
}

const nameOf = (key: string): string => hash("sha256", `integ journal key ${key}`, "hex").slice(0, 8);

/** Where keys come from, asked when the first record is signed or judged: the first signs, all verify. */
export interface KeySource {
  readonly read: () => readonly string[];
  /** Makes the first one, where a machine has its own. */
  readonly make?: () => string;
}

export function keyRing({ read, make }: KeySource): Keys {
  let ring: readonly string[] | undefined;
  const keys = (): readonly string[] => (ring ??= read());
  const macOf = (key: string, text: string): string =>
    `${nameOf(key)}.${createHmac("sha256", key).update(text).digest("base64url")}`;
  const signed = (content: string): string => `"v":${formatVersion},${content}`;
  // No record begins so: a digest of a secret is not an HMAC of a record.
  const kept = (text: string): string => `integ secret\0${text}`;
  const made = (text: string): string => {
    if (keys().length === 0 && make) ring = [make()];
    const [first] = keys();
    return first === undefined ? "" : macOf(first, text);
  };
  const compared = (text: string, mac: string): Judgement => {
    const own = keys().find((key) => nameOf(key) === mac.split(".")[0]);
    if (own === undefined) return "unknown";
    const [is, expected] = [Buffer.from(mac), Buffer.from(macOf(own, text))];
    return is.length === expected.length && timingSafeEqual(is, expected) ? "valid" : "wrong";
  };
  return {
    assertCanSign() {},
    sign: (content) => made(signed(content)),
    judge: ({ content, mac }) => compared(signed(content), mac),
    digests: { of: (text) => made(kept(text)), fits: (text, digest) => compared(kept(text), digest) === "valid" },
  };
}
