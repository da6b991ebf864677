// Commands during which the power is cut, each with its preparation and the conditions for every possible state.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { KeysDesk } from "../e2e/keys-desk.ts";
import { Account } from "../support/account.ts";
import { readJournal } from "../support/journal-file.ts";
import { type Ended, Home } from "../support/program.ts";
import { auditAtOnce, auditExit, auditRecovered, filesWithSecrets, recoverAll, type Watched } from "./client-audit.ts";
import { type ClientWork, createWords } from "./client-scenes.ts";
import { Findings, undisturbed } from "./harness.ts";
import { KeyStage, type KeyWork } from "./key-scenes.ts";
import { applyWords, deliveredTo, homeWith } from "./policy-scenes.ts";
import { names, PolicyStage } from "./policy-stage.ts";
import type { FileOperation, Image } from "./power-loss-disk.ts";
import type { RewindableService } from "../support/rewindable-service.ts";
import { rawFile } from "./secret-places.ts";

interface PowerLossCase {
  readonly findings: Findings;
  readonly where: string;
  /** The command's result, or undefined if the power was lost before its end. */
  readonly ended: Ended | undefined;
  readonly isSecretSynced: boolean;
}

export interface PowerStage {
  readonly at: Home;
  readonly words: readonly string[];
  readonly input?: string;
  readonly code?: number;
  /** The operations of an earlier killed command, some of them unsynced. */
  readonly after?: {
    readonly start: Image;
    readonly image: Image;
    readonly operations: readonly FileOperation[];
  };
  check(cut: PowerLossCase): Promise<void>;
}

export interface PowerScene {
  readonly name: string;
  stage(service: RewindableService): Promise<PowerStage>;
}

const killed: Ended = { code: null, signal: "SIGKILL", stdout: "", stderr: "" };

function journalText(at: Home): string {
  const file = at.path("state", "journal.ndjson");
  return existsSync(file) ? readFileSync(file, "utf8") : "";
}

function auditTidy(at: Home, { findings, where, ended }: PowerLossCase, isPlace: (file: string) => boolean): void {
  if (ended === undefined) return;
  const strayed = filesWithSecrets(at.folder).filter((file) => !isPlace(file) && !file.endsWith(".key"));
  if (strayed.length > 0) findings.strayedSecrets.push(`${where}: a secret is in ${strayed.join(", ")}`);
}

/** True if a middle record of the journal is lost, because one sync covered several writes. Its request was not sent. */
function hasHole(at: Home): boolean {
  return /\0[^\0]/.test(journalText(at));
}

async function auditJournal(at: Home, { findings, where }: PowerLossCase, { isHoled = false } = {}): Promise<void> {
  const before = journalText(at);
  const again = await undisturbed(at, ["journal", "recover"]);
  if (again.code !== 0) findings.unfinished.push(`${where}: recovered again: ${again.code} ${again.stderr}`);
  if (journalText(at) !== before) findings.unfinished.push(`${where}: recovered again, the journal is another`);
  const { code, stdout, stderr } = await undisturbed(at, ["journal", "verify"]);
  // The journal's next write copies a torn part aside. Until then `verify` reports it.
  const isReported = code === 10 && stdout.includes("a record is damaged");
  if (isHoled ? !isReported : code !== 0)
    findings.tornFiles.push(`${where}: journal verify ended with ${code}: ${stdout}${stderr}`);
}

export function clientWork(work: ClientWork): PowerScene {
  return {
    name: work.name,
    async stage(service) {
      const account = new Account(service);
      await account.clear();
      const at = new Home({ ...service.env, INTEG_TOKEN_ENDPOINT: service.us.token_endpoint });
      const arranged = await work.arrange(at, account);
      await service.calm();
      const { old, delivered, printed = "" } = arranged;
      const check = async (cut: PowerLossCase): Promise<void> => {
        const { findings, where, ended = killed } = cut;
        const place = work.place ?? rawFile;
        const watched: Watched = { at, account, findings, where, old, place, printed: printed + ended.stdout };
        const secret = await auditAtOnce(watched);
        if (delivered !== undefined && secret !== delivered)
          findings.revokedAfterDelivery.push(`${where}: before recovery`);
        await auditExit(watched, { ended, secret, isUnshown: false });
        auditTidy(at, cut, (file) => place.holds(at, file));
        const before = await account.live();
        const { printed: more } = await recoverAll(watched, 3);
        watched.printed += more;
        const now = await account.live();
        const isGone = before.some(({ id }) => id !== old?.id && !now.some((client) => client.id === id));
        if (cut.isSecretSynced && isGone) findings.revokedAfterDelivery.push(`${where}: its secret was on the disk`);
        await auditRecovered(watched, secret);
        await auditJournal(at, cut);
      };
      return { at, words: arranged.words, check };
    },
  };
}

