// Builds the Context of one command line, and closes its parts at the end. Most parts are opened on first use.
import { join } from "node:path";
import type { GlobalChoice } from "../commands/options/global.ts";
import type { Context, Profiles, Secrets, Settings } from "../context.ts";
import { Connections, EmbeddedSandbox, EscrowChoice, once, OpenedJournal } from "./opened.ts";
import { configFolder, isAddress, journalPath, stateFolder } from "./folders.ts";
import type { Interruption } from "./interruption.ts";
import { Failure, reasonOf } from "../errors.ts";
import { shell } from "../next-step.ts";
import type { Choice } from "../output/asking/pick-list.ts";
import { createOutput, type Output } from "../output/output.ts";
import type { Terminal } from "../output/terminal.ts";
import { agentMode } from "../profiles/agent-mode.ts";
import type { ActiveProfile } from "../profiles/profile.ts";
import type { Journal } from "../journal/journal.ts";
import type { RememberedDestination, SingleRecord } from "../secrets/destination.ts";
import type { AllowedDestinations } from "../secrets/kept.ts";
import { lastApplyIn } from "../disk/last-apply.ts";
import { machineIdIn } from "../disk/machine-id.ts";
import type { OpenHttp } from "../secrets/store.ts";

export interface Request {
  readonly globals: GlobalChoice;
  readonly interruption: Interruption;
  readonly version: string;
}

export async function buildContext(
  process: NodeJS.Process,
  terminal: Terminal,
  { globals, interruption: { clock, cut }, version }: Request,
): Promise<{ context: Context; close: () => Promise<void> }> {
  const env = process.env;
  const settings = settingsOf(process, { globals, version });
  const output = createOutput({
    ...globals,
    terminal,
    now: () => clock.now(),
    elapsed: () => clock.elapsed(),
    version,
    interruption: clock.interruption,
  });
  const sandbox = new EmbeddedSandbox(settings.stateDir);
  const parts = { env, terminal, settings, cut, printNote: (text: string): void => output.note(text) };
  const profiles = buildProfiles({
    ...parts,
    sandbox,
    pick: async (choices) =>
      output.interactive
        ? output.pick("No profile is the default. As which one?", { choices, flag: "--profile <name>" })
        : undefined,
  });
  const journal = new OpenedJournal({ env, settings, clock, cut, terminal });
  const connections = new Connections({
    env,
    settings,
    cut,
    clock,
    sandbox,
    debug: globals.debug ? terminal : undefined,
    leases: journal.leases,
  });
  const context: Context = {
    settings,
    profiles,
    connect: async (profile, options) => connections.connect(profile ?? (await profiles.active()), options),
    loadForChange: () => loadForChange(output),
    ...journal.forCommands,
    secrets: buildSecrets({
      ...parts,
      profiles,
      journal: journal.forCommands.journal,
      http: (choice) => connections.transport(choice),
      escrow: new EscrowChoice({ ...parts, journal }),
    }),
    lastApply: lastApplyIn(settings.stateDir),
    input: (what) => readStdin(terminal, { what, longest: longestInputBytes }),
    output,
    clock,
  };
  const close = async (): Promise<void> => {
    for (const one of [output, journal, connections, sandbox]) await one.close();
  };
  return { context, close };
}

async function loadForChange(output: Pick<Output, "load">): Promise<void> {
  const profile = [import("../profiles/resolution.ts"), import("../profiles/active-profile.ts")];
  const service = [import("../api/connect.ts"), import("../api/http/transport.ts")];
  const secrets = [import("../secrets/kept.ts"), import("../secrets/registry.ts")];
  await Promise.all([output.load(), ...profile, ...service, ...secrets]);
}

function workingFolder(process: NodeJS.Process): string {
  try {
    return process.cwd();
  } catch (cause) {
    throw new Failure("usage", "The working folder does not exist any more.", {
      hint: "Run the command again in another folder.",
      cause,
    });
  }
}

function settingsOf(process: NodeJS.Process, { globals, version }: Pick<Request, "globals" | "version">): Settings {
  const { env } = process;
  const machine = {
    platform: process.platform,
    home: env.HOME || process.getBuiltinModule("node:os").homedir(),
    cwd: workingFolder(process),
  };
  const stateDir = stateFolder(env, machine);
  const folders = {
    configDir: configFolder(env, machine),
    stateDir,
    journalPath: journalPath(env, { stateDir, cwd: machine.cwd }),
  };
  return {
    ...folders,
    ownPlaces: ownPlaces(folders),
    profile: globals.profile,
    serviceVersion: globals.serviceVersion,
    timeoutMs: globals.timeoutMs,
    retryForMs: globals.retryForMs,
    yes: globals.yes,
    home: machine.home,
    cwd: machine.cwd,
    version,
    get self() {
      // A single executable contains both the program and the script.
      const { isSea } = process.getBuiltinModule("node:sea");
      return isSea() ? [process.execPath] : [process.execPath, process.argv[1] ?? ""];
    },
    childEnvironment: withoutIntegVariables(env),
  };
}

