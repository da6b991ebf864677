// `--secret-command` passes a secret on a command's standard input, never in arguments or environment;
// `--secret-check-command` verifies its arrival.
import { flags } from "../next-step.ts";
import { accessSync, constants } from "node:fs";
import { Failure } from "../errors.ts";
import type { SecretDigests } from "../journal/keys.ts";
import type { Environment } from "../profiles/resolution.ts";
import { endWords, inputTools, runShell, type ShellRun } from "../profiles/shell-command.ts";
import { isSameSecret } from "./delivered-secret.ts";
import {
  commandMark,
  isSamePlace,
  contentId,
  type Found,
  type Delivery,
  type DestinationOption,
  type OneTimeSecret,
  type RecordOf,
  type SingleDestinationPlace,
} from "./destination.ts";
import { renderSecret } from "./secret-format.ts";

export type CommandTarget = Omit<Extract<DestinationOption, { kind: "command" }>, "kind">;

export interface CommandTools {
  readonly env: Environment;
  /** Gets the delivery command's output and the check's standard error, with the secret masked. */
  readonly onStderr: (chunk: Uint8Array) => void;
  readonly commandLimitMs?: number | undefined;
  readonly digests: SecretDigests;
  /** An abort ends the command; the secret then counts as not delivered. */
  readonly signal?: AbortSignal;
}

function commandFailure(why: string, more = ""): Failure {
  return new Failure("undelivered", `The ${flags.secretCommand} ${why}. ${more}`.trim());
}

function checkFailure(why: string, more = ""): Failure {
  return new Failure("undelivered", `The ${flags.secretCheckCommand} ${why}. ${more}`.trim());
}

export function commandDestination(target: CommandTarget, tools: CommandTools): SingleDestinationPlace {
  let record: RecordOf<"command"> = {
    kind: "command",
    mark: commandMark(target),
    ...(target.check && { check: target.check.by }),
  };
  // A check with these variables can run only at the delivery, when their values are known.
  const isOfEntry = /\bINTEG_(?:RESOURCE_ID|OAUTH_CLIENT_ID|SERVICE_ACCOUNT|PROFILE_NAME|ENTRY)\b/.test(
    target.check?.command ?? "",
  );
  const check = async (): Promise<RecordOf<"command">> => {
    if (target.command.trim() === "") throw new Failure("usage", `${flags.secretCommand} is empty.`);
    if (target.check?.command.trim() === "") throw new Failure("usage", `${flags.secretCheckCommand} is empty.`);
    if (process.platform !== "win32") await checkShell(target, tools);
    // `--force` covers only the content at the first check.
    if (target.force === true && !isOfEntry && !("consent" in record))
      record = { ...record, consent: contentId(await foundBy(target, tools), tools.digests) };
    return record;
  };
  return {
    isStdout: false,
    get record() {
      return record;
    },
    check,
    async prepare(_work, { may } = {}) {
      if (!isOfEntry) await may?.(record, await foundBy(target, tools));
      return record;
    },
    async deliver(secret, delivery) {
      const facts = variablesOf(secret, delivery);
      const found = await foundBy(target, tools, facts);
      if (target.force === true && isOfEntry) record = { ...record, consent: contentId(found, tools.digests) };
      await delivery.may(record, found);
      // The digest is recorded before the write: after a crash, a check can show if this secret arrived.
      record = { ...record, proof: tools.digests.of(secret.secret) };
      await delivery.record(record);
      const shell = { ...tools, facts };
      const text = renderSecret(secret, target.as ?? "raw", delivery.origin);
      await passSecret(target.command, { text, secret: secret.secret }, shell);
      if (target.check) await runCheck(target.check, { secret: secret.secret, shell });
    },
    async release() {},
    async shownBy(of, about) {
      if (target.check?.by !== "output" || !isSamePlace(of, record)) return undefined;
      const { env, signal, commandLimitMs: timeLimitMs = 60_000 } = tools;
      const run = await runShell(target.check.command, { env, signal, facts: variablesOf(about, about), timeLimitMs });
      if (run.status === 0) return run.stdout.toString("utf8");
      throw new Failure("pending", `The ${flags.secretCheckCommand} failed with ${endWords(run)}.`, {
        meaning: "It is not known whether the command's destination still has the new secret: nothing was revoked.",
      });
    },
  };
}

async function checkShell({ command, check }: CommandTarget, tools: CommandTools): Promise<void> {
  try {
    accessSync("/bin/sh", constants.X_OK);
  } catch (error) {
    throw new Failure("usage", `${flags.secretCommand} needs /bin/sh, and it cannot be run here.`, { cause: error });
  }
  await checkTools(flags.secretCommand, command, tools);
  if (check) await checkTools(flags.secretCheckCommand, check.command, tools);
}

/** A command with one of these variables counts as writing to another place for each client or key. */
const hasOwnPlace = /\bINTEG_(?:RESOURCE_ID|OAUTH_CLIENT_ID|ENTRY)\b/;