export function keyWork(work: KeyWork, number: number): PowerScene {
  return {
    name: work.name,
    async stage(service) {
      const desk = new KeysDesk(service);
      const arranged = await work.arrange(desk, `cut-${number}-`);
      await service.calm();
      const stage = new KeyStage(desk, work, arranged);
      const check = async (cut: PowerLossCase): Promise<void> => {
        await desk.renew();
        const { findings, where, ended = killed } = cut;
        const run = { findings, where, ended };
        await stage.audit(run);
        await stage.recover(run);
        await auditJournal(stage.at, cut);
      };
      return { at: stage.at, words: stage.words, check };
    },
  };
}

/** If the command reports success, the client is revoked. Otherwise recovery revokes it, or the revocation was never sent. */
export const revocation: PowerScene = {
  name: "oauth-clients revoke",
  async stage(service) {
    const account = new Account(service);
    await account.clear();
    const at = new Home(service.env);
    const { id } = await account.make(["entity:read"]);
    await service.calm();
    const isLive = async (): Promise<boolean> => (await account.live()).some((client) => client.id === id);
    const check = async (cut: PowerLossCase): Promise<void> => {
      const { findings, where, ended } = cut;
      if (ended && (await isLive())) findings.falseSuccesses.push(`${where}: revoked, it said`);
      const isBegun = readJournal(at.path("state", "journal.ndjson")).length > 0;
      if (!isBegun && !(await isLive())) findings.lostKeys.push(`${where}: revoked, and not in the journal`);
      const { code, stderr } = await undisturbed(at, ["journal", "recover", "--yes"]);
      if (code !== 0) findings.unfinished.push(`${where}: recovery ended with ${code}: ${stderr}`);
      if (isBegun && (await isLive())) findings.unfinished.push(`${where}: the client is live after recovery`);
      await auditJournal(at, cut);
    };
    return { at, words: ["oauth-clients", "revoke", id, "--yes"], check };
  },
};

/** Simultaneous changes share one lock of the journal and one sync. */
export const together: PowerScene = {
  name: "simultaneous apply of two clients",
  async stage(service) {
    const account = new Account(service);
    await account.clear();
    const at = homeWith(service, { names });
    await service.calm();
    const stage = new PolicyStage(at, applyWords, account);
    const check = async (cut: PowerLossCase): Promise<void> => {
      const { findings, where, ended = killed } = cut;
      const isHoled = hasHole(at);
      await stage.audit({ findings, where, ended });
      for (const name of cut.ended ? names : [])
        if (!deliveredTo(at, name)) findings.falseSuccesses.push(`${where}: ${name} has no secret`);
      await stage.recover({ findings, where, ended });
      await auditJournal(at, cut, { isHoled });
    };
    return { at, words: applyWords, check };
  },
};

/** If the file exists, it is complete. The export can be repeated. */
export const exported: PowerScene = {
  name: "journal export",
  async stage(service) {
    const account = new Account(service);
    await account.clear();
    const at = new Home(service.env);
    const made = await undisturbed(at, createWords(account));
    const records = async (): Promise<string[]> =>
      (await undisturbed(at, ["journal", "export"])).stdout.split("\n").slice(1);
    const whole = await records();
    if (made.code !== 0 || whole.length < 3) throw new Error(`${made.stderr}${whole.join("\n")}`);
    const words = ["journal", "export", "--out", "changes.ndjson"];
    const file = at.path("changes.ndjson");
    const check = async (cut: PowerLossCase): Promise<void> => {
      const { findings, where, ended } = cut;
      if (ended && !existsSync(file)) findings.falseSuccesses.push(`${where}: there is no file`);
      const again = existsSync(file) ? undefined : await undisturbed(at, words);
      if (again && again.code !== 0) findings.unfinished.push(`${where}: again: ${again.code} ${again.stderr}`);
      if (readFileSync(file, "utf8").split("\n").slice(1).join("\n") !== whole.join("\n"))
        findings.tornFiles.push(`${where}: ${readFileSync(file, "utf8").length} bytes`);
      if ((await records()).join() !== whole.join()) findings.lostKeys.push(`${where}: the journal is another`);
    };
    return { at, words, check };
  },
};

