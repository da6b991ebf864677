// Each script runs `integ __complete <words before> :<current word>` and converts the output: its first line is the
// kind (commands, options, values, files) and the prefix of the current word (`--output=`); each further line is a
// candidate, with a tab and its summary if it has one. The current word has a colon, because some shells drop an empty
// word.

export const shells = ["bash", "zsh", "fish", "powershell"] as const;
export type Shell = (typeof shells)[number];

const origin = (shell: Shell): string =>
  `# ${shell} completion for integ, printed by "integ completion ${shell}": change the program, not this file.\n`;

/** Works with bash 3.2 and later. */
const bash = `${origin("bash")}
_integ() {
  local IFS=$' \\t\\n' rest=\${COMP_LINE:0:COMP_POINT} cur= kind= prefix= typed= as_is= i gap word program breaks head=
  local -a words
  words=()
  COMPREPLY=()
  # The words before the cursor, as typed: readline cuts them at "=" and ":" too.
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
  # Text inside quotes needs no further quoting.
  [[ $cur == [\\'\\"]* ]] && cur=\${cur:1} as_is=1
  program=\${words[0]/#\\~/$HOME}
  type -P "$program" >/dev/null || program=integ
  while IFS=$'\\t' read -r word _; do
    if [[ -z $kind ]]; then
      kind=\${word%% *} prefix=\${word#* } typed=\${cur#"\${word#* }"}
      [[ -n $prefix ]] && typed=\${typed#[\\'\\"]}
    elif [[ $word == "$typed"* ]]; then
      COMPREPLY+=("$prefix$word")
    fi
  done < <("$program" __complete "\${words[@]:1}" ":$cur" 2>/dev/null)
  if [[ $kind == files ]]; then
    type compopt >/dev/null 2>&1 && compopt -o filenames 2>/dev/null && as_is=1
    while IFS= read -r word; do
      COMPREPLY+=("$prefix$word")
    done < <(compgen -f -- "$typed")
  fi
  # Readline keeps the word up to its last "=" or ":" and replaces the rest, which must be quoted for the shell.
  breaks=\${COMP_WORDBREAKS//[^=:]/}
  [[ -n $breaks ]] && head=\${cur%"\${cur##*[$breaks]}"}
  for ((i = 0; i < \${#COMPREPLY[@]}; i++)); do
    COMPREPLY[i]=\${COMPREPLY[i]#"$head"}
    [[ -z $as_is && \${COMPREPLY[i]} == *[!A-Za-z0-9_./:=@%+,-]* ]] && COMPREPLY[i]=$(printf %q "\${COMPREPLY[i]}")
  done
}

complete -F _integ integ
`;

/** The script can be a file of `fpath`, and can also be sourced. */
const zsh = `#compdef integ
${origin("zsh")}
_integ() {
  local program=\${(Q)words[1]} kind line
  local -a lines before found
  [[ $program == '~/'* ]] && program=$HOME/\${program#'~/'}
  whence -p -- "$program" >/dev/null || program=integ
  (( CURRENT > 2 )) && before=("\${(@Q)words[2,CURRENT-1]}")
  lines=("\${(@f)$("$program" __complete "\${before[@]}" ":$PREFIX" 2>/dev/null)}")
  kind=\${lines[1]%% *}
  [[ -n \${lines[1]#* } ]] && compset -P 1 '*='
  if [[ $kind == files ]]; then
    _files
    return
  fi
  for line in "\${(@)lines[2,-1]}"; do
    found+=("\${\${line%%$'\\t'*}//:/\\\\:}")
    [[ $line == *$'\\t'* ]] && found[-1]+=:\${line#*$'\\t'}
  done
  (( $#found )) || return 1
  # -O: offer options even before a dash is typed, because no other candidates are possible.
  if [[ $kind == options ]]; then
    _describe -O -t options option found
  else
    _describe -t "$kind" "\${kind%s}" found
  fi
}

if [[ $funcstack[1] == _integ ]]; then
  _integ "$@"
else
  compdef _integ integ
fi
`;

/** Works with fish 3.0 and later. */
const fish = `${origin("fish")}
# True unless the word is a file: fish completes files itself, with quotes, variables and ~.
function __integ_completes
    set -l words (commandline -opc)
    set -l cur (commandline -ct)
    # Skip the variables that are set for this command: NAME=value integ ...
    while string match -qr '^[A-Za-z_]\\w*=' -- "$words[1]"
        set -e words[1]
    end
    set -l program $words[1]
    type -q "$program"; or set program integ
    set -e words[1]
    set -l answer ($program __complete $words ":$cur" 2>/dev/null)
    set -l kind (string split -m 1 ' ' -- "$answer[1]")
    set -e answer[1]
    set -g __integ_found "$kind[2]"$answer
    test "$kind[1]" != files
end

complete -c integ -n __integ_completes -f -a '$__integ_found'
`;

/** Works with PowerShell 5.1 and later. */
const powershell = `${origin("powershell")}
Register-ArgumentCompleter -Native -CommandName integ -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    # With 'Stop', PowerShell 5.1 would treat any output on stderr as an error.
    $ErrorActionPreference = 'Continue'
    $before = @($commandAst.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object {
            if ($_ -is [System.Management.Automation.Language.StringConstantExpressionAst]) { $_.Value } else { $_.Extent.Text }
        })
    $program = if ($before.Count -gt 0) { $before[0] } else { 'integ' }
    if (-not (Get-Command -Name $program -ErrorAction SilentlyContinue)) { $program = 'integ' }
    $words = @($before | Select-Object -Skip 1)
    $answer = @(& $program __complete @words ":$wordToComplete" 2>$null)
    if ($answer.Count -eq 0) { return '' }
    $kind, $prefix = $answer[0].Split([char[]]' ', 2)
    $typed = $wordToComplete
    if ($prefix -and $typed.StartsWith($prefix, [System.StringComparison]::Ordinal)) { $typed = $typed.Substring($prefix.Length) }
    if ($kind -ceq 'files' -or $kind -ceq 'values') { $typed = $typed.Trim([char[]]"'""") }
    $type = if ($kind -ceq 'options') { 'ParameterName' } else { 'ParameterValue' }

    $found = @(
        if ($kind -ceq 'files') {
            [System.Management.Automation.CompletionCompleters]::CompleteFilename($typed) | ForEach-Object {
                [System.Management.Automation.CompletionResult]::new("$prefix$($_.CompletionText)", $_.ListItemText, $_.ResultType, $_.ToolTip)
            }
        }
        foreach ($line in @($answer | Select-Object -Skip 1)) {
            $name, $summary = $line.Split([char[]]"\`t", 2)
            if (-not $name.StartsWith($typed, [System.StringComparison]::Ordinal)) { continue }
            if (-not $summary) { $summary = $name }
            # Quote text that has a meaning in PowerShell.
            $text = "$prefix$name"
            if ($text -match '[^\\w./:=@+\\\\-]' -or $text.StartsWith('@')) { $text = "'" + $text.Replace("'", "''") + "'" }
            [System.Management.Automation.CompletionResult]::new($text, $name, $type, $summary)
        }
    )
    # An empty text keeps PowerShell from offering files instead.
    if ($found.Count -gt 0) { $found } else { '' }
}
`;

/** A test keeps the files in `completions/` equal to these texts. */
export const scripts: Readonly<Record<Shell, string>> = { bash, zsh, fish, powershell };
