import { channel } from "node:diagnostics_channel";
import type { IncomingMessage, ServerResponse } from "node:http";
import { type Answer, Problem, type ServiceEffects, problemAnswer, problemOfStatus } from "./call.ts";
import { hashOf, randomName } from "./credentials.ts";
import { deliver, withContentFaults } from "./delivery.ts";
import { FaultPlan } from "./fault-plan.ts";
import type { FaultEffects } from "./fault.ts";
import { accessTokenPath } from "./routes.ts";
import { Service, type ServiceRequest, type ServiceSettings } from "./service.ts";
import type { Region } from "./state.ts";
import type { Store } from "./store.ts";
import { tokenPath } from "./token-endpoint.ts";

const maxBodyBytes = 1_048_576;
/** The host does not read more than this, even to discard it. */
const maxReadBytes = 64 * maxBodyBytes;
const maxLogged = 20_000;

export const controlPrefix = "/sandbox-control/";

/** Published before each response of the service as `{ request, response, faults }`, but not for a control address. */
const answers = channel("integ:sandbox:answer");

export interface LoggedRequest {
  readonly method: string;
  readonly path: string;
  /** Without Authorization, of which only the hash is logged. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly authorization_sha256: string | null;
  /** Null for token exchanges, whose bodies contain secrets. */
  readonly body: string | null;
  readonly body_sha256: string;
  readonly idempotency_key: string | null;
  readonly at: string;
  /** Null without a complete response. */
  status: number | null;
  request_id: string;
}

export interface ControlRequest {
  readonly method: string;
  readonly url: string;
  readonly body: Buffer | Problem;
}

export interface HostSettings extends ServiceSettings {
  readonly plan: FaultPlan;
  readonly control: (host: Host, request: ControlRequest) => Promise<Answer>;
  readonly log: ((line: string) => void) | undefined;
}

export class Host {
  readonly region: Region;
  readonly store: Store;
  readonly plan: FaultPlan;
  readonly now: () => number;
  requests: LoggedRequest[] = [];
  baseUrl = "";
  readonly #service: Service;
  readonly #control: HostSettings["control"];
  readonly #log: HostSettings["log"];

  constructor(settings: HostSettings) {
    this.region = settings.region;
    this.store = settings.store;
    this.plan = settings.plan;
    this.now = settings.now;
    this.#control = settings.control;
    this.#log = settings.log;
    this.#service = new Service(settings);
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const path = (request.url ?? "/").split("?")[0]!;
      if (path.startsWith(controlPrefix)) await this.#controlled(request, response);
      else await this.#exchange(request, response);
    } catch (error) {
      if (response.headersSent) response.destroy();
      else await this.#refuse(request, { response, error });
    }
  }

  async #refuse(request: IncomingMessage, given: { response: ServerResponse; error: unknown }): Promise<void> {
    const { response, error } = given;
    const problem = error instanceof Problem ? error : problemOfStatus(500, String(error));
    const requestId = randomName(`req_${this.region}_`);
    answers.publish({ request, response, faults: {} });
    await deliver(response, { answer: withRequestId(problemAnswer(problem, requestId), requestId), effects: {} });
  }

  async #controlled(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await bodyOf(request);
    const answer = await this.#control(this, { method: request.method ?? "", url: request.url ?? "", body });
    await deliver(response, { answer, effects: {} });
  }

  async #exchange(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const method = request.method ?? "";
    const [path, ...query] = (request.url ?? "/").split("?");
    const requestId = randomName(`req_${this.region}_`);
    const credential = hashOf(request.headers.authorization ?? "");
    const effects = withDefaultStatus(this.plan.applyTo({ method, path: path!, credential, now: this.now() }));
    const body = await bodyOf(request);
    const logged = this.#record(request, { path: path!, body, requestId });
    if (effects.latency) await new Promise((resolve) => setTimeout(resolve, effects.latency));
    if (effects.drop === "before") {
      response.destroy();
      this.#logLine(logged, "dropped before it was handled");
      return;
    }
    const search = new URLSearchParams(query.join("?"));
    const answer = await this.#answerOf(effects, {
      method,
      path: path!,
      query: search,
      headers: request.headers,
      body,
      baseUrl: this.baseUrl,
      effects: serviceEffectsOf(effects),
      requestId,
    });
    const sent = withRequestId(withContentFaults(answer, { effects, pageToken: search.get("page_token") }), requestId);
    if (effects.drop !== "after" && !effects.cut) logged.status = sent.status;
    answers.publish({ request, response, faults: effects });
    await deliver(response, { answer: sent, effects });
    this.#logLine(logged, logged.status === null ? `${sent.status}, lost on the way` : "");
  }

  async #answerOf(
    effects: FaultEffects,
    { body, ...request }: Omit<ServiceRequest, "body"> & { readonly body: Buffer | Problem },
  ): Promise<Answer> {
    const { requestId } = request;
    if (body instanceof Problem) return problemAnswer(body, requestId);
    const replaces = effects.status !== undefined || effects.redirect !== undefined;
    if (replaces && (effects.effect ?? "none") === "none") return faultAnswer(effects, { requestId, now: this.now() });
    const answer = await this.#service.answer({ ...request, body });
    return replaces ? faultAnswer(effects, { requestId, now: this.now() }) : answer;
  }

  #record(request: IncomingMessage, given: { path: string; body: Buffer | Problem; requestId: string }): LoggedRequest {
    const { authorization, ...headers } = request.headers;
    const text = given.body instanceof Problem ? "" : given.body.toString("utf8");
    const key = request.headers["idempotency-key"];
    const logged: LoggedRequest = {
      method: request.method ?? "",
      path: request.url ?? "",
      headers,
      authorization_sha256: authorization === undefined ? null : hashOf(authorization),
      body: given.path === tokenPath || given.path === accessTokenPath ? null : text,
      body_sha256: hashOf(text),
      idempotency_key: typeof key === "string" ? key : null,
      at: new Date(this.now()).toISOString(),
      status: null,
      request_id: given.requestId,
    };
    if (this.requests.length >= maxLogged) this.requests.shift();
    this.requests.push(logged);
    return logged;
  }

  #logLine(logged: LoggedRequest, note: string): void {
    // Escaped, because a terminal may show the line.
    const path = JSON.stringify(logged.path)
      .slice(1, -1)
      .replaceAll(/[^ -~]/g, "?");
    this.#log?.(
      `${this.region} ${logged.method} ${path} ${logged.status ?? "-"} ${logged.request_id}${note && ` (${note})`}`,
    );
  }
}

