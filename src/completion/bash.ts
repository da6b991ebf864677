// Owns: the completion script for bash (3.2 and later). Pure: grammar → text.
// Must not know: any one command.
import { argumentLines, quoted, stepLines, valueLines } from "./case-lines.ts";
import { grammarOf, origin, type FlagLine, type NodeLine } from "./grammar.ts";
import type { Tree } from "./tree.ts";

/** @returns the script as it stands in `completions/integ.bash` */
export function bashScript(tree: Tree): string {
  const grammar = grammarOf(tree);
  const { nodes, globals } = grammar;
  return [
    `# ${origin("bash")}\n`,
    table("_integ_step", "next", nodes.flatMap(stepLines)),
    table("_integ_children", "children", nodes.filter((node) => node.children.length > 0).map(children)),
    table("_integ_flags", "flags", nodes.filter((node) => node.flags.length > 0).map(flags)),
    `_integ_globals=${quoted(globals.map(flagWord).join(" "))}\n`,
    table("_integ_value", "kind", valueLines(grammar)),
    table("_integ_argument", "kind", nodes.flatMap(argumentLines)),
    machine,
  ].join("\n");
}

/** A function that looks its words up and sets one variable. */
function table(name: string, variable: string, lines: readonly string[]): string {
  const fallback = `    *) ${variable}= ;;`;
  return `${name}() {\n  case "$1" in\n${[...lines.map((line) => `    ${line}`), fallback].join("\n")}\n  esac\n}\n`;
}

/** `word|alias`, one after the other. */
function children({ key, children: below }: NodeLine): string {
  return `${quoted(key)}) children=${quoted(below.map(({ word, aliases }) => [word, ...aliases].join("|")).join(" "))} ;;`;
}

/** `--long|-s`, with a `+` at its end where it may stand more than once. */
function flagWord(flag: FlagLine): string {
  return `${flag.names.join("|")}${flag.follows === "many" ? "+" : ""}`;
}

function flags(node: NodeLine): string {
  return `${quoted(node.key)}) flags=${quoted(node.flags.map(flagWord).join(" "))} ;;`;
}

