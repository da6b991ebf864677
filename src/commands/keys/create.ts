import { addDryRun, defineVerb } from "../verb.ts";
import { createAccessKey, type KeyCreation } from "../../operations/key.ts";
import type { Context } from "../../context.ts";
import type { Workbench } from "../../operations/workbench.ts";
import { askDestination, addSecretOptions, secretOptionsOf } from "../options/secrets.ts";
import { printReceipt, actingAs, noteUnfinished, reportDelivered, reportPlan, workbenchOf } from "../running/change.ts";
import { validationMessage } from "../../errors.ts";
import { addKeyOptions, expiryOf, isMarked, type KeyFlags } from "./new-key.ts";
import { accessKeyView, deliveredKeyView } from "./keys.ts";

export const command = defineVerb({
  contract: "legacy",
  fields: accessKeyView.columns.map(({ path }) => path),
  result: accessKeyView.columns,
  configure: (command) =>
    addSecretOptions(
      addKeyOptions(
        addDryRun(command).option(
          "--name <name>",
          "Name of the key, 1 to 255 characters; usually the integration that owns it",
        ),
      ).option("--new", "Create another key, even if the same creation is unfinished"),
    ),
  examples: [
    {
      line: "integ keys create --name nightly-sync --type service_account --expires-in 90d --secret-file ./key.secret",
      does: "the secret goes to a new file that only you can read",
    },
    {
      line: "integ keys create --name ingest --scope 'push-ingest:*' --secret-command 'gh secret set INGEST_KEY'",
      does: "the secret goes to a command's standard input, and to no log",
    },
    {
      line: "integ keys create --name ci --expires-in 30d --marker --json | jq -r .secret",
      does: "the secret is on standard output, once",
    },
  ],
  more: "Access keys have no idempotency key, so integ repeats no request whose outcome is unknown: the entry stays unfinished (exit 7), and `integ journal recover` looks for the key.",
  async run(context, { options }) {
    const creation = await creationOf(context, options);
    const { checkAccessKey } = await import("../../api/access-keys.ts");
    checkAccessKey(creation.request, context.clock.now());
    const { options: secretOptions } = await askDestination(context, secretOptionsOf(options), options);
    const destination = await context.secrets.destination({ ...secretOptions, yields: "access_key" }, (receipt) =>
      context.output.resource(receipt, accessKeyView),
    );
    await (await context.profiles.active()).legacy();
    const bench = await workbenchOf(context);
    if (options.dryRun) {
      const { showRequest } = await import("../running/dry-run.ts");
      const { keyCreationStep } = await import("../running/dry-changes.ts");
      return showRequest(context, keyCreationStep(bench, { creation, expiresIn: options.expiresIn }));
    }
    reportPlan(context, planWords(bench, creation.request));
    noteDefaults(context, options);
    await noteUnfinished(context);
    const { receipt } = await createAccessKey(bench, creation, { destination, fresh: options.new === true });
    if (receipt !== undefined && !destination.isStdout) {
      await printReceipt(() => context.output.resource(receipt, deliveredKeyView));
      reportDelivered(context, destination);
    }
  },
});

/** By default a key has full access and no expiry (§2.4). */
function planWords(bench: Workbench, { name, scopes, expiresAt }: KeyCreation["request"]): string {
  const may = scopes === undefined || scopes.includes("*") ? "full access" : scopes.join(", ");
  return `${actingAs(bench)}: integ creates the key "${name}" (${may}; expires ${expiresAt ?? "never"}).`;
}

async function creationOf(context: Context, typed: KeyFlags): Promise<KeyCreation> {
  // Refuses contradicting flags before any question.
  expiryOf(typed, context.clock.now());
  const name = typed.name ?? (await askName(context));
  const flags = await withChoices(context.output, typed);
  const expiry = expiryOf(flags, context.clock.now());
  return {
    request: {
      name,
      expiresAt: expiry?.at ?? undefined,
      keyType: flags.type,
      scopes: flags.scope,
    },
    expiry: expiry?.fingerprint,
    marked: await isMarked(context, { marker: flags.marker, name }),
  };
}

function lacksExpiry({ expiresAt, expiresIn }: KeyFlags): boolean {
  return expiresAt === undefined && expiresIn === undefined;
}

/** `keys audit` would report the defaults for scope and expiry, so integ asks for both at a terminal. */
async function withChoices(output: Context["output"], flags: KeyFlags): Promise<KeyFlags> {
  if (!output.interactive) return flags;
  const scope = flags.scope ?? [
    await output.pick("What may the key do?", { choices: scopes, flag: "--scope <scope>" }),
  ];
  if (!lacksExpiry(flags)) return { ...flags, scope };
  const expiresIn = await output.pick("How long is it valid?", { choices: lifetimes, flag: "--expires-in <duration>" });
  return { ...flags, scope, expiresIn };
}

/** Without a terminal, notes the defaults, so that the log of a job shows them. */
function noteDefaults({ output }: Context, flags: KeyFlags): void {
  if (output.interactive) return;
  const defaults = [
    flags.scope === undefined && "full access (no --scope)",
    lacksExpiry(flags) && "no expiry (no --expires-in)",
  ];
  const words = defaults.filter((one) => one !== false).join(" and ");
  if (words !== "") output.note(`The key has ${words}.`);
}

const scopes = [
  { value: "push-ingest:*", hint: "push data, nothing else" },
  { value: "*", hint: "full access" },
];

const lifetimes = [
  { value: "90d" },
  { value: "30d" },
  { value: "365d" },
  { value: "never", hint: "keys audit reports it" },
];

async function askName({ output, clock }: Context): Promise<string> {
  const { checkAccessKey } = await import("../../api/access-keys.ts");
  const validate = (name: string): string | undefined => validationMessage(() => checkAccessKey({ name }, clock.now()));
  return output.ask("Name of the key", { flag: "--name <name>", validate });
}