function withRequestId(answer: Answer, requestId: string): Answer {
  return { ...answer, headers: { ...answer.headers, "Request-Id": requestId } };
}

function withDefaultStatus(effects: FaultEffects): FaultEffects {
  if (effects.status !== undefined || effects.redirect !== undefined) return effects;
  if (effects["retry-after"] !== undefined) return { ...effects, status: 429 };
  const isOutcomeUncertain = effects.effect === "abandoned" || effects.effect === "uncertain";
  return isOutcomeUncertain ? { ...effects, status: 503 } : effects;
}

function serviceEffectsOf(effects: FaultEffects): ServiceEffects {
  const { pending, secret, effect, cleanup, lifetime, rows } = effects;
  return { pending, secret, effect, cleanup, lifetime, rows, clientId: effects["client-id"] };
}

function retryAfterText(given: string, now: number): string {
  const match = /^date(?:\+([0-9]{1,9}))?$/.exec(given);
  return match ? new Date(now + Number(match[1] ?? 1) * 1000).toUTCString() : given;
}

function faultAnswer(effects: FaultEffects, given: { requestId: string; now: number }): Answer {
  const status = effects.status ?? 307;
  const retryAfter = effects["retry-after"];
  const headers = {
    ...(retryAfter === undefined ? {} : { "Retry-After": retryAfterText(retryAfter, given.now) }),
    ...(effects.redirect === undefined ? {} : { Location: effects.redirect }),
  };
  const answer = problemAnswer(problemOfStatus(status, "A fault of the sandbox made this response."), given.requestId);
  return { ...answer, headers: { ...answer.headers, ...headers } };
}

/** Reads and discards the rest of a body that is too large, so that the client gets the response. */
async function bodyOf(request: IncomingMessage): Promise<Buffer | Problem> {
  const { "content-length": length, "transfer-encoding": encoding } = request.headers;
  if (length === undefined && encoding === undefined) return Buffer.alloc(0);
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    size += piece.length;
    if (size <= maxBodyBytes) pieces.push(piece);
    if (size > maxReadBytes) throw new Error("The request's body has no end.");
  }
  if (size <= maxBodyBytes) return Buffer.concat(pieces);
  return new Problem(413, "request_too_large", `The body is larger than ${maxBodyBytes} bytes.`);
}
