import { routes } from "./routes.ts";

const unitsMs = new Map(Object.entries({ ms: 1, s: 1000, m: 60_000, h: 3_600_000 }));

/** `500ms`, `2s` or `1m`; a bare number is seconds. @returns milliseconds */
function duration(text: string): number | undefined {
  const match = /^([0-9]{1,7}(?:\.[0-9]{1,3})?)(ms|s|m|h)?$/.exec(text);
  if (!match) return undefined;
  return Number(match[1]) * unitsMs.get(match[2] ?? "s")!;
}

function whole(least: number, most: number): (text: string) => number | undefined {
  return (text) => {
    const value = /^[0-9]{1,12}$/.test(text) ? Number(text) : -1;
    return value >= least && value <= most ? value : undefined;
  };
}

function oneOf<const Word extends string>(...words: readonly Word[]): (text: string) => Word | undefined {
  return (text) => words.find((word) => word === text);
}

function probability(text: string): number | undefined {
  const value = /^[0-9]*\.?[0-9]+$/.test(text) ? Number(text) : -1;
  return value >= 0 && value <= 1 ? value : undefined;
}

function headerText(text: string): string | undefined {
  return /^[\x20-\x7E]{1,2000}$/.test(text) ? text : undefined;
}

/** `100`: bytes of the body; `wire:100`: bytes of the response with its head. */
function cut(text: string): { of: "body" | "wire"; bytes: number } | undefined {
  const match = /^(wire:)?([0-9]{1,9})$/.exec(text);
  return match ? { of: match[1] ? "wire" : "body", bytes: Number(match[2]) } : undefined;
}

/** `5/1s`: a burst of five requests, then five per second. */
function rate(text: string): { capacity: number; perSecond: number } | undefined {
  const [count, per] = text.split("/");
  const capacity = whole(1, 1_000_000)(count!);
  const perMs = duration(per ?? "1s");
  return capacity && perMs ? { capacity, perSecond: capacity / (perMs / 1000) } : undefined;
}

function cleanup(text: string): number | "open" | undefined {
  return text === "open" ? "open" : duration(text);
}

export const documentChanges = [
  "extra-field",
  "extra-operation",
  "no-field",
  "no-operation",
  "no-scheme",
  "other-type",
  "other-stage",
  "other-version",
] as const;

export const faultKeys = {
  times: { read: whole(1, 1_000_000_000), grammar: "<n>", meaning: "affects only the first n requests" },
  after: { read: whole(0, 1_000_000_000), grammar: "<n>", meaning: "lets the first n matching requests pass" },
  probability: { read: probability, grammar: "<0..1>", meaning: "affects a matching request with this probability" },
  status: { read: whole(200, 599), grammar: "<200..599>", meaning: "responds with this status and an error object" },
  "retry-after": {
    read: headerText,
    grammar: "<seconds>|date|date+<seconds>|<text>",
    meaning: "sends Retry-After: seconds, an HTTP date that many seconds ahead, or any text unchanged",
  },
  latency: { read: duration, grammar: "<duration>", meaning: "waits before the request is handled" },
  drop: {
    read: oneOf("before", "after"),
    grammar: "before|after",
    meaning: "closes the connection before or after the request takes effect",
  },
  cut: {
    read: cut,
    grammar: "<bytes>|wire:<bytes>",
    meaning: "closes the connection after this many bytes of the body, or of the full response",
  },
  slow: { read: whole(1, 1_000_000_000), grammar: "<bytes per second>", meaning: "limits the speed of the response" },
  body: {
    read: oneOf("html", "truncated", "enormous", "empty", "deep", "gzip-bomb"),
    grammar: "html|truncated|enormous|empty|deep|gzip-bomb",
    meaning: "replaces the body after the request takes effect",
  },
  redirect: { read: headerText, grammar: "<url>", meaning: "responds with 307 to this address" },
  envelope: {
    read: oneOf("broken", "token-at-end", "no-token-key", "empty-token", "no-data"),
    grammar: "broken|token-at-end|no-token-key|empty-token|no-data",
    meaning: "breaks the rule of the list envelope",
  },
  rows: {
    read: oneOf("repeated", "changed"),
    grammar: "repeated|changed",
    meaning:
      "repeated: a later page begins with the last row of the page before; changed: rows of later pages were updated meanwhile",
  },
  token: { read: oneOf("repeated"), grammar: "repeated", meaning: "returns the page token that was sent" },
  pending: { read: whole(0, 1_000_000_000), grammar: "<n>", meaning: "a creation stays pending for n inspections" },
  secret: {
    read: oneOf("withheld", "replay"),
    grammar: "withheld|replay",
    meaning:
      "withheld: the response that completes a creation has no secret; replay: only a replayed creation completes a pending client, and its response has the secret",
  },
  "client-id": {
    read: oneOf("early"),
    grammar: "early",
    meaning: "a pending client has its client_id already",
  },
  lifetime: {
    read: duration,
    grammar: "<duration>",
    meaning: "issued tokens are valid for this long",
  },
  retryable: {
    read: oneOf("true", "false"),
    grammar: "true|false",
    meaning: "sets this in error objects, for any status",
  },
  document: {
    read: oneOf(...documentChanges),
    grammar: documentChanges.join("|"),
    meaning: "changes a published specification",
  },
  effect: {
    read: oneOf("none", "kept", "abandoned", "uncertain"),
    grammar: "none|kept|abandoned|uncertain",
    meaning:
      "what an error response or redirect leaves behind: nothing, the full effect, a used idempotency key without a client, a creation that stays pending",
  },
  cleanup: {
    read: cleanup,
    grammar: "<duration>|open",
    meaning: "a revoked client uses its slot for this long, or until a control request",
  },
  rate: {
    read: rate,
    grammar: "<n>/<duration>",
    meaning: "responds with 429 above this number of requests per credential",
  },
  text: {
    read: oneOf("hostile"),
    grammar: "hostile",
    meaning: "adds escape sequences, bidi controls and line ends to names and details",
  },
} as const;

