import { addDryRun, defineVerb } from "../verb.ts";
import { rmSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import type { Entry } from "../../journal/entry.ts";
import type { EntryDestination } from "../../journal/entry-destination.ts";
import type { DraftItem } from "../../policy/draft.ts";
import { clientsIn } from "../oauth-clients/clients.ts";
import { read } from "../running/read.ts";
import { addPolicyFile } from "./policy-file.ts";
import { shell } from "../../next-step.ts";

export const command = defineVerb({
  configure: (command) =>
    addDryRun(addPolicyFile(command)).option("--offline", "Use the journal only, without the list of access keys"),
  examples: [
    { line: "integ policy init", does: "write ./integ.yaml with the clients and keys that exist" },
    { line: "integ policy init -f prod.yaml -p prod --offline", does: "from the journal only" },
  ],
  more: "Clients come from the journal, because the API does not list them; keys come from the API's list. An existing file is never replaced.",
  neverAsks: true,
  async run(context, { options }) {
    const path = resolve(context.settings.cwd, options.file);
    const items = [...(await knownClients(context)), ...(options.offline ? [] : await listedKeys(context))];
    const { draftPolicy } = await import("../../policy/draft.ts");
    const text = draftPolicy(items, { profile: (await context.profiles.active()).name });
    if (options.dryRun) return context.output.text(text);
    writeNew(path, text, options.file);
    context.output.note(`${options.file}: ${items.length} ${items.length === 1 ? "item" : "items"}. Nothing was sent.`);
    if (items.length > 0)
      context.output.note(`The comment beside each item in ${options.file} is the command that adopts what exists.`);
    context.output.next(shell`integ policy check`);
  },
});

function writeNew(path: string, text: string, file: string): void {
  let isOurs = false;
  try {
    writeFileSync(path, "", { flag: "wx" });
    isOurs = true;
    writeFileSync(path, text);
  } catch (error) {
    if (isOurs) rmSync(path, { force: true });
    const isThere = (error as NodeJS.ErrnoException).code === "EEXIST";
    throw new Failure("usage", `${file} was not written: ${isThere ? "it exists" : (error as Error).message}.`, {
      meaning: "Nothing was changed.",
      hint: "Name another file with --file <path>.",
    });
  }
}

/** The clients that the journal knows and that are not known to be revoked. */
async function knownClients(context: Context): Promise<DraftItem[]> {
  const { baseUrl } = await context.profiles.active();
  const entries = await (await context.journal()).entries();
  return clientsIn(entries, baseUrl)
    .filter(({ status }) => status === "active")
    .map(({ id, service_account_id, scopes }) => ({
      kind: "oauth_client",
      id,
      called: service_account_id,
      lines: [
        `service_account: ${JSON.stringify(service_account_id)}`,
        `scopes: ${JSON.stringify(scopes)}`,
        `secret: ${secretOf(entries, id)}`,
      ],
    }));
}

/** The active keys that the API lists, as far as it shows what a policy has to say of them. */
async function listedKeys(context: Context): Promise<DraftItem[]> {
  const { output } = context;
  try {
    await (await context.profiles.active()).legacy();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    output.note(`Without access keys: ${error.message}`);
    return [];
  }
  const { readAccessKey } = await import("../../api/access-keys.ts");
  const service = await context.connect();
  const { value } = await read(context, "list access keys", () => service.accessKeys.list());
  const entries = await (await context.journal()).entries();
  const items: DraftItem[] = [];
  for (const { id, name = "", keyType, scopes, status, expiresAt, createdAt } of value.rows.map((row) =>
    readAccessKey(row.value),
  )) {
    if (status !== "active" || id === undefined) continue;
    if ((keyType !== "user_bound" && keyType !== "service_account") || scopes === undefined) {
      output.warn(`The key ${id} is left out: the API does not show its type or its scopes.`);
      continue;
    }
    items.push({
      kind: "access_key",
      id,
      called: name,
      lines: [
        `type: ${keyType}`,
        `scopes: ${JSON.stringify(scopes)}`,
        ...lifeOf(expiresAt, createdAt),
        `secret: ${secretOf(entries, id)}`,
      ],
    });
  }
  return items;
}

/** The life that a key was given, in whole days. */
function lifeOf(expiresAt: string | null | undefined, createdAt: string | undefined): string[] {
  const days = Math.round((Date.parse(expiresAt ?? "") - Date.parse(createdAt ?? "")) / 86_400_000);
  return days > 0 ? [`expires_in: ${days}d`] : [];
}

/** The destination of the entry that made it, if that can be named. */
function secretOf(entries: readonly Entry[], id: string): string {
  const made = entries.find(({ resource_id, destination }) => resource_id === id && destination !== null);
  return made?.destination ? placeOf(made.destination) : "unknown";
}

function placeOf(destination: EntryDestination): string {
  if (destination.kind === "profile") return JSON.stringify({ profile: destination.name });
  if (destination.kind !== "file") return "unknown";
  const { path, as } = destination;
  if (as === "json-string" || as.includes(":")) return "unknown";
  return JSON.stringify(as === "raw" ? { file: path } : { file: path, format: as });
}
