import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { armor, Encrypter, generateX25519Identity, identityToRecipient } from "age-encryption";
import { beforeAll, describe, expect, it } from "vitest";
import { Failure } from "../../../src/errors.ts";
import { keyRing } from "../../../src/journal/keys.ts";
import type { OneTimeSecret } from "../../../src/secrets/destination.ts";
import { checkRecipients, decryptSecret, encryptSecret } from "../../../src/secrets/escrow.ts";
import { temporaryFolder } from "../../support/bundle-driver.ts";

const secret: OneTimeSecret = {
  secret: "s3cr3t",
  kind: "oauth_client",
  id: "oc_1",
  clientId: "cid_1",
  receipt: '{"id":"oc_1"}',
};

const ringOf = (...keys: string[]) => keyRing({ read: () => keys });
const keys = ringOf("the-first-key-of-a-team-0123456789");
const seal = { entry: "e1", digests: keys.escrowDigests };

const identities: string[] = [];
const recipients: string[] = [];
beforeAll(async () => {
  for (let number = 0; number < 3; number += 1) {
    const identity = await generateX25519Identity();
    identities.push(identity);
    recipients.push(await identityToRecipient(identity));
  }
});

function fileWith(text: string): string {
  const path = join(temporaryFolder(), "identities");
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}

