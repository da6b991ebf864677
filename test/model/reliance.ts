// Who relies on which secret, where people, policies and machines act beside each other: which place holds which secret, who
// asked for it there, and whose client or key it is. It judges what integ does; what a person breaks is broken by that person.
import type { Entry } from "../../src/journal/entry.ts";
import { withoutLastNewline } from "../../src/secrets/destination.ts";
import type { Made } from "../unit/operations/an-account.ts";
import type { Machine } from "./in-memory.ts";
import { secretIn } from "./profiles-in-memory.ts";
import type { World } from "./simulated-world.ts";
import type { Process } from "./turns.ts";

/** A profile that acts: no `--force` stands for a yes to replace its credential. */
export const actingProfile = "p";

export class Reliance {
  readonly #world: World;
  /** Whose a client or key is: an item's of a policy, somebody's command, or a person's in the console. */
  readonly #owners = new Map<string, string>();
  /** Where an owner wants secrets. */
  readonly #asked = new Map<string, Set<string>>();
  /** What integ wrote where. */
  readonly #written = new Set<string>();
  /** What a person who typed `--force`, or a policy whose profile is new, saw at a place. */
  readonly #consents = new Set<string>();
  readonly #forced = new Map<Process, readonly string[]>();
  readonly #secrets = new Map<string, Made>();

  constructor(world: World) {
    this.#world = world;
  }

  asks(owner: string, places: readonly string[]): void {
    const asked = this.#asked.get(owner) ?? new Set();
    for (const place of places) asked.add(place);
    this.#asked.set(owner, asked);
  }

  /** The item's policy says `accept_unproven`: what was handed to a command cannot be read again after a crash. */
  accepts(rotation: Entry): boolean {
    return this.#asked.get(this.#ownerOf(rotation))?.has("command") === true;
  }

  /** A command is typed that may replace what is at these places now. */
  consents(process: Process, places: readonly string[]): void {
    this.#forced.set(process, places);
    for (const place of places) this.#consents.add(consentTo(place, this.contentOf(place)));
  }

  made(id: string, entry: Entry): void {
    this.#owners.set(id, this.#ownerOf(entry));
  }

