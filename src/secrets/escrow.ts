// Encrypts secrets to age recipients for the team's journal: any machine with a matching identity can claim them.
import { flags } from "../next-step.ts";
import { readFileSync, statSync } from "node:fs";
import { armor, Decrypter, Encrypter } from "age-encryption";
import * as z from "zod/mini";
import { Failure, invalidValue } from "../errors.ts";
import { fileFailure } from "../disk/error-words.ts";
import { checkMode } from "../disk/private-file.ts";
import type { SecretDigests } from "../journal/keys.ts";
import type { OneTimeSecret } from "./destination.ts";
import { secretSchema } from "./kept.ts";
import { tryParseJson } from "../json.ts";

const Sealed = z.object({ entry: z.string(), text: z.string(), mac: z.string() });

/** Binds a text to a journal entry: anyone can encrypt to the recipients, so encryption proves no author. */
export interface Seal {
  readonly entry: string;
  readonly digests: SecretDigests;
}

export function checkRecipients(recipients: readonly string[]): void {
  encrypterFor(recipients);
}

function encrypterFor(recipients: readonly string[]): Encrypter {
  const encrypter = new Encrypter();
  for (const recipient of recipients) {
    try {
      encrypter.addRecipient(recipient);
    } catch {
      const isSecret = /^AGE-SECRET-KEY-/i.test(recipient);
      throw invalidValue(flags.escrow, isSecret ? undefined : recipient, {
        why: isSecret ? "it is an identity (a private key)" : "it is not a public key of age",
        meaning: "Nothing was sent.",
        hint: recipient.startsWith("ssh-")
          ? "Use the public key that age-keygen prints (age1…): SSH keys are not supported."
          : "Use the public key that age-keygen prints (age1…).",
      });
    }
  }
  return encrypter;
}

export async function encryptSecret(
  secret: OneTimeSecret,
  recipients: readonly string[],
  { entry, digests }: Seal,
): Promise<string> {
  const text = JSON.stringify(secret);
  const sealed = { entry, text, mac: digests.of(sealedText(entry, text)) };
  return armor.encode(await encrypterFor(recipients).encrypt(JSON.stringify(sealed)));
}

function sealedText(entry: string, text: string): string {
  return JSON.stringify([entry, text]);
}

/**
 * @param path of a file that age-keygen wrote, with one identity per line
 * @throws Failure `usage` for a file that is open to others or has a line that is not an identity; `undelivered` if no path
 * is set or no identity fits; `auth` without a valid seal; `failed` if the text is not a secret
 */
export async function decryptSecret(text: string, path: string | undefined, seal: Seal): Promise<OneTimeSecret> {
  const decrypter = new Decrypter();
  for (const identity of identitiesIn(path)) {
    try {
      decrypter.addIdentity(identity);
    } catch {
      throw new Failure("usage", `The file ${path} contains a line that is not an age identity.`, {
        hint: "Set INTEG_ESCROW_IDENTITY to a file that age-keygen wrote.",
      });
    }
  }
  let opened: string;
  try {
    opened = await decrypter.decrypt(armor.decode(text), "text");
  } catch {
    throw new Failure(
      "undelivered",
      "The secret is encrypted in the team's journal, and this identity does not open it.",
      {
        meaning: "It stays in the journal until someone with a matching age identity claims it.",
        hint: "Set INTEG_ESCROW_IDENTITY to the file of another identity.",
      },
    );
  }
  return secretIn(opened, seal);
}

function secretIn(opened: string, { entry, digests }: Seal): OneTimeSecret {
  const sealed = Sealed.safeParse(tryParseJson(opened)).data;
  if (sealed?.entry !== entry || !digests.fits(sealedText(entry, sealed.text), sealed.mac))
    throw new Failure("auth", `What is encrypted in the team's journal for ${entry} was not signed for this entry.`, {
      meaning: "Someone may have replaced it in the database. It was not delivered; the entry and the text stay.",
      hint: "Restore the table integ_escrow from a backup, or if an earlier key of the journal signed it, add that key at the end of INTEG_JOURNAL_KEY.",
    });
  const read = secretSchema().safeParse(tryParseJson(sealed.text));
  if (read.success) return read.data;
  throw new Failure("failed", "What is encrypted in the team's journal is not a secret of integ.");
}

function identitiesIn(path: string | undefined): string[] {
  if (path === undefined || path === "")
    throw new Failure("undelivered", "The secret is encrypted in the team's journal, and no identity is set here.", {
      meaning: "It stays in the journal until someone with a matching age identity claims it.",
      hint: "Set INTEG_ESCROW_IDENTITY to the file of an identity.",
    });
  let text: string;
  try {
    const stats = statSync(path);
    if (stats.isFile()) checkMode(stats, path);
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw fileFailure(error, "read the identity", { path });
  }
  const lines = text.split(/\r?\n/).map((line) => line.trim());
  return lines.filter((line) => line !== "" && !line.startsWith("#"));
}
