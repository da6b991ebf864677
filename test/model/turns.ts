// Lets the processes of a simulated world take turns. The seed chooses the process of each turn.

export class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /** Returns a number 0 ≤ x < 1. The algorithm is mulberry32. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  below(count: number): number {
    return Math.floor(this.next() * count);
  }

  is(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(all: readonly T[]): T {
    return all[this.below(all.length)]!;
  }
}

export class Process {
  readonly name: string;
  isDead = false;
  isEnded = false;
  /** Resumes the process, and is undefined while the process runs and after its end. */
  resume: (() => void) | undefined;
  at = "";
  mayGoOn: () => boolean = () => true;
  readonly interruption = new AbortController();

  get isInterrupted(): boolean {
    return this.interruption.signal.aborted;
  }

  constructor(name: string) {
    this.name = name;
  }
}

export class Turns {
  readonly processes: Process[] = [];
  readonly history: string[] = [];
  readonly #chance: Chance;
  #handBack: () => void = () => {};

  constructor(chance: Chance) {
    this.#chance = chance;
  }

  /** Waits for the process's turn. The wait of a killed process never ends. */
  turn(process: Process, at: string, mayGoOn: () => boolean = () => true): Promise<void> {
    return new Promise((go) => {
      process.at = at;
      process.mayGoOn = mayGoOn;
      process.resume = go;
      this.#handBack();
    });
  }

  start(process: Process, work: () => Promise<void>): void {
    this.processes.push(process);
    void this.turn(process, "start")
      .then(work)
      .finally(() => {
        process.isEnded = true;
        this.#handBack();
      });
  }

  /** Runs the processes until none can continue. @param killRate the probability of a kill at each turn after the start */
  async live(killRate: number, onKill: (process: Process) => void, onTurn: (process: Process) => void): Promise<void> {
    for (;;) {
      const ready = this.processes.filter(
        ({ isDead, isEnded, resume, mayGoOn }) => !isDead && !isEnded && resume !== undefined && mayGoOn(),
      );
      // More than 20,000 lines of history mean an endless loop.
      if (ready.length === 0 || this.history.length > 20_000) return;
      const process = this.#chance.pick(ready);
      const { resume, at } = process;
      if (at !== "start" && this.#chance.is(killRate)) {
        process.isDead = true;
        this.history.push(`${process.name} is killed before ${at}`);
        onKill(process);
        continue;
      }
      onTurn(process);
      this.history.push(`${process.name}: ${at}`);
      process.resume = undefined;
      await new Promise<void>((back) => {
        this.#handBack = back;
        resume!();
      });
    }
  }
}
