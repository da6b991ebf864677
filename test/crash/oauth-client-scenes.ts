// The OAuth-client commands that the crash loop kills, each with what stands before it in an otherwise empty account.
import type { Account } from "../support/account.ts";
import type { Home } from "../support/program.ts";
import type { Arranged, Scene } from "./kill-loop.ts";
import { secretName } from "./oauth-client-audit.ts";

export function createWords({ service }: Account): string[] {
  const account = service.us.service_account_id;
  return `oauth-clients create --service-account ${account} --scope entity:read --secret-file ${secretName}`.split(" ");
}

export const create: Scene = {
  name: "oauth-clients create",
  exits: [0],
  arrange: async (_at, account) => ({ words: createWords(account) }),
};

/** The first answer brings no secret, so that the same run revokes that client and makes another. */
export const replace: Scene = {
  name: "oauth-clients create --replace-lost-secret",
  exits: [0],
  arrange: async (_at, account) => {
    await account.service.fault("POST /v1/oauth_clients secret=withheld times=1");
    return { words: [...createWords(account), "--replace-lost-secret"] };
  },
};

export const rotate: Scene = {
  name: "oauth-clients rotate",
  exits: [0],
  arrange: async (_at, account) => {
    const old = await account.make(["entity:read"]);
    return { words: ["oauth-clients", "rotate", old.id, "--secret-file", secretName], old };
  },
};

/** A creation whose answer was lost, the client made: recovery replays it, finds the secret lost, and replaces it. */
export const recover: Scene = {
  name: "journal recover",
  exits: [0],
  arrange: (at, account) => lost(at, account, "after"),
};

/** A creation whose request was lost: recovery brings the secret home. */
export const recoverUnsent: Scene = {
  name: "journal recover (nothing had arrived)",
  exits: [0],
  arrange: (at, account) => lost(at, account, "before"),
};

async function lost(at: Home, account: Account, drop: "before" | "after"): Promise<Arranged> {
  await account.service.fault(`POST /v1/oauth_clients drop=${drop} times=1`);
  const { code, stderr } = await at.integ([...createWords(account), "--retry-for", "0"]);
  if (code !== 7) throw new Error(`a lost answer ended with ${code}: ${stderr}`);
  return { words: ["journal", "recover", "--replace-lost-secret"] };
}
