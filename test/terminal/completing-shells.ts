// bash and zsh complete a line that is typed at a pseudo-terminal. fish and PowerShell have a command that completes a line.
// Each shell reads the script that the built program prints.
import { spawn as spawnPty, type IPty } from "@lydell/node-pty";
import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { promisify } from "node:util";
import { Home } from "../support/program.ts";
import { isMissing } from "../support/tools.mjs";

const run = promisify(execFile);

export const shellNames = ["bash", "zsh", "fish", "powershell"] as const;
export type ShellName = (typeof shellNames)[number];

export interface CompletingShell {
  /** @returns whole words, sorted and without the shell's quoting */
  offered(line: string): Promise<string[]>;
  close(): void;
}

export function isShellMissing(shell: ShellName): boolean {
  return isMissing(shell === "powershell" ? "PowerShell" : shell);
}

export async function homeFor(shell: ShellName): Promise<{ home: Home; file: string }> {
  const home = new Home();
  home.addToPath();
  mkdirSync(home.path("work"));
  home.env.TERM = "xterm";
  const printed = await home.integ(["completion", shell]);
  if (printed.code !== 0) throw new Error(`completion ${shell}: ${printed.stderr}`);
  const file = home.path(shell === "powershell" ? "integ.ps1" : "integ.completion");
  writeFileSync(file, printed.stdout);
  return { home, file };
}

export async function openShell(
  shell: ShellName,
  { home, file }: { home: Home; file: string },
): Promise<CompletingShell> {
  if (shell === "fish") return fish(home, file);
  if (shell === "powershell") return powershell(home, file);
  const typed = new TypedShell(shell, home, file);
  await typed.ready();
  return typed;
}

/** The marks delimit the printed arguments. The echoed command line does not contain them. */
const show = "show() { printf '\\n@@'; printf '\\037%s' \"$@\"; printf '@@\\n'; }";

/** Inserts every completion into the line, and runs the line with `show`, so that the shell's own quoting is removed. */
class TypedShell implements CompletingShell {
  readonly #pty: IPty;
  #text = "";

  constructor(shell: "bash" | "zsh", home: Home, file: string) {
    const start = shell === "bash" ? bashStart(home, file) : zshStart(home, file);
    this.#pty = spawnPty(shell, start, {
      cwd: home.path("work"),
      env: { ...home.env, ZDOTDIR: home.folder, HISTFILE: "" },
      cols: 2000,
      rows: 50,
    });
    this.#pty.onData((data) => (this.#text += data));
  }

  async ready(): Promise<void> {
    await this.#until("@@ready@@");
  }

  async offered(line: string): Promise<string[]> {
    this.#text = "";
    // Meta-* inserts the completions, and `%` marks their end. Then `show` is typed before the line, and the line runs.
    this.#pty.write(`${line}\x1b*%`);
    this.#pty.write("\x01show \r");
    const answer = await this.#until("@@\r\n");
    const words = answer
      .slice(answer.lastIndexOf("\n@@", answer.length - 5) + 3, -4)
      .split("\x1f")
      .slice(1);
    const current = currentWord(line);
    const matches = words.slice(wordsBefore(line));
    // Without a match the word stays as typed, with the mark at its end.
    if (matches.length === 1 && matches[0] === `${current}%`) return [];
    return matches
      .map((word) => word.replace(/%$/, ""))
      .filter((word) => word !== "")
      .map((word) => withoutFlag(word, current))
      .sort();
  }

  close(): void {
    this.#pty.kill();
  }

  async #until(mark: string): Promise<string> {
    const end = Date.now() + 20_000;
    for (;;) {
      if (this.#text.includes(mark)) return this.#text.slice(0, this.#text.lastIndexOf(mark) + mark.length);
      if (Date.now() > end) throw new Error(`The shell did not answer: ${JSON.stringify(this.#text)}`);
      await new Promise((done) => setTimeout(done, 5));
    }
  }
}

/** Assumes that the line does not end within quotes. */
function currentWord(line: string): string {
  return /\S*$/.exec(line)![0];
}

/** A quoted word may contain spaces. */
function wordsBefore(line: string): number {
  return line.slice(0, line.length - currentWord(line).length).match(/(?:'[^']*'|[^\s'])+/g)!.length;
}

/** Removes the flag that a shell adds to the completion of an attached value, such as `--output=json`. */
function withoutFlag(word: string, current: string): string {
  const prefix = /^--[^=]+=/.exec(current)?.[0] ?? "";
  return word.startsWith(prefix) ? word.slice(prefix.length) : word;
}

function bashStart(home: Home, file: string): string[] {
  writeFileSync(
    home.path("rc"),
    `PS1=''\nbind 'set enable-bracketed-paste off'\n${show}\nsource '${file}'\nprintf '@@%s@@\\n' ready\n`,
  );
  return ["--noprofile", "--rcfile", home.path("rc"), "-i"];
}

function zshStart(home: Home, file: string): string[] {
  const rc = [
    "PS1='' RPS1=''",
    "unset zle_bracketed_paste",
    "autoload -U compinit && compinit -u -D",
    `source '${file}'`,
    show,
    "bindkey -e",
    "zle -C all-matches complete-word _generic",
    "bindkey '^[*' all-matches",
    "zstyle ':completion:all-matches::::' completer _all_matches _complete",
    "zstyle ':completion:all-matches:*' insert true",
    "printf '@@%s@@\\n' ready",
  ];
  writeFileSync(home.path(".zshrc"), `${rc.join("\n")}\n`);
  return ["-i", "--no-globalrcs"];
}

function fish(home: Home, file: string): CompletingShell {
  return {
    async offered(line) {
      const args = ["--no-config", "-c", `source '${file}'; complete -C "$argv"`, line];
      const { stdout, stderr } = await run("fish", args, { env: home.env, cwd: home.path("work") });
      // A script's error message would appear in the middle of the typed line.
      if (stderr !== "") throw new Error(`fish complains about ${JSON.stringify(line)}: ${stderr}`);
      const words = stdout.split("\n").filter((word) => word !== "");
      return words.map((word) => withoutFlag(word.split("\t")[0]!, currentWord(line))).sort();
    },
    close() {},
  };
}

function powershell(home: Home, file: string): CompletingShell {
  const ask = `. '${file}'; [Management.Automation.CommandCompletion]::CompleteInput($env:LINE, $env:LINE.Length, $null).CompletionMatches.CompletionText`;
  return {
    async offered(line) {
      const { stdout } = await run("pwsh", ["-NoProfile", "-NonInteractive", "-Command", ask], {
        env: { ...home.env, LINE: line },
        cwd: home.path("work"),
      });
      const words = stdout.split("\n").filter((word) => word !== "");
      return words.map((word) => withoutFlag(word, currentWord(line)).replaceAll("'", "")).sort();
    },
    close() {},
  };
}
