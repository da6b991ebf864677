// Commands for OAuth clients that tests disturb, each with its preparation in an otherwise empty account.
import { afterAll } from "vitest";
import { Account } from "../support/account.ts";
import { journalOf } from "../support/journal-file.ts";
import { longJournal, writeJournal } from "../support/long-journal.ts";
import { Home } from "../support/program.ts";
import { type Service, startService } from "../support/service.ts";
import { auditAtOnce, auditExit, auditRecovered, recoverAll, type Watched } from "./client-audit.ts";
import { type Run, type Scene, type Stage, type StageOptions, undisturbed } from "./harness.ts";
import { command, jsonFile, type Place, profile, rawFile, standardOutput, three } from "./secret-places.ts";

export interface ClientWork extends Pick<Scene, "name" | "code" | "childKilled" | "ownCallsOnly"> {
  arrange(at: Home, account: Account): Promise<Arranged>;
  /** The destination of the secret. The default is a file. */
  readonly place?: Place;
}

interface Arranged {
  readonly words: readonly string[];
  readonly old?: { readonly id: string };
  readonly delivered?: string;
  readonly printed?: string;
  readonly isMade?: boolean;
}

/** Restarts its service after 100 stages, so that the service's state stays small. */
class ClientDesk {
  #service: Service | undefined;
  #used = 0;

