// Checks of `integ doctor` that send the service no request and read no secret.
import { statSync } from "node:fs";
import type { Context } from "../../context.ts";
import { dueAt, type Entry, type MoveMark, movedWords, needsAttention, nounOf } from "../../journal/entry.ts";
import { commandForCredential, credentialPlace, secretSourceOf } from "../../profiles/profile.ts";
import { sandboxRegions } from "../../profiles/resolution.ts";
import { placesOf } from "../../secrets/destination.ts";
import { localStep } from "../running/missing.ts";
import { hiddenEntries } from "../journal/own-journal.ts";
import type { Finding } from "../../journal/journal.ts";

import { type Check, type Diagnosis, ok, problem, type Subject, warning } from "./diagnosis.ts";
import { flags, type NextStep, shell, settingOf } from "../../next-step.ts";

export const profileChecks: readonly Check[] = [
  { name: "profile", run: checkProfile },
  { name: "credential store", run: checkCredentialStore },
];

export const machineChecks: readonly Check[] = [
  { name: "journal", run: ({ context }) => checkJournal(context) },
  { name: "file modes", run: ({ context }) => checkModes(context) },
  { name: "stored secrets", run: ({ context }) => checkUnnamedSecrets(context) },
];

async function checkProfile(subject: Subject): Promise<Diagnosis[]> {
  const profile = await subject.profile();
  // With `--all-profiles`, the source is `flag` too, although no flag names the profile.
  const by = profile.source === "flag" ? subject.context.settings.profile && "--profile" : profile.source;
  const address = profile.baseUrl.startsWith("http:")
    ? "plain http, loopback only"
    : profile.baseUrl.startsWith("https:")
      ? "TLS"
      : "embedded";
  return [
    ok("profile", `${profile.name} (${profile.region})${by ? `, chosen by ${by}` : ""}`),
    ok("address", `${profile.baseUrl} (${address})`),
    ...(profile.organizationId === undefined
      ? [
          warning(
            "organization",
            "no organization id: keys and people (the legacy contract) cannot be used",
            profile.name === "env"
              ? { hint: "Set INTEG_ORGANIZATION_ID." }
              : settingOf(profile.name, "--organization-id"),
          ),
        ]
      : []),
    ...(profile.oauth === undefined && profile.baseUrl.startsWith("http")
      ? [
          warning(
            "token endpoint",
            "no token endpoint: rotations of clients cannot be proven",
            profile.name === "env"
              ? { hint: "Set INTEG_TOKEN_ENDPOINT." }
              : settingOf(profile.name, "--token-endpoint"),
          ),
        ]
      : []),
  ];
}

async function checkCredentialStore({ context, profile }: Subject): Promise<Diagnosis[]> {
  const { name } = await profile();
  if (sandboxRegions.has(name)) return [ok("credential store", "the sandbox keeps its own credentials")];
  const stored = (await context.profiles.store()).get(name);
  if (!stored) return [ok("credential store", "the credential is in the environment")];
  const where = credentialPlace(stored);
  if (where === "file")
    return [
      warning("credential store", "the credential is in a file (0600): no keychain was available", {
        hint: "Start a keychain, then store the credential again.",
        nextCommand: commandForCredential(stored),
      }),
    ];
  return [ok("credential store", where === null ? "no credential" : `the credential comes from a ${where}`)];
}

async function checkJournal(context: Context): Promise<Diagnosis[]> {
  const journal = await context.journal();
  const findings = await journal.verify();
  const all = await journal.unsettled();
  const unsettled = all.filter((entry) => needsAttention(entry, context.clock.now()));
  const waiting = waitingWords(context, all);
  const [first] = unsettled;
  const { moved } = await journal.condition();
  const hidden = await hiddenEntries(context, journal.path);
  return [
    ...(moved === undefined ? [] : [movedFinding(moved)]),
    ...(hidden === undefined ? [] : [warning("journal", hidden.words, { nextCommand: hidden.move })]),
    ...(findings.length === 0
      ? [ok("journal", `sound, ${counted(await journal.count(), "entry", "entries")}`)]
      : (["problem", "warning"] as const).flatMap((severity) => findingsOf(findings, severity))),
    first === undefined
      ? ok("unfinished changes", waiting || "none")
      : warning(
          "unfinished changes",
          `${unsettled.length} unfinished: ${[...new Set(unsettled.map((entry) => entry.state))].join(", ")}${waiting && `; ${waiting}`}`,
          unsettled.length === 1 ? await localStep(context, first) : { nextCommand: shell`integ journal list` },
        ),
  ];
}

