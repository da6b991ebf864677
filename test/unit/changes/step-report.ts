// What operations do as text: each step has a number, and what happens again stands once.
import type { Entry } from "../../../src/journal/entry.ts";
import type { AWorld, Ended } from "./a-world.ts";
import { ask, type Asked, type Operation } from "./every-operation.ts";

const hour = 3_600_000;

function endOf({ kind, failure }: Ended<unknown>): string {
  return kind === "done" || kind === "crash" ? kind : `${kind} (${failure?.message})`;
}

/** How its entries stand. */
export function standing({ entries }: AWorld): string {
  return entries
    .map(({ id, state, resource_id }: Entry) => `${Number(id) - 1e9} ${state} ${resource_id ?? "-"}`)
    .join("; ");
}

/** All steps that were ever made have a number; what is the same as under an earlier name stands there alone. */
export class Report {
  readonly #numbers = new Map<string, number>();
  readonly #met = new Map<string, string>();
  readonly #lines: string[] = [];

  /** The numbers of the steps, those that follow on each other as a span. */
  #wordsOf(steps: readonly string[]): string {
    const spans: [number, number][] = [];
    for (const made of steps) {
      // A key that is made for a replacement has a mark in its name.
      const step = made.replaceAll(/new-[0-9a-f]{12}/g, "new-<mark>");
      const number = this.#numbers.get(step) ?? this.#numbers.size + 1;
      this.#numbers.set(step, number);
      const last = spans.at(-1);
      if (last !== undefined && number === last[1] + 1) last[1] = number;
      else spans.push([number, number]);
    }
    return spans.map(([from, to]) => (from === to ? from : `${from}-${to}`)).join(" ");
  }

  said(world: AWorld, end: Ended<unknown>): string {
    const value = end.kind === "done" && end.value !== undefined ? ` ${JSON.stringify(end.value)}` : "";
    return `    ${endOf(end)}${value}: ${this.#wordsOf(world.steps)}`;
  }

  async lived(world: AWorld, operation: Operation, asked: Asked = {}): Promise<string[]> {
    const end = await ask(world, operation, asked);
    return [`    ${endOf(end)}: ${this.#wordsOf(world.steps)}`];
  }

  async recovered(world: AWorld): Promise<string[]> {
    const lines: string[] = [];
    for (const answer of ["no", "yes"]) {
      if (world.unsettled().length === 0) break;
      world.now += hour;
      const isYes = async (): Promise<boolean> => answer === "yes";
      const { value = [] } = await world.recover({ mayReplace: isYes, mayRevokeUnproven: isYes });
      const ends = value.map(({ failure }) => failure?.kind ?? "done").join(", ");
      lines.push(`    recovered, ${answer}, ${ends}: ${this.#wordsOf(world.steps)}`);
    }
    return [...lines, `    left: ${standing(world)}`];
  }

  /** One process that recovers everything, and agrees to all or to nothing. */
  async once(world: AWorld, isYes = true): Promise<string> {
    const agrees = async (): Promise<boolean> => isYes;
    const { value = [] } = await world.recover({ mayReplace: agrees, mayRevokeUnproven: agrees });
    const ends = value.map(({ failure }) => (failure ? `${failure.kind} (${failure.message})` : "done")).join(", ");
    return `    recovered, ${ends}: ${this.#wordsOf(world.steps)}`;
  }

  add(name: string, lines: readonly string[]): void {
    const text = lines.join("\n");
    const before = this.#met.get(text);
    this.#lines.push(before === undefined ? `${name}\n${text}` : `${name}: as ${before}`);
    if (before === undefined) this.#met.set(text, name);
  }

  toString(): string {
    const steps = [...this.#numbers].map(([step, number]) => `${number} ${step}`);
    return `${steps.join("\n")}\n\n${this.#lines.join("\n")}\n`;
  }
}