  /** A secret is about to be written over what is at a place. */
  delivering(about: {
    readonly process: Process;
    readonly place: string;
    readonly before: string | undefined;
    readonly secret: string;
  }): void {
    const { process, place, before, secret } = about;
    const made = this.#madeWith(secret);
    if (made === undefined) return;
    const owner = this.#owners.get(made.id) ?? "";
    const asked = this.#asked.get(owner.startsWith("typed ") ? "typed" : owner);
    if (asked?.has(place) !== true)
      this.#broken(`the secret of ${made.id} (${owner}) went to ${place}: nobody asked for that`);
    if (before !== undefined && !this.#mayReplace(place, before, made))
      this.#broken(
        `${process.name} overwrote ${JSON.stringify(before)} at ${place} with the secret of ${made.id} (${owner})`,
      );
    this.#written.add(`${place}\n${secret}`);
    for (const [one, places] of this.#forced)
      if (!one.isDead && !one.isEnded && places.includes(place)) this.#consents.add(consentTo(place, secret));
  }

  #mayReplace(place: string, before: string, made: Made): boolean {
    const text = withoutLastNewline(before);
    if (text === made.secret) return true;
    if (place.endsWith(`:profile:${actingProfile}`)) return false;
    if (this.#consents.has(consentTo(place, before)) || this.#isOfReplaced(place, made)) return true;
    const old = this.#madeWith(text);
    if (old === undefined || !this.#written.has(`${place}\n${text}`)) return false;
    return old.status === "revoked" || old.secret !== text || this.#owners.get(old.id) === this.#owners.get(made.id);
  }

  /** A profile says of itself that it is of the client or key that this one takes the place of: its credential ends. */
  #isOfReplaced(place: string, made: Made): boolean {
    const [where, kind, name = ""] = place.split(":");
    const machine = this.#world.machines.find((one) => one.name === where);
    const credential = kind === "profile" ? machine?.profiles.get(name)?.credential : undefined;
    const of = credential?.kind === "client_credentials" ? credential.client_id : credential?.key_id;
    const old = this.#all().find(({ id, clientId }) => id === of || (id.startsWith("oc") && clientId === of));
    return old !== undefined && this.#owners.get(old.id) === this.#owners.get(made.id);
  }

  /** Something that works is about to be revoked for an entry. */
  revoking(machine: Machine, id: string, entry: Entry | undefined): void {
    const going = this.#all().find((made) => made.id === id);
    if (going?.status !== "active" || entry === undefined || entry.operation.endsWith(".revoke")) return;
    const [owner = "a person", by] = [this.#owners.get(id), this.#ownerOf(entry)];
    if (owner !== by) return this.#broken(`${id} of ${owner} was revoked for ${entry.id} of ${by}`);
    const holders = this.#placesWith(going.secret);
    if (entry.operation.endsWith(".create")) {
      if (holders.length > 0 || this.#world.outside.printed.has(going.secret))
        this.#broken(
          `${id} was revoked as lost, and its secret is in use: ${holders.join(", ") || "it was handed over"}`,
        );
      return;
    }
    for (const place of holders) this.#broken(`${id} was revoked for ${entry.id}, and ${place} has no other secret`);
    for (const place of this.#asked.get(owner.startsWith("typed ") ? "" : owner) ?? []) {
      // What was handed to a command cannot be looked at.
      const isHere = place.startsWith("store:") || place.startsWith(`${machine.name}:`);
      if (isHere && this.#workingAt(place, owner) === undefined)
        this.#broken(`${id} was revoked for ${entry.id}, and ${place} has ${JSON.stringify(this.contentOf(place))}`);
    }
  }

  /** What of an owner works at a place. */
  #workingAt(place: string, owner: string): Made | undefined {
    const made = this.#madeWith(withoutLastNewline(this.contentOf(place) ?? ""));
    return made?.status === "active" && this.#owners.get(made.id) === owner ? made : undefined;
  }

  /** What is not as an owner asked for it, when everything is over. */
  lacks(owner: string): string[] {
    return [...(this.#asked.get(owner) ?? [])]
      .filter((place) => place !== "command")
      .filter((place) => this.#workingAt(place, owner) === undefined)
      .map((place) => `${place} has ${JSON.stringify(this.contentOf(place))}, and nothing of ${owner} that works`);
  }

  live(owner: string): string[] {
    return this.#all().flatMap(({ id, status }) => (status === "active" && this.#owners.get(id) === owner ? id : []));
  }

  contentOf(place: string): string | undefined {
    const [where = "", kind, ...name] = place.split(":");
    if (where === "store") return this.#world.outside.stores.get(name.join(":"))?.at(-1);
    const machine = this.#world.machines.find((one) => one.name === where);
    if (kind === "file") return machine?.files.get(name.join(":"))?.secret;
    const profile = machine?.profiles.get(name.join(":"));
    return profile && secretIn(profile, machine!.credentials);
  }

  /** Where integ put a secret, and it still is. */
  #placesWith(secret: string): string[] {
    return [...this.#written]
      .map((line) => line.split("\n"))
      .filter(([place, text]) => text === secret && withoutLastNewline(this.contentOf(place!) ?? "") === secret)
      .map(([place]) => place!);
  }

  #madeWith(secret: string): Made | undefined {
    for (const made of this.#all()) this.#secrets.set(made.secret, made);
    return this.#secrets.get(secret);
  }

  #ownerOf(entry: Entry): string {
    const { policy, operation, parent, replaces, detail, id } = entry;
    const kind = operation.startsWith("access_key") ? "access_key" : "oauth_client";
    if (policy) return `${policy.id}/${kind}/${policy.item}`;
    const above = this.#world.entries().find((one) => one.id === (parent ?? replaces));
    return above
      ? this.#ownerOf(above)
      : (this.#owners.get(detail.old_client ?? detail.old_key ?? "") ?? `typed ${id}`);
  }

  #all(): Made[] {
    return this.#world.all();
  }

  #broken(what: string): void {
    this.#world.broken.push(what);
  }
}

/** A newline at the end is forgiven. */
function consentTo(place: string, content: string | undefined): string {
  return `${place}\n${withoutLastNewline(content ?? "")}`;
}