/** Loading can fail because of a disk error, too many open files, or an update of integ during the run. */
function notLoaded(cause: unknown): never {
  const [why] = reasonOf(cause).split("\n");
  throw new Failure("failed", `A part of integ could not be loaded: ${why}.`, {
    nextCommand: shell`integ doctor`,
    cause,
  });
}

/** integ's own variables may contain credentials. */
function withoutIntegVariables(env: NodeJS.ProcessEnv): Record<string, string> {
  const variables = Object.entries(env).filter(([name, value]) => !name.startsWith("INTEG_") && value !== undefined);
  return Object.fromEntries(variables) as Record<string, string>;
}

interface Parts {
  readonly env: NodeJS.ProcessEnv;
  readonly terminal: Terminal;
  readonly settings: Settings;
  /** Aborted when an interrupted command must stop waiting. */
  readonly cut: AbortSignal;
  readonly printNote: (text: string) => void;
}

interface ProfileParts extends Parts {
  readonly sandbox: EmbeddedSandbox;
  /** Returns undefined if integ cannot ask. */
  readonly pick: (choices: readonly Choice[]) => Promise<string | undefined>;
}

function buildProfiles({ env, terminal, settings, sandbox, cut, printNote, pick }: ProfileParts): Profiles {
  const store = once(async () => {
    // A load error must be a Failure, because a change may need the store after its response.
    const { openProfileStore } = await import("../profiles/store.ts").catch(notLoaded);
    return openProfileStore({ configDir: settings.configDir }).catch(notLoaded);
  });
  const credentials = once(async () => {
    const { credentialsAt } = await import("../profiles/credentials.ts").catch(notLoaded);
    return credentialsAt({ configDir: settings.configDir, env, signal: cut });
  });
  const resolve = async (flagProfile: string | undefined, isOfPolicy = false): Promise<ActiveProfile> => {
    const [{ needsStored, emptyStore, resolveProfile }, { activate }] = await Promise.all([
      import("../profiles/resolution.ts"),
      import("../profiles/active-profile.ts"),
    ]);
    const stored = needsStored({ flagProfile, env }) ? await store() : emptyStore;
    const resolution = resolveProfile({ flagProfile, isOfPolicy, env, stored });
    return activate(resolution, {
      env,
      credentials: { read: async (source, origins) => (await credentials()).read(source, origins) },
      sandbox: (region) => sandbox.access(region),
      onStderr: (chunk) => terminal.writeErr(chunk.toString("utf8")),
      commandLimitMs: settings.timeoutMs,
      signal: cut,
    });
  };
  const pickProfile = async (): Promise<string | undefined> => {
    const { needsChoice, needsStored } = await import("../profiles/resolution.ts");
    if (!needsStored({ env })) return undefined;
    const stored = await store();
    if (!needsChoice({ env, stored })) return undefined;
    const choices = stored
      .list()
      .map(({ name, region, base_url }) => ({ value: name, hint: `${region}, ${base_url}` }));
    const name = await pick(choices);
    if (name !== undefined) printNote(`Without the question from now on: integ profiles use ${name}`);
    return name;
  };
  const stores = async () => ({ store: await store(), credentials: await credentials() });
  return {
    active: once(async () => {
      const profile = await resolve(settings.profile ?? (await pickProfile()));
      for (const note of profile.notes) printNote(note);
      return profile;
    }),
    named: (name, source) => resolve(name, source === "policy"),
    names: async () => (await import("../profiles/names.ts")).readProfileNames(settings.configDir),
    store,
    credentials,
    add: async (given, options) =>
      (await import("../profiles/configure.ts")).addProfile(await stores(), given, options),
    edit: async (name, given, options) =>
      (await import("../profiles/configure.ts")).editProfile(await stores(), name, given, options),
    remove: async (seen) => (await import("../profiles/configure.ts")).removeProfile(await stores(), seen),
  };
}

interface SecretParts extends Parts {
  readonly profiles: Profiles;
  readonly journal: () => Promise<Journal>;
  readonly http: OpenHttp;
  readonly escrow: EscrowChoice;
}

