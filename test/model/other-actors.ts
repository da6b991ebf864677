// What actors other than integ do between two nights. If all turns are benign, all work must finish without a person. After
// a hostile turn, integ may refuse to continue.
import type { Entry } from "../../src/journal/entry.ts";
import { isSettled } from "../../src/journal/entry.ts";
import { actingProfile } from "./reliance.ts";
import type { Machine } from "./in-memory.ts";
import type { World } from "./simulated-world.ts";
import type { Chance } from "./turns.ts";

export interface Others {
  readonly world: World;
  readonly chance: Chance;
  readonly machine: Machine;
  /** The current folder of each machine's kept secrets. */
  readonly folders: Map<Machine, string>;
  readonly backups: Map<Machine, () => void>;
}

interface Turn {
  readonly name: string;
  readonly class: "benign" | "hostile";
  /** @returns false if there is nothing to act on */
  readonly act: (others: Others) => boolean | void;
}

const personalText = "a person's own text";

function somePath({ machine, chance }: Others): string | undefined {
  const paths = [...machine.files.keys()];
  return paths.length > 0 ? chance.pick(paths) : undefined;
}

function someMade({ world, chance }: Others, status: string) {
  const all = world
    .all()
    .filter(({ id, status: now }) => now === status && id !== "ak_own" && !id.startsWith("console"));
  return all.length > 0 ? chance.pick(all) : undefined;
}

function anotherSecret(others: Others): string {
  const { chance } = others;
  return (chance.is(0.5) ? someMade(others, "active")?.secret : undefined) ?? personalText;
}

function write({ machine }: Others, path: string, secret: string): void {
  machine.files.set(path, { inode: "by hand", secret });
}

function someStore({ world, chance }: Others): string[] | undefined {
  const stores = [...world.outside.stores.values()].filter((written) => written.length > 0);
  return stores.length > 0 ? chance.pick(stores) : undefined;
}

function targetProfile({ machine, chance }: Others) {
  return chance.pick([...machine.profiles.values()].filter(({ name }) => name !== actingProfile));
}

/** Edits an entry, mostly an unfinished one, without the journal's key. @returns false if there are no entries */
function editEntry(others: Others, change: (entry: Entry) => Entry): boolean {
  const { machine, chance } = others;
  const open = machine.entries.filter(({ state }) => !isSettled(state));
  const all = open.length > 0 && chance.is(0.8) ? open : machine.entries;
  if (all.length === 0) return false;
  const entry = chance.pick(all);
  machine.entries[machine.entries.indexOf(entry)] = change(entry);
  machine.tampered.add(entry.id);
  return true;
}

function revoke(others: Others, becomes: "revoked" | "disabled"): boolean {
  const made = someMade(others, "active");
  if (made === undefined) return false;
  made.status = becomes;
  others.world.revokedByHand.add(made.id);
  return true;
}

