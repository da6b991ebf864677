// Checks of `integ doctor` that send requests, without retries.
import { readAccessKey } from "../../api/access-keys.ts";
import { codeWords, failureOf, type Answered, type Attempt } from "../../api/call/attempt.ts";
import type { IssuerDifference } from "../../api/auth/token-exchange.ts";
import { compareContract } from "../../api/contract.ts";
import { Failure, isInterruption } from "../../errors.ts";
import type { Entry } from "../../journal/entry.ts";
import { type ActiveProfile, commandForCredential } from "../../profiles/profile.ts";
import { sandboxRegions } from "../../profiles/resolution.ts";
import { type Check, type Diagnosis, ok, problem, type Subject, warning } from "./diagnosis.ts";
import { KnownClients } from "../oauth-clients/clients.ts";
import { ownershipIn } from "../keys/own-key.ts";
import { serviceNow } from "../running/read.ts";
import { entriesOfProfile } from "../running/change.ts";
import { type Advice, type NextCommand, type NextStep, shell, settingOf } from "../../next-step.ts";

export const serviceChecks: readonly Check[] = [
  { name: "service", run: checkService },
  { name: "permissions", needs: "credential", run: checkPermissions },
  { name: "legacy contract", needs: "credential", run: checkLegacy },
  { name: "token endpoint", run: checkTokenEndpoint },
  { name: "issuer", run: checkIssuer },
  { name: "contract", needs: "address", run: checkContract },
];

/** With a larger difference between the clocks, a valid token can look expired. */
const skewLimitMs = 60_000;

async function assertAnswered<T>(subject: Subject, what: string, attempt: Attempt<T>): Promise<Answered<T>> {
  if (attempt.kind === "answered") return attempt;
  const step = await remedyOf(subject, attempt);
  const failure = failureOf(attempt, { what, change: false, step });
  throw step === undefined
    ? failure
    : new Failure(failure.kind, failure.message, {
        ...failure.details,
        nextCommand: undefined,
        hint: undefined,
        ...step,
      });
}

async function remedyOf(subject: Subject, attempt: Exclude<Attempt<unknown>, Answered<unknown>>) {
  if (attempt.kind === "refused")
    return attempt.status === 401 ? newCredential(subject) : attempt.status === 429 ? undefined : addressStep(subject);
  if (attempt.kind === "not_sent" && attempt.failure !== undefined)
    return attempt.failure.details.problem === undefined
      ? undefined
      : { hint: attempt.failure.details.hint, ...(await newCredential(subject)) };
  return attempt.reason === "proxy" || attempt.reason === "tls" ? undefined : addressStep(subject);
}

/** The environment's profile cannot be shown later: it exists only while INTEG_BASE_URL is set. */
function commandToShow(name: string): NextCommand | undefined {
  return name === "env" ? undefined : shell`integ profiles show ${name}`;
}

async function addressStep(subject: Subject): Promise<NextStep> {
  const { name } = await subject.profile();
  return name === "env"
    ? { hint: "Check INTEG_BASE_URL and INTEG_REGION." }
    : { hint: "Check the address and the region.", nextCommand: commandToShow(name) };
}

async function newCredential({ context, profile }: Subject): Promise<NextStep> {
  const { name, region, oauth } = await profile();
  if (sandboxRegions.has(name)) return { nextCommand: shell`integ sandbox reset` };
  const stored = (await context.profiles.store()).get(name);
  if (stored !== undefined) return { nextCommand: commandForCredential(stored) };
  const variables = oauth === undefined ? "INTEG_API_KEY" : "INTEG_API_KEY or INTEG_CLIENT_ID and INTEG_CLIENT_SECRET";
  return { hint: `Set ${variables} to a credential of region ${region}.` };
}

/** A 403 response shows that the credential is valid and lacks only the permission. */
async function checkService(subject: Subject): Promise<Diagnosis[]> {
  const { clock } = subject.context;
  const service = await subject.service();
  const began = clock.elapsed();
  const attempt = await service.raw.send({ method: "GET", path: "/v1/entities?limit=1" });
  const durationMs = Math.round(clock.elapsed() - began);
  if (!isForbidden(attempt)) await assertAnswered(subject, "list entities", attempt);
  const reached = [ok("service", `reached, credential accepted (${durationMs} ms)`)];
  const date = attempt.kind === "answered" ? Date.parse(attempt.value.headers.date ?? "") : Number.NaN;
  if (Number.isNaN(date)) return reached;
  const skewMs = Math.abs(date - clock.now());
  const message = `differs by ${Math.round(skewMs / 1000)} s from the service's`;
  return [
    ...reached,
    skewMs <= skewLimitMs
      ? ok("clock", "agrees with the service's")
      : warning("clock", message, { hint: "Set this machine's clock." }),
  ];
}

/**
 * A made-up client id, for checks without a known client.
 * @assumed The service checks the permission before it looks up the client (§7 does not say): 403 means a missing permission, and
 * 404 that only the made-up client is unknown. An organization without OAuth access gets 404 too (§4.2).
 */
