// Signs and checks records with the machine's key or a team's keys.
import { createHmac, hash, randomBytes, timingSafeEqual } from "node:crypto";
import { Failure } from "../errors.ts";
import { flags } from "../next-step.ts";
import { formatVersion } from "./entry.ts";
import type { Signed } from "./record.ts";

/** `unknown`: unsigned, or this machine lacks the key; `wrong`: the HMAC does not match the named key. */
type Judgment = "valid" | "unknown" | "wrong";

export interface Keys {
  /** @returns the first key's name and the HMAC. Makes a missing machine key. @throws Failure `usage` without a team's key */
  sign(content: string): string;
  judge(record: Signed): Judgment;
  readonly digests: SecretDigests;
  readonly escrowDigests: SecretDigests;
  /** @throws Failure `usage` if this machine cannot sign records or has a damaged key */
  assertCanSign(): void;
}

/** HMACs that identify a delivered secret at its destination, or prove that integ wrote an escrowed text. */
export interface SecretDigests {
  /** @throws Failure `usage` without a team's key */
  of(text: string): string;
  /** False also if this machine lacks the digest's key. */
  fits(text: string, digest: string): boolean;
}

/** Without the team's keys, a machine can read the journal, but trusts no record and writes none. */
export function missingKeys(path: string): Keys {
  const refuse = (): never => {
    throw new Failure("usage", `This machine has no key of the team's journal ${path}.`, {
      meaning: "Nothing was sent and nothing changed.",
      hint: `Set INTEG_JOURNAL_KEY to the team's key, which integ journal init printed, or ${flags.journalKeyCommand} of the profile to a command that prints it.`,
    });
  };
  return { ...keyRing({ read: () => [], make: refuse }), assertCanSign: refuse };
}

const keyPattern = /^[A-Za-z0-9_-]{32,}$/;

export function keyList(list: string): string[] | undefined {
  const keys = list.split(",").map((key) => key.trim());
  return keys.every((key) => keyPattern.test(key)) ? keys : undefined;
}

export function parseKeys(list: string, where: string): string[] {
  const keys = keyList(list);
  if (keys !== undefined) return keys;
  throw new Failure("usage", `${where} is not a list of journal keys.`, {
    meaning: "Nothing was sent and nothing changed.",
    hint: "Write keys of at least 32 characters of base64url, separated by commas.",
  });
}

export function newKey(): string {
  return randomBytes(32).toString("base64url");
}

const nameOf = (key: string): string => hash("sha256", `integ journal key ${key}`, "hex").slice(0, 8);

/** The keys are read on first use. The first key signs; all keys verify. */
export interface KeySource {
  readonly read: () => readonly string[];
  readonly make?: () => string;
  /** Earlier keys, which only verify digests of secrets. */
  readonly readEarlier?: () => readonly string[];
}

export function keyRing({ read, make, readEarlier = () => [] }: KeySource): Keys {
  let ring: readonly string[] | undefined;
  const keys = (): readonly string[] => (ring ??= read());
  const macOf = (key: string, text: string): string =>
    `${nameOf(key)}.${createHmac("sha256", key).update(text).digest("base64url")}`;
  const recordOf = (content: string): string => `"v":${formatVersion},${content}`;
  const hmac = (text: string): string => {
    if (keys().length === 0 && make) ring = [make()];
    const [first] = keys();
    return first === undefined ? "" : macOf(first, text);
  };
  const judge = (text: string, mac: string, known = keys()): Judgment => {
    const usedKey = known.find((key) => nameOf(key) === mac.split(".")[0]);
    if (usedKey === undefined) return "unknown";
    const [actual, expected] = [Buffer.from(mac), Buffer.from(macOf(usedKey, text))];
    return actual.length === expected.length && timingSafeEqual(actual, expected) ? "valid" : "wrong";
  };
  // An HMAC for one use must be invalid for another: each use has a tag, and no record starts with a tag.
  const digestsFor = (tag: string, earlier: () => readonly string[] = () => []): SecretDigests => ({
    of: (text) => hmac(`${tag}\0${text}`),
    fits: (text, digest) =>
      judge(`${tag}\0${text}`, digest) === "valid" || judge(`${tag}\0${text}`, digest, earlier()) === "valid",
  });
  return {
    assertCanSign() {
      keys();
      readEarlier();
    },
    sign: (content) => hmac(recordOf(content)),
    judge: ({ content, mac }) => judge(recordOf(content), mac),
    digests: digestsFor("integ secret", readEarlier),
    escrowDigests: digestsFor("integ escrow"),
  };
}
