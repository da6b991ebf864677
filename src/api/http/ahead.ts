// A request that leaves before it is asked for. A list asks for thousands of pages, each known from the one before it: from the
// last byte of a response to the next request is a way through a dozen promises, which the service need not wait for.
import type { Exchange, ExchangeRequest, NextRequest, Sent, SentAhead } from "./exchange.ts";
import { saysJson } from "../json/json-body.ts";
import { checkWireRequest } from "./request-rules.ts";

/** The request of one walk that has left, at most one, until it is asked for. */
export class Ahead implements SentAhead {
  #sent: Sent | undefined;

  get isUnderway(): boolean {
    return this.#sent !== undefined;
  }

  after({ next, method, headers }: ExchangeRequest, end: Exchange): NextRequest | undefined {
    // Its own response: what follows that is known when someone wants it.
    if (this.#sent !== undefined) return undefined;
    if (end.kind !== "response" || !isUsual(end)) return undefined;
    try {
      const following = next?.of(end.body);
      if (following) checkWireRequest({ method, headers, path: following.path });
      return following;
    } catch {
      // It is asked for, and says why it cannot be sent.
      return undefined;
    }
  }

  sent(sent: Sent): void {
    this.#sent = sent;
  }

  take(request: ExchangeRequest, target: object): Promise<Exchange> | undefined {
    const sent = this.#sent;
    if (sent === undefined) return undefined;
    if (target !== sent.target || !leadsTo(sent, request)) return this.#end();
    this.#sent = undefined;
    return sent.exchange;
  }

  #end(): undefined {
    this.#sent?.reception.break({ reason: "interrupted", detail: "another request was made" });
    this.#sent = undefined;
  }
}

/** The caller will not refuse it. */
function isUsual({ status, headers }: Extract<Exchange, { kind: "response" }>): boolean {
  return status === 200 && headers["content-encoding"] === undefined && saysJson(headers["content-type"]);
}

function leadsTo({ request, path, buffer }: Sent, asked: ExchangeRequest): boolean {
  return (
    asked.path === path &&
    asked.buffer === buffer &&
    asked.headers === request.headers &&
    asked.method === request.method &&
    asked.baseUrl === request.baseUrl &&
    asked.signal === request.signal &&
    asked.maxBytes === request.maxBytes
  );
}