/** A check that prints nothing shows that there is no content. A check that fails shows nothing. */
async function foundBy({ command, check }: CommandTarget, tools: CommandTools, facts?: Environment): Promise<Found> {
  if (check?.by === "output") {
    const { env, signal, commandLimitMs: timeLimitMs = 60_000 } = tools;
    const run = await runShell(check.command, { env, signal, facts, timeLimitMs });
    const text = run.stdout.toString("utf8");
    if (run.status === 0) return text.trim() === "" ? { is: "absent" } : { is: "text", text };
  }
  if (hasOwnPlace.test(command)) return { is: "absent" };
  const differsBy: ("serviceAccount" | "profile")[] = [];
  if (/\bINTEG_SERVICE_ACCOUNT\b/.test(command)) differsBy.push("serviceAccount");
  if (/\bINTEG_PROFILE_NAME\b/.test(command)) differsBy.push("profile");
  return { is: "hidden", version: "unknown", differsBy };
}

/** Matches a program's name or path at the start of a command, without shell syntax. */
const firstWord = /^\s*((?:[\w.]|~?\/)[\w./+-]*)(?=\s|$)/;
/** Matches operators after which a command continues if its first program is missing. */
const toleratesFailure = /[;\n]|\|\||(?<![&>])&(?![&>])/;

async function checkTools(flag: string, command: string, { env, signal }: CommandTools): Promise<void> {
  const first = toleratesFailure.test(command.trim()) ? undefined : firstWord.exec(command)?.[1];
  const names = [...inputTools, ...(first === undefined ? [] : [first])].join(" ");
  const loop = `for tool in ${names}; do command -v "$tool" > /dev/null || { echo "$tool"; exit 1; }; done`;
  const run = await runShell(loop, { env, signal, timeLimitMs: 10_000 });
  if (run.status === 0) return;
  const missing = run.stdout.toString("utf8").trim();
  if (missing === "")
    throw new Failure(
      "failed",
      `${flag}: could not check that the command's program exists: the shell failed with ${endWords(run)}.`,
      {
        meaning: "Nothing was sent.",
        hint: "Run the command again.",
      },
    );
  const isOurs = inputTools.some((tool) => tool === missing);
  throw new Failure("usage", `${flag}: the program "${missing}" was not found.`, {
    ...(isOurs && { meaning: "integ passes the secret to the command through it." }),
    hint: isOurs ? "Add its folder to PATH." : "Install it, or correct the command.",
  });
}

function variablesOf(
  { id, clientId }: Pick<OneTimeSecret, "id" | "clientId">,
  { origin }: Pick<Delivery, "origin">,
): Environment {
  return {
    INTEG_RESOURCE_ID: id,
    INTEG_OAUTH_CLIENT_ID: clientId,
    INTEG_SERVICE_ACCOUNT: origin.serviceAccount,
    INTEG_PROFILE_NAME: origin.profile,
    INTEG_ENTRY: origin.entry,
  };
}

type DeliveryTools = CommandTools & { readonly facts: Environment };

async function passSecret(
  command: string,
  { text, secret }: { readonly text: string; readonly secret: string },
  tools: DeliveryTools,
): Promise<void> {
  let run: ShellRun;
  try {
    run = await runShell(command, {
      env: tools.env,
      facts: tools.facts,
      input: text,
      secrets: [secret],
      timeLimitMs: tools.commandLimitMs ?? 60_000,
      onStderr: tools.onStderr,
      echo: true,
      signal: tools.signal,
    });
  } catch (error) {
    throw commandFailure(
      "did not finish: it is not known whether it took the secret",
      error instanceof Failure ? error.message : "",
    );
  }
  if (run.status !== 0) throw commandFailure(`failed with ${endWords(run)}`);
  if (run.unread > 0) throw commandFailure("ended without reading the secret from its standard input");
}

/** A check by `output` must print the raw secret, whatever format the command received. */
async function runCheck(
  { command, by }: NonNullable<CommandTarget["check"]>,
  { secret, shell }: { readonly secret: string; readonly shell: DeliveryTools },
): Promise<void> {
  let run: ShellRun;
  try {
    const { env, facts, onStderr, signal, commandLimitMs = 60_000 } = shell;
    run = await runShell(command, { env, facts, onStderr, signal, secrets: [secret], timeLimitMs: commandLimitMs });
  } catch (error) {
    throw checkFailure("did not show the secret", error instanceof Failure ? error.message : "");
  }
  if (run.status !== 0) throw checkFailure(`failed with ${endWords(run)}`);
  if (by === "exit") return;
  const expected = Buffer.from(secret);
  if ([expected, Buffer.concat([expected, newline])].some((bytes) => isSameSecret(run.stdout, bytes))) return;
  throw checkFailure(
    "printed something other than the secret",
    "It must print the secret alone, even if a format wraps it. Otherwise the command before it may have stored the secret wrongly.",
  );
}

const newline = Buffer.from("\n");
