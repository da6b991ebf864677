// Checks what integ delivers, overwrites and revokes while people, policies and machines act side by side.
import type { Entry } from "../../src/journal/entry.ts";
import { withoutLastNewline } from "../../src/secrets/destination.ts";
import type { Made } from "../unit/operations/an-account.ts";
import type { Machine } from "./in-memory.ts";
import { secretIn } from "./profiles-in-memory.ts";
import type { World } from "./simulated-world.ts";
import type { Process } from "./turns.ts";

/** The name of the acting profile, whose credential not even `--force` may replace. */
export const actingProfile = "p";

export class Reliance {
  readonly #world: World;
  /** Maps a client or key to its owner: a policy's item, or a typed command. */
  readonly #owners = new Map<string, string>();
  readonly #ownersOfWork = new Map<string, string>();
  readonly #places = new Map<string, Set<string>>();
  /** Each secret that integ wrote, as two lines: the place and the secret. */
  readonly #written = new Set<string>();
  /** Contents that may be replaced, in the form of `consentTo`. */
  readonly #consents = new Set<string>();
  readonly #forced = new Map<Process, readonly string[]>();
  readonly #secrets = new Map<string, Made>();
  /** The moment of each process's last look at a destination, and of each place's last delivery by a process in `#forced`. */
  readonly #looks = new Map<Process, number>();
  readonly #forcedAt = new Map<string, number>();
  #moments = 0;

  constructor(world: World) {
    this.#world = world;
  }

  addPlaces(owner: string, places: readonly string[]): void {
    this.#places.set(owner, new Set([...(this.#places.get(owner) ?? []), ...places]));
  }

  /** An item with a command accepts an unproven secret: after a crash, the command's secret cannot be read again. */
  acceptsUnproven(rotation: Entry): boolean {
    return this.#places.get(this.#ownerOf(rotation))?.has("command") === true;
  }

  addConsents(process: Process, places: readonly string[]): void {
    this.#forced.set(process, places);
    for (const place of places) this.#consents.add(consentTo(place, this.contentOf(place)));
  }

  addMade(id: string, entry: Entry): void {
    this.#owners.set(id, this.#ownerOf(entry));
  }

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
    const places = this.#places.get(owner.startsWith("typed ") ? "typed" : owner);
    if (places?.has(place) !== true)
      this.#broken(`the secret of ${made.id} (${owner}) went to ${place}: no one asked for that`);
    if (before !== undefined && !this.#mayReplace(place, before, made))
      this.#broken(
        `${process.name} overwrote ${JSON.stringify(before)} at ${place} with the secret of ${made.id} (${owner})`,
      );
    this.#written.add(`${place}\n${secret}`);
    if (this.#forced.get(process)?.includes(place)) this.#forcedAt.set(place, (this.#moments += 1));
    for (const [one, forced] of this.#forced)
      if (!one.isDead && !one.isEnded && forced.includes(place)) this.#consents.add(consentTo(place, secret));
  }

  #mayReplace(place: string, before: string, made: Made): boolean {
    const text = withoutLastNewline(before);
    if (text === made.secret) return true;
    if (place.endsWith(`:profile:${actingProfile}`)) return false;
    if (this.#consents.has(consentTo(place, before)) || this.#isOfReplaced(place, made)) return true;
    const old = this.#madeWith(text);
    if (old === undefined) return false;
    // The owner may replace its own secret, no matter who wrote it.
    if (this.#owners.get(old.id) === this.#owners.get(made.id)) return true;
    return this.#written.has(`${place}\n${text}`) && (old.status === "revoked" || old.secret !== text);
  }

  #isOfReplaced(place: string, made: Made): boolean {
    const [where, kind, name = ""] = place.split(":");
    const machine = this.#world.machines.find((one) => one.name === where);
    const credential = kind === "profile" ? machine?.profiles.get(name)?.credential : undefined;
    const of = credential?.kind === "client_credentials" ? credential.client_id : credential?.key_id;
    const old = this.#all().find(({ id, clientId }) => id === of || (id.startsWith("oc") && clientId === of));
    return old !== undefined && this.#owners.get(old.id) === this.#owners.get(made.id);
  }

  noteLook(process: Process): void {
    this.#looks.set(process, (this.#moments += 1));
  }

  #isForcedAfterLook(process: Process, place: string): boolean {
    return (this.#forcedAt.get(place) ?? 0) > (this.#looks.get(process) ?? Infinity);
  }

  /** A machine can read all stores, and its own files and profiles until its state folder is lost. */
  #canLookAt(machine: Machine, place: string): boolean {
    return place.startsWith("store:") || (machine.id === machine.name && place.startsWith(`${machine.name}:`));
  }