type Keys = typeof faultKeys;
export type FaultEffects = { -readonly [Key in keyof Keys]?: NonNullable<ReturnType<Keys[Key]["read"]>> };

export interface Fault {
  readonly spec: string;
  readonly matches: (method: string, path: string) => boolean;
  readonly effects: FaultEffects;
}

function badFault(sentence: string): Error {
  return Object.assign(new Error(sentence), { code: "bad_fault" });
}

const knownMethods = ["GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"];

/** Values may be quoted, as in `retry-after="Sat, 21 Nov 2026 04:08:00 GMT"`. */
function splitSpec(spec: string): string[] {
  return (spec.match(/(?:[^\s"]+|"[^"]*")+/g) ?? []).map((word) => word.replaceAll('"', ""));
}

function methodsOf(word: string | undefined, spec: string): ReadonlySet<string> | undefined {
  const names = (word ?? "").split(",");
  const unknown = names.find((name) => name !== "*" && !knownMethods.includes(name));
  if (unknown !== undefined)
    throw badFault(
      `Invalid fault "${spec}": it must begin with a method, such as GET, POST,DELETE or * (not "${unknown}").`,
    );
  return names.includes("*") ? undefined : new Set(names);
}

function pathOf(word: string | undefined, spec: string): RegExp {
  if (!word || !/^[/*]/.test(word))
    throw badFault(`Invalid fault "${spec}": it must name a path after the method, such as /v1/entities or /v1/*.`);
  if (!isServed(word)) throw badFault(`Invalid fault "${spec}": this service has no path that ${word} matches.`);
  return new RegExp(`^${word.split("*").map(escaped).join(".*")}$`);
}

function escaped(text: string): string {
  return text.replace(/[.+?^${}()|[\]\\]/g, "\\$&");
}

function isServed(pattern: string): boolean {
  const parts = pattern.split(/(\*+|\/)/).map((part) => {
    if (part === "" || part === "/") return part;
    return part.startsWith("*") ? ".*" : `(?:${escaped(part)}|\\{\\w+\\})`;
  });
  const served = new RegExp(`^${parts.join("")}$`);
  return routes.some(({ path }) => served.test(path));
}

const byName = new Map<string, Keys[keyof Keys]>(Object.entries(faultKeys));

function effectsOf(words: readonly string[], spec: string): FaultEffects {
  const effects: Record<string, unknown> = {};
  for (const word of words) {
    const equals = word.indexOf("=");
    const name = word.slice(0, equals < 0 ? undefined : equals);
    const key = byName.get(name);
    if (!key)
      throw badFault(`Invalid fault "${spec}": unknown key "${name}". Known: ${Object.keys(faultKeys).join(", ")}.`);
    const value = equals < 0 ? undefined : key.read(word.slice(equals + 1));
    if (value === undefined) throw badFault(`Invalid fault "${spec}": it needs ${name}=${key.grammar}.`);
    if (name in effects) throw badFault(`Invalid fault "${spec}": it gives ${name} twice.`);
    effects[name] = value;
  }
  return effects;
}

const whenKeys = new Set<string>(["times", "after", "probability"]);

export function parseFault(spec: string): Fault {
  const [method, glob, ...rest] = splitSpec(spec);
  const methods = methodsOf(method, spec);
  const path = pathOf(glob, spec);
  const effects = effectsOf(rest, spec);
  const does = Object.keys(faultKeys).filter((key) => !whenKeys.has(key));
  if (!Object.keys(effects).some((key) => !whenKeys.has(key)))
    throw badFault(`Invalid fault "${spec}": it does nothing. Give at least one of: ${does.join(", ")}.`);
  return {
    spec,
    effects,
    matches: (given, at) => (methods === undefined || methods.has(given)) && path.test(at),
  };
}
