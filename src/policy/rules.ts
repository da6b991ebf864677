// Checks what the schema cannot, such as dates and unique destinations, and converts the file to a `Policy`.
import { basename, dirname, join, resolve } from "node:path";
import { checkAccessKey } from "../api/access-keys.ts";
import { durationMs, fullTime, isTime } from "../api/json/iso-time.ts";
import { checkCreation } from "../api/oauth-client-creation.ts";
import { validationMessage } from "../errors.ts";
import { storeKindOf, storeKinds } from "../secrets/destination.ts";
import { placeOf } from "./holders.ts";
import { destinationName, type ItemDestination, type Policy, type PolicyItem, type RotationRule } from "./policy.ts";
import type { Path } from "./positions.ts";
import type { DestinationFile, PolicyFile } from "./schema.ts";
import { readWindow } from "./window.ts";
import { newPolicyId } from "./works.ts";

export interface Defect {
  readonly path: Path;
  readonly message: string;
  /** True if the key is wrong, not its value. */
  readonly isKey?: boolean;
}

interface RulesContext {
  readonly folder: string;
  readonly nowMs: number;
  readonly realFolder?: ((folder: string) => string) | undefined;
}

export function policyFrom(file: PolicyFile, context: RulesContext): { policy: Policy; defects: Defect[] } {
  const rules = new Rules(file, context);
  return { policy: rules.policy(), defects: rules.defects };
}

type ClientFile = NonNullable<PolicyFile["oauth_clients"]>[string];
type KeyFile = NonNullable<PolicyFile["access_keys"]>[string];
type RotateFile = NonNullable<KeyFile["rotate"]>;
type OverlapFile = NonNullable<RotateFile["overlap"]>;

const standard = { overlap: "24h", maxFailures: 3, changesPerRun: 20, keepFreeSlots: 0 };

class Rules {
  readonly defects: Defect[] = [];
  readonly #file: PolicyFile;
  readonly #context: RulesContext;

  constructor(file: PolicyFile, context: RulesContext) {
    this.#file = file;
    this.#context = context;
  }

  policy(): Policy {
    const {
      id = "",
      profile,
      defaults = {},
      limits = {},
      unmanaged = "report",
      oauth_clients = {},
      access_keys = {},
    } = this.#file;
    const items = [
      ...Object.entries(oauth_clients).map(([name, client]) => this.#client(name, client)),
      ...Object.entries(access_keys).map(([name, key]) => this.#key(name, key)),
    ];
    this.#refuseDuplicates(items);
    const window = defaults.window === undefined ? undefined : readWindow(defaults.window);
    if (defaults.window !== undefined && window === undefined)
      this.#refuse(
        ["defaults", "window"],
        defaults.window,
        'a window such as "02:00-04:00 UTC"; the zone is UTC or a name like Europe/Berlin',
      );
    if (id === "")
      this.#report(
        ["version"],
        `the file has no id, which distinguishes its credentials from those of another policy. Allowed: a line such as id: ${newPolicyId()}`,
      );
    return {
      id,
      profile,
      items,
      window,
      unmanaged,
      maxFailures: defaults.max_failures ?? standard.maxFailures,
      changesPerRun: limits.changes_per_run ?? standard.changesPerRun,
      keepFreeSlots: limits.keep_free_slots ?? standard.keepFreeSlots,
    };
  }

