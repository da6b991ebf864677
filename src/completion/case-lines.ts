// Owns: the lines that bash and zsh read alike: `case` patterns which set a variable of the caller. Pure: grammar → text.
// Must not know: any one command; what differs between the two shells.
import type { FlagLine, Grammar, NodeLine } from "./grammar.ts";

/** Single quotes keep every byte. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** `'integ nouns' | 'integ noun') next='integ nouns' ;;`: where a word leads to. */
export function stepLines({ key, children }: NodeLine): string[] {
  const real = children.filter(({ word }) => word !== "help");
  return real.map(({ word, aliases }) => {
    const patterns = [word, ...aliases].map((name) => quoted(`${key} ${name}`));
    return `${patterns.join(" | ")}) next=${quoted(`${key} ${word}`)} ;;`;
  });
}

/** `'integ nouns'' --flag') kind='one files' ;;`: what follows a flag of a command, or of every one. */
export function valueLines({ nodes, globals }: Grammar): string[] {
  return [
    ...globals.flatMap((flag) => values(flag, "*")),
    ...nodes.flatMap((node) => node.flags.flatMap((flag) => values(flag, quoted(node.key)))),
  ];
}

function values({ names, follows, kind }: FlagLine, key: string): string[] {
  if (follows === "nothing") return [];
  const patterns = names.map((name) => `${key}${quoted(` ${name}`)}`);
  return [`${patterns.join(" | ")}) kind=${quoted(`${follows} ${kind}`)} ;;`];
}

/** `'integ nouns do 0') kind='@profiles' ;;`: what an argument is, by its place. */
export function argumentLines({ key, arguments: kinds, repeats }: NodeLine): string[] {
  return kinds.map((kind, at) => {
    const pattern = repeats && at === kinds.length - 1 ? `${quoted(`${key} `)}*` : quoted(`${key} ${at}`);
    return `${pattern}) kind=${quoted(kind)} ;;`;
  });
}