interface ShownProfile {
  readonly organization_id: string;
}

/** Whether or not the command succeeds, the profile stays undamaged, and its credential works. */
export const profileEdit: PowerScene = {
  name: "profiles edit",
  async stage(service) {
    const { us } = service;
    const at = new Home();
    const address = ["--region", "us", "--base-url", us.base_url, "--organization-id", us.organization_id];
    const words = ["profiles", "add", "prod", ...address, "--api-key-stdin"];
    const added = await undisturbed(at, words, { input: us.api_key });
    if (added.code !== 0) throw new Error(added.stderr);
    const other = us.other_organization_id;
    const check = async ({ findings, where, ended }: PowerLossCase): Promise<void> => {
      const shown = await undisturbed(at, ["profiles", "show", "prod", "--json"]);
      if (shown.code !== 0) return void findings.tornFiles.push(`${where}: ${shown.code} ${shown.stderr}`);
      const { organization_id: now } = JSON.parse(shown.stdout) as ShownProfile;
      if (now !== other && (ended || now !== us.organization_id))
        findings.falseSuccesses.push(`${where}: the profile has the organization ${now}`);
      const read = await undisturbed(at, ["entities", "list", "-p", "prod", "--limit", "1", "--json"]);
      if (read.code !== 0) findings.tornFiles.push(`${where}: its credential: ${read.code} ${read.stderr}`);
      const edited = await undisturbed(at, ["profiles", "edit", "prod", "--organization-id", us.organization_id]);
      if (edited.code !== 0) findings.unfinished.push(`${where}: edited again: ${edited.code} ${edited.stderr}`);
    };
    return { at, words: ["profiles", "edit", "prod", "--organization-id", other], check };
  },
};

export const profileAdd: PowerScene = {
  name: "profiles add",
  async stage({ us }) {
    const at = new Home();
    const address = ["--region", "us", "--base-url", us.base_url, "--organization-id", us.organization_id];
    const words = ["profiles", "add", "prod", ...address, "--api-key-stdin", "--no-verify"];
    const check = async ({ findings, where, ended }: PowerLossCase): Promise<void> => {
      const { code, stdout, stderr } = await undisturbed(at, ["profiles", "list", "--json"]);
      if (code !== 0) return void findings.tornFiles.push(`${where}: ${code} ${stderr}`);
      const isThere = stdout.includes('"prod"');
      if (ended && !isThere) findings.falseSuccesses.push(`${where}: no profile`);
      const again = isThere ? undefined : await undisturbed(at, words, { input: us.api_key });
      if (again && again.code !== 0) findings.unfinished.push(`${where}: added again: ${again.code} ${again.stderr}`);
      const read = await undisturbed(at, ["entities", "list", "-p", "prod", "--limit", "1", "--json"]);
      if (read.code !== 0) findings.tornFiles.push(`${where}: its credential: ${read.code} ${read.stderr}`);
    };
    return { at, words, input: us.api_key, check };
  },
};

export const profileRemove: PowerScene = {
  name: "profiles remove",
  async stage(service) {
    const { at } = await profileEdit.stage(service);
    const words = ["profiles", "remove", "prod", "--yes"];
    const check = async ({ findings, where, ended }: PowerLossCase): Promise<void> => {
      const { us } = service;
      const holding = textsIn(at).filter(([, text]) => text.includes(us.api_key));
      if (ended && holding.length > 0)
        findings.strayedSecrets.push(`${where}: in ${holding.map(([file]) => file).join()}`);
      const { code, stdout, stderr } = await undisturbed(at, ["profiles", "list", "--json"]);
      if (code !== 0) return void findings.tornFiles.push(`${where}: ${code} ${stderr}`);
      if (!stdout.includes('"prod"')) return;
      const again = await undisturbed(at, words);
      if (again.code !== 0) findings.unfinished.push(`${where}: removed again: ${again.code} ${again.stderr}`);
    };
    return { at, words, check };
  },
};