  isReadableBy(machine: Machine, secret: string): boolean {
    return this.#placesWith(secret).some((place) => this.#canLookAt(machine, place));
  }

  /** True if a process cannot notice that a secret is missing at a place to which integ wrote it. */
  couldNotSee(process: Process, machine: Machine, secret: string): boolean {
    const places = [...this.#written].flatMap((line) => (line.endsWith(`\n${secret}`) ? line.split("\n")[0]! : []));
    return places.some((place) => !this.#canLookAt(machine, place) || this.#isForcedAfterLook(process, place));
  }

  revoking(process: Process, machine: Machine, id: string, entry: Entry | undefined): void {
    const going = this.#all().find((made) => made.id === id);
    if (going?.status !== "active" || entry === undefined || entry.operation.endsWith(".revoke")) return;
    const [owner = "a person", by] = [this.#owners.get(id), this.#ownerOf(entry)];
    if (owner !== by) return this.#broken(`${id} of ${owner} was revoked for ${entry.id} of ${by}`);
    const holders = this.#placesWith(going.secret);
    if (entry.operation.endsWith(".create")) {
      if (holders.length > 0 || this.#world.outside.printed.has(going.secret))
        this.#broken(
          `${id} was revoked as lost, and its secret is in use: ${holders.join(", ") || "it was delivered"}`,
        );
      return;
    }
    for (const place of holders) this.#broken(`${id} was revoked for ${entry.id}, and ${place} has no other secret`);
    for (const place of this.#places.get(owner.startsWith("typed ") ? "" : owner) ?? []) {
      const isSeen = this.#canLookAt(machine, place) && !this.#isForcedAfterLook(process, place);
      if (isSeen && this.#workingAt(place, owner) === undefined)
        this.#broken(`${id} was revoked for ${entry.id}, and ${place} has ${JSON.stringify(this.contentOf(place))}`);
    }
  }

  #workingAt(place: string, owner: string): Made | undefined {
    const made = this.#madeWith(withoutLastNewline(this.contentOf(place) ?? ""));
    return made?.status === "active" && this.#owners.get(made.id) === owner ? made : undefined;
  }

  lacks(owner: string): string[] {
    return [...(this.#places.get(owner) ?? [])]
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

  /** Called before an attacker removes one of the entries: the owners of its children cannot be derived afterwards. */
  keepOwners(entries: readonly Entry[]): void {
    for (const entry of entries) this.#ownersOfWork.set(entry.id, this.#ownerOf(entry));
  }

  isTyped(entry: Entry): boolean {
    return this.#ownerOf(entry).startsWith("typed ");
  }

  #ownerOf(entry: Entry): string {
    const { policy, operation, parent, replaces, detail, id } = entry;
    const known = this.#ownersOfWork.get(id);
    if (known !== undefined) return known;
    const kind = operation.startsWith("access_key") ? "access_key" : "oauth_client";
    if (policy) return `${policy.id}/${kind}/${policy.item}`;
    const above = this.#world.entries().find((one) => one.id === (parent ?? replaces));
    if (above) return this.#ownerOf(above);
    // An attacker can add an old client or key to the entry of a creation.
    const old = operation.endsWith(".rotate") ? (detail.old_client ?? detail.old_key) : undefined;
    return this.#owners.get(old ?? "") ?? `typed ${id}`;
  }

  #all(): Made[] {
    return this.#world.all();
  }

  #broken(what: string): void {
    this.#world.broken.push(what);
  }
}

function consentTo(place: string, content: string | undefined): string {
  return `${place}\n${withoutLastNewline(content ?? "")}`;
}