function buildSecrets(parts: SecretParts): Secrets {
  const { env, terminal, settings, profiles, journal, cut, printNote, http, escrow } = parts;
  const machine = machineIdIn(settings.stateDir);
  const stores = async () => ({ store: await profiles.store(), credentials: await profiles.credentials() });
  const undelivered = once(async () => {
    const { Undelivered } = await import("../secrets/kept.ts");
    return new Undelivered(settings.stateDir);
  });
  const onStderr = (chunk: Uint8Array): void => terminal.writeErr(Buffer.from(chunk).toString("utf8"));
  const remembered = async (record: SingleRecord): Promise<RememberedDestination> =>
    (await import("../secrets/registry.ts")).rememberedDestination(record, {
      profiles: stores,
      digests: (await journal()).digests,
      env,
      http,
      sleep: (ms) => sleepUntil(cut, ms),
      signal: cut,
    });
  return {
    escrow: escrow.secrets,
    async destination(options, print) {
      await escrow.check(options.escrow);
      const { destinationFor } = await import("../secrets/registry.ts");
      const needsIssuer = options.to.some(({ kind }) => kind === "profile");
      const issuedBy = options.issuedBy ?? (needsIssuer ? await profiles.active() : undefined);
      return destinationFor(options, {
        env,
        cwd: settings.cwd,
        own: settings.ownPlaces,
        digests: (await journal()).digests,
        machine,
        stdoutFd: 1,
        print,
        onStderr,
        http,
        sleep: (ms) => sleepUntil(cut, ms),
        profiles: stores,
        signal: cut,
        issuedBy,
        note: printNote,
      });
    },
    isOfOtherServer: async (record) => (await (await remembered(record)).isOfOtherServer?.()) === true,
    undelivered,
    machine,
    allowed: (profile) => allowedTo(profile, { env, profiles }),
    async completeDelivery(record, may) {
      return (await remembered(record)).completeDelivery(may);
    },
    async removeReserve(record, entry, options) {
      (await remembered(record)).removeReserve(entry, options);
    },
    async reread(record) {
      return (await remembered(record)).reread();
    },
    ...masking({ env, terminal }),
    fromStdin: (what) => readSecret(terminal, what),
  };
}

function masking({ env, terminal }: Pick<Parts, "env" | "terminal">): Pick<Secrets, "checkMask" | "mask"> {
  const isMasked = env.GITHUB_ACTIONS === "true";
  const refuse = async (use?: string, meaning?: string): Promise<void> => {
    if (agentMode(env) === undefined) return;
    const { adviceForAgent, refuseForAgent } = await import("../secrets/stdout.ts");
    refuseForAgent(env, adviceForAgent(use), meaning);
  };
  return {
    async checkMask(use) {
      await refuse(use);
      if (isMasked) await (await import("../secrets/stdout.ts")).checkMask(2);
    },
    async mask(secret, receipt) {
      await refuse(undefined, "The response has a secret, so that nothing of it is shown.");
      if (isMasked) terminal.writeErr((await import("../secrets/stdout.ts")).maskLines(secret, receipt));
    },
  };
}

async function allowedTo(
  profile: string,
  { env, profiles }: Pick<SecretParts, "env" | "profiles">,
): Promise<readonly AllowedDestinations[]> {
  const lines = env.INTEG_DESTINATIONS_ALLOW?.split("\n").map((line) => line.trim());
  const own = (await profiles.store()).get(profile)?.destinations?.allow;
  return [
    ...(lines === undefined ? [] : [{ from: "INTEG_DESTINATIONS_ALLOW", list: lines.filter((line) => line !== "") }]),
    ...(own === undefined ? [] : [{ from: `profile ${profile}`, list: own }]),
  ];
}

async function sleepUntil(signal: AbortSignal, ms: number): Promise<void> {
  const { setTimeout: timer } = await import("node:timers/promises");
  await timer(ms, undefined, { signal }).catch(() => signal.throwIfAborted());
}

function ownPlaces({
  journalPath,
  stateDir,
  configDir,
}: Pick<Settings, "journalPath" | "stateDir" | "configDir">): string[] {
  // The default journal is always included, because it may have earlier entries.
  const state = ["journal.ndjson", "journal.key", "machine", "undelivered", "applied", "sandbox.json"].map((name) =>
    join(stateDir, name),
  );
  const config = ["profiles.json", "credentials", "keychain.json"].map((name) => join(configDir, name));
  return [...(isAddress(journalPath) ? [] : [journalPath]), ...state, ...config];
}

/** Longer input is a mistake: secrets are much shorter. */
const longestSecretBytes = 64 * 1024;
const longestInputBytes = 64 * 1024 * 1024;

async function readSecret(terminal: Terminal, what: string): Promise<string> {
  const bytes = await readStdin(terminal, { what, longest: longestSecretBytes });
  const text = decoded(bytes, what).replace(/\r?\n$/, "");
  if (text.trim() === "") throw new Failure("usage", `Standard input had no ${what}.`);
  return text;
}

async function readStdin(
  terminal: Terminal,
  { what, longest }: { readonly what: string; readonly longest: number },
): Promise<Buffer> {
  if (terminal.isTTY.stdin) throw new Failure("usage", `Standard input is a terminal: pipe the ${what} in.`);
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of terminal.stdin as AsyncIterable<Buffer | string>) {
    const bytes = Buffer.from(chunk as Buffer);
    size += bytes.length;
    if (size > longest) throw new Failure("usage", `Standard input is too long for the ${what}.`);
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}

/**
 * `TextDecoder` removes the byte order mark that editors on Windows add.
 * @throws Failure `usage` for bytes that are not UTF-8
 */
function decoded(bytes: Buffer, what: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Failure("usage", `Standard input is not UTF-8: the ${what} would be changed.`);
  }
}
