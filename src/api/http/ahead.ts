// A request that leaves before it is asked for. A list asks for thousands of pages, each known from the one before it: from the
// last byte of a response to the next request is a way through a dozen promises, which the service need not wait for.
import type { Exchange, ExchangeRequest, NextRequest, Response, Sent, SentAhead } from "./exchange.ts";
import { saysJson } from "../json/json-body.ts";
import { withoutEchoes } from "./redaction.ts";
import { checkWireRequest } from "./request-rules.ts";

/** The request of one walk that has left, at most one, until it is asked for. @typeParam T what `read` makes of a response */
export class Ahead<T> implements SentAhead {
  #sent: Sent | undefined;

  get isUnderway(): boolean {
    return this.#sent !== undefined;
  }

  after({ next, method, headers }: ExchangeRequest, end: Exchange): NextRequest | undefined {
    // Its own response: what follows that is known when someone wants it.
    if (this.#sent !== undefined) return undefined;
    if (!isUsual(end)) return undefined;
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

  /**
   * Waits for what is under way, past all that lies between a caller and the connection: it has nothing to say of a usual
   * response.
   * @returns nothing if there is nothing under way, or another response came of it: it is there for a caller that asks
   */
  async usual(): Promise<T | undefined> {
    const sent = this.#sent;
    if (sent === undefined) return undefined;
    // The one behind it may leave when it has come.
    this.#sent = undefined;
    const end = await sent.exchange;
    if (isUsual(end)) {
      const { request } = sent;
      const read = request.next?.read?.(withoutEchoes(request, end) as Response);
      if (read !== undefined) return read as T;
    }
    this.#sent ??= sent;
    return undefined;
  }

  #end(): undefined {
    this.#sent?.reception.break({ reason: "interrupted", detail: "another request was made" });
    this.#sent = undefined;
  }
}

/** The caller will not refuse it. */
function isUsual(end: Exchange): end is Response {
  if (end.kind !== "response") return false;
  const { status, headers } = end;
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
