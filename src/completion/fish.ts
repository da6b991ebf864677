// Owns: the completion script for fish (3.0 and later). Pure: grammar → text.
// Must not know: any one command.
import { grammarOf, origin, type FlagLine, type NodeLine } from "./grammar.ts";
import type { Tree } from "./tree.ts";

/** @returns the script as it stands in `completions/integ.fish` */
export function fishScript(tree: Tree): string {
  const { nodes, globals } = grammarOf(tree);
  return [
    `# ${origin("fish")}\n`,
    table("__integ_step", nodes.flatMap(steps)),
    table("__integ_children", nodes.filter((node) => node.children.length > 0).map(children)),
    table("__integ_aliases", nodes.filter(hasAliases).map(aliases)),
    table("__integ_flags", [
      ...nodes
        .filter((node) => node.flags.length > 0)
        .map((node) => told([quoted(node.key)], node.flags.map(flagWord))),
      told(["globals"], globals.map(flagWord)),
    ]),
    table("__integ_value", [
      ...globals.flatMap((flag) => values(flag, "* ")),
      ...nodes.flatMap((node) => node.flags.flatMap((flag) => values(flag, `${node.key} `))),
    ]),
    table("__integ_argument", nodes.flatMap(argumentLines)),
    machine,
  ].join("\n");
}

/** A function that looks its words up and prints what it finds. */
function table(name: string, lines: readonly string[]): string {
  return `function ${name}\n    switch "$argv"\n${lines.map((line) => `        ${line}\n`).join("")}    end\nend\n`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}

/** A case that prints lines: a word, a tab, what it is. */
function told(patterns: readonly string[], lines: readonly string[]): string {
  const printed = lines.map((line) => `\n                ${quoted(line)}`).join(" \\");
  return `case ${patterns.join(" ")}\n            printf '%s\\n' \\${printed}`;
}

function steps({ key, children: below }: NodeLine): string[] {
  const real = below.filter(({ word }) => word !== "help");
  return real.map(({ word, aliases: others }) => {
    const patterns = [word, ...others].map((name) => quoted(`${key} ${name}`));
    return `case ${patterns.join(" ")}\n            echo ${quoted(`${key} ${word}`)}`;
  });
}

function children({ key, children: below }: NodeLine): string {
  return told(
    [quoted(key)],
    below.map(({ word, summary }) => `${word}\t${summary}`),
  );
}

function hasAliases(node: NodeLine): boolean {
  return node.children.some((child) => child.aliases.length > 0);
}

function aliases({ key, children: below }: NodeLine): string {
  return told(
    [quoted(key)],
    below.flatMap((child) => child.aliases.map((alias) => `${alias}\t${child.summary}`)),
  );
}

/** `--long|-s`, with a `+` where it may stand more than once, a tab, what it is. */
function flagWord(flag: FlagLine): string {
  return `${flag.names.join("|")}${flag.follows === "many" ? "+" : ""}\t${flag.summary}`;
}

function values({ names, follows, kind }: FlagLine, key: string): string[] {
  if (follows === "nothing") return [];
  const patterns = names.map((name) => quoted(`${key}${name}`));
  return [`case ${patterns.join(" ")}\n            echo ${quoted(`${follows} ${kind}`)}`];
}

function argumentLines({ key, arguments: kinds, repeats }: NodeLine): string[] {
  return kinds.map((kind, at) => {
    const place = repeats && at === kinds.length - 1 ? "*" : String(at);
    return `case ${quoted(`${key} ${place}`)}\n            echo ${quoted(kind)}`;
  });
}

