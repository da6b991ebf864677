// Destinations of a secret, and how a test reads them without the program.
import { existsSync, readFileSync } from "node:fs";
import type { Account } from "../support/account.ts";
import type { Home } from "../support/program.ts";
import { undisturbed } from "./harness.ts";

const secretName = "client.secret";
const secretPattern = /sbx_us_cs_[0-9a-f]{32}/;

export interface Place {
  readonly name: string;
  readonly words: readonly string[];
  /** The options that recovery needs again, because the journal does not record a command. */
  readonly again?: readonly string[];
  arrange?(at: Home, account: Account): Promise<void>;
  /** @param printed standard output of all commands so far. @returns the secret, "" for other content, undefined for none */
  delivered(at: Home, printed: string): string | undefined;
  holds(at: Home, file: string): boolean;
  wrong?(): string[];
  tokens?(): string[];
  /** True if the program can check later that the secret arrived. */
  readonly keepsTrace: boolean;
}

function secretIn(text: string): string {
  return secretPattern.exec(text)?.[0] ?? "";
}

function ofFile(at: Home, name: string): string | undefined {
  return existsSync(at.path(name)) ? readFileSync(at.path(name), "utf8") : undefined;
}

function rawFileNamed(name: string): Place {
  return {
    name: `the file ${name}`,
    words: ["--secret-file", name],
    delivered: (at) => {
      const text = ofFile(at, name);
      if (text === undefined) return undefined;
      return text === secretIn(text) ? text : "";
    },
    holds: (_at, file) => file === name,
    keepsTrace: true,
  };
}

export const rawFile: Place = { ...rawFileNamed(secretName), name: "a file" };

export const jsonFile: Place = {
  ...rawFile,
  name: "a JSON file",
  words: ["--secret-file", secretName, "--secret-format", "json"],
  delivered: (at) => {
    const text = ofFile(at, secretName);
    if (text === undefined) return undefined;
    try {
      return (JSON.parse(text) as { client_secret: string }).client_secret;
    } catch {
      return "";
    }
  },
};

export const standardOutput: Place = {
  name: "standard output",
  words: ["--json"],
  delivered: (_at, printed) =>
    secretIn(printed.split("\n").findLast((line) => secretPattern.test(line)) ?? "") || undefined,
  holds: () => false,
  keepsTrace: false,
};

const store = `cat > ${secretName}.part && mv ${secretName}.part ${secretName}`;

export const command: Place = {
  ...rawFile,
  name: "a command",
  words: ["--secret-command", store],
  again: ["--secret-command", store],
  // A killed command leaves its half-written file.
  holds: (_at, file) => file === secretName || file === `${secretName}.part`,
  keepsTrace: false,
};

interface StoredProfiles {
  readonly profiles: readonly {
    readonly name: string;
    readonly credential: { readonly kind: string; readonly ref: string };
  }[];
}

function credentialOf(at: Home): { readonly kind: string; readonly file: string } | undefined {
  const stored = JSON.parse(readFileSync(at.path("config", "profiles.json"), "utf8")) as StoredProfiles;
  const credential = stored.profiles.find(({ name }) => name === "target")?.credential;
  return credential && { kind: credential.kind, file: `config/credentials/${credential.ref}.json` };
}

export const profile: Place = {
  name: "a profile",
  words: ["--secret-profile", "target"],
  async arrange(at, { service: { us } }) {
    const words = `profiles add target --region us --base-url ${us.base_url} --organization-id ${us.organization_id}`;
    const added = await undisturbed(
      at,
      [...words.split(" "), "--token-endpoint", us.token_endpoint, "--api-key-stdin"],
      {
        input: us.api_key,
      },
    );
    if (added.code !== 0) throw new Error(`profiles add: ${added.stderr}`);
  },
  delivered: (at) => {
    const credential = credentialOf(at);
    if (credential?.kind !== "client_credentials") return undefined;
    return existsSync(at.path(credential.file)) ? secretIn(readFileSync(at.path(credential.file), "utf8")) : "";
  },
  // A kill after the credential is stored, and before the profile names it, leaves the credential in this folder.
  holds: (_at, file) => file.startsWith("config/credentials/"),
  keepsTrace: true,
};

const ciName = "ci.secret";
const ciStore = `cat > ${ciName}.part && mv ${ciName}.part ${ciName}`;

/** A kill can come between two destinations. The secret is delivered when all of them have it. */
export const three: Place = {
  name: "a file, a command and a profile",
  words: [...rawFile.words, "--secret-command", ciStore, ...profile.words],
  again: ["--secret-command", ciStore],
  arrange: (at, account) => profile.arrange!(at, account),
  delivered: (at, printed) => {
    const secrets = [rawFile, rawFileNamed(ciName), profile].map((place) => place.delivered(at, printed));
    if (secrets.includes(undefined)) return undefined;
    return secrets.every((secret) => secret === secrets[0]) ? secrets[0] : "";
  },
  holds: (at, file) => file === secretName || file.startsWith(ciName) || profile.holds(at, file),
  keepsTrace: true,
};

/** integ itself syncs both destinations, unlike a command's files. */
export const fileAndProfile: Place = {
  name: "a file and a profile",
  words: [...rawFile.words, ...profile.words],
  arrange: (at, account) => profile.arrange!(at, account),
  delivered: (at, printed) => {
    const secrets = [rawFile, profile].map((place) => place.delivered(at, printed));
    if (secrets.includes(undefined)) return undefined;
    return secrets[0] === secrets[1] ? secrets[0] : "";
  },
  holds: (at, file) => rawFile.holds(at, file) || profile.holds(at, file),
  keepsTrace: true,
};
