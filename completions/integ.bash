# bash completion for integ, printed by "integ completion bash": change the program, not this file.

_integ() {
  local IFS=$' \t\n' rest=${COMP_LINE:0:COMP_POINT} cur= kind= prefix= typed= as_is= i gap word program breaks head=
  local -a words
  words=()
  COMPREPLY=()
  # The words before the cursor, as typed: readline cuts them at "=" and ":" too.
  for ((i = 0; i <= COMP_CWORD; i++)); do
    gap=${rest%%[![:space:]]*}
    rest=${rest#"$gap"}
    word=${COMP_WORDS[i]}
    ((i == COMP_CWORD)) && word=$rest
    rest=${rest#"$word"}
    if [[ -n $gap || $i -eq 0 ]]; then
      words+=("$word")
    else
      words[${#words[@]} - 1]+=$word
    fi
  done
  cur=${words[${#words[@]} - 1]}
  unset 'words[${#words[@]}-1]'
  # Text inside quotes needs no further quoting.
  [[ $cur == [\'\"]* ]] && cur=${cur:1} as_is=1
  program=${words[0]/#\~/$HOME}
  type -P "$program" >/dev/null || program=integ
  while IFS=$'\t' read -r word _; do
    if [[ -z $kind ]]; then
      kind=${word%% *} prefix=${word#* } typed=${cur#"${word#* }"}
      [[ -n $prefix ]] && typed=${typed#[\'\"]}
    elif [[ $word == "$typed"* ]]; then
      COMPREPLY+=("$prefix$word")
    fi
  done < <("$program" __complete "${words[@]:1}" ":$cur" 2>/dev/null)
  if [[ $kind == files ]]; then
    type compopt >/dev/null 2>&1 && compopt -o filenames 2>/dev/null && as_is=1
    while IFS= read -r word; do
      COMPREPLY+=("$prefix$word")
    done < <(compgen -f -- "$typed")
  fi
  # Readline keeps the word up to its last "=" or ":" and replaces the rest, which must be quoted for the shell.
  breaks=${COMP_WORDBREAKS//[^=:]/}
  [[ -n $breaks ]] && head=${cur%"${cur##*[$breaks]}"}
  for ((i = 0; i < ${#COMPREPLY[@]}; i++)); do
    COMPREPLY[i]=${COMPREPLY[i]#"$head"}
    [[ -z $as_is && ${COMPREPLY[i]} == *[!A-Za-z0-9_./:=@%+,-]* ]] && COMPREPLY[i]=$(printf %q "${COMPREPLY[i]}")
  done
}

complete -F _integ integ