const machine = `# Prints what may stand at the cursor: a word, a tab, what it is. fish keeps what fits.
# Ends with 3 where a file is meant: fish knows its own quotes, variables and ~ best.
function __integ_complete
    set -l words (commandline -opc)
    set -l cur (commandline -ct)
    # Variables set for one command stand before it.
    while string match -qr '^[A-Za-z_]\\w*=' -- "$words[1]"
        set -e words[1]
    end
    set -l program $words[1]
    set -l node integ
    set -l index 0
    set -l expect ''
    set -l follows ''
    set -l value ''
    set -l plain ''
    set -l help ''
    set -l used
    for word in $words[2..-1]
        if test "$expect" = one; or begin
                test "$expect" = many; and not string match -q -- '-*' "$word"
            end
            test "$follows" = many; and set expect many; or set expect ''
        else if test -z "$plain"; and test "$word" = --
            set plain 1
            set expect ''
        else if test -z "$plain"; and string match -qr -- '^-.' "$word"
            set expect ''
            set -l flag (string split -m 1 = -- "$word")[1]
            set -l kind (string split -m 1 ' ' -- (__integ_value "$node $flag"))
            if set -q kind[2]
                set follows $kind[1]
                set value $kind[2]
                if not string match -q -- '*=*' "$word"
                    set expect one
                else if test "$follows" = many
                    set expect many
                end
            end
            set -a used $flag
        else
            set expect ''
            set -l next (__integ_step "$node $word")
            if test -n "$next"
                set node $next
            else if test "$node" = integ; and test "$word" = help
                set help 1
            else
                set index (math $index + 1)
            end
        end
    end

    if test "$expect" = one; or begin
            test "$expect" = many; and not string match -q -- '-*' "$cur"
        end
        __integ_offer_value "$value" "$program" ''
    else if test -z "$plain"; and string match -q -- '--*=*' "$cur"
        set -l typed (string split -m 1 = -- "$cur")
        set -l kind (string split -m 1 ' ' -- (__integ_value "$node $typed[1]"))
        set -q kind[2]; and __integ_offer_value "$kind[2]" "$program" "$typed[1]="
    else if test -n "$help"
        __integ_offer_children "$node" "$cur" | string match -rv '^help\\t'
    else if test -z "$plain"; and string match -q -- '-*' "$cur"
        __integ_offer_flags (__integ_flags "$node") (__integ_flags globals) -- $used
    else
        set -l found (__integ_offer_children "$node" "$cur")
        set -l kind (__integ_argument "$node $index")
        if set -q found[1]
            printf '%s\\n' $found
        else if test -n "$kind"
            __integ_offer_value "$kind" "$program" ''
        else if test -z "$plain$cur"
            __integ_offer_flags (__integ_flags "$node") -- $used
        end
    end
end

# Commands by their names; by an alias only where no name fits.
function __integ_offer_children -a node cur
    set -l found (__integ_children "$node")
    set -l others (__integ_aliases "$node")
    set -l typed (string escape --style=regex -- "$cur")
    if string match -qr -- "^$typed" $others; and not string match -qr -- "^$typed" $found
        set found $others
    end
    set -q found[1]; and printf '%s\\n' $found
end

# Flags that were not given yet, or may be given again.
function __integ_offer_flags
    set -l at (contains -i -- -- $argv)
    set -l used $argv[(math $at + 1)..-1]
    for line in $argv[1..(math $at - 1)]
        set -l parts (string split -m 1 \\t -- "$line")
        set -l names (string split '|' -- (string replace -r '\\+$' '' -- "$parts[1]"))
        if not string match -q -- '*+' "$parts[1]"
            set -l again ''
            for name in $names
                contains -- $name $used; and set again 1
            end
            test -n "$again"; and continue
        end
        for name in $names
            printf '%s\\t%s\\n' $name "$parts[2]"
        end
    end
end

function __integ_offer_value -a kind program prefix
    switch "$kind"
        case '=*'
            for word in (string split ' ' -- (string sub -s 2 -- "$kind"))
                echo "$prefix$word"
            end
        case '@*'
            type -q "$program"; or set program integ
            for line in ($program __complete (string sub -s 2 -- "$kind") 2>/dev/null)
                echo "$prefix$line"
            end
        case files
            return 3
    end
end

# True where what was found is all that may stand here; the files are fish's own to find.
function __integ_knows
    set -g __integ_found (__integ_complete)
    test $status -ne 3
end

complete -c integ -n __integ_knows -f -a '$__integ_found'
`;
