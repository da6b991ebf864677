// The fault loop: one file or network call of a command fails, once or from then on; what is told must be true, nothing may
// leave after a sync that failed, no secret may be lost in silence, and afterwards recovery brings all to its end.
import type { Account } from "../support/account.ts";
import type { Ended, Home } from "../support/program.ts";
import { type CallFault, failing, type FaultyRun, nameOf, type Point } from "../support/strace.ts";
import { type Arranged, type Desk, homeOf, type Scene } from "./kill-loop.ts";
import { auditCrash, auditRecovered, Findings, journalOf } from "./oauth-client-audit.ts";
import { type Place, rawFile } from "./secret-places.ts";

/** What a call of that kind may meet on a real machine. */
const errnosOf: Readonly<Record<string, readonly string[]>> = {
  write: ["EIO", "ENOSPC"],
  writev: ["EIO"],
  pwrite64: ["EIO", "ENOSPC"],
  fsync: ["EIO", "ENOSPC"],
  ftruncate: ["EIO"],
  fchmod: ["EROFS", "EIO"],
  openat: ["EACCES", "EROFS", "EMFILE", "ENOSPC", "EIO"],
  link: ["EACCES", "EROFS", "ENOSPC", "EIO"],
  rename: ["EACCES", "EROFS", "ENOSPC", "EIO"],
  unlink: ["EACCES", "EROFS", "EIO"],
  mkdir: ["EACCES", "EROFS", "ENOSPC", "EIO"],
  socket: ["EMFILE"],
  connect: ["ENETUNREACH", "ECONNREFUSED"],
  read: ["EIO"],
  pread64: ["EIO"],
};

export interface PlannedFault extends CallFault {
  readonly text: string;
}

/** Every fault that the points allow: each errno once, and from then on. */
export function faultsAt(points: readonly Point[]): PlannedFault[] {
  return points.flatMap((point) =>
    (errnosOf[point.call] ?? []).flatMap((errno) =>
      ["", "+"].map((more) => ({ call: point.call, errno, when: `${point.nth}${more}`, text: nameOf(point) })),
    ),
  );
}

/** What a run told that was not so, by kind. */
export class Lies extends Findings {
  readonly sentAfterFailedSync: string[] = [];
  readonly falseSuccesses: string[] = [];
  readonly falseFailures: string[] = [];
  readonly bugs: string[] = [];
}

export async function failOnce(
  desk: Desk,
  scene: Scene,
  { fault, lies }: { fault: PlannedFault; lies: Lies },
): Promise<FaultyRun> {
  const account = await desk.account();
  const at = homeOf(account);
  // A connection that fails from then on is tried again for two minutes otherwise; nothing else changes.
  at.env.INTEG_RETRY_FOR = "3s";
  try {
    const arranged = await scene.arrange(at, account);
    const run = await failing(fault, (under) => at.integ(arranged.words, { under }));
    const where = `${scene.name}, ${fault.errno} at ${fault.call} ${fault.when} (${fault.text}), ${endOf(run.ended)}`;
    const changing = run.requestsAfter.filter((line) => !line.startsWith("GET ") && !line.includes("/oauth/token"));
    if (fault.call === "fsync" && changing.length > 0)
      lies.sentAfterFailedSync.push(`${where}: ${changing.join(", ")}`);
    const isUnshown = /\/dist\/|node_modules|refused a call/.test(`${fault.text} ${run.ended.stderr}`);
    await judge({ at, account, lies, scene, arranged, where, ended: run.ended }, isUnshown || fault.call === "write");
    return run;
  } finally {
    at.remove();
  }
}

export function endOf({ code, signal }: Ended): string {
  return `exit ${code ?? signal}`;
}

export interface Case {
  readonly at: Home;
  readonly account: Account;
  readonly lies: Lies;
  readonly scene: Scene;
  readonly arranged: Arranged;
  readonly where: string;
  readonly ended: Ended;
  /** Mends the machine, where that does not happen by itself. */
  readonly mend?: () => void;
}

const codesOf = {
  /** Nothing was made, for certain. */
  nothing: new Set([1, 2, 3, 6, 11]),
  /** A client was made, or may have been, and the journal or `claim` leads on. */
  unfinished: new Set([7, 8, 9, 12]),
};

/**
 * Compares what was told with what the service holds, then mends everything and compares again.
 * @param isUnshown a result that could not be shown is a failure too, even where the rest is done
 */
export async function judge(given: Case, isUnshown = false): Promise<void> {
  const { at, account, lies, scene, arranged, where, ended, mend } = given;
  const place = scene.place ?? rawFile;
  if (/a bug in integ/.test(ended.stderr)) lies.bugs.push(`${where}: ${ended.stderr}`);
  const watched = { at, account, findings: lies, where, place, old: arranged.old, printed: ended.stdout };
  const secret = await auditCrash(watched);
  await checkWord(given, { secret, isUnshown });
  mend?.();
  watched.printed += await settleAll(at, { where, lies, place });
  await auditRecovered(watched, secret);
}

/** Compares the exit code with what the service holds. A process that a fault of its own threads ended told nothing. */
async function checkWord(
  { at, account, lies, arranged, where, ended }: Case,
  { secret, isUnshown }: { secret: string | undefined; isUnshown: boolean },
): Promise<void> {
  if (ended.code === null) return;
  const made = (await account.live()).filter(({ id }) => id !== arranged.old?.id);
  const isWhole = made.length === 1 && secret !== undefined && secret !== "";
  if (ended.code === 0 && !isWhole)
    lies.falseSuccesses.push(`${where}: ${made.length} clients, secret ${secret ? "there" : "missing"}`);
  if (codesOf.nothing.has(ended.code) && made.length > 0 && !isWhole)
    lies.falseSuccesses.push(
      `${where}: told that nothing was done, and ${made.length} clients are there: ${ended.stderr}`,
    );
  const done = journalOf(at).some(({ state, operation }) => state === "done" && operation !== "oauth_client.revoke");
  if (ended.code !== 0 && isWhole && done && !arranged.old && !isUnshown)
    lies.falseFailures.push(`${where}: all is done: ${ended.stderr}`);
  if (ended.code !== 0 && !codesOf.nothing.has(ended.code) && !codesOf.unfinished.has(ended.code))
    lies.falseFailures.push(`${where}: an exit code that nobody expects: ${ended.stderr}`);
}

/** Recovers on the mended machine, and claims what is kept. @returns what was printed */
export async function settleAll(
  at: Home,
  { where, lies, place }: { where: string; lies: Findings; place: Place },
): Promise<string> {
  if (journalOf(at).length === 0) return "";
  let printed = "";
  for (let round = 0; round < 4; round += 1) {
    const kept = journalOf(at).find(
      ({ state, operation }) => state === "undelivered" && operation === "oauth_client.create",
    );
    if (kept) {
      const words = place.words.includes("--secret-file") ? place.words : [];
      const claimed = await at.integ(["journal", "claim", kept.id, ...words]);
      if (claimed.code !== 0) lies.unfinished.push(`${where}: claim ended with ${claimed.code}: ${claimed.stderr}`);
      printed += claimed.stdout;
    }
    const lost = round > 0 ? ["--replace-lost-secret"] : [];
    const recovered = await at.integ(["journal", "recover", "--json", ...lost]);
    printed += recovered.stdout;
    if (recovered.code === 0) return printed;
    if (round > 1 || (recovered.code !== 9 && recovered.code !== 12))
      lies.unfinished.push(`${where}: recovery ended with ${recovered.code}: ${recovered.stderr}`);
  }
  return printed;
}
