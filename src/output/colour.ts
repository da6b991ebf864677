// Owns: whether and how much a stream may be coloured. Pure: chalk is told, it never looks itself.
// Must not know: what is coloured. Source: cli.md §1 (`--no-color`), quality.md traps (chalk ignores NO_COLOR).

/** 0 none, 1 the sixteen colours, 2 256 colours, 3 true colour. */
export type ColourLevel = 0 | 1 | 2 | 3;

export interface ColourFacts {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly isTerminal: boolean;
  /** `--no-color` was typed. */
  readonly noColour: boolean;
}

/**
 * The colour level of one stream. In this order: `--no-color`, `NO_COLOR` (not empty, no-color.org), `FORCE_COLOR`
 * (0 to 3, `true`, `false`, empty is 1), `CLICOLOR_FORCE`, `CLICOLOR=0`, no terminal, `TERM=dumb`, what `COLORTERM`
 * and `TERM` say the terminal can do.
 */
export function colourLevel({ env, isTerminal, noColour }: ColourFacts): ColourLevel {
  if (noColour || isSet(env.NO_COLOR)) return 0;
  const forced = env.FORCE_COLOR;
  if (forced !== undefined) return forcedLevel(forced);
  if (isSet(env.CLICOLOR_FORCE) && env.CLICOLOR_FORCE !== "0") return 1;
  if (env.CLICOLOR === "0" || !isTerminal || env.TERM === "dumb") return 0;
  if (env.COLORTERM === "truecolor" || env.COLORTERM === "24bit") return 3;
  return /256(color)?$/.test(env.TERM ?? "") ? 2 : 1;
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && value !== "";
}

function forcedLevel(value: string): ColourLevel {
  if (value === "0" || value === "false") return 0;
  return value === "2" ? 2 : value === "3" ? 3 : 1;
}
