// Checks the requests of `integ api`, which carry a credential, and sends them.
import { Failure, invalidValue } from "../errors.ts";
import type { Attempt } from "./call/attempt.ts";
import type { Caller, CallRequest } from "./call/caller.ts";
import { type Advice, flags, shortFlags } from "../next-step.ts";

export interface RawRequest {
  readonly method: CallRequest["method"];
  /** The path from /v1, /v1-reference or /api/v1 on, with the query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  readonly signal?: AbortSignal;
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Buffer;
}

export interface Raw {
  /** Accepts any 2xx status and any body. @throws Failure `usage` from `checkRaw` */
  send(request: RawRequest): Promise<Attempt<RawAnswer>>;
}

const methods: readonly string[] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

const ownHeaders = ["authorization", "cookie", "x-organization-id", "service-version", "user-agent"];
const headerHints: Readonly<Record<string, Advice>> = {
  authorization: `Choose a profile with ${shortFlags.profile} <name>.`,
  "x-organization-id": `Set it in the profile with ${flags.organizationId}.`,
  "service-version": `Use ${flags.serviceVersion} <date>.`,
};

/**
 * @returns the path's contract
 * @throws Failure `usage` for an unknown method, a path outside the API or that could be read as another path, a header
 * that `-H` may not set, and a client's creation without an idempotency key
 */
export function checkRaw({ method, path, headers = {} }: RawRequest): "v1" | "legacy" {
  if (!methods.includes(method)) throw invalidValue("method", method, { hint: `Choose one of ${methods.join(", ")}.` });
  const contract = contractOf(path);
  const names = Object.keys(headers).map((name) => name.toLowerCase());
  for (const name of names)
    if (ownHeaders.includes(name))
      throw new Failure("usage", `The header "${name}" cannot be given with -H.`, {
        hint: headerHints[name] ?? `Leave out -H '${name}: …'.`,
      });
  if (method === "POST" && createsClient(path) && !names.includes("idempotency-key"))
    throw new Failure(
      "usage",
      "Creating an OAuth client needs an idempotency key, and this command does not generate one.",
      {
        meaning: "Without a key that you keep, a lost response would leave a client that cannot be found again.",
        hint: "Use integ oauth-clients create, or add the header Idempotency-Key with -H.",
      },
    );
  return contract;
}

function contractOf(path: string): "v1" | "legacy" {
  const pathname = path.split("?", 1)[0]!;
  const match = /^\/(v1|v1-reference|api\/v1)(?=\/|$)/.exec(pathname);
  if (!match || !/^\/[\x21-\x7e]*$/.test(path) || path.includes("#"))
    throw invalidValue("path", path, {
      why: "it is not a path of the API",
      hint: "Start it with /v1, /v1-reference or /api/v1, and leave out spaces.",
    });
  const isAmbiguous =
    pathname.includes("//") ||
    pathname.includes("\\") ||
    // A proxy may decode these. The second alternative finds invalid escapes.
    /%(?:2e|2f|5c|25|[01][0-9a-f]|7f)|%(?![0-9a-f]{2})/i.test(pathname) ||
    pathname.split("/").some((part) => /^\.{1,2}(?:;|$)/.test(part));
  if (isAmbiguous)
    throw new Failure("usage", `"${path}" contains parts that could change where it leads.`, {
      hint: "Write the path plainly, without .., // or encoded dots and slashes.",
    });
  return match[1] === "api/v1" ? "legacy" : "v1";
}

/** True for any spelling of the path that creates OAuth clients, because the service may accept it. */
function createsClient(path: string): boolean {
  const pathname = path.split("?", 1)[0]!;
  const plain = pathname.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return /^\/v1\/oauth_clients\/?(?:;.*)?$/i.test(plain);
}

const success = Array.from({ length: 100 }, (_, index) => 200 + index);

export function createRaw(callers: { readonly v1: Caller; readonly legacy: Caller }): Raw {
  return {
    send: async (request) =>
      callers[checkRaw(request)].send({ ...request, success, page: true }, ({ status, headers, body }) => ({
        status,
        headers,
        body,
      })),
  };
}
