import { spawn } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";

export interface Pager {
  /** Resolves when the pipe accepts the data. @throws an error with the code EPIPE if the pager has exited */
  write(data: string | Buffer): Promise<void>;
  /** Resolves when the user has left the pager; false if it failed. */
  close(): Promise<boolean>;
}

type Environment = Readonly<Record<string, string | undefined>>;

export function pagerOf({ INTEG_PAGER: own, PAGER: shared, TERM: terminal }: Environment): string | undefined {
  const command = (own ?? shared ?? "").trim();
  return command === "" || command === "cat" || terminal === "dumb" ? undefined : command;
}

/** Checked before the pager starts: the shell reports a missing program only after integ has started to write. */
export function isInstalled(command: string, { PATH: path = "" }: Environment): boolean {
  const [program = ""] = command.split(" ");
  const places = isAbsolute(program) ? [program] : path.split(delimiter).map((folder) => join(folder, program));
  return places.some((place) => {
    try {
      accessSync(place, constants.X_OK);
      return statSync(place).isFile();
    } catch {
      return false;
    }
  });
}

export function startPager(command: string, env: Environment): Pager {
  const own = Object.entries(env).filter(([name]) => !name.startsWith("INTEG_"));
  // With these options, less keeps colors, exits if the output fits on the screen, and does not clear the screen.
  const child = spawn(command, {
    shell: true,
    stdio: ["pipe", "inherit", "inherit"],
    env: { LESS: "FRX", LV: "-c", ...Object.fromEntries(own) },
  });
  // A signal is not a failure: the user left the pager with Ctrl-C.
  const ended = new Promise<boolean>((resolve) => {
    child.on("close", (code) => resolve(code === 0 || code === null || code > 128));
    child.on("error", () => resolve(false));
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
