// Owns: the way of one request through the service of one region: route, credential, rate, query, operation, answer.
// Must not know: sockets, faults on the wire.
import { codeOf } from "./failure-code.ts";
import { type Call, type Handler, headerOf, type Wishes } from "./call.ts";
import { legacyCaller, v1Caller } from "./credentials.ts";
import { type Answer, invalidRequest, Problem, problemAnswer, problemOfStatus } from "./problem.ts";
import { type Route, routeOf } from "./routes.ts";
import { hashOf } from "./signing.ts";
import type { Region, State } from "./state.ts";
import type { Store } from "./store.ts";
import { everydayRate, Throttle } from "./throttle.ts";

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Call["headers"];
  readonly body: Buffer;
  readonly baseUrl: string;
  readonly wishes: Wishes;
  readonly requestId: string;
}

export interface ServiceSettings {
  readonly region: Region;
  readonly store: Store;
  readonly now: () => number;
}

/** An unknown or repeated query parameter is refused by its name (§4.3 rule 3). */
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
  readonly #throttle = new Throttle(everydayRate);

  constructor(settings: ServiceSettings) {
    this.#settings = settings;
  }

  /** The service's answer. Never throws: what is refused, and what breaks inside, is an error object. */
  async answer(asked: Asked): Promise<Answer> {
    try {
      return await this.#handle(asked);
    } catch (error) {
      return problemAnswer(asProblem(error), asked.requestId);
    }
  }

  async #handle(asked: Asked): Promise<Answer> {
    const { route, parts } = routeOf(asked.method, asked.path);
    const run = await this.#prepared(route);
    const { store } = this.#settings;
    const call = this.#callOf(asked, { state: await store.current(), parts });
    const changes = typeof route.changes === "function" ? route.changes(call) : route.changes;
    if (!changes) return await run(call);
    return await store.change((state) => {
      const answer = run(this.#callOf(asked, { state, parts }));
      if (answer instanceof Promise) throw new Error("A change of the state must be made at once.");
      return answer;
    });
  }

  /** The operation with everything before it that must see the same state: credential, rate, query. */
  async #prepared(route: Route): Promise<(call: Call) => Answer | Promise<Answer>> {
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

  #callOf(asked: Asked, found: { state: State; parts: Record<string, string> }): Call {
    const { region, now } = this.#settings;
    const { method, path, query, headers, body, baseUrl, wishes } = asked;
    return {
      method,
      path,
      query,
      headers,
      body,
      baseUrl,
      wishes,
      region,
      parts: found.parts,
      contractVersions: found.state.contractVersions,
      settings: found.state.settings,
      here: found.state[region],
      now: now(),
    };
  }
}

function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const message = error instanceof Error ? error.message : String(error);
  const isOurs = codeOf(error) === "state_damaged";
  return problemOfStatus(isOurs ? 503 : 500, message);
}
