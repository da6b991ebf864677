import { addDryRun, defineVerb } from "../verb.ts";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { dirname, relative, resolve } from "node:path";
import type { Context } from "../../context.ts";
import { Failure, isInterruption } from "../../errors.ts";
import type { DraftItem } from "../../policy/draft.ts";
import type { ItemDestination } from "../../policy/policy.ts";
import { baseNameOf, itemOf, newPolicyId, worksIn } from "../../policy/works.ts";
import { KnownClients } from "../oauth-clients/clients.ts";
import { read, serviceNow } from "../running/read.ts";
import { KnownDestinations } from "./known-destination.ts";
import { addPolicyFile, assertNamed, fileWords } from "./policy-file.ts";
import { assertFolder } from "./text-file.ts";
import { shell } from "../../next-step.ts";

export const command = defineVerb({
  result: ["path", "id", "items"].map((path) => ({ path, heading: path })),
  configure: (command) =>
    addDryRun(addPolicyFile(command)).option("--offline", "Use the journal only, without the list of access keys"),
  examples: [
    { line: "integ policy init", does: "write ./integ.yaml with the clients and keys that exist" },
    { line: "integ policy init -f prod.yaml -p prod --offline", does: "from the journal only" },
  ],
  more: "Clients come from the journal, because the API does not list them; keys come from the API's list. An existing file is never replaced.",
  neverAsks: true,
  async run(context, { options }) {
    assertNamed(options.file);
    const path = resolve(context.settings.cwd, options.file);
    if (!options.dryRun) assertFree(path, options.file);
    const facts = await factsOf(context, dirname(path));
    const id = newPolicyId();
    const { draftPolicy } = await import("../../policy/draft.ts");
    const profile = (await context.profiles.active()).name;
    const validated = await validator(context, path);
    const items = [...knownClients(facts), ...(options.offline ? [] : await listedKeys(context, facts))].filter(
      (item) => {
        const defect = validated(draftPolicy([item], { id, profile }));
        if (defect === undefined) return true;
        const noun = item.kind === "oauth_client" ? "client" : "key";
        context.output.warn(`The ${noun} ${item.id} is left out, because a policy cannot have it: ${defect}`);
        return false;
      },
    );
    const text = draftPolicy(items, { id, profile });
    const defect = validated(text);
    if (defect !== undefined)
      throw new Failure("usage", `${options.file} was not written: ${defect}`, { meaning: "Nothing was changed." });
    if (options.dryRun) return context.output.text(text);
    writeNew(path, text, options.file);
    if (context.output.format !== "table")
      await context.output.document({ object: "policy_file", path, id, items: items.length });
    context.output.note(
      `${options.file}: ${items.length} ${items.length === 1 ? "item" : "items"}. No change was sent.`,
    );
    const policies = [...new Set(facts.others.values())];
    if (policies.length > 0)
      context.output.note(
        `${facts.others.size === 1 ? "1 client or key is" : `${facts.others.size} clients and keys are`} left out: they belong to ${policies.length === 1 ? "policy" : "policies"} ${policies.join(", ")}.`,
      );
    const words = fileWords(options.file);
    context.output.next(items.length > 0 ? shell`integ adopt --all ${words}` : shell`integ plan ${words}`);
  },
});

/** Messages have no line numbers, because the user has not seen the text. */
async function validator({ clock }: Context, path: string): Promise<(text: string) => string | undefined> {
  const { readPolicy } = await import("../../policy/read.ts");
  return (text) => {
    try {
      readPolicy({ text, file: "", folder: dirname(path), nowMs: clock.now() });
      return undefined;
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      return error.message.replace(/^[\d:]+ /, "");
    }
  };
}

function assertFree(path: string, file: string): void {
  assertFolder(path, file, "--file");
  if (existsSync(path)) throw notWritten(file, "it exists");
}

function notWritten(file: string, why: string): Failure {
  return new Failure("usage", `${file} was not written: ${why}.`, {
    meaning: "Nothing was changed.",
    hint: "Name another file with --file <path>.",
  });
}

