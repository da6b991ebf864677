// Every secret of a run is a canary. `run` searches the home, the output and each child for canaries outside their places.
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { ChildProcess } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { Account } from "../support/account.ts";
import { Canaries, readableByOthers, type Sighting } from "../support/canaries.ts";
import { recordFigure } from "../support/figures.mjs";
import { binary, type Ended, Home, program, type RunOptions } from "../support/program.ts";
import { type RecordingRelay, startRecordingRelay } from "../support/recording-relay.ts";
import { isFull } from "../support/sample.ts";
import { startService, type Service } from "../support/service.ts";
import { isMissing } from "../support/tools.mjs";

/** Files of a home that may contain secrets, and that no other user may access: credentials, kept secrets, destinations. */
const places = /^(config\/credentials\/[^/]+\.json|state\/undelivered\/[^/]+|out\/[^/]+)$/;

export interface Allowed extends RunOptions {
  /** The roles of the secrets whose destination is standard output. */
  readonly stdout?: readonly string[];
  /** Replaces the tracer's command line in front of the program. */
  readonly under?: readonly string[];
}

interface Started {
  readonly args: readonly string[];
  readonly envPairs: readonly string[];
}

const isCommandNamed = (words: readonly string[]): boolean => words.some((word) => word.includes("-command"));

export class CanaryWorld {
  readonly canaries = new Canaries();
  readonly sightings: Sighting[] = [];
  readonly openToOthers: string[] = [];
  readonly service: Service;
  readonly account: Account;
  readonly #tools = mkdtempSync(join(tmpdir(), "integ-canary-"));
  readonly #homes: Home[] = [];
  readonly #commandProfiles = new Set<string>();
  relay!: RecordingRelay;
  runs = 0;
  children = 0;

  private constructor(service: Service) {
    this.service = service;
    this.account = new Account(service);
  }

  static async open(): Promise<CanaryWorld> {
    const world = new CanaryWorld(await startService());
    const { us, eu } = world.service;
    for (const { api_key, second_api_key, scoped_api_key, access_token, access_key_secret } of [us, eu]) {
      for (const key of [api_key, second_api_key, scoped_api_key]) world.canaries.add("API key", key);
      world.canaries.add("bearer token", access_token);
      world.canaries.add("access key secret", access_key_secret);
    }
    world.relay = await startRecordingRelay(us.base_url, (role, secret) => world.canaries.add(role, secret));
    return world;
  }

