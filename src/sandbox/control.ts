// Owns: the control address: faults, the log of requests, and changes of the world that the service has no operation for.
// Must not know: the rules of the service. Only whoever knows the address (it is in the state file) can use it.
import { cleanupOf, controlBodies, readControl } from "./control-bodies.ts";
import { controlPrefix, type Host } from "./host.ts";
import { type Answer, invalidRequest, notFound, Problem, problemAnswer } from "./problem.ts";
import { complete } from "./oauth-clients.ts";
import { randomName } from "./signing.ts";
import { type OAuthClientRecord, type RegionState, slotsHeld, type State } from "./state.ts";

export interface ControlRequest {
  readonly method: string;
  readonly url: string;
  readonly body: Buffer | Problem;
}

interface Order {
  readonly host: Host;
  readonly id: string;
  readonly body: unknown;
}

function json(body: unknown, status = 200): Answer {
  return { status, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
}

/** Answers one request to the control address. Never throws. */
export async function control(host: Host, asked: ControlRequest): Promise<Answer> {
  try {
    const path = asked.url.split("?")[0]!.slice(controlPrefix.length);
    const [token, noun = "", id = "", ...rest] = path.split("/").map(decodeURIComponent);
    const here = (await host.store.current())[host.region];
    if (token !== here.controlToken || rest.length > 0) throw notFound("This service has no such path.");
    const order = { host, id, body: parsed(asked.body) };
    if (noun === "") return atRoot(order, asked.method);
    if (asked.method === "GET" && id === "") return await tell(order, noun);
    if (asked.method === "POST") return json(await change(order, noun));
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

async function tell({ host }: Order, noun: string): Promise<Answer> {
  const here = (await host.store.current())[host.region];
  const now = host.now();
  if (noun === "oauth_clients") {
    const keyOf = (client: OAuthClientRecord) => here.receipts.find((receipt) => receipt.oauthClientId === client.id);
    return json(
      here.oauthClients.map((client) => ({
        ...clientFacts(client),
        idempotency_key: keyOf(client)?.idempotencyKey ?? null,
      })),
    );
  }
  if (noun === "service_accounts") {
    const slots = (id: string) => slotsHeld(here, { serviceAccountId: id, now });
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
  const thing = things.find((candidate) => candidate.id === id);
  if (!thing) throw notFound(`Nothing here has the id ${id}.`);
  return thing;
}

/** @assumed nothing disables or expires a client by itself (§3.1 «not shown»): it is done here */
function changeClient(here: RegionState, { order }: { order: Order }): unknown {
  const client = named(here.oauthClients, order.id);
  const { status, cleanup } = readControl(controlBodies.oauthClient, order.body);
  if (status === "active" && client.clientId === null) complete(client, order.host.region);
  if (status !== undefined) {
    client.status = status;
    if (status !== "pending") client.pending = null;
  }
  if (cleanup !== undefined) client.cleanup = cleanupOf(cleanup, order.host.now());
  return clientFacts(client);
}