function writeNew(path: string, text: string, file: string): void {
  let isCreated = false;
  try {
    writeFileSync(path, "", { flag: "wx" });
    isCreated = true;
    writeFileSync(path, text);
  } catch (error) {
    if (isCreated) rmSync(path, { force: true });
    const exists = (error as NodeJS.ErrnoException).code === "EEXIST";
    throw notWritten(file, exists ? "it exists" : (error as Error).message);
  }
}

function knownClients(facts: JournalFacts): DraftItem[] {
  return [...facts.clients.all()]
    .filter(({ id, status }) => status === "active" && !facts.others.has(id))
    .map(({ id, service_account_id, scopes }) => ({
      kind: "oauth_client",
      id,
      baseName: baseNameOf({ kind: "oauth_client", id, serviceAccount: service_account_id }),
      lines: [
        `service_account: ${JSON.stringify(service_account_id)}`,
        `scopes: ${JSON.stringify(scopes)}`,
        `secret: ${destinationText(facts, id)}`,
      ],
    }));
}

async function listedKeys(context: Context, facts: JournalFacts): Promise<DraftItem[]> {
  const { output } = context;
  try {
    await (await context.profiles.active()).legacy();
  } catch (error) {
    if (!(error instanceof Failure) || isInterruption(error)) throw error;
    output.note(`Access keys are not included: ${error.message}`);
    return [];
  }
  const { readAccessKey } = await import("../../api/access-keys.ts");
  const service = await context.connect();
  const { value } = await read(context, "list access keys", () => service.accessKeys.list());
  const now = serviceNow(context, service);
  const items: DraftItem[] = [];
  for (const { id, name = "", keyType, scopes, status, expiresAt, createdAt } of value.rows.map((row) =>
    readAccessKey(row.value),
  )) {
    // The service may list an expired key as active.
    if (status !== "active" || id === undefined || Date.parse(expiresAt ?? "") <= now || facts.others.has(id)) continue;
    if ((keyType !== "user_bound" && keyType !== "service_account") || scopes === undefined) {
      output.warn(`The key ${id} is left out: the API does not show its type or its scopes.`);
      continue;
    }
    const lifeMs = expiresAt == null ? undefined : Date.parse(expiresAt) - Date.parse(createdAt ?? "");
    if (lifeMs !== undefined && !(lifeMs > 0)) {
      output.warn(`The key ${id} is left out: the API does not show its lifetime.`);
      continue;
    }
    items.push({
      kind: "access_key",
      id,
      baseName: name,
      lifeMs,
      lines: [`type: ${keyType}`, `scopes: ${JSON.stringify(scopes)}`, `secret: ${destinationText(facts, id)}`],
    });
  }
  return items;
}

/** @returns `unknown` if a policy cannot name the destinations, or an earlier item uses one of them */
function destinationText({ destinations, used, folder }: JournalFacts, id: string): string {
  const inFile = (one: ItemDestination): ItemDestination | string => {
    if ("store" in one) return one.store;
    return "file" in one ? { ...one, file: relative(folder, one.file) } : one;
  };
  const texts = (destinations.of(id) ?? []).map((one) => JSON.stringify(inFile(one)));
  const [first = "unknown", ...more] = texts.some((text) => used.has(text)) ? [] : texts;
  for (const text of texts) used.add(text);
  return more.length === 0 ? first : `[ ${texts.join(", ")} ]`;
}

interface JournalFacts {
  readonly clients: KnownClients;
  readonly destinations: KnownDestinations;
  /** The policy that already has a credential, by the credential's id. */
  readonly others: ReadonlyMap<string, string>;
  readonly folder: string;
  /** Destinations of earlier items, as JSON. */
  readonly used: Set<string>;
}

async function factsOf(context: Context, folder: string): Promise<JournalFacts> {
  const { baseUrl, organizationId = null } = await context.profiles.active();
  const clients = new KnownClients(baseUrl);
  const destinations = new KnownDestinations(context.secrets.machine.find());
  const journal = await context.journal();
  const works = await worksIn(journal, { baseUrl, organizationId }, (entry) => clients.add(entry));
  for (const entry of await journal.select({ all: true, trusted: true })) destinations.add(entry);
  const others = new Map(
    [...works].flatMap(([key, { candidates }]) => candidates.map((id) => [id, itemOf(key).policy])),
  );
  return { clients, destinations, others, folder, used: new Set() };
}