/** @returns such as `1 rotation waits (the old client can be revoked in 11 hours)`; empty if no rotation waits */
function waitingWords({ clock, output }: Context, entries: readonly Entry[]): string {
  const waiting = entries
    .filter((entry) => entry.state === "waiting" && !needsAttention(entry, clock.now()))
    .sort((a, b) => (dueAt(a)! < dueAt(b)! ? -1 : 1));
  const [first] = waiting;
  if (first === undefined) return "";
  const which = waiting.length === 1 ? "the" : "the first";
  const waits = waiting.length === 1 ? "1 rotation waits" : `${waiting.length} rotations wait`;
  return `${waits} (${which} old ${nounOf(first)} can be revoked ${output.when(dueAt(first)!)})`;
}

function movedFinding(moved: MoveMark): Diagnosis {
  const { to, isUnfinished } = moved;
  const step: NextStep = isUnfinished
    ? { nextCommand: shell`integ journal move ${flags.to} ${to}` }
    : {
        hint: `Set INTEG_JOURNAL, or ${flags.journal} of the profile, to ${to}.`,
        nextCommand: shell`integ journal path`,
      };
  return problem("journal", movedWords(moved), step);
}

function findingsOf(findings: readonly Finding[], severity: Finding["severity"]): Diagnosis[] {
  const [first, ...more] = findings.filter((finding) => finding.severity === severity);
  if (first === undefined) return [];
  const rest = more.length === 0 ? "" : ` (and ${counted(more.length, severity, `${severity}s`)} more)`;
  const message = `${first.where}: ${first.message}${rest}`;
  const found = severity === "problem" ? problem : warning;
  return [found("journal", message, { nextCommand: shell`integ journal verify` })];
}

function counted(count: number, one: string, more: string): string {
  return `${count} ${count === 1 ? one : more}`;
}

async function checkModes(context: Context): Promise<Diagnosis[]> {
  const { configDir, stateDir } = context.settings;
  const folders = [
    ["INTEG_CONFIG_DIR", configDir],
    ["INTEG_STATE_DIR", stateDir],
  ] as const;
  const files = folders.filter(([, path]) => statSync(path, { throwIfNoEntry: false })?.isFile());
  if (files.length > 0)
    return files.map(([variable, path]) =>
      problem("file modes", `${path} is a file, not a folder`, {
        hint: `Set ${variable} to a folder.`,
        nextCommand: shell`ls -l ${path}`,
      }),
    );
  const open = [configDir, stateDir].filter((path) => isAccessibleToOthers(path));
  if (open.length === 0) return [ok("file modes", "configuration and state are readable by you alone")];
  return open.map((path) =>
    problem("file modes", `${path} is open to other users`, { nextCommand: shell`chmod 700 ${path}` }),
  );
}

function isAccessibleToOthers(path: string): boolean {
  try {
    return (statSync(path).mode & 0o077) !== 0;
  } catch {
    return false;
  }
}

const check = "stored secrets";
/** A younger secret may belong to a running process that has not stored the secret's profile yet. */
const minimumAgeMs = 60_000;

/** A keychain cannot list its secrets, so only files are checked. */
async function checkUnnamedSecrets(context: Context): Promise<Diagnosis[]> {
  const credentials = await context.profiles.credentials();
  const profiles = (await context.profiles.store()).list();
  const named = new Set(
    profiles.flatMap(({ credential }) => {
      const source = credential ? secretSourceOf(credential) : undefined;
      return source?.from === "stored" ? [source.ref] : [];
    }),
  );
  const newestMs = context.clock.now() - minimumAgeMs;
  const unnamed = credentials.files().filter(({ ref, writtenAt }) => !named.has(ref) && writtenAt < newestMs);
  if (unnamed.length === 0) return [ok(check, "no secret is left without a profile")];
  const what = unnamed.length === 1 ? "1 file contains a secret" : `${unnamed.length} files contain secrets`;
  return [
    warning(check, `${what} that no profile uses, left by a crash`, {
      nextCommand: (await isProfileDeliveryUnfinished(context))
        ? shell`integ journal recover`
        : shell`rm ${unnamed.map(({ path }) => path)}`,
    }),
  ];
}

/**
 * A secret without a profile may belong to an unfinished delivery, which must be recovered before its file is deleted.
 */
async function isProfileDeliveryUnfinished(context: Context): Promise<boolean> {
  const journal = await context.journal();
  return (await journal.unsettled()).some(
    ({ destination }) => destination !== null && placesOf(destination).some(({ kind }) => kind === "profile"),
  );
}