function textsIn(at: Home): [file: string, text: string][] {
  return readdirSync(at.folder, { recursive: true, encoding: "utf8" }).flatMap((file) =>
    statSync(at.path(file)).isFile() ? [[file, readFileSync(at.path(file), "utf8")]] : [],
  );
}

export const refusal: PowerScene = {
  name: "oauth-clients create, refused",
  async stage(service) {
    const account = new Account(service);
    await account.clear();
    const at = new Home(service.env);
    const words = createWords(account).map((word) => (word === "entity:read" ? "nothing:read" : word));
    const check = async (cut: PowerLossCase): Promise<void> => {
      const { findings, where } = cut;
      auditTidy(at, cut, () => false);
      const { code, stderr } = await undisturbed(at, ["journal", "recover"]);
      if (code !== 0 && !/scope|permission|403|400/.test(stderr))
        findings.unfinished.push(`${where}: recovery ended with ${code}: ${stderr}`);
      // If an attempt may have arrived, its outcome stays unknown, no matter what the next response is.
      if (code === 0) await auditJournal(at, cut);
      auditTidy(at, { ...cut, ended: killed }, () => false);
    };
    return { at, words, code: 3, check };
  },
};

export const prune: PowerScene = {
  name: "journal prune",
  async stage(service) {
    const account = new Account(service);
    await account.clear();
    const at = new Home(service.env);
    const { id } = await account.make(["entity:read"]);
    const revoked = await undisturbed(at, ["oauth-clients", "revoke", id, "--yes"]);
    const made = await undisturbed(at, createWords(account));
    if (revoked.code !== 0 || made.code !== 0) throw new Error(`${revoked.stderr}${made.stderr}`);
    const staying = readJournal(at.path("state", "journal.ndjson")).find((entry) => entry.resource_id !== id)!;
    const check = async (cut: PowerLossCase): Promise<void> => {
      const { findings, where, ended } = cut;
      const entries = readJournal(at.path("state", "journal.ndjson"));
      if (!entries.some((entry) => entry.id === staying.id && entry.state === "done"))
        findings.lostKeys.push(`${where}: the entry of a live client is missing`);
      if (ended && entries.length !== 1) findings.falseSuccesses.push(`${where}: ${entries.length} entries`);
      await auditJournal(at, cut);
      const again = await undisturbed(at, ["journal", "prune", "--older-than", "0s"]);
      const left = readJournal(at.path("state", "journal.ndjson"));
      if (again.code !== 0 || left.length !== 1)
        findings.unfinished.push(`${where}: pruned again: ${again.code} ${again.stderr}, ${left.length} entries`);
      const strayed = filesWithSecrets(at.folder).filter((file) => file !== "client.secret");
      if (strayed.length > 0) findings.strayedSecrets.push(`${where}: ${strayed.join(", ")}`);
    };
    return { at, words: ["journal", "prune", "--older-than", "0s"], check };
  },
};

/** If the command reports success, its file is complete. A resumed list loses and repeats no row. */
export const outFile: PowerScene = {
  name: "entities list --out",
  async stage(service) {
    const at = new Home(service.env);
    const words = ["entities", "list", "--all", "--limit", "50", "-o", "ndjson"];
    const { stdout: whole } = await undisturbed(at, words);
    const file = at.path("rows.ndjson");
    const check = async ({ findings, where, ended }: PowerLossCase): Promise<void> => {
      const isWhole = (): boolean =>
        statSync(file, { throwIfNoEntry: false }) !== undefined && readFileSync(file, "utf8") === whole;
      if (ended && !isWhole()) findings.falseSuccesses.push(`${where}: it said that the file is finished`);
      const resume = [...words, "--out", "rows.ndjson", "--resume"];
      const { code, stderr } = await undisturbed(at, resume);
      const hasEnded = code === 0 || (code === 2 && stderr.includes("there is nothing to resume"));
      if (!hasEnded) findings.unfinished.push(`${where}: resumed: ${code} ${stderr}`);
      else if (!isWhole()) findings.tornFiles.push(`${where}: another file after --resume: ${stderr}`);
    };
    return { at, words: [...words, "--out", "rows.ndjson"], check };
  },
};
