import { afterAll } from "vitest";
import { Account } from "../support/account.ts";
import { journalOf, unsettledIn } from "../support/journal-file.ts";
import type { Home } from "../support/program.ts";
import { type Service, startService } from "../support/service.ts";
import { type Run, type Scene, type Stage, undisturbed } from "./harness.ts";
import { applyWords, brokenFiles, homeWith, resultsIn, violationsOf } from "./policy-scenes.ts";

export const names = ["first", "second"];

export interface PolicyWork {
  readonly name: string;
  readonly words: readonly string[];
  /** How many requests of an earlier `apply` are lost. */
  readonly lost?: number;
}

export const apply: PolicyWork = { name: "apply", words: applyWords };
export const recoverApply: PolicyWork = {
  name: "journal recover of an apply",
  words: ["journal", "recover"],
  lost: 2,
};

export class PolicyStage implements Stage {
  readonly at: Home;
  readonly words: readonly string[];
  readonly #account: Account;

  constructor(at: Home, words: readonly string[], account: Account) {
    this.at = at;
    this.words = words;
    this.#account = account;
  }

  async audit({ findings, where, ended }: Run): Promise<void> {
    if (/a bug in integ/.test(ended.stderr)) findings.bugs.push(`${where}: ${ended.stderr}`);
    for (const name of await brokenFiles(this.#account, this.at, names))
      findings.tornSecrets.push(`${where}: the secret of ${name} opens nothing`);
    const keys = new Set(journalOf(this.at).map(({ idempotency_key: key }) => key));
    for (const { idempotency_key: key } of await this.#account.creations())
      if (!keys.has(key)) findings.lostKeys.push(`${where}: ${key}`);
  }

  async recover({ findings, where }: Run): Promise<string> {
    const recovered = await undisturbed(this.at, ["journal", "recover", "--replace-lost-secret"]);
    const applied = await undisturbed(this.at, applyWords);
    if (applied.code !== 0) findings.unfinished.push(`${where}: apply ended with ${applied.code}: ${applied.stderr}`);
    const again = resultsIn(await undisturbed(this.at, applyWords));
    if (again.length !== names.length || again.some((result) => result !== "none"))
      findings.unfinished.push(`${where}: a later apply: ${again.join(", ")}`);
    for (const { id, state } of unsettledIn(journalOf(this.at)))
      findings.unfinished.push(`${where}: entry ${id} is still ${state}`);
    for (const wrong of await violationsOf(this.#account, this.at, names))
      findings.withoutOwner.push(`${where}: ${wrong}`);
    return `recovery ${recovered.code}, apply 0`;
  }

  remove(): void {
    this.at.remove();
  }
}

/** The scenes of a test file share one service, which restarts from time to time so that its state stays small. */
export function policyScenes(): (work: PolicyWork) => Scene {
  let service: Service | undefined;
  let used = 0;
  afterAll(() => service?.stop());
  return ({ name, words, lost = 0 }) => ({
    name,
    async stage({ through } = {}) {
      if (used % 100 === 99) service = void (await service?.stop());
      used += 1;
      service ??= await startService();
      const account = new Account(service);
      await account.clear();
      const at = homeWith(service, { names });
      const { origin } = new URL(service.us.base_url);
      const near = (await through?.(origin)) ?? origin;
      for (const variable of ["INTEG_BASE_URL", "INTEG_TOKEN_ENDPOINT"])
        at.env[variable] = at.env[variable]!.replace(origin, near);
      if (lost > 0) {
        await service.fault(`POST /v1/oauth_clients drop=before times=${lost}`);
        const { code, stderr } = await undisturbed(at, [...applyWords, "--retry-for", "0"]);
        if (code !== 7) throw new Error(`an apply whose requests were lost ended with ${code}: ${stderr}`);
      }
      return new PolicyStage(at, words, account);
    },
  });
}