const machine = `# The words before the cursor, as typed: readline cuts them at "=" and ":" too.
_integ_words() {
  local i gap word rest=\${COMP_LINE:0:COMP_POINT}
  for ((i = 0; i <= COMP_CWORD; i++)); do
    gap=\${rest%%[![:space:]]*}
    rest=\${rest#"$gap"}
    word=\${COMP_WORDS[i]}
    ((i == COMP_CWORD)) && word=$rest
    rest=\${rest#"$word"}
    if [[ -n $gap || $i -eq 0 ]]; then
      words+=("$word")
    else
      words[\${#words[@]} - 1]+=$word
    fi
  done
  cur=\${words[\${#words[@]} - 1]}
  unset 'words[\${#words[@]}-1]'
}

# Follows the words to the command they name and to what is expected next.
_integ_walk() {
  local i word next kind
  for ((i = 1; i < \${#words[@]}; i++)); do
    word=\${words[i]}
    if [[ $expect == one || ($expect == many && $word != -*) ]]; then
      [[ $follows == many ]] && expect=many || expect=
    elif [[ -z $plain && $word == -- ]]; then
      plain=1 expect=
    elif [[ -z $plain && $word == -?* ]]; then
      expect=
      _integ_value "$node \${word%%=*}"
      if [[ -n $kind ]]; then
        follows=\${kind%% *} value=\${kind#* }
        if [[ $word != *=* ]]; then expect=one; elif [[ $follows == many ]]; then expect=many; fi
      fi
      used+="\${word%%=*} "
    else
      expect=
      _integ_step "$node $word"
      if [[ -n $next ]]; then
        node=$next
      elif [[ $node == integ && $word == help ]]; then
        help=1
      else
        index=$((index + 1))
      fi
    fi
  done
}

_integ_offer_words() {
  local word
  for word in "$@"; do
    [[ $word == "$typed"* ]] && COMPREPLY+=("$prefix$word")
  done
}

# Commands by their names; by an alias only where no name fits.
_integ_offer_children() {
  local children word
  local -a names
  _integ_children "$node"
  [[ -n $help ]] && children=\${children% help}
  IFS=' ' read -r -a names <<<"$children"
  _integ_offer_words "\${names[@]%%|*}"
  ((\${#COMPREPLY[@]})) && return
  for word in "\${names[@]}"; do
    [[ $word == *"|"* ]] && _integ_offer_words "\${word#*|}"
  done
}

# Flags that were not given yet, or may be given again.
_integ_offer_flags() {
  local flag name
  local -a names
  for flag in $*; do
    IFS='|' read -r -a names <<<"\${flag%+}"
    if [[ $flag != *+ ]]; then
      for name in "\${names[@]}"; do
        [[ $used == *" $name "* ]] && continue 2
      done
    fi
    _integ_offer_words "\${names[@]}"
  done
}

_integ_offer_value() {
  local word program
  local -a names
  case "$1" in
    '='*)
      IFS=' ' read -r -a names <<<"\${1#=}"
      _integ_offer_words "\${names[@]}"
      ;;
    '@'*)
      program=\${words[0]/#\\~/$HOME}
      type -P "$program" >/dev/null || program=integ
      while IFS=$'\\t' read -r word _; do
        _integ_offer_words "$word"
      done < <("$program" __complete "\${1#@}" 2>/dev/null)
      ;;
    files)
      type compopt >/dev/null 2>&1 && compopt -o filenames 2>/dev/null && as_is=1
      while IFS= read -r word; do
        COMPREPLY+=("$prefix$word")
      done < <(compgen -f -- "$typed")
      ;;
  esac
}

# Readline keeps what stands before the last "=" or ":" of the word, and wants the rest, quoted for the shell.
_integ_finish() {
  local i breaks=\${COMP_WORDBREAKS//[^=:]/} head=
  [[ -n $breaks ]] && head=\${cur%"\${cur##*[$breaks]}"}
  for ((i = 0; i < \${#COMPREPLY[@]}; i++)); do
    COMPREPLY[i]=\${COMPREPLY[i]#"$head"}
    [[ -z $as_is && \${COMPREPLY[i]} == *[!A-Za-z0-9_./:=@%+,-]* ]] && COMPREPLY[i]=$(printf %q "\${COMPREPLY[i]}")
  done
}

_integ() {
  local cur= node=integ index=0 expect= follows= value= plain= help= used=' ' typed= prefix= kind= flags= as_is=
  local IFS=$' \\t\\n'
  local -a words
  words=()
  COMPREPLY=()
  _integ_words
  _integ_walk
  # Inside quotes the shell sees the text as it is.
  [[ $cur == [\\'\\"]* ]] && cur=\${cur:1} as_is=1
  typed=$cur
  if [[ $expect == one || ($expect == many && $cur != -*) ]]; then
    _integ_offer_value "$value"
  elif [[ -z $plain && $cur == --*=* ]]; then
    prefix=\${cur%%=*}= typed=\${cur#*=} typed=\${typed#[\\'\\"]}
    _integ_value "$node \${cur%%=*}"
    _integ_offer_value "\${kind#* }"
  elif [[ -n $help ]]; then
    _integ_offer_children
  elif [[ -z $plain && $cur == -* ]]; then
    _integ_flags "$node"
    _integ_offer_flags "$flags $_integ_globals"
  else
    _integ_offer_children
    _integ_argument "$node $index"
    _integ_offer_value "$kind"
    if [[ -z $plain && -z $cur && -z $kind && \${#COMPREPLY[@]} -eq 0 ]]; then
      _integ_flags "$node"
      _integ_offer_flags "$flags"
    fi
  fi
  _integ_finish
}

complete -F _integ integ
`;