  #client(name: string, { service_account, scopes, rotate, secret, accept_unproven }: ClientFile): PolicyItem {
    const path = ["oauth_clients", name];
    this.#scopes(path, scopes, (some) => checkCreation({ service_account_id: service_account, scopes: some }));
    return {
      policy: this.#file.id ?? "",
      kind: "oauth_client",
      name,
      serviceAccount: service_account,
      scopes,
      rotate: this.#rotation([...path, "rotate"], rotate),
      destinations: this.#destinations([...path, "secret"], secret),
      acceptsUnproven: accept_unproven === true,
    };
  }

  #key(name: string, { type, scopes, expires_in, expires_at, rotate, secret, accept_unproven }: KeyFile): PolicyItem {
    const path = ["access_keys", name];
    const { nowMs } = this.#context;
    this.#scopes(path, scopes, (some) => checkAccessKey({ name, scopes: some }, nowMs));
    const expiresInMs = this.#duration([...path, "expires_in"], expires_in);
    if (expiresInMs === 0) this.#refuse([...path, "expires_in"], expires_in, "a duration longer than zero");
    if (expires_at !== undefined && expires_in !== undefined)
      this.#refuse([...path, "expires_at"], expires_at, "expires_in or expires_at, not both");
    if (expires_at !== undefined && (!isTime(expires_at) || Date.parse(expires_at) <= nowMs))
      this.#refuse(
        [...path, "expires_at"],
        expires_at,
        "an ISO 8601 time with a zone, in the future, such as 2027-01-31T00:00:00Z",
      );
    const rule = this.#rotation([...path, "rotate"], rotate);
    if (rule?.beforeExpiryMs !== undefined && (expiresInMs === undefined || rule.beforeExpiryMs >= expiresInMs))
      this.#refuse(
        [...path, "rotate", "before_expiry"],
        rotate?.before_expiry,
        expiresInMs === undefined ? "before_expiry together with expires_in" : `less than expires_in (${expires_in})`,
      );
    const expiresAt = expires_at === undefined ? undefined : fullTime(expires_at);
    return {
      policy: this.#file.id ?? "",
      kind: "access_key",
      name,
      type,
      scopes,
      expiresInMs,
      expiresAt,
      rotate: rule,
      destinations: this.#destinations([...path, "secret"], secret),
      acceptsUnproven: accept_unproven === true,
    };
  }

  #rotation(path: Path, rotate: RotateFile | undefined): RotationRule | undefined {
    if (rotate === undefined) return undefined;
    const { overlap: standardOverlap, unknown_age } = this.#file.defaults ?? {};
    const everyMs = this.#duration([...path, "every"], rotate.every);
    const beforeExpiryMs = this.#duration([...path, "before_expiry"], rotate.before_expiry);
    const overlap = rotate.overlap ?? standardOverlap ?? standard.overlap;
    const isSet = rotate.overlap !== undefined;
    const overlapPath = isSet ? [...path, "overlap"] : standardOverlap === undefined ? path : ["defaults", "overlap"];
    const { overlapMs, unusedMs } = this.#overlap(overlapPath, overlap);
    if (unusedMs !== undefined && path[0] === "oauth_clients")
      this.#report(
        path,
        "defaults.overlap has unused_for, and the API does not show when a client was last used. Allowed: an overlap of its own here, such as overlap: 14d",
      );
    if (rotate.every === undefined && rotate.before_expiry === undefined)
      this.#refuse(path, rotate, "every or before_expiry");
    if (everyMs === 0) this.#refuse([...path, "every"], rotate.every, "a duration longer than zero");
    for (const [key, ms] of [
      ["every", everyMs],
      ["before_expiry", beforeExpiryMs],
    ] as const) {
      if (ms === undefined || ms === 0 || overlapMs < ms) continue;
      const longest = typeof overlap === "string" ? overlap : overlap.at_most;
      const limitWords = isSet
        ? longest
        : `${longest} (${standardOverlap === undefined ? "the default" : "of defaults"})`;
      this.#refuse(
        isSet ? overlapPath : [...path, key],
        limitWords,
        `an overlap shorter than ${key} (${rotate[key]})`,
        "overlap",
      );
    }
    return { everyMs, beforeExpiryMs, overlapMs, unusedMs, unknownAge: rotate.unknown_age ?? unknown_age ?? "report" };
  }

  #overlap(path: Path, overlap: OverlapFile): Pick<RotationRule, "overlapMs" | "unusedMs"> {
    if (typeof overlap === "string") return { overlapMs: this.#duration(path, overlap) ?? 0 };
    const { unused_for, at_most } = overlap;
    const unusedMs = this.#duration([...path, "unused_for"], unused_for);
    const overlapMs = this.#duration([...path, "at_most"], at_most) ?? 0;
    if (unusedMs === 0 || (unusedMs !== undefined && overlapMs > 0 && unusedMs >= overlapMs))
      this.#refuse([...path, "unused_for"], unused_for, `a duration above zero and below at_most (${at_most})`);
    return { overlapMs, unusedMs };
  }

  #duration(path: Path, text: string | undefined): number | undefined {
    if (text === undefined) return undefined;
    const ms = /^\d+(\.\d+)?$/.test(text.trim()) ? undefined : durationMs(text);
    if (ms === undefined) this.#refuse(path, text, "a duration with its unit, such as 36h or 90d");
    return ms;
  }

  #scopes(path: Path, scopes: readonly string[], check: (scopes: readonly string[]) => void): void {
    const first = new Map<string, number>();
    let isSound = true;
    for (const [index, scope] of scopes.entries()) {
      const at = [...path, "scopes", index];
      const message = validationMessage(() => check([scope]));
      const allowed = `one scope by its name, such as ${path[0] === "access_keys" ? '"push-ingest:*"' : "entity:read"}`;
      if (message !== undefined) this.#report(at, `${message.replace(/\.$/, "")}. Allowed: ${allowed}`);
      else if (first.has(scope)) this.#refuse(at, scope, "each scope once", "scope");
      isSound &&= message === undefined;
      first.set(scope, index);
    }
    const message = isSound ? validationMessage(() => check(scopes)) : undefined;
    if (message !== undefined) this.#report([...path, "scopes"], message);
  }

  #destinations(path: Path, secret: ClientFile["secret"]): ItemDestination[] {
    if (secret === "unknown") return [];
    if (!Array.isArray(secret)) return [this.#destination(path, secret)];
    return secret.map((one, index) => this.#destination([...path, index], one));
  }

  #destination(path: Path, secret: DestinationFile): ItemDestination {
    if (typeof secret !== "string") return "file" in secret ? this.#fileAt(path, secret) : secret;
    const kind = storeKindOf(secret);
    const kinds = kind === undefined ? Object.values(storeKinds) : [kind];
    if (kind?.pattern.test(secret) !== true)
      this.#refuse(path, secret, `the address of a store: ${kinds.map(({ form }) => form).join(" or ")}`);
    return { store: secret };
  }

  #fileAt(path: Path, secret: Extract<ItemDestination, { file: string }>): ItemDestination {
    if (secret.file.startsWith("~"))
      this.#refuse(
        [...path, "file"],
        secret.file,
        "a path, absolute or relative to the policy file; ~ stands for no folder here",
      );
    return { ...secret, file: resolve(this.#context.folder, secret.file) };
  }

  /** Names identify items, and two secrets at one destination would overwrite each other. */
  #refuseDuplicates(items: readonly PolicyItem[]): void {
    const names = new Set<string>();
    const places = new Map<string, string>();
    for (const { name, kind, destinations } of items) {
      const path = [kind === "oauth_client" ? "oauth_clients" : "access_keys", name];
      if (names.has(name))
        this.defects.push({
          path,
          isKey: true,
          message: `the name "${name}" is used twice. Allowed: names that are unique in the file`,
        });
      names.add(name);
      for (const destination of destinations) {
        const text = placeOf({ ...this.#realPlace(destination), format: undefined });
        const other = places.get(text);
        const to = destinationName(destination);
        const wrong =
          other === name
            ? `the secret of ${name} goes to ${to} twice. Allowed: each destination once`
            : `the secrets of ${name} and ${other} go to the same destination, ${to}. Allowed: a destination of its own for each item`;
        if (other !== undefined) this.#report([...path, "secret"], wrong);
        else places.set(text, name);
      }
    }
  }

  /** Makes two paths to the same file equal, unless the file itself is a link. */
  #realPlace(destination: ItemDestination): ItemDestination {
    const { realFolder } = this.#context;
    if (!("file" in destination) || realFolder === undefined) return destination;
    return { ...destination, file: join(realFolder(dirname(destination.file)), basename(destination.file)) };
  }

  #refuse(path: Path, value: unknown, allowed: string, name = path.join(".")): void {
    this.#report(path, `${name} is ${JSON.stringify(value)}. Allowed: ${allowed}`);
  }

  #report(path: Path, message: string): void {
    this.defects.push({ path, message: message.replace(/\.$/, "") });
  }
}
