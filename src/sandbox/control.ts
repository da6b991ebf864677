import * as z from "zod/mini";
import { type Answer, Problem, invalidRequest, jsonAnswer, notFound, problemAnswer } from "./call.ts";
import { randomName } from "./credentials.ts";
import { type ControlRequest, type Host, controlPrefix } from "./host.ts";
import { complete } from "./oauth-clients.ts";
import { byId, type OAuthClientRecord, type RegionState, type State, clientStatuses, usedSlots } from "./state.ts";

const time = z.optional(z.nullable(z.int()));

/** Times are milliseconds since 1970. An omitted field keeps its value. */
export const controlBodies = {
  fault: z.strictObject({ fault: z.string() }),
  oauthClient: z.strictObject({
    status: z.optional(z.enum(clientStatuses)),
    cleanup: z.optional(z.enum(["open", "confirmed"])),
  }),
  serviceAccount: z.strictObject({
    status: z.optional(z.enum(["active", "disabled"])),
    permissions: z.optional(z.array(z.string())),
    assignedVersion: z.optional(z.string()),
  }),
  organization: z.strictObject({ oauth_enabled: z.boolean() }),
  apiKey: z.strictObject({
    status: z.optional(z.enum(["active", "revoked", "disabled"])),
    scopes: z.optional(z.nullable(z.array(z.string()))),
    expiresAt: time,
  }),
  accessKey: z.strictObject({
    status: z.optional(z.enum(["active", "revoked"])),
    createdAt: z.optional(z.int()),
    lastUsedAt: time,
    expiresAt: time,
  }),
  contractVersion: z.strictObject({ version: z.string().check(z.regex(/^[0-9]{4}-[0-9]{2}-[0-9]{2}$/)) }),
};

export function readControl<Schema extends z.ZodMiniType>(schema: Schema, body: unknown): z.output<Schema> {
  const read = schema.safeParse(body);
  if (read.success) return read.data;
  const issue = read.error.issues[0]!;
  throw invalidRequest(`${issue.path.join(".") || "The body"}: ${issue.message}`);
}

interface Order {
  readonly host: Host;
  readonly id: string;
  readonly body: unknown;
}

const json = (body: unknown, status = 200): Answer => jsonAnswer(status, body);

export async function control(host: Host, request: ControlRequest): Promise<Answer> {
  try {
    const path = request.url.split("?")[0]!.slice(controlPrefix.length);
    const [token, noun = "", id = "", ...rest] = path.split("/").map(decodeURIComponent);
    const here = (await host.store.current())[host.region];
    if (token !== here.controlToken || rest.length > 0) throw notFound("This service has no such path.");
    const order = { host, id, body: parsed(request.body) };
    if (noun === "") return atRoot(order, request.method);
    if (request.method === "GET" && id === "") return await list(order, noun);
    if (request.method === "POST") return json(await change(order, noun));
    throw new Problem(405, "method_not_allowed", "The control address takes GET, POST and DELETE.");
  } catch (error) {
    const problem = error instanceof Problem ? error : invalidRequest(error instanceof Error ? error.message : "");
    return problemAnswer(problem, randomName("req_control_"));
  }
}

function parsed(body: Buffer | Problem): unknown {
  if (body instanceof Problem) throw body;
  return body.length === 0 ? {} : JSON.parse(body.toString("utf8"));
}

function atRoot({ host, body }: Order, method: string): Answer {
  if (method === "GET") return json({ object: "control", faults: host.plan.list(), requests: host.requests });
  if (method === "POST") {
    host.plan.add(readControl(controlBodies.fault, body).fault);
    return json({ object: "control", faults: host.plan.list() }, 201);
  }
  if (method !== "DELETE")
    throw new Problem(405, "method_not_allowed", "The control address takes GET, POST and DELETE.");
  host.plan.clear();
  host.requests = [];
  return json({ object: "control", faults: [] });
}

async function list({ host }: Order, noun: string): Promise<Answer> {
  const here = (await host.store.current())[host.region];
  const now = host.now();
  if (noun === "oauth_clients") {
    const keyOf = (client: OAuthClientRecord) => here.receipts.find(({ oauthClientId }) => oauthClientId === client.id);
    return json(
      here.oauthClients.map((client) => ({
        ...clientFacts(client),
        idempotency_key: keyOf(client)?.idempotencyKey ?? null,
      })),
    );
  }
  if (noun === "service_accounts") {
    const slots = (id: string) => usedSlots(here, { serviceAccountId: id, now });
    return json(here.serviceAccounts.map((account) => ({ ...account, slots: slots(account.id) })));
  }
  if (noun === "access_keys") return json(here.accessKeys.map(({ secretHash: _hash, ...facts }) => facts));
  if (noun === "api_keys") return json(here.apiKeys.map(({ keyHash: _hash, ...facts }) => facts));
  throw notFound("The control address knows oauth_clients, access_keys, service_accounts and api_keys.");
}

function clientFacts(client: OAuthClientRecord): Record<string, unknown> {
  const { secretHash: _hash, serviceAccountId, clientId, createdAt, ...facts } = client;
  return { ...facts, service_account_id: serviceAccountId, client_id: clientId, created_at: createdAt };
}

const changes: Readonly<Record<string, (here: RegionState, given: { order: Order; state: State }) => unknown>> = {
  oauth_clients: changeClient,
  service_accounts: (here, { order }) => {
    const account = named(here.serviceAccounts, order.id);
    return Object.assign(account, readControl(controlBodies.serviceAccount, order.body));
  },
  organization: (here, { order }) => {
    here.oauthEnabled = readControl(controlBodies.organization, order.body).oauth_enabled;
    return { oauth_enabled: here.oauthEnabled };
  },
  api_keys: (here, { order }) => {
    const { keyHash: _hash, ...facts } = Object.assign(
      named(here.apiKeys, order.id),
      readControl(controlBodies.apiKey, order.body),
    );
    return facts;
  },
  access_keys: (here, { order }) => {
    const key = named(here.accessKeys, order.id);
    const { secretHash: _hash, ...facts } = Object.assign(key, readControl(controlBodies.accessKey, order.body));
    return facts;
  },
  contract_versions: (_here, { order, state }) => {
    const { version } = readControl(controlBodies.contractVersion, order.body);
    if (!state.contractVersions.includes(version)) state.contractVersions.push(version);
    return { contract_versions: state.contractVersions };
  },
};

async function change(order: Order, noun: string): Promise<unknown> {
  const work = Object.hasOwn(changes, noun) ? changes[noun] : undefined;
  if (!work) throw notFound(`The control address changes ${Object.keys(changes).join(", ")}.`);
  return await order.host.store.change((state) => work(state[order.host.region], { order, state }));
}

function named<Thing extends { readonly id: string }>(things: readonly Thing[], id: string): Thing {
  const thing = byId(things, id);
  if (!thing) throw notFound(`Nothing here has the id ${id}.`);
  return thing;
}

/** @assumed only this control request makes a client disabled or expired (§3.1 "not shown") */
function changeClient(here: RegionState, { order }: { order: Order }): unknown {
  const client = named(here.oauthClients, order.id);
  const { status, cleanup } = readControl(controlBodies.oauthClient, order.body);
  if (status === "active" && client.secretHash === null) complete(client, order.host.region);
  if (status !== undefined) {
    client.status = status;
    if (status !== "pending") client.pending = null;
  }
  if (cleanup !== undefined) client.cleanup = cleanup === "open" ? "open" : order.host.now();
  return clientFacts(client);
}
