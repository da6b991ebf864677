// Opens destinations from options or records, and loads each kind on demand.
import { Failure, invalidValue } from "../errors.ts";
import type { ProfileStores } from "../profiles/configure.ts";
import type { SecretDigests } from "../journal/keys.ts";
import type { CommandTools } from "./command.ts";
import {
  describeDestination,
  type Destination,
  type DestinationOption,
  type RememberedDestination,
  type SecretOptions,
  type SingleDestinationPlace,
  type SingleRecord,
  storeKinds,
  type StoreScheme,
} from "./destination.ts";
import type { MachineId } from "../disk/machine-id.ts";
import type { ProfileTools } from "./profile.ts";
import type { OutputTools } from "./stdout.ts";
import type { OpenStore, StoreTarget, StoreTools } from "./store.ts";
import { quotedWord, flags } from "../next-step.ts";

export interface DestinationTools
  extends Omit<CommandTools, "commandLimitMs">,
    Pick<StoreTools, "http" | "sleep">,
    Pick<OutputTools, "print">,
    Pick<ProfileTools, "issuedBy" | "note"> {
  readonly cwd: string;
  /** integ's own files and folders, which no secret may replace. */
  readonly own?: readonly string[];
  readonly digests: SecretDigests;
  readonly machine: MachineId;
  readonly stdoutFd: number;
  /** Loads the stored profiles, so it is called on demand. */
  readonly profiles: () => Promise<ProfileStores>;
}

const stores: Readonly<Record<StoreScheme, () => Promise<{ readonly open: OpenStore }>>> = {
  vault: () => import("./vault-store.ts"),
  github: () => import("./github-store.ts"),
  k8s: () => import("./kubernetes-store.ts"),
  keychain: () => import("./keychain-store.ts"),
};

async function openStore(to: string, tools: StoreTools): Promise<StoreTarget> {
  const scheme = Object.keys(storeKinds).find((name): name is StoreScheme => to.startsWith(`${name}:`));
  if (scheme === undefined) {
    const forms = Object.values(storeKinds).map(({ form }) => form);
    throw invalidValue(flags.secretTo, to, {
      why: "it is not the address of a store that integ supports",
      hint: `Write ${forms.join(" or ")}; for another store use ${flags.secretCommand}.`,
    });
  }
  const { open } = await stores[scheme]();
  return { scheme, store: open(to.slice(scheme.length + 1), tools) };
}

function checkTogether({ to, as, force = false, remembered }: SecretOptions): void {
  if (as !== undefined)
    throw new Failure(
      "usage",
      `${flags.secretFormat} and ${flags.secretEnv} are for ${flags.secretFile} and ${flags.secretCommand}.`,
    );
  if (!force || remembered !== undefined || to.length > 0) return;
  throw new Failure("usage", `${flags.force} replaces existing content, and no destination can have any.`, {
    hint: `Add ${flags.secretFile} <path> or another destination, or leave ${flags.force} out.`,
  });
}

export async function destinationFor(options: SecretOptions, tools: DestinationTools): Promise<Destination> {
  checkTogether(options);
  const typed = await Promise.all(options.to.map((option) => singleDestination(option, options, tools)));
  const loadSeveral = (): Promise<typeof import("./several.ts")> => import("./several.ts");
  if (options.remembered) {
    const several = await (await loadSeveral()).rememberedSeveral(options.remembered, typed, async (place) => {
      const { option } = describeDestination(place);
      return option ? singleDestination(option, options, tools) : retypedCommand(place);
    });
    // With `isKept`, a destination that fails does not stop the others.
    if (options.force === true) await several.check({ isKept: true });
    return several;
  }
  // Checked now, because the consent covers the current content, which may change while the user answers a question.
  for (const [index, option] of options.to.entries())
    if (options.force === true || ("force" in option && option.force === true)) await typed[index]!.check();
  const [first, ...others] = typed;
  if (first === undefined) return (await import("./stdout.ts")).outputDestination({ ...tools, fd: tools.stdoutFd });
  return others.length === 0 ? first : (await loadSeveral()).severalDestinations(typed);
}

/** Stands for a recorded command, which the user must type again: the journal does not store its text. */
function retypedCommand(record: SingleRecord): SingleDestinationPlace {
  const refuse = async (): Promise<never> => {
    throw new Failure("usage", `Commands are not stored: pass ${flags.secretCommand} again.`);
  };
  return { isStdout: false, record, check: refuse, prepare: refuse, deliver: refuse, release: async () => {} };
}

async function singleDestination(
  option: DestinationOption,
  { force, mayBeOwn, commandLimitMs, yields }: SecretOptions,
  tools: DestinationTools,
): Promise<SingleDestinationPlace> {
  const consent = { consent: option.consent, force: force === true || option.force === true };
  switch (option.kind) {
    case "file": {
      checkFileName(option.path);
      const { fileDestination } = await import("./file.ts");
      return fileDestination({ path: option.path, as: option.as ?? "raw", mayBeOwn, ...consent }, tools.cwd, tools);
    }
    case "command":
      return (await import("./command.ts")).commandDestination({ ...option, ...consent }, { ...tools, commandLimitMs });
    case "profile": {
      if (option.name === "") throw new Failure("usage", `${flags.secretProfile} names no profile.`);
      const { profileDestination } = await import("./profile.ts");
      return profileDestination({ ...option, ...consent, yields }, { ...tools, stores: await tools.profiles() });
    }
    case "store": {
      const { facts } = option;
      const { storeDestination } = await import("./store.ts");
      return storeDestination({ ...(await openStore(option.to, tools)), facts, ...consent }, tools);
    }
  }
}

function checkFileName(path: string): void {
  if (path === "") throw new Failure("usage", `${flags.secretFile} names no file.`);
  if (!path.endsWith("/")) return;
  throw new Failure("usage", `The secret cannot go to ${path}: that names a folder.`, {
    hint: `Name a file in it: ${flags.secretFile} ${quotedWord(`${path}client.secret`)}.`,
  });
}

/** For stdout and commands, whose records do not allow a check. */
const uncheckable: RememberedDestination = {
  completeDelivery: async () => false,
  removeReserve: () => {},
  reread: async () => undefined,
};

export async function rememberedDestination(
  record: SingleRecord,
  tools: StoreTools & Pick<DestinationTools, "digests" | "profiles">,
): Promise<RememberedDestination> {
  const { digests, profiles } = tools;
  if (record.kind === "file") return (await import("./file.ts")).rememberedFile(record, digests);
  if (record.kind === "profile")
    return (await import("./profile.ts")).rememberedProfile(record, { stores: profiles, digests });
  if (record.kind === "store")
    return (await import("./store.ts")).rememberedStore(record, { open: () => openStore(record.to, tools), digests });
  return uncheckable;
}