const turns: readonly Turn[] = [
  {
    name: "an editor adds a newline to a file",
    class: "benign",
    act: (others) => {
      const path = somePath(others);
      const text = path === undefined ? undefined : others.machine.files.get(path)?.secret;
      if (path === undefined || text === undefined || text.endsWith("\n")) return false;
      return write(others, path, `${text}\n`);
    },
  },
  {
    name: "the host is renamed",
    class: "benign",
    act: ({ machine }) => void (machine.host += "'"),
  },
  {
    name: "the state folder is moved",
    class: "benign",
    act: ({ machine, folders }) => {
      const [before, after] = [folders.get(machine)!, `${folders.get(machine)}'`];
      for (const map of [machine.kept, machine.keptReserves] as Map<string, unknown>[])
        for (const name of map.keys()) {
          if (!name.startsWith(`${before} `)) continue;
          map.set(name.replace(`${before} `, `${after} `), map.get(name));
          map.delete(name);
        }
      folders.set(machine, after);
    },
  },
  {
    name: "someone creates a key of the same name in the console",
    class: "benign",
    act: ({ world, chance }) => {
      const made = world.account.addExisting("key", `console-${world.account.keys.length}`, {
        name: chance.pick(["nightly", "reporting"]),
        at: world.now,
      });
      world.outside.printed.add(made.secret);
    },
  },
  {
    name: "a file is deleted",
    class: "hostile",
    act: (others) => {
      const path = somePath(others);
      return path !== undefined && others.machine.files.delete(path);
    },
  },
  {
    name: "a file is edited",
    class: "hostile",
    act: (others) => {
      const path = somePath(others);
      return path !== undefined && write(others, path, anotherSecret(others));
    },
  },
  {
    name: "a file is moved away, and another one is in its place",
    class: "hostile",
    act: (others) => {
      const path = somePath(others);
      if (path === undefined) return false;
      write(others, `${path}.moved`, others.machine.files.get(path)!.secret);
      return write(others, path, anotherSecret(others));
    },
  },
  {
    name: "a value in a store is changed",
    class: "hostile",
    act: (others) => {
      const written = someStore(others);
      if (written === undefined) return false;
      written.push(anotherSecret(others));
    },
  },
  {
    name: "a value in a store is deleted",
    class: "hostile",
    act: (others) => {
      const written = someStore(others);
      if (written === undefined) return false;
      written.length = 0;
    },
  },
  {
    name: "a profile is removed and another one of its name added",
    class: "hostile",
    act: (others) => {
      const { machine, world } = others;
      const profile = targetProfile(others);
      const ref = `by hand ${(world.elapsed += 1)}`;
      machine.credentials.set(ref, anotherSecret(others));
      const credential = { kind: "api_key", basic_style: "apikey-user", source: "stored", ref, kept: "file" } as const;
      machine.profiles.set(profile.name, { ...profile, id: ref, credential });
    },
  },
  {
    name: "a profile gets another credential",
    class: "hostile",
    act: (others) => {
      const { machine, world, chance } = others;
      const profile = targetProfile(others);
      const made = world.account.clients.at(-1);
      // A wrong secret must not count as that client's secret.
      const credential = {
        kind: "client_credentials",
        client_id: made?.clientId ?? "cid_0",
        token_endpoint: "https://tokens.example/token",
        client_auth: "client_secret_basic",
        ...(chance.is(0.5)
          ? ({ source: "command", command: "cat /not-yet" } as const)
          : ({ source: "stored", ref: "wrong", kept: "file" } as const)),
      } as const;
      machine.credentials.set("wrong", personalText);
      machine.profiles.set(profile.name, { ...profile, credential });
    },
  },
  {
    name: "a backup of the state folder is restored",
    class: "hostile",
    act: ({ machine, backups }) => {
      const restore = backups.get(machine);
      if (restore === undefined) return false;
      restore();
      backups.delete(machine);
    },
  },
  {
    name: "the state folder is lost",
    class: "hostile",
    act: ({ world, machine }) => {
      machine.id += "'";
      machine.kept.clear();
      machine.keptReserves.clear();
      if (!world.isTeam) machine.entries.length = 0;
      world.promises.forget();
    },
  },
  { name: "someone revokes a client or key", class: "hostile", act: (others) => revoke(others, "revoked") },
  { name: "someone disables a client or key", class: "hostile", act: (others) => revoke(others, "disabled") },
  {
    name: "someone enables what was disabled",
    class: "hostile",
    act: (others) => {
      const made = someMade(others, "disabled");
      if (made === undefined) return false;
      made.status = "active";
    },
  },
  {
    name: "an attacker changes where a secret goes",
    class: "hostile",
    act: (others) => {
      const { machine, chance } = others;
      const destination = chance.pick([
        { kind: "file", path: "/attacker", as: "raw", machine: machine.id },
        { kind: "store", to: "memory:attacker", facts: {} },
        { kind: "command" },
      ] as const);
      return editEntry(others, (entry) => ({ ...entry, destination }));
    },
  },
  {
    name: "an attacker changes a token endpoint",
    class: "hostile",
    act: (others) =>
      editEntry(others, ({ detail, ...entry }) => ({
        ...entry,
        detail: {
          ...detail,
          proof: { token_endpoint: "https://attacker.example", client_auth: "client_secret_basic" },
          key_exchange: { kind: "endpoint", url: "https://attacker.example" },
        },
      })),
  },
  {
    name: "an attacker changes the client or key of an entry",
    class: "hostile",
    act: (others) => {
      const made = someMade(others, "active");
      if (made === undefined) return false;
      const isKey = made.id.startsWith("ak");
      return editEntry(others, (entry) => ({
        ...entry,
        resource_id: made.id,
        state: others.chance.pick(["secret_lost", "pending", "done"] as const),
        detail: {
          ...entry.detail,
          ...(isKey ? { old_key: made.id } : { old_client: made.id }),
          proven: "token exchange",
        },
      }));
    },
  },
  {
    name: "an attacker removes an entry",
    class: "hostile",
    act: ({ world, machine, chance }) => {
      if (machine.entries.length === 0) return false;
      world.reliance?.keepOwners(machine.entries);
      machine.entries.splice(chance.below(machine.entries.length), 1);
      world.promises.forget();
    },
  },
];

export function takeTurn(others: Others, of: Turn["class"]): void {
  const { world, chance } = others;
  const turn = chance.pick(turns.filter((one) => one.class === of));
  if (turn.act(others) !== false) world.turns.history.push(`on ${others.machine.name} ${turn.name}`);
}