async function refusalOf(work: () => unknown): Promise<Failure> {
  try {
    await work();
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error("it was accepted");
}

describe("a secret in escrow", () => {
  it("is decrypted with an identity of any recipient, and its encrypted text reveals nothing", async () => {
    const text = await encryptSecret(secret, recipients.slice(0, 2), seal);
    expect(text).toMatch(/^-----BEGIN AGE ENCRYPTED FILE-----\n/);
    for (const word of ["s3cr3t", "oc_1", "cid_1"]) expect(text).not.toContain(word);
    for (const identity of identities.slice(0, 2))
      expect(await decryptSecret(text, fileWith(`# made today\r\n\n  ${identity}\r\n`), seal)).toEqual(secret);
    const both = fileWith(`${identities[2]}\n${identities[0]}\n`);
    expect(await decryptSecret(text, both, seal)).toEqual(secret);
  });

  it("of a key has no client id", async () => {
    const key: OneTimeSecret = { secret: "s", kind: "access_key", id: "ak_1", receipt: "{}" };
    expect(
      await decryptSecret(await encryptSecret(key, [recipients[0]!], seal), fileWith(identities[0]!), seal),
    ).toEqual(key);
  });

  it("is not decrypted with another identity", async () => {
    const text = await encryptSecret(secret, [recipients[0]!], seal);
    const failure = await refusalOf(() => decryptSecret(text, fileWith(identities[2]!), seal));
    expect(failure.kind).toBe("undelivered");
    expect(failure.message).toBe("The secret is encrypted in the team's journal, and this identity does not open it.");
    expect(failure.details).toEqual({
      meaning: "It stays in the journal until someone with a matching age identity claims it.",
      hint: "Set INTEG_ESCROW_IDENTITY to the file of another identity.",
    });
  });

  it.each([undefined, ""])("is not decrypted without an identity (%j)", async (path) => {
    const text = await encryptSecret(secret, [recipients[0]!], seal);
    const failure = await refusalOf(() => decryptSecret(text, path, seal));
    expect(failure.kind).toBe("undelivered");
    expect(failure.message).toBe("The secret is encrypted in the team's journal, and no identity is set here.");
    expect(failure.details).toEqual({
      meaning: "It stays in the journal until someone with a matching age identity claims it.",
      hint: "Set INTEG_ESCROW_IDENTITY to the file of an identity.",
    });
  });

  it("is not decrypted with a file that is missing, open to others, or has other content", async () => {
    const text = await encryptSecret(secret, [recipients[0]!], seal);
    const missing = await refusalOf(() => decryptSecret(text, "/no/identities", seal));
    expect(missing.message).toContain("/no/identities");
    const path = fileWith(`${identities[0]}\nnot an identity\n`);
    const failure = await refusalOf(() => decryptSecret(text, path, seal));
    expect(failure.kind).toBe("usage");
    expect(failure.message).toBe(`The file ${path} contains a line that is not an age identity.`);
    expect(failure.details).toEqual({ hint: "Set INTEG_ESCROW_IDENTITY to a file that age-keygen wrote." });
    chmodSync(path, 0o640);
    expect((await refusalOf(() => decryptSecret(text, path, seal))).details.nextCommand).toBe(`chmod 600 ${path}`);
  });

  it("is refused for another entry, with another signature, and without one", async () => {
    const to = [recipients[0]!];
    const byHand = async (text: string) => {
      const encrypter = new Encrypter();
      encrypter.addRecipient(to[0]!);
      return armor.encode(await encrypter.encrypt(text));
    };
    const text = JSON.stringify(secret);
    const others = ringOf("a-key-that-nobody-in-the-team-has-0123").escrowDigests;
    for (const [what, forged] of [
      ["another entry's", await encryptSecret(secret, to, { ...seal, entry: "e2" })],
      ["another key's", await encryptSecret(secret, to, { ...seal, digests: others })],
      ["a digest of a delivered secret", await encryptSecret(secret, to, { ...seal, digests: keys.digests })],
      ["no signature", await byHand(JSON.stringify({ entry: "e1", text, mac: "" }))],
      ["a bare secret", await byHand(text)],
      ["no JSON", await byHand("{")],
    ] as const) {
      const failure = await refusalOf(() => decryptSecret(forged, fileWith(identities[0]!), seal));
      expect([failure.kind, failure.message], what).toEqual([
        "auth",
        "What is encrypted in the team's journal for e1 was not signed for this entry.",
      ]);
    }
    const renewed = ringOf("the-second-key-of-a-team-0123456789", "the-first-key-of-a-team-0123456789").escrowDigests;
    const signed = await encryptSecret(secret, to, seal);
    expect(await decryptSecret(signed, fileWith(identities[0]!), { ...seal, digests: renewed })).toEqual(secret);
  });

  it("must be a secret of integ", async () => {
    for (const other of [
      { ...secret, kind: "password" },
      { ...secret, secret: 1 },
      { ...secret, receipt: undefined },
    ]) {
      const text = await encryptSecret(other as unknown as OneTimeSecret, [recipients[0]!], seal);
      const failure = await refusalOf(() => decryptSecret(text, fileWith(identities[0]!), seal));
      expect(failure.kind).toBe("failed");
      expect(failure.message).toBe("What is encrypted in the team's journal is not a secret of integ.");
    }
  });
});

describe("a recipient", () => {
  it("is an age public key", () => {
    expect(() => checkRecipients(recipients)).not.toThrow();
    expect(() => checkRecipients([])).not.toThrow();
  });

  it.each([
    [
      "age1nothing",
      'Invalid --escrow "age1nothing": it is not a public key of age.',
      "Use the public key that age-keygen prints (age1…).",
    ],
    [
      "ssh-ed25519 AAAA",
      'Invalid --escrow "ssh-ed25519 AAAA": it is not a public key of age.',
      "Use the public key that age-keygen prints (age1…): SSH keys are not supported.",
    ],
  ])("is not %s", async (recipient, message, hint) => {
    const failure = await refusalOf(() => checkRecipients([recipients[0]!, recipient]));
    expect(failure.kind).toBe("usage");
    expect(failure.message).toBe(message);
    expect(failure.details).toMatchObject({ meaning: "Nothing was sent.", hint });
  });

  it("that is a private identity is refused and not shown", async () => {
    for (const identity of [identities[0]!, identities[0]!.toLowerCase()]) {
      const failure = await refusalOf(() => checkRecipients([identity]));
      expect(failure.message).toBe("Invalid --escrow: it is an identity (a private key).");
      expect(JSON.stringify({ ...failure.details, message: failure.message })).not.toContain(identity);
    }
  });
});