const madeUpId = "integ-doctor-no-such-client";

interface Permission {
  readonly name: string;
  readonly for: string;
  readonly operationPrefix?: string;
  readonly request: (subject: Subject) => Promise<Attempt<unknown>>;
}

/** The permissions that §4.2 rule 4 and §4.3 name. */
const permissions: readonly Permission[] = [
  {
    name: "entity:read",
    for: "entities and cohorts",
    request: async ({ service }) => (await service()).raw.send({ method: "GET", path: "/v1/entities?limit=1" }),
  },
  {
    name: "service_account:manage",
    for: "OAuth clients",
    operationPrefix: "oauth_client.",
    request: async (subject) => (await subject.service()).oauthClients.get((await knownClient(subject)) ?? madeUpId),
  },
];

/** A missing permission is a problem if an entry of the profile needs it, or if all permissions are missing. */
async function checkPermissions(subject: Subject): Promise<Diagnosis[]> {
  const attempts = await Promise.all(
    permissions.map(async (permission) => ({ permission, attempt: await permission.request(subject) })),
  );
  const missing = attempts.filter(({ attempt }) => isForbidden(attempt));
  const rows: Diagnosis[] = [];
  for (const { permission, attempt } of attempts) {
    const check = `permission ${permission.name}`;
    if (isForbidden(attempt)) {
      const isNeeded = missing.length === attempts.length || (await hasEntries(subject, permission.operationPrefix));
      const step: NextStep = {
        hint: `Give ${permission.name} to the credential's service account.`,
        nextCommand: commandToShow((await subject.profile()).name),
      };
      rows.push(
        (isNeeded ? problem : warning)(check, `missing: this credential has no access to ${permission.for}`, step),
      );
      continue;
    }
    const isUnknownId = attempt.kind === "refused" && attempt.status === 404;
    if (!isUnknownId) await assertAnswered(subject, `check ${permission.name}`, attempt);
    rows.push(isUnknownId ? await notFoundDiagnosis(subject, check) : ok(check, "granted"));
  }
  return rows;
}

async function knownClient(subject: Subject): Promise<string | undefined> {
  const clients = new KnownClients((await subject.profile()).baseUrl);
  for await (const entry of entriesOf(subject, "oauth_client.")) clients.add(entry);
  return [...clients.all()].find(({ status }) => status !== "revoked")?.id;
}

/** A 404 may mean an unknown client or no OAuth access (§7). */
async function notFoundDiagnosis(subject: Subject, check: string): Promise<Diagnosis> {
  const id = await knownClient(subject);
  if (id !== undefined)
    return warning(check, `not known: the service does not find client ${id} of the journal (404)`, {
      hint: "Check that OAuth access is enabled for the organization, and the profile's region.",
    });
  // With client credentials, a token was fetched, so OAuth access is enabled.
  const { kind } = await (await subject.profile()).credential();
  if (kind === "client_credentials") return ok(check, "not refused (a request for a made-up client got 404)");
  return ok(check, "not refused (404 for a made-up client id); it is not known whether OAuth access is enabled");
}

function isForbidden(attempt: Attempt<unknown>): boolean {
  return attempt.kind === "refused" && attempt.status === 403;
}

async function hasEntries(subject: Subject, operationPrefix: string | undefined): Promise<boolean> {
  if (operationPrefix === undefined) return false;
  for await (const _ of entriesOf(subject, operationPrefix)) return true;
  return false;
}

async function* entriesOf({ context, profile }: Subject, operationPrefix: string): AsyncGenerator<Entry> {
  const { name, baseUrl } = await profile();
  const own = await entriesOfProfile(context, name);
  for await (const entry of (await context.journal()).each({ ...own, all: true }))
    if (entry.operation.startsWith(operationPrefix) && entry.base_url === baseUrl) yield entry;
}

/** The token exchange, the bearer token and the organization id can only be checked together (§4.4, §5.3). */
async function checkLegacy(subject: Subject): Promise<Diagnosis[]> {
  const profile = await subject.profile();
  // The profile check reports a missing organization id.
  if (profile.organizationId === undefined) return [];
  const check = "legacy contract";
  try {
    await profile.legacy();
  } catch (error) {
    if (!(error instanceof Failure) || isInterruption(error) || (await isLegacySetUp(subject))) throw error;
    return [warning(check, "not set up: keys and people cannot be used", error.details)];
  }
  const attempt = await (await subject.service()).accessKeys.list();
  if (attempt.kind === "refused" && attempt.status !== 429) return [legacyRefusal(profile, attempt.status)];
  const { value } = await assertAnswered(subject, "list access keys", attempt);
  const { rows } = value;
  const { keyId, name } = profile;
  const stored = (await subject.context.profiles.store()).get(name);
  if (keyId !== undefined && !rows.some(({ value }) => readAccessKey(value).id === keyId)) {
    const message = `the profile's key id ${keyId} is not the id of a key of the organization`;
    return [warning(check, message, settingOf(name, "--api-key-id"))];
  }
  const accepted = ok(check, "bearer token and organization id accepted");
  if (keyId !== undefined || stored?.credential?.kind !== "api_key") return [accepted];
  const ownership = ownershipIn({ rows: value, now: serviceNow(subject.context, await subject.service()) });
  const own = rows.map((row) => readAccessKey(row.value).id).find((id) => id !== undefined && ownership(id) === "own");
  const message = "not known: integ cannot rotate the profile's own key, and asks for --yes if a key may be that one";
  const step = own !== undefined && { nextCommand: shell`integ profiles edit ${name} --api-key-id ${own}` };
  return [accepted, warning("key id", message, step || settingOf(name, "--api-key-id"))];
}

