// Finds positions in JSON text, because `JSON.parse` reports none for values that violate a schema.

/** Both numbers start at 1. */
export interface JsonPosition {
  readonly line: number;
  readonly column: number;
}

/** Keys of `offsets` are paths: keys and indexes joined by NUL. `brokenAt` is the offset of the first error. */
interface JsonMap {
  readonly offsets: ReadonlyMap<string, number>;
  readonly brokenAt?: number;
}

/** Matches white space and one token, or no token at an error. */
const token =
  /[ \t\r\n]*("(?:[^"\\\u0000-\u001f\u007f-\u009f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[{}[\],:])?/uy;
const deepest = 100;

class Broken extends Error {}

export function mapJson(text: string): JsonMap {
  const offsets = new Map<string, number>();
  let next = "";
  let at = 0; // the offset of `next`
  const advance = (): string => {
    const taken = next;
    token.lastIndex = at + taken.length;
    next = token.exec(text)?.[1] ?? "";
    at = token.lastIndex - next.length;
    return taken;
  };
  const take = (wanted: RegExp): string => {
    if (!wanted.test(next)) throw new Broken();
    return advance();
  };
  const items = (close: string, item: (index: number) => void): void => {
    advance();
    for (let index = 0; ; index++) {
      if (next === close) break;
      if (index > 0) take(/^,$/);
      item(index);
    }
    advance();
  };
  const value = (path: readonly (string | number)[]): void => {
    offsets.set(path.join("\0"), at);
    if (path.length > deepest) throw new Broken();
    if (next === "[") items("]", (index) => value([...path, index]));
    else if (next !== "{") take(/^["\-\dtfn]/);
    else
      items("}", () => {
        const key = String(JSON.parse(take(/^"/)));
        take(/^:$/);
        value([...path, key]);
      });
  };
  try {
    advance();
    value([]);
    return at === text.length ? { offsets } : { offsets, brokenAt: at };
  } catch (error) {
    if (error instanceof Broken) return { offsets, brokenAt: at };
    throw error;
  }
}

export function positionAt(text: string, offset: number): JsonPosition {
  const before = text.slice(0, offset).split("\n");
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
}

/** The position of the value at `path`, or of its nearest existing parent. */
export function positionOfValue(text: string, path: readonly PropertyKey[]): JsonPosition {
  const { offsets } = mapJson(text);
  for (let length = path.length; length > 0; length--) {
    const offset = offsets.get(path.slice(0, length).map(String).join("\0"));
    if (offset !== undefined) return positionAt(text, offset);
  }
  return { line: 1, column: 1 };
}