  async close(): Promise<void> {
    await this.relay.close();
    await this.service.stop();
    rmSync(this.#tools, { recursive: true, force: true });
  }

  async calm(): Promise<void> {
    this.relay.calm();
    await this.account.clear();
    for (const home of this.#homes.splice(0)) home.remove();
  }

  /** Temporary and cached files are also in the home, so that the search covers all files that the program writes. */
  home(env: Readonly<Record<string, string>> = {}): Home {
    const home = new Home({ INTEG_DEBUG: "1", ...env });
    for (const name of ["tmp", "cache", "out"]) mkdirSync(home.path(name));
    Object.assign(home.env, { TMPDIR: home.path("tmp"), XDG_CACHE_HOME: home.path("cache") });
    this.#homes.push(home);
    return home;
  }

  get env(): Record<string, string> {
    const { us } = this.service;
    return {
      ...this.service.env,
      INTEG_BASE_URL: this.relay.through(us.base_url),
      INTEG_TOKEN_ENDPOINT: this.relay.through(us.token_endpoint),
    };
  }

  get address(): string[] {
    const { us } = this.service;
    return ["--region", "us", "--base-url", this.relay.through(us.base_url), "--organization-id", us.organization_id];
  }

  /** A path in a folder that the search omits, for scripts and the user's own secrets. */
  tool(name: string): string {
    return join(this.#tools, name);
  }

  /** Writes a secret of the user to a file outside the home. @returns the file's path */
  ownFile(name: string, secret: string): string {
    this.canaries.add(name, secret);
    writeFileSync(this.tool(name), `${secret}\n`, { mode: 0o600 });
    return this.tool(name);
  }

  /**
   * @returns a command that runs `work`, after recording the arguments of all processes from itself up to the program, and
   * the environments of all but the program
   */
  spy(name: string, work: string): string {
    const path = this.tool(`${name}.sh`);
    const recordScript = `pid=$$
while [ "$pid" -gt 1 ]; do
  tr '\\0' '\\n' < /proc/$pid/cmdline >> '${this.tool("seen")}'
  grep -qF '${program.at(-1)}' /proc/$pid/cmdline && break
  tr '\\0' '\\n' < /proc/$pid/environ >> '${this.tool("seen")}'
  pid=$(sed 's/.*) //' /proc/$pid/stat | cut -d' ' -f2)
done`;
    writeFileSync(path, `#!/bin/sh\n${existsSync("/proc/self/stat") ? recordScript : ""}\n${work}\n`);
    chmodSync(path, 0o755);
    return path;
  }

  async run(home: Home, words: readonly string[], allowed: Allowed = {}): Promise<Ended> {
    const { stdout = [], under, ...options } = allowed;
    this.runs += 1;
    if (words[0] === "profiles" && isCommandNamed(words)) this.#commandProfiles.add(words[2]!);
    const trace = this.tool("trace");
    const tracer = `strace -f --seccomp-bpf -qq -v -s 65536 -e trace=execve -o ${trace}`.split(" ");
    const isOrdinary = options.env?.NODE_OPTIONS === undefined;
    // Another binary runs in a child process, so only a tracer can watch its children.
    const isTraced = !isMissing("strace") && isOrdinary && (binary !== undefined || this.#mayStart(words));
    const run = (): Promise<Ended> =>
      home.integ(words, { ...options, under: under ?? (isTraced ? tracer : undefined) });
    const ended = isTraced || under || !isOrdinary ? await run() : await this.#watched(run);
    const what = `integ ${words.join(" ").replaceAll(home.folder, "~")}`;
    // On standard error, only the masks of GitHub Actions may contain secrets (docs/design/destinations.md).
    const unmasked = ended.stderr.replaceAll(/^::add-mask::.*\n/gm, "");
    const found = [
      ...this.canaries.search("stdout", ended.stdout).filter(({ role }) => !stdout.includes(role)),
      ...this.canaries.search("stderr", options.env?.GITHUB_ACTIONS ? unmasked : ended.stderr),
      ...this.#searchChildren(trace),
      ...this.#searchHome(home),
    ];
    this.sightings.push(...found.map((one) => ({ ...one, place: `${one.place} after ${what}` })));
    return ended;
  }

  #mayStart(words: readonly string[]): boolean {
    return isFull || isCommandNamed(words) || words.some((word) => this.#commandProfiles.has(word));
  }

  async #watched(run: () => Promise<Ended>): Promise<Ended> {
    const { prototype } = ChildProcess as unknown as { prototype: { spawn: (options: Started) => unknown } };
    const { spawn } = prototype;
    const look = ({ args, envPairs }: Started): void => {
      this.children += 1;
      const given = [...args, ...envPairs].join("\n");
      this.sightings.push(...this.canaries.search("a child's arguments or environment", given));
    };
    prototype.spawn = function (this: ChildProcess, options) {
      look(options);
      return spawn.call(this, options);
    };
    try {
      return await run();
    } finally {
      prototype.spawn = spawn;
    }
  }

  #searchChildren(trace: string): Sighting[] {
    const found: Sighting[] = [];
    if (existsSync(trace)) {
      // The first process is the program itself, which has the user's environment.
      const [, ...children] = readFileSync(trace, "latin1")
        .split("\n")
        .filter((line) => line.includes("execve("));
      this.children += children.length;
      for (const line of children) found.push(...this.canaries.search("a child's arguments or environment", line));
      rmSync(trace);
    }
    if (!existsSync(this.tool("seen"))) return found;
    found.push(...this.canaries.search("what a child sees of itself and those above", readFileSync(this.tool("seen"))));
    rmSync(this.tool("seen"));
    return found;
  }

  #searchHome(home: Home): Sighting[] {
    const files = readdirSync(home.folder, { recursive: true, encoding: "utf8" }).filter((file) => places.test(file));
    this.openToOthers.push(...readableByOthers(home.folder, files));
    return this.canaries.searchFiles(home.folder, (file) => places.test(file));
  }

  leftovers(home: Home): string[] {
    return readdirSync(home.folder, { recursive: true, encoding: "utf8" }).filter((file) =>
      /\.integ-|^state\/undelivered\/./.test(file),
    );
  }

  plant(home: Home, file: string, text: string): void {
    appendFileSync(home.path(file), text);
  }
}

/** Fails each test during which a secret left its places, or its file was open to other users. @param part part of the figure */
export function canariesOfTests(part?: string): { readonly world: CanaryWorld } {
  let world: CanaryWorld;
  let seen = 0;
  beforeAll(async () => void (world = await CanaryWorld.open()));
  afterEach(async () => {
    await world.calm();
    const sightings = world.sightings.splice(0);
    seen += sightings.length;
    expect(sightings).toEqual([]);
    expect(world.openToOthers.splice(0)).toEqual([]);
  });
  afterAll(async () => {
    const { canaries, runs, children } = world;
    const { secrets, places } = canaries;
    recordFigure("canary", { secrets, places, commands: runs, children, "outside their destination": seen }, part);
    await world.close();
  });
  return {
    get world() {
      return world;
    },
  };
}
