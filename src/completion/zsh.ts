// Owns: the completion script for zsh. Pure: grammar → text.
// Must not know: any one command.
import { argumentLines, quoted, stepLines, valueLines } from "./case-lines.ts";
import { grammarOf, origin, type FlagLine, type NodeLine } from "./grammar.ts";
import type { Tree } from "./tree.ts";

/** @returns the script as it stands in `completions/_integ`: a file for `fpath` that may also be sourced */
export function zshScript(tree: Tree): string {
  const grammar = grammarOf(tree);
  const { nodes, globals } = grammar;
  return [
    `#compdef integ\n# ${origin("zsh")}\n`,
    table("_integ_step", nodes.flatMap(stepLines)),
    table("_integ_children", nodes.filter((node) => node.children.length > 0).map(children)),
    table("_integ_flags", nodes.filter((node) => node.flags.length > 0).map(flags)),
    `_integ_globals() {\n${told("flags", globals.map(flagWord))}}\n`,
    table("_integ_value", valueLines(grammar)),
    table("_integ_argument", nodes.flatMap(argumentLines)),
    machine,
  ].join("\n");
}

/** A function that looks its words up and sets the variables of its caller. */
function table(name: string, lines: readonly string[]): string {
  return `${name}() {\n  case "$1" in\n${lines.map((line) => `    ${line}\n`).join("")}  esac\n}\n`;
}

/** An array of `word:what it is`, one a line. */
function told(variable: string, lines: readonly string[]): string {
  return `      ${variable}+=(\n${lines.map((line) => `        ${quoted(line)}\n`).join("")}      )\n`;
}

function children({ key, children: below }: NodeLine): string {
  const aliases = below.flatMap((child) => child.aliases.map((alias) => `${alias}:${child.summary}`));
  const lines = told(
    "children",
    below.map(({ word, summary }) => `${word}:${summary}`),
  );
  return `${quoted(key)})\n${lines}${aliases.length > 0 ? told("others", aliases) : ""}      ;;`;
}

/** `--long|-s`, with a `+` where it may stand more than once, then what it is. */
function flagWord(flag: FlagLine): string {
  return `${flag.names.join("|")}${flag.follows === "many" ? "+" : ""}:${flag.summary}`;
}

function flags(node: NodeLine): string {
  return `${quoted(node.key)})\n${told("flags", node.flags.map(flagWord))}      ;;`;
}

const machine = `# Follows the words to the command they name and to what is expected next.
_integ_walk() {
  local word next
  local -i i
  for ((i = 2; i < CURRENT; i++)); do
    word=\${(Q)words[i]}
    if [[ $expect == one || ($expect == many && $word != -*) ]]; then
      [[ $follows == many ]] && expect=many || expect=
    elif [[ -z $plain && $word == -- ]]; then
      plain=1 expect=
    elif [[ -z $plain && $word == -?* ]]; then
      expect= kind=
      _integ_value "$node \${word%%=*}"
      if [[ -n $kind ]]; then
        follows=\${kind%% *} value=\${kind#* }
        if [[ $word != *=* ]]; then expect=one; elif [[ $follows == many ]]; then expect=many; fi
      fi
      used+=("\${word%%=*}")
    else
      expect= next=
      _integ_step "$node $word"
      if [[ -n $next ]]; then
        node=$next
      elif [[ $node == integ && $word == help ]]; then
        help=1
      else
        index+=1
      fi
    fi
  done
}

# Commands by their names; by an alias only where no name fits.
_integ_offer_children() {
  local -a children others
  _integ_children "$node"
  [[ -n $help ]] && children=(\${children:#help:*})
  (( $#children )) || return 1
  if [[ -n $PREFIX && -n \${(M)others:#\${PREFIX}*} && -z \${(M)children:#\${PREFIX}*} ]]; then
    _describe -t commands command others
  else
    _describe -t commands command children
  fi
}

# Flags that were not given yet, or may be given again.
_integ_offer_flags() {
  local line name summary
  local -a names offered
  for line in $flags; do
    summary=\${line#*:}
    names=(\${(s:|:)\${\${line%%:*}%+}})
    [[ \${line%%:*} != *+ && -n \${names:*used} ]] && continue
    for name in $names; do
      offered+=("$name:$summary")
    done
  done
  # -O: also before a dash is typed, since this is called where nothing else could be.
  _describe -O -t options option offered
}

_integ_offer_value() {
  local program expl
  local -a found
  case "$1" in
    '='*)
      found=(\${(s: :)\${1#=}})
      _wanted values expl value compadd -a found
      ;;
    '@'*)
      program=\${(Q)words[1]}
      [[ $program == '~/'* ]] && program=$HOME/\${program#'~/'}
      whence -p -- "$program" >/dev/null || program=integ
      found=(\${(f)"$("$program" __complete "\${1#@}" 2>/dev/null)"})
      found=(\${found//:/\\\\:})
      found=(\${found/$'\\t'/:})
      _describe -t "\${1#@}" "\${1#@}" found
      ;;
    files)
      _files
      ;;
    *)
      return 1
      ;;
  esac
}

_integ() {
  local node=integ expect= follows= value= plain= help= kind=
  local -i index=0
  local -a used flags
  _integ_walk
  if [[ $expect == one || ($expect == many && $PREFIX != -*) ]]; then
    _integ_offer_value "$value"
  elif [[ -z $plain && $PREFIX == --*=* ]]; then
    kind=
    _integ_value "$node \${PREFIX%%=*}"
    compset -P 1 '*='
    _integ_offer_value "\${kind#* }"
  elif [[ -n $help ]]; then
    _integ_offer_children
  elif [[ -z $plain && $PREFIX == -* ]]; then
    _integ_flags "$node"
    _integ_globals
    _integ_offer_flags
  elif ! _integ_offer_children; then
    kind=
    _integ_argument "$node $index"
    if [[ -n $kind ]]; then
      _integ_offer_value "$kind"
    elif [[ -z $plain && -z $PREFIX ]]; then
      _integ_flags "$node"
      _integ_offer_flags
    fi
  fi
}

if [[ $funcstack[1] == _integ ]]; then
  _integ "$@"
else
  compdef _integ integ
fi
`;
