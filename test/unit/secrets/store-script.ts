// A store's server without a socket: the test lists the responses, and the server records the requests.
import type { Exchange, ExchangeRequest, Transport } from "../../../src/api/http/exchange.ts";
import type { StoreTools } from "../../../src/secrets/store.ts";

export interface Answer {
  readonly status: number;
  readonly body?: unknown;
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Responses by `METHOD /path`: each request gets the next one; the last one repeats. */
export type Answers = Readonly<Record<string, readonly (Answer | "lost")[]>>;

export interface Script {
  readonly tools: StoreTools;
  readonly requests: ExchangeRequest[];
  readonly lines: readonly string[];
  readonly bodies: readonly unknown[];
  readonly slept: readonly number[];
  readonly trusted: readonly (string | undefined)[];
}

export function scripted(answers: Answers, env: StoreTools["env"]): Script {
  const requests: ExchangeRequest[] = [];
  const lines: string[] = [];
  const bodies: unknown[] = [];
  const slept: number[] = [];
  const trusted: (string | undefined)[] = [];
  const exchange = async (request: ExchangeRequest): Promise<Exchange> => {
    const line = `${request.method} ${request.path}`;
    const planned = answers[line];
    if (planned === undefined) throw new Error(`the test lists no response for ${line}`);
    const before = lines.filter((one) => one === line).length;
    requests.push(request);
    lines.push(line);
    bodies.push(request.body === undefined ? undefined : JSON.parse(request.body.toString()));
    const answer = planned[Math.min(before, planned.length - 1)]!;
    if (answer === "lost") return { kind: "broken", sent: true, detail: "the connection was cut" } as Exchange;
    const text = answer.text ?? (answer.body === undefined ? "" : JSON.stringify(answer.body));
    return { kind: "response", status: answer.status, headers: answer.headers ?? {}, body: Buffer.from(text) };
  };
  const transport: Transport = { exchange, close: () => {} };
  return {
    tools: {
      env,
      http: async ({ ca }) => (trusted.push(ca), transport),
      sleep: async (ms) => void slept.push(ms),
    },
    requests,
    lines,
    bodies,
    slept,
    trusted,
  };
}
