import { spawn } from "@lydell/node-pty";
import type { Home } from "../support/program.ts";
import { shown, type Screen } from "./screen.ts";

export interface SessionOptions {
  readonly home: Home;
  readonly env?: Readonly<Record<string, string>>;
  readonly columns?: number;
  /** Keeps the terminal open until all output is read: on a busy machine it might close earlier. */
  readonly isReadWhole?: boolean;
}

const lastWords = "-- all written --";

const color = new RegExp(`${String.fromCharCode(27)}\\[[\\d;]*m`, "g");

export class Session {
  /** The program's output since the last typed answer, without colors. */
  shown = "";
  written = "";
  readonly ended: Promise<number>;
  readonly #pty: ReturnType<typeof spawn>;
  readonly #columns: number;

  constructor(words: readonly string[], { home, env = {}, columns = 120, isReadWhole = false }: SessionOptions) {
    this.#columns = columns;
    const keptOpen = ["/bin/sh", "-c", `"$@"; echo "${lastWords}"; read -r _`, "sh"];
    const [file = "", ...args] = [...(isReadWhole ? keptOpen : []), ...home.recorded(), ...words];
    this.#pty = spawn(file, args, {
      cols: columns,
      rows: 40,
      cwd: home.folder,
      env: { ...home.env, TERM: "xterm-256color", ...env },
    });
    this.#pty.onData((text) => {
      this.shown += text.replaceAll(color, "");
      this.written += text;
    });
    this.ended = isReadWhole ? this.#endOnceRead() : this.#end();
  }

  /** @returns the shell's exit code, not the program's */
  async #endOnceRead(): Promise<number> {
    const code = new Promise<number>((done) => this.#pty.onExit(({ exitCode }) => done(exitCode)));
    await this.seen(new RegExp(lastWords));
    this.#pty.write("\r");
    return code;
  }

  async #end(): Promise<number> {
    const code = await new Promise<number>((done) => this.#pty.onExit(({ exitCode }) => done(exitCode)));
    await this.#allRead();
    return code;
  }

  /** Waits until the output stops, because some output may arrive after the exit. */
  async #allRead(): Promise<void> {
    for (let before = -1; before < this.written.length; ) {
      before = this.written.length;
      await new Promise((done) => setTimeout(done, 30));
    }
  }

  async answer(question: RegExp, keys: string): Promise<void> {
    await this.seen(question);
    this.shown = "";
    this.#pty.write(keys);
  }

  type(keys: string): void {
    this.#pty.write(keys);
  }

  resize(columns: number): void {
    this.#pty.resize(columns, 40);
  }

  close(): void {
    (this.#pty as unknown as { destroy(): void }).destroy();
  }

  /** Waits until this text is printed after the last typed answer. @throws Error after a minute */
  async seen(text: RegExp): Promise<void> {
    for (let tries = 0; !text.test(this.shown); tries++) {
      if (tries > 2400) throw new Error(`no ${text} in: …${this.shown.slice(-1000)}`);
      await new Promise((done) => setTimeout(done, 25));
    }
  }

  screen(): Promise<Screen> {
    return shown(this.written, { columns: this.#columns, mayStyle: true });
  }
}