async function isLegacySetUp({ context, profile }: Subject): Promise<boolean> {
  const { name } = await profile();
  return (await context.profiles.store()).get(name)?.legacy !== undefined;
}

function legacyRefusal({ name }: ActiveProfile, status: number): Diagnosis {
  const isToken = status === 401;
  const isStored = name !== "env";
  const organization: Advice = isStored
    ? `Check that the key's scope is *, and --organization-id of profile ${name}.`
    : "Check that the key's scope is *, and INTEG_ORGANIZATION_ID.";
  const token: NextStep = isStored ? settingOf(name, "--access-token-command") : { hint: "Set INTEG_ACCESS_TOKEN." };
  return problem(
    "legacy contract",
    isToken
      ? "the bearer token is not accepted (401)"
      : `refused (${status}): the organization id or the key's scope may be wrong`,
    isToken ? token : { hint: organization, nextCommand: commandToShow(name) },
  );
}

/**
 * With an API key, integ sends made-up client credentials: a token endpoint refuses them with 400 or 401 (RFC 6749
 * §5.2).
 */
async function checkTokenEndpoint(subject: Subject): Promise<Diagnosis[]> {
  const { name, oauth, ...profile } = await subject.profile();
  if (oauth === undefined) return [];
  const check = "token endpoint";
  const credential = await profile.credential();
  const own = credential.kind === "client_credentials" ? credential : undefined;
  const service = await subject.service();
  const attempt = await service.tokens.exchangeClient({
    ...(own ?? { clientId: madeUpId, clientSecret: madeUpId }),
  });
  const isRefused = attempt?.kind === "refused" && (attempt.status === 400 || attempt.status === 401);
  if (own === undefined && isRefused) return [ok(check, "responds as a token endpoint")];
  if (own !== undefined && isRefused) {
    const message = `it refuses the profile's client (${attempt.status}${codeWords(attempt.problem)})`;
    return [problem(check, message, await newCredential(subject))];
  }
  if (attempt?.kind === "refused" && attempt.status !== 429)
    return [
      problem(
        check,
        `the response there is not from a token endpoint (${attempt.status})`,
        name === "env" ? { hint: "Check INTEG_TOKEN_ENDPOINT." } : settingOf(name, "--token-endpoint"),
      ),
    ];
  if (attempt !== undefined) await assertAnswered(subject, "get an OAuth access token", attempt);
  return [ok(check, "gives a token")];
}

async function checkIssuer(subject: Subject): Promise<Diagnosis[]> {
  const { name } = await subject.profile();
  const attempt = await (await subject.service()).tokens.compareIssuer();
  if (attempt === undefined) return [];
  if (attempt.kind === "refused" && attempt.status === 404) {
    const hint = "Ask the administrator of your OAuth setup whether the token endpoint is right.";
    return [warning("issuer", "it publishes no metadata: its token endpoint cannot be checked", { hint })];
  }
  const { value } = await assertAnswered(subject, "get the issuer's metadata", attempt);
  if (value.length === 0) return [ok("issuer", "confirms the token endpoint")];
  return value.map((difference) => issuerDiagnosis(difference, name));
}

function issuerDiagnosis(difference: IssuerDifference, name: string): Diagnosis {
  const { kind, published } = difference;
  if (kind === "token_endpoint")
    return problem("issuer", `its token endpoint is ${published ?? "not published"}, not the profile's`, {
      hint: "Ask the administrator of your OAuth setup, then correct --token-endpoint of the profile.",
      nextCommand: commandToShow(name),
    });
  const message = `its token endpoint takes ${published.join(", ")}, not the profile's client authentication`;
  return problem("issuer", message, settingOf(name, "--client-auth"));
}

async function checkContract(subject: Subject): Promise<Diagnosis[]> {
  const attempt = await (await subject.service()).contract.published();
  const { value } = await assertAnswered(subject, "get the published contract", attempt);
  const drifts = compareContract(value).filter((finding) => finding.severity === "drift");
  if (drifts.length === 0) return [ok("contract", "the published contract is what integ supports")];
  const message = `it differs in ${drifts.length === 1 ? "1 place" : `${drifts.length} places`} from what integ supports`;
  return [problem("contract", message, { nextCommand: shell`integ spec check` })];
}
