import {
  type Answer,
  type Call,
  type Handler,
  Problem,
  headerOf,
  invalidRequest,
  problemAnswer,
  problemOfStatus,
} from "./call.ts";
import { hashOf, legacyCaller, v1Caller } from "./credentials.ts";
import { type Route, routeOf } from "./routes.ts";
import type { Region, State } from "./state.ts";
import type { Store } from "./store.ts";

type Sent = Pick<Call, "method" | "path" | "query" | "headers" | "body" | "baseUrl" | "effects">;
export type ServiceRequest = Sent & { readonly requestId: string };

export interface ServiceSettings {
  readonly region: Region;
  readonly store: Store;
  readonly now: () => number;
}

/**
 * Refuses unknown and repeated query parameters by name (§4.3 rule 3).
 * @assumed also for parameters of single resources (§4.3 names list endpoints) and repeated parameters (§7 "not shown")
 */
function checkQuery(call: Call, route: Route): void {
  const seen = new Set<string>();
  for (const name of call.query.keys()) {
    if (!route.query?.includes(name)) throw invalidRequest(`The query parameter ${name} is not supported.`, name);
    if (seen.has(name)) throw invalidRequest(`The query parameter ${name} is given twice.`, name);
    seen.add(name);
  }
}

export class Service {
  readonly #settings: ServiceSettings;
  readonly #throttle = new Throttle(defaultRate);

  constructor(settings: ServiceSettings) {
    this.#settings = settings;
  }

  async answer(request: ServiceRequest): Promise<Answer> {
    try {
      return await this.#handle(request);
    } catch (error) {
      return problemAnswer(asProblem(error), request.requestId);
    }
  }

  async #handle(request: ServiceRequest): Promise<Answer> {
    const { route, parts } = routeOf(request.method, request.path);
    const run = await this.#prepared(route);
    const { store } = this.#settings;
    const call = this.#callOf(request, { state: await store.current(), parts });
    const changes = typeof route.changes === "function" ? route.changes(call) : route.changes;
    const answer = changes
      ? await store.change((state) => {
          const result = run(this.#callOf(request, { state, parts }));
          if (result instanceof Promise) throw new Error("A change of the state must be made in one step.");
          return result;
        })
      : await run(call);
    return answer instanceof Problem ? problemAnswer(answer, request.requestId) : answer;
  }

  /** Authenticates and runs the operation on the same state, so that no change comes between. */
  async #prepared(route: Route): Promise<(call: Call) => ReturnType<Handler<never>>> {
    const steps = <Caller>(authenticate: (call: Call) => Caller, handler: Handler<Caller>) => {
      return (call: Call) => {
        const caller = authenticate(call);
        this.#checkRate(call);
        checkQuery(call, route);
        return handler(call, caller);
      };
    };
    if (route.scheme === "v1") return steps(v1Caller, await route.open());
    if (route.scheme === "legacy") return steps(legacyCaller, await route.open());
    return steps(() => undefined, await route.open());
  }

  #checkRate(call: Call): void {
    const credential = hashOf(headerOf(call, "authorization") ?? "");
    const seconds = this.#throttle.take(credential, call.now);
    if (seconds === 0) return;
    const headers = { "Retry-After": String(seconds) };
    throw new Problem(429, "rate_limited", "Too many requests with this credential.", { headers });
  }

  #callOf(request: ServiceRequest, given: { state: State; parts: Record<string, string> }): Call {
    const { region, now } = this.#settings;
    return {
      ...request,
      region,
      parts: given.parts,
      contractVersions: given.state.contractVersions,
      settings: given.state.settings,
      here: given.state[region],
      now: now(),
    };
  }
}

function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const message = error instanceof Error ? error.message : String(error);
  const isDamagedState = error instanceof Error && "code" in error && error.code === "state_damaged";
  return problemOfStatus(isDamagedState ? 503 : 500, message);
}

export interface Rate {
  readonly capacity: number;
  readonly perSecond: number;
}

/** @assumed numeric limits (§8 "not shown"): a list at full speed stays below them; only a busy loop reaches them */
const defaultRate: Rate = { capacity: 5_000, perSecond: 10_000 };

const maxBuckets = 10_000;

export class Throttle {
  readonly #rate: Rate;
  readonly #buckets = new Map<string, { level: number; at: number }>();

  constructor(rate: Rate) {
    this.#rate = rate;
  }

  /** @returns seconds to wait; 0 if the request may pass */
  take(credential: string, now: number): number {
    const { capacity, perSecond } = this.#rate;
    const bucket = this.#buckets.get(credential) ?? { level: capacity, at: now };
    bucket.level = Math.min(capacity, bucket.level + (Math.max(0, now - bucket.at) / 1000) * perSecond);
    bucket.at = now;
    if (this.#buckets.size >= maxBuckets) this.#buckets.clear();
    this.#buckets.set(credential, bucket);
    if (bucket.level < 1) return Math.ceil((1 - bucket.level) / perSecond);
    bucket.level -= 1;
    return 0;
  }
}
