// Which test covers which mutants, and how long it takes: asked of each file of tests once, as long as it and the sources are
// as they were.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { rooms } from "./plan.mjs";
import { runProcess } from "./process.mjs";

/** The histories of the simulation count as a file of tests. */
const histories = "../model/one-seed.ts";

export class Learning {
  /** Mutants that some test comes past. */
  covered = new Set();
  /** Of the tests alone, and of each file of them. */
  #allTests;
  #testHashes = new Map();
  #count;
  #cache;
  #hashes = new Map();
  #learned = [];

  constructor(root, count) {
    this.#count = count;
    this.#cache = join(root, "node_modules/.cache/integ-mutation");
    const read = (folder, wanted) =>
      readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
        .filter((name) => wanted(name) && /\.m?[jt]s$/.test(name))
        .toSorted()
        .map((name) => ({ name: name.replaceAll("\\", "/"), bytes: readFileSync(join(root, folder, name)) }));
    const isTest = (name) => name.endsWith(".test.ts");
    const sources = hashOf([...read("src", () => true), ...read("test/mutation", (name) => /mutants|plan/.test(name))]);
    const helpers = ["unit", "support", "model"].flatMap((folder) => read(`test/${folder}`, (name) => !isTest(name)));
    const shared = hashOf([{ name: sources, bytes: "" }, ...helpers]);
    this.#hashes.set(histories, shared);
    this.#testHashes.set(histories, hashOf(helpers.filter(({ name }) => name.includes("one-seed"))));
    // See all-tests.ts.
    for (const { name, bytes } of read("test/unit", isTest))
      if ([...rooms, "policy"].includes(name.split("/")[0]) && !bytes.includes("vi.resetModules()"))
        this.#note(`../unit/${name}`, { shared, bytes });
    for (const { name, bytes } of read("test/integration", (one) => isTest(one) && one.startsWith("postgres-")))
      this.#note(`../integration/${name}`, { shared, bytes });
    this.#allTests = hashOf([...helpers, ...[...this.#testHashes].map(([name, bytes]) => ({ name, bytes }))]);
  }

  #note(path, { shared, bytes }) {
    this.#hashes.set(path, hashOf([{ name: shared, bytes }]));
    this.#testHashes.set(path, hashOf([{ name: path, bytes }]));
  }

  /** What a verdict depends on: the file of tests that killed; all of them where none did. */
  testsOf({ state, path }) {
    return state === "killed" ? this.#testHashes.get(path) : this.#allTests;
  }

  /** @returns the processor's time that it took */
  async learn(folder) {
    mkdirSync(this.#cache, { recursive: true });
    const files = [...this.#hashes.keys()].filter((path) => !existsSync(this.#fileOf(path)));
    const failing = [];
    let processorMs = 0;
    if (files.length > 0) {
      const end = await runProcess(join(folder, "learn"), { work: { learn: files }, isOver: () => false }, (line) => {
        if (line.state === "failing test") failing.push(`${line.path}: ${line.name}: ${line.error}`);
        if (line.state !== "learned" || failing.some((one) => one.startsWith(`${line.path}: `))) return;
        writeFileSync(this.#fileOf(line.path), JSON.stringify(line.learned));
      });
      ({ processorMs } = end);
      // What fails by itself would cover nothing, and its sources would look untested.
      if (failing.length > 0)
        throw new Error(`${failing.length} tests fail without a mutant:\n${failing.slice(0, 5).join("\n")}`);
      const missing = files.filter((path) => !existsSync(this.#fileOf(path)));
      if (missing.length > 0) throw new Error(`the tests do not run: ${missing.join(", ")}\n${end.said}`);
    }
    this.#learned = [...this.#hashes.keys()].flatMap((path) => JSON.parse(readFileSync(this.#fileOf(path), "utf8")));
    this.covered = new Set(this.#learned.flatMap(({ covers }) => covers));
    const seconds = Math.round(this.#learned.reduce((sum, { ms }) => sum + ms, 0) / 1000);
    console.log(
      `${this.#learned.length} tests of ${seconds} s cover ${this.covered.size} of ${this.#count} mutants; ` +
        `${files.length} files learned in ${Math.round(processorMs / 1000)} s of the processor`,
    );
    return processorMs;
  }

  /** What covers some of these. */
  covering(numbers) {
    const wanted = new Set(numbers);
    return this.#learned
      .map((one) => ({ ...one, covers: one.covers.filter((number) => wanted.has(number)) }))
      .filter(({ covers }) => covers.length > 0);
  }

  #fileOf(path) {
    return join(this.#cache, `${this.#hashes.get(path)}.json`);
  }
}

function hashOf(parts) {
  const hash = createHash("sha256");
  for (const { name, bytes } of parts) hash.update(name).update(bytes);
  return hash.digest("hex").slice(0, 16);
}
