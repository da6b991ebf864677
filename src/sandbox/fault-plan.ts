import { type Fault, type FaultEffects, parseFault } from "./fault.ts";
import { Throttle } from "./service.ts";

interface ActiveFault {
  readonly fault: Fault;
  readonly throttle: Throttle | undefined;
  /** `seen`: matching requests; `met`: affected requests. */
  seen: number;
  met: number;
}

export interface PlanSettings {
  readonly specs: readonly string[];
  readonly random: () => number;
}

export interface FaultTarget {
  readonly method: string;
  readonly path: string;
  /** Hash of the credential, for `rate`. */
  readonly credential: string;
  readonly now: number;
}

/** Combines the effects of matching faults. In a conflict, the first fault wins. */
export class FaultPlan {
  readonly #random: () => number;
  #active: ActiveFault[];

  constructor(settings: PlanSettings) {
    this.#random = settings.random;
    this.#active = settings.specs.map(activeFault);
  }

  add(spec: string): void {
    this.#active.push(activeFault(spec));
  }

  clear(): void {
    this.#active = [];
  }

  list(): { fault: string; seen: number; met: number }[] {
    return this.#active.map(({ fault, seen, met }) => ({ fault: fault.spec, seen, met }));
  }

  /** Counts the request for `times`, `after` and `rate`, too. */
  applyTo(request: FaultTarget): FaultEffects {
    const effects: FaultEffects = {};
    for (const one of this.#active) {
      if (!one.fault.matches(request.method, request.path)) continue;
      const applied = this.#effectsOf(one, request);
      if (applied) Object.assign(effects, { ...applied, ...effects });
    }
    return effects;
  }

  #effectsOf(one: ActiveFault, request: FaultTarget): FaultEffects | undefined {
    const { times, after, probability } = one.fault.effects;
    one.seen += 1;
    if (one.seen <= (after ?? 0) || one.met >= (times ?? Number.POSITIVE_INFINITY)) return undefined;
    if (probability !== undefined && this.#random() >= probability) return undefined;
    const limited = one.throttle ? rateEffects(one, request) : {};
    if (limited === undefined) return undefined;
    one.met += 1;
    return { ...one.fault.effects, ...limited };
  }
}

function activeFault(spec: string): ActiveFault {
  const fault = parseFault(spec);
  const throttle = fault.effects.rate ? new Throttle(fault.effects.rate) : undefined;
  return { fault, throttle, seen: 0, met: 0 };
}

function rateEffects(one: ActiveFault, request: FaultTarget): FaultEffects | undefined {
  const seconds = one.throttle!.take(request.credential, request.now);
  if (seconds === 0) return undefined;
  const asDate = one.fault.effects["retry-after"] === "date";
  return { status: 429, "retry-after": asDate ? `date+${seconds}` : String(seconds) };
}

/** mulberry32: a fixed sequence for each seed. */
export function seededRandom(seed: number): () => number {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
