// The OAuth-client commands that the crash loop kills, each with what stands before it in an otherwise empty account.
import type { Account } from "../support/account.ts";
import type { Home } from "../support/program.ts";
import type { Arranged, Scene } from "./kill-loop.ts";
import { readJournal } from "../support/journal-file.ts";
import { command, jsonFile, type Place, profile, rawFile, standardOutput } from "./secret-places.ts";

const brokenCommand: Pick<Place, "words"> = { words: ["--secret-command", "exit 1"] };

export function createWords({ service }: Account, place: Pick<Place, "words"> = rawFile): string[] {
  const account = service.us.service_account_id;
  return [...`oauth-clients create --service-account ${account} --scope entity:read`.split(" "), ...place.words];
}

export function createTo(place: Place): Scene {
  return {
    name: `oauth-clients create to ${place.name}`,
    place,
    arrange: async (at, account) => {
      await place.arrange?.(at, account);
      return { words: createWords(account, place) };
    },
  };
}

export const create = createTo(rawFile);
export const createToJson = createTo(jsonFile);
export const createToOutput = createTo(standardOutput);
export const createToProfile = createTo(profile);
export const createToCommand: Scene = { ...createTo(command), childKilled: 12 };

/** The first answer brings no secret, so that the same run revokes that client and makes another. */
export const replace: Scene = {
  name: "oauth-clients create --replace-lost-secret",
  arrange: async (_at, account) => {
    await account.service.fault("POST /v1/oauth_clients secret=withheld times=1");
    return { words: [...createWords(account), "--replace-lost-secret"] };
  },
};

export const rotate: Scene = {
  name: "oauth-clients rotate",
  arrange: async (_at, account) => {
    const old = await account.make(["entity:read"]);
    return { words: ["oauth-clients", "rotate", old.id, ...rawFile.words], old };
  },
};

/** A creation whose answer was lost, the client made: recovery replays it, finds the secret lost, and replaces it. */
export const recover: Scene = {
  name: "journal recover",
  arrange: (at, account) => lost(at, account, "after"),
};

/** A creation whose request was lost: recovery brings the secret home. */
export const recoverUnsent: Scene = {
  name: "journal recover (nothing had arrived)",
  arrange: (at, account) => lost(at, account, "before"),
};

/** The destination broke, the secret is kept: `journal claim` hands it over and destroys the copy. */
export const claim: Scene = {
  name: "journal claim",
  arrange: async (at, account) => {
    const { code, stderr } = await at.integ([...createWords(account, brokenCommand)]);
    if (code !== 12) throw new Error(`a broken destination ended with ${code}: ${stderr}`);
    const [entry] = readJournal(at.path("state", "journal.ndjson"));
    return { words: ["journal", "claim", entry!.id, ...rawFile.words] };
  },
};

/** Bytes of the sandbox's answer to the creation here. */
const cutLength = 310;

/** Leaves out the last byte of the next answer to a creation: its secret can still be read. */
async function cutNextAnswer({ service }: Account): Promise<void> {
  await service.fault(`POST /v1/oauth_clients cut=${cutLength - 1} times=1`);
}

/** An answer without its end: the secret is kept, and a second request under the key names its client. */
export const createCut: Scene = {
  name: "oauth-clients create, its answer cut",
  code: 12,
  arrange: async (_at, account) => {
    await cutNextAnswer(account);
    return { words: createWords(account) };
  },
};

/** A secret that was kept before anybody knew which client it opens. */
export const claimUnnamed: Scene = {
  name: "journal claim (its client not known yet)",
  arrange: async (at, account) => {
    await cutNextAnswer(account);
    const { code, stderr } = await at.integ([...createWords(account), "--retry-for", "0"]);
    const [entry] = readJournal(at.path("state", "journal.ndjson"));
    if (code !== 12 || entry?.resource_id !== null) throw new Error(`a cut answer ended with ${code}: ${stderr}`);
    return { words: ["journal", "claim", entry.id, ...rawFile.words] };
  },
};

async function lost(at: Home, account: Account, drop: "before" | "after"): Promise<Arranged> {
  await account.service.fault(`POST /v1/oauth_clients drop=${drop} times=1`);
  const { code, stderr } = await at.integ([...createWords(account), "--retry-for", "0"]);
  if (code !== 7) throw new Error(`a lost answer ended with ${code}: ${stderr}`);
  return { words: ["journal", "recover", "--replace-lost-secret"] };
}
