// How V8 optimizes while a list is printed or many changes are finished: what is worth it for a program that runs for minutes is
// not for some thousand pages.

/** Flags of V8 that say how functions are optimized: as usual, and meanwhile. */
type Flags = readonly (readonly [usual: string, walk: string])[];

/** Node 20: its only compiler takes as long as it saves; a short function is none that it should begin with. */
const lessOften: Flags = [
  ["--interrupt-budget=67584", "--interrupt-budget=2000000"],
  ["--max-bytecode-size-for-early-opt=81", "--max-bytecode-size-for-early-opt=0"],
];

const optimizing: Readonly<Record<string, { readonly rows: Flags; readonly bytes: Flags }>> = {
  "11.3": { rows: lessOften, bytes: lessOften },
  "13.6": {
    // Node 24: its first compiler is quick, and waits for hundreds of calls; a page is one. What its threads took is given back by
    // the one that optimizes.
    rows: [
      ["--invocation-count-for-maglev=400", "--invocation-count-for-maglev=30"],
      ["--minimum-invocations-after-ic-update=500", "--minimum-invocations-after-ic-update=30"],
      ["--maglev-destroy-on-background", "--no-maglev-destroy-on-background"],
    ],
    // There is no loop at all, and more than 200 functions are compiled within 30 pages.
    bytes: [
      ["--maglev", "--no-maglev"],
      ["--turbofan", "--no-turbofan"],
    ],
  },
};

/** After the first pages everything is loaded that is needed: while a flag differs, V8 uses no compiled code that was kept. */
const loadedAfter = 3;

const setInV8 = (flag: string): void => process.getBuiltinModule("node:v8").setFlagsFromString(flag);

/**
 * A walk calls some hundred short functions once for each page, and its loops over bytes are WebAssembly: V8 spends as much
 * on optimizing the functions late as it saves, and 6 to 8 MB. A loop that is long anyway is optimized within a page. Finishing an
 * entry of the journal is like a page: of eight seconds for a thousand entries, V8 of Node 20 spent one on optimizing.
 */
export class Optimization {
  readonly #version: string;
  readonly #set: (flag: string) => void;
  #pages = 0;
  #changed: Flags = [];
  #isForBytes = false;

  /** @param version of V8 */
  constructor(version = process.versions.v8, set = setInV8) {
    this.#version = version;
    this.#set = set;
  }

  /** Begins the next page, or entry. @param isVerbatim it is written as it came: JavaScript reads none of its rows */
  next(isVerbatim = false): void {
    if (++this.#pages === loadedAfter) this.#begin(isVerbatim);
    else if (this.#isForBytes && !isVerbatim) this.end();
  }

  /** As usual again. Safe to repeat. */
  end(): void {
    for (const [usual] of this.#changed) this.#set(usual);
    this.#changed = [];
    this.#isForBytes = false;
  }

  #begin(isForBytes: boolean): void {
    this.#isForBytes = isForBytes;
    this.#changed = optimizing[this.#version.split(".", 2).join(".")]?.[isForBytes ? "bytes" : "rows"] ?? [];
    for (const [, walk] of this.#changed) this.#set(walk);
  }
}
