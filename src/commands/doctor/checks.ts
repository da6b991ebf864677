// The checks of `integ doctor`, each by itself. No secret passes through here.
import { statSync } from "node:fs";
import type { IssuerDifference } from "../../api/auth/token-exchange.ts";
import { compareContract } from "../../api/contract.ts";
import { readAnswer, whereOf } from "../running/read.ts";
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import { isSettled, nextStep } from "../../journal/entry.ts";
import { whereIsCredential, secretSourceOf } from "../../profiles/profile.ts";
import { sandboxRegions } from "../../profiles/resolution.ts";

/** One line of the diagnosis. Nothing secret is ever in it: it is made to be pasted into a ticket. */
export interface Diagnosis {
  readonly check: string;
  readonly status: "ok" | "warning" | "problem";
  readonly message: string;
  /** What to do about it. */
  readonly next: string | null;
}

interface Check {
  readonly name: string;
  readonly run: (context: Context) => Promise<readonly Diagnosis[]>;
}

/** A clock further off than this makes tokens and page tokens look expired. */
const skewLimitMs = 60_000;

export const checks: readonly Check[] = [
  { name: "profile", run: checkProfile },
  { name: "credential store", run: checkKeeping },
  { name: "service", run: checkService },
  { name: "issuer", run: checkIssuer },
  { name: "contract", run: checkContract },
  { name: "journal", run: checkJournal },
  { name: "file modes", run: checkModes },
  { name: "kept secrets", run: checkUnnamedSecrets },
];

function ok(check: string, message: string): Diagnosis {
  return { check, status: "ok", message, next: null };
}

async function checkProfile(context: Context): Promise<Diagnosis[]> {
  const profile = await context.profiles.active();
  const address = profile.baseUrl.startsWith("http:")
    ? "plain http, loopback only"
    : profile.baseUrl.startsWith("https:")
      ? "TLS"
      : "embedded";
  return [
    ok(
      "profile",
      `${profile.name} (${profile.region}), chosen by ${profile.source === "flag" ? "--profile" : profile.source}`,
    ),
    ok("address", `${profile.baseUrl} (${address})`),
    ...(profile.organizationId === undefined
      ? [
          {
            check: "organization",
            status: "warning" as const,
            message: "no organization id: keys and people (the legacy contract) cannot be used",
            next:
              profile.name === "env"
                ? "set INTEG_ORGANIZATION_ID"
                : `integ profiles edit ${profile.name} --organization-id <uuid>`,
          },
        ]
      : []),
  ];
}

async function checkKeeping(context: Context): Promise<Diagnosis[]> {
  const { name } = await context.profiles.active();
  if (sandboxRegions.has(name)) return [ok("credential store", "the sandbox keeps its own credentials")];
  const stored = (await context.profiles.store()).get(name);
  if (!stored) return [ok("credential store", "the credential is in the environment")];
  const where = whereIsCredential(stored);
  if (where === "file")
    return [
      {
        check: "credential store",
        status: "warning",
        message: "the credential is in a file (0600): no keychain was there",
        next: null,
      },
    ];
  return [ok("credential store", where === null ? "no credential" : `the credential comes from a ${where}`)];
}

/** One read tells the address, TLS, the credential, its permission and both clocks. */
async function checkService(context: Context): Promise<Diagnosis[]> {
  const service = await context.connect();
  const where = await whereOf(context);
  const began = context.clock.now();
  const { value } = await readAnswer(context, { what: "list entities", where }, () =>
    service.raw.send({ method: "GET", path: "/v1/entities?limit=1" }),
  );
  const tookMs = context.clock.now() - began;
  const found = [ok("service", `reached, credential accepted, permission entity:read (${tookMs} ms)`)];
  const date = Date.parse(value.headers.date ?? "");
  if (Number.isNaN(date)) return found;
  const skewMs = Math.abs(date - context.clock.now());
  return [
    ...found,
    skewMs <= skewLimitMs
      ? ok("clock", "agrees with the service's")
      : {
          check: "clock",
          status: "warning",
          message: `differs by ${Math.round(skewMs / 1000)} s from the service's`,
          next: "set this machine's clock",
        },
  ];
}

/** The issuer that the organization's setup gave vouches for the token endpoint (§5.2 rule 3), where it publishes itself. */
async function checkIssuer(context: Context): Promise<Diagnosis[]> {
  const { name } = await context.profiles.active();
  const service = await context.connect();
  const where = await whereOf(context);
  try {
    const answer = await readAnswer(context, { what: "get the issuer's metadata", where }, () =>
      service.tokens.compareIssuer().then((attempt) => attempt ?? notAsked),
    );
    if (answer.value.length === 0) return answer === notAsked ? [] : [ok("issuer", "vouches for the token endpoint")];
    return answer.value.map((difference) => ofDifference(difference, name));
  } catch (error) {
    if (!(error instanceof Failure) || error.kind !== "not_found") throw error;
    const message = "it publishes nothing of itself: that the token endpoint is its own cannot be checked";
    return [{ check: "issuer", status: "warning", message, next: null }];
  }
}

