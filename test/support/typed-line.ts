import { spawnSync } from "node:child_process";
import type { Home } from "./program.ts";

/** Runs a line of a document, without bash if bash would only remove its quotes. */
export async function typed(
  home: Home,
  text: string,
  env: Readonly<Record<string, string>> = home.env,
): Promise<{ readonly status: number | null; readonly stderr: string }> {
  const words = /^integ((?: (?:[\w./:=,@-]+|'[^']*'))+)$/.exec(text)?.[1]?.match(/'[^']*'|\S+/g);
  if (words) {
    const { code, stderr } = await home.integ(
      words.map((word) => word.replaceAll("'", "")),
      { env },
    );
    return { status: code, stderr };
  }
  const options = { cwd: home.folder, env, encoding: "utf8", timeout: 60_000 } as const;
  return spawnSync("bash", ["--norc", "-euo", "pipefail", "-c", text], options);
}
