// The program that shows a long output a screen at a time, as `$PAGER` names it.
import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";

export interface Pager {
  /** Resolves when the program has taken the data. @throws an error with the code EPIPE if it has exited */
  write(data: string | Buffer): Promise<void>;
  /** Resolves when the person has left it. */
  close(): Promise<void>;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** @returns the command to page with, if any: `INTEG_PAGER`, else `PAGER`; `cat` and an empty text page nothing */
export function pagerOf({ INTEG_PAGER: own, PAGER: shared, TERM: terminal }: Environment): string | undefined {
  const command = (own ?? shared ?? "").trim();
  return command === "" || command === "cat" || terminal === "dumb" ? undefined : command;
}

/** Whether the first word of the command is a program on this machine: a shell would say so only after it took the output. */
export function isInstalled(command: string, { PATH: path = "" }: Environment): boolean {
  const [program = ""] = command.split(" ");
  const places = isAbsolute(program) ? [program] : path.split(delimiter).map((folder) => join(folder, program));
  return places.some((place) => {
    try {
      accessSync(place, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

export function startPager(command: string, env: Environment): Pager {
  const own = Object.entries(env).filter(([name]) => !name.startsWith("INTEG_"));
  // less keeps colours, ends by itself if all fits on the screen, and leaves what it showed on it.
  const child = spawn(command, {
    shell: true,
    stdio: ["pipe", "inherit", "inherit"],
    env: { LESS: "FRX", LV: "-c", ...Object.fromEntries(own) },
  });
  const ended = new Promise<void>((resolve) => {
    child.on("close", () => resolve());
    child.on("error", () => resolve());
  });
  child.stdin.on("error", () => {});
  return {
    write: (data) =>
      new Promise((resolve, reject) => {
        child.stdin.write(data, (error) => (error ? reject(error) : resolve()));
      }),
    close() {
      child.stdin.end();
      return ended;
    },
  };
}
