// Matches a response against a case: exact keys, exact values, and placeholders for the values that vary.
import { type Json, type JsonObject, readShapes } from "./case.ts";

const shapes = readShapes();

/** Replaces `{{name}}` with its value and `{{repeat:x:300}}` with 300 x, and expands `$like`, `$rows` and `$repeat`. */
export function expand(value: Json | undefined, names: Readonly<Record<string, string>>): Json {
  if (typeof value === "string") return filled(value, names);
  if (Array.isArray(value)) return value.map((item) => expand(item, names));
  if (typeof value !== "object" || value === null) return value ?? null;
  const { $like, $rows, $repeat, of, ...rest } = value;
  if (typeof $rows === "number") return Array.from({ length: $rows }, () => expand(of, names));
  if (typeof $repeat === "number")
    return Array.from({ length: $repeat }, (_, index) => expand(of, { ...names, n: String(index + 1) }));
  const shape = typeof $like === "string" ? shapeOf($like) : {};
  const all: JsonObject = { ...shape, ...rest };
  return Object.fromEntries(Object.entries(all).map(([name, item]) => [filled(name, names), expand(item, names)]));
}

function shapeOf(name: string): JsonObject {
  const shape = shapes[name];
  if (!shape) throw new Error(`No shape is called ${name}.`);
  return shape;
}

export function filled(text: string, names: Readonly<Record<string, string>>): string {
  return text.replace(/\{\{([^}]+)\}\}/g, (_whole, name: string) => {
    const repeated = /^repeat:(.+):([0-9]+)$/.exec(name);
    if (repeated) return repeated[1]!.repeat(Number(repeated[2]));
    const value = names[name];
    if (value === undefined) throw new Error(`Nothing is called ${name} here.`);
    return value;
  });
}

const words: Readonly<Record<string, (value: Json) => boolean>> = {
  "<any>": () => true,
  "<text>": (value) => typeof value === "string" && value !== "",
  "<timestamp>": (value) => typeof value === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value),
  "<uuid>": (value) => typeof value === "string" && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(value),
  "<integer>": (value) => Number.isInteger(value),
  "<boolean>": (value) => typeof value === "boolean",
  "<seconds>": (value) => typeof value === "string" && /^[0-9]+$/.test(value),
};

export function differences(given: Json, wanted: Json, at = "body"): string[] {
  if (typeof wanted === "string" && wanted in words)
    return words[wanted]!(given) ? [] : [`${at} is ${JSON.stringify(given)}, wanted ${wanted}`];
  if (Array.isArray(wanted) && Array.isArray(given)) {
    if (wanted.length !== given.length) return [`${at} has ${given.length} items, wanted ${wanted.length}`];
    return wanted.flatMap((item, index) => differences(given[index]!, item, `${at}.${index}`));
  }
  if (isObject(wanted) && isObject(given)) {
    const missing = Object.keys(wanted).filter((name) => !(name in given));
    const more = Object.keys(given).filter((name) => !(name in wanted));
    return [
      ...missing.map((name) => `${at}.${name} is missing`),
      ...more.map((name) => `${at}.${name} is there and should not be`),
      ...Object.keys(wanted)
        .filter((name) => name in given)
        .flatMap((name) => differences(given[name]!, wanted[name]!, `${at}.${name}`)),
    ];
  }
  return Object.is(given, wanted) ? [] : [`${at} is ${JSON.stringify(given)}, wanted ${JSON.stringify(wanted)}`];
}

function isObject(value: Json): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function textAt(value: Json, path: string): string {
  const found = valueAt(value, path);
  return typeof found === "string" || typeof found === "number" ? String(found) : "";
}

function valueAt(value: Json, path: string): Json {
  let current: Json | undefined = value;
  for (const name of path.split(".")) {
    if (typeof current !== "object" || current === null) return null;
    current = Array.isArray(current) ? current[Number(name)] : current[name];
  }
  return current ?? null;
}