const notAsked = { kind: "answered" as const, status: 200, value: [], text: "" };

function ofDifference(difference: IssuerDifference, name: string): Diagnosis {
  const { kind, published } = difference;
  if (kind === "token_endpoint")
    return {
      check: "issuer",
      status: "problem",
      message: `its token endpoint is ${published ?? "not told"}, not the profile's`,
      next: `ask whoever set OAuth up, then integ profiles edit ${name} --token-endpoint <url>`,
    };
  return {
    check: "issuer",
    status: "problem",
    message: `its token endpoint takes ${published.join(", ")}, not the profile's client authentication`,
    next: `integ profiles edit ${name} --client-auth <method>`,
  };
}

async function checkContract(context: Context): Promise<Diagnosis[]> {
  const service = await context.connect();
  const { value } = await readAnswer(
    context,
    { what: "get the published contract", where: await whereOf(context) },
    () => service.contract.published(),
  );
  const drifts = compareContract(value).filter((finding) => finding.severity === "drift");
  if (drifts.length === 0) return [ok("contract", "the published contract is what integ speaks")];
  return [
    {
      check: "contract",
      status: "problem",
      message: `it differs in ${drifts.length} places from what integ speaks`,
      next: "integ spec check",
    },
  ];
}

async function checkJournal(context: Context): Promise<Diagnosis[]> {
  const journal = await context.journal();
  const damage = (await journal.verify()).filter((finding) => finding.severity === "problem");
  const unsettled = (await journal.entries()).filter((entry) => !isSettled(entry.state));
  const [first] = unsettled;
  return [
    damage.length === 0
      ? ok("journal", `sound, ${counted((await journal.entries()).length, "entry", "entries")}`)
      : {
          check: "journal",
          status: "problem",
          message: `damaged in ${counted(damage.length, "place", "places")}`,
          next: "integ journal verify",
        },
    first === undefined
      ? ok("unsettled work", "none")
      : {
          check: "unsettled work",
          status: "warning",
          message: `${unsettled.length} unsettled: ${[...new Set(unsettled.map((entry) => entry.state))].join(", ")}`,
          next: unsettled.length === 1 ? nextStep(first) : "integ journal list",
        },
  ];
}

function counted(count: number, one: string, more: string): string {
  return `${count} ${count === 1 ? one : more}`;
}

/** Folders and files that hold credentials, kept secrets or the journal must be their owner's alone. */
async function checkModes(context: Context): Promise<Diagnosis[]> {
  const { configDir, stateDir } = context.settings;
  const folders = [
    ["INTEG_CONFIG_DIR", configDir],
    ["INTEG_STATE_DIR", stateDir],
  ] as const;
  const files = folders.filter(([, path]) => statSync(path, { throwIfNoEntry: false })?.isFile());
  if (files.length > 0)
    return files.map(([variable, path]) => ({
      check: "file modes",
      status: "problem" as const,
      message: `${path} is a file, where a folder is meant`,
      next: `set ${variable} to a folder`,
    }));
  const open = [configDir, stateDir].filter((path) => isOpenToOthers(path));
  if (open.length === 0) return [ok("file modes", "configuration and state are readable by you alone")];
  return open.map((path) => ({
    check: "file modes",
    status: "problem" as const,
    message: `${path} is open to other users`,
    next: `chmod 700 '${path}'`,
  }));
}

function isOpenToOthers(path: string): boolean {
  try {
    return (statSync(path).mode & 0o077) !== 0;
  } catch {
    return false;
  }
}

const check = "kept secrets";
/** Another process may be between the two steps at this moment. */
const underWayMs = 60_000;

/** Only files: what a keychain holds cannot be listed. */
export async function checkUnnamedSecrets(context: Context): Promise<Diagnosis[]> {
  const credentials = await context.profiles.credentials();
  const profiles = (await context.profiles.store()).list();
  const named = new Set(
    profiles.flatMap(({ credential }) => {
      const source = credential ? secretSourceOf(credential) : undefined;
      return source?.from === "stored" ? [source.ref] : [];
    }),
  );
  const before = context.clock.now() - underWayMs;
  const stray = credentials.kept().filter(({ ref, writtenAt }) => !named.has(ref) && writtenAt < before);
  if (stray.length === 0) return [{ check, status: "ok", message: "every one belongs to a profile", next: null }];
  const what = stray.length === 1 ? "1 file holds a secret" : `${stray.length} files hold secrets`;
  return [
    {
      check,
      status: "warning",
      message: `${what} that no profile names, left by a crash: nothing uses it`,
      next: (await isWantedBack(context))
        ? "integ journal recover"
        : `rm ${stray.map(({ path }) => `'${path.replaceAll("'", "'\\''")}'`).join(" ")}`,
    },
  ];
}

/** Unfinished work whose secret was to become a profile's: recovery first says how it ends. */
async function isWantedBack(context: Context): Promise<boolean> {
  const journal = await context.journal();
  return (await journal.entries()).some(
    ({ state, destination }) => !isSettled(state) && destination?.kind === "profile",
  );
}