  async account(): Promise<Account> {
    if (this.#service && this.#used >= 100) await this.close();
    this.#service ??= await startService();
    this.#used += 1;
    const account = new Account(this.#service);
    await account.clear();
    return account;
  }

  async close(): Promise<void> {
    await this.#service?.stop();
    this.#service = undefined;
    this.#used = 0;
  }
}

class ClientStage implements Stage {
  readonly at: Home;
  readonly account: Account;
  readonly arranged: Arranged;
  readonly #work: ClientWork;
  #watched: Watched | undefined;
  #secret: string | undefined;

  constructor(work: ClientWork, { at, account, arranged }: { at: Home; account: Account; arranged: Arranged }) {
    this.#work = work;
    this.at = at;
    this.account = account;
    this.arranged = arranged;
  }

  get words(): readonly string[] {
    return this.arranged.words;
  }

  async audit({ findings, where, ended, fault }: Run): Promise<void> {
    const { at, account } = this;
    const { old, delivered, printed = "", isMade } = this.arranged;
    const place = this.#work.place ?? rawFile;
    this.#watched = { at, account, findings, where, old, place, isMade, printed: printed + ended.stdout };
    const secret = await auditAtOnce(this.#watched);
    this.#secret = secret;
    if (delivered !== undefined && secret !== delivered)
      findings.revokedAfterDelivery.push(`${where}: before recovery`);
    // The command fails, even after a successful change, if it cannot write its result or read a file of the program.
    const isProgramFile = /\/dist\/|node_modules|refused a call/.test(`${fault?.point.text} ${ended.stderr}`);
    const isUnshown = fault !== undefined && (isProgramFile || fault.point.call === "write");
    if (!this.#work.childKilled?.includes(ended.code ?? 0))
      await auditExit(this.#watched, { ended, secret, isUnshown });
  }

  async recover({ recoveries = 2 }: Run): Promise<string> {
    const watched = this.#watched!;
    const { printed, codes } = await recoverAll(watched, recoveries);
    watched.printed += printed;
    await auditRecovered(watched, this.#secret);
    return codes.length === 0 ? "nothing to do" : `recovery ${codes.join(", ")}`;
  }

  remove(): void {
    this.at.remove();
  }
}

export interface ClientScene extends Scene {
  stage(options?: StageOptions): Promise<ClientStage>;
}

export function clientScenes(): (work: ClientWork) => ClientScene {
  const desk = new ClientDesk();
  afterAll(() => desk.close());
  return (work) => ({
    ...work,
    async stage({ before, through } = {}) {
      const account = await desk.account();
      const { env, us } = account.service;
      const { origin } = new URL(us.base_url);
      const at = new Home({ ...env, INTEG_TOKEN_ENDPOINT: us.token_endpoint });
      try {
        before?.(at);
        if (through) {
          const near = await through(origin);
          for (const name of ["INTEG_BASE_URL", "INTEG_TOKEN_ENDPOINT"])
            at.env[name] = at.env[name]!.replace(origin, near);
        }
        return new ClientStage(work, { at, account, arranged: await work.arrange(at, account) });
      } catch (error) {
        at.remove();
        throw error;
      }
    },
  });
}

const brokenCommand: Pick<Place, "words"> = { words: ["--secret-command", "exit 1"] };

export function createWords({ service }: Account, place: Pick<Place, "words"> = rawFile): string[] {
  const account = service.us.service_account_id;
  return [...`oauth-clients create --service-account ${account} --scope entity:read`.split(" "), ...place.words];
}

export function createTo(place: Place): ClientWork {
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
/** Exit 1 means that the shell was killed while it looked for the command's program, before any request. */
export const createToCommand: ClientWork = { ...createTo(command), childKilled: [1, 12] };

export const createInLongJournal: ClientWork = {
  ...create,
  name: "oauth-clients create in a long journal",
  arrange: async (at, account) => {
    writeJournal(at.path("state", "journal.ndjson"), longJournal(300, { isSettled: true }));
    return create.arrange(at, account);
  },
};

export const createToThree: ClientWork = { ...createTo(three), childKilled: [1, 12] };

export function rotateTo(place: Place): ClientWork {
  return {
    name: `oauth-clients rotate to ${place.name}`,
    place,
    arrange: async (at, account) => {
      await place.arrange?.(at, account);
      const old = await account.make(["entity:read"]);
      return { words: ["oauth-clients", "rotate", old.id, ...place.words], old };
    },
  };
}

export const rotateToThree: ClientWork = { ...rotateTo(three), childKilled: [1, 12] };

/** The first response has no secret, so that the same run revokes that client and creates another. */
export const replace: ClientWork = {
  name: "oauth-clients create --replace-lost-secret",
  arrange: async (_at, account) => {
    await account.service.fault("POST /v1/oauth_clients secret=withheld times=1");
    return { words: [...createWords(account), "--replace-lost-secret"] };
  },
};

export const rotate: ClientWork = {
  name: "oauth-clients rotate",
  arrange: async (_at, account) => {
    const old = await account.make(["entity:read"]);
    return { words: ["oauth-clients", "rotate", old.id, ...rawFile.words], old };
  },
};

/** The client of a lost response exists: recovery repeats the request, finds the secret lost, and replaces the client. */
export const recover: ClientWork = {
  name: "journal recover",
  arrange: (at, account) => lost(at, account, "after"),
};

export const recoverUnsent: ClientWork = {
  name: "journal recover (nothing had arrived)",
  arrange: (at, account) => lost(at, account, "before"),
};

export const claim: ClientWork = {
  name: "journal claim",
  arrange: async (at, account) => {
    const { code, stderr } = await undisturbed(at, [...createWords(account, brokenCommand)]);
    if (code !== 12) throw new Error(`a broken destination ended with ${code}: ${stderr}`);
    const [entry] = journalOf(at);
    return { words: ["journal", "claim", entry!.id, ...rawFile.words], isMade: true };
  },
};

/** The claim delivers the kept secret of a rotation's new client, and recovery then revokes the old client. */
export const claimRotation: ClientWork = {
  name: "journal claim of a rotation",
  arrange: async (at, account) => {
    const old = await account.make(["entity:read"]);
    const { code, stderr } = await undisturbed(at, ["oauth-clients", "rotate", old.id, ...brokenCommand.words]);
    if (code !== 12) throw new Error(`a broken destination ended with ${code}: ${stderr}`);
    const rotation = journalOf(at).find(({ parent }) => parent !== null)!.parent!;
    return { words: ["journal", "claim", rotation, ...rawFile.words], old };
  },
};

export const forget: ClientWork = {
  name: "journal forget",
  arrange: async (at, account) => {
    const { words } = await claim.arrange(at, account);
    return { words: ["journal", "forget", words[2]!, "--yes"], isMade: true };
  },
};

const responseLength = 310;

/** Cuts the last byte off the next creation's response, whose secret is still readable. */
async function cutNextAnswer({ service }: Account): Promise<void> {
  await service.fault(`POST /v1/oauth_clients cut=${responseLength - 1} times=1`);
}

/** integ keeps the secret of a truncated response, and repeats the request to get the client's id. */
export const createCut: ClientWork = {
  name: "oauth-clients create, its answer cut",
  code: 12,
  arrange: async (_at, account) => {
    await cutNextAnswer(account);
    return { words: createWords(account) };
  },
};

export const claimUnnamed: ClientWork = {
  name: "journal claim (its client not known yet)",
  arrange: async (at, account) => {
    await cutNextAnswer(account);
    const { code, stderr } = await undisturbed(at, [...createWords(account), "--retry-for", "0"]);
    const [entry] = journalOf(at);
    if (code !== 12 || entry?.resource_id !== null)
      throw new Error(`a truncated response ended with ${code}: ${stderr}`);
    return { words: ["journal", "claim", entry.id, ...rawFile.words], isMade: true };
  },
};

async function lost(at: Home, account: Account, drop: "before" | "after"): Promise<Arranged> {
  await account.service.fault(`POST /v1/oauth_clients drop=${drop} times=1`);
  const { code, stderr } = await undisturbed(at, [...createWords(account), "--retry-for", "0"]);
  if (code !== 7) throw new Error(`a lost response ended with ${code}: ${stderr}`);
  return { words: ["journal", "recover", "--replace-lost-secret"], isMade: drop === "after" };
}
