// Owns: the completion script for PowerShell (5.1 and later). Pure: grammar → text.
// Must not know: any one command.
import { grammarOf, origin, type FlagLine, type NodeLine } from "./grammar.ts";
import type { Tree } from "./tree.ts";

/** @returns the script as it stands in `completions/integ.ps1` */
export function powershellScript(tree: Tree): string {
  const { nodes, globals } = grammarOf(tree);
  return [
    `# ${origin("powershell")}\n`,
    "Register-ArgumentCompleter -Native -CommandName integ -ScriptBlock {",
    "    param($wordToComplete, $commandAst, $cursorPosition)\n",
    "    # Where a session stops at errors, a program that says something on stderr would be one (5.1).",
    "    $ErrorActionPreference = 'Continue'\n",
    "    # Keys of a plain hash table know no case, and -h is not -H.",
    table("steps", nodes.flatMap(steps)),
    table("children", nodes.filter((node) => node.children.length > 0).map(children)),
    table("aliases", nodes.filter(hasAliases).map(aliases)),
    table("flags", [
      ...nodes.filter((node) => node.flags.length > 0).map((node) => entry(node.key, list(node.flags.map(flagWord)))),
      entry("globals", list(globals.map(flagWord))),
    ]),
    table("values", [
      ...globals.flatMap((flag) => values(flag, "*")),
      ...nodes.flatMap((node) => node.flags.flatMap((flag) => values(flag, node.key))),
    ]),
    table("arguments", nodes.flatMap(argumentLines)),
    machine,
  ].join("\n");
}

function table(name: string, lines: readonly string[]): string {
  const made = `    $${name} = [System.Collections.Hashtable]::new([System.StringComparer]::Ordinal)`;
  return `${[made, ...lines.map((line) => `    $${name}${line}`)].join("\n")}\n`;
}

/** Single quotes keep every character; typographic ones would end the text as well. */
function quoted(text: string): string {
  return `'${text.replaceAll(/['‘’‚‛]/g, "$&$&")}'`;
}

function entry(key: string, value: string): string {
  return `[${quoted(key)}] = ${value}`;
}

function list(words: readonly string[]): string {
  return `@(\n${words.map((word) => `        ${quoted(word)}`).join("\n")}\n    )`;
}

function steps({ key, children: below }: NodeLine): string[] {
  const real = below.filter(({ word }) => word !== "help");
  return real.flatMap(({ word, aliases: others }) =>
    [word, ...others].map((name) => entry(`${key} ${name}`, quoted(`${key} ${word}`))),
  );
}

function children({ key, children: below }: NodeLine): string {
  return entry(key, list(below.map(({ word, summary }) => `${word} ${summary}`)));
}

function hasAliases(node: NodeLine): boolean {
  return node.children.some((child) => child.aliases.length > 0);
}

function aliases({ key, children: below }: NodeLine): string {
  return entry(key, list(below.flatMap((child) => child.aliases.map((alias) => `${alias} ${child.summary}`))));
}

/** `--long|-s`, with a `+` where it may stand more than once, a space, what it is. */
function flagWord(flag: FlagLine): string {
  return `${flag.names.join("|")}${flag.follows === "many" ? "+" : ""} ${flag.summary}`;
}

function values({ names, follows, kind }: FlagLine, key: string): string[] {
  return follows === "nothing" ? [] : names.map((name) => entry(`${key} ${name}`, quoted(`${follows} ${kind}`)));
}

function argumentLines({ key, arguments: kinds, repeats }: NodeLine): string[] {
  return kinds.map((kind, at) => entry(`${key} ${repeats && at === kinds.length - 1 ? "*" : at}`, quoted(kind)));
}

const machine = `    $valueOf = {
        param($node, $flag)
        if ($values.ContainsKey("$node $flag")) { $values["$node $flag"] } else { $values["* $flag"] }
    }

    # Follow the words before the cursor to the command they name and to what is expected next.
    $words = @($commandAst.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object {
            if ($_ -is [System.Management.Automation.Language.StringConstantExpressionAst]) { $_.Value } else { $_.Extent.Text }
        })
    $program = if ($words.Count -gt 0) { $words[0] } else { 'integ' }
    $node = 'integ'; $index = 0; $expect = ''; $follows = ''; $value = ''; $plain = $false; $help = $false; $used = @()
    foreach ($word in @($words | Select-Object -Skip 1)) {
        if ($expect -eq 'one' -or ($expect -eq 'many' -and -not $word.StartsWith('-'))) {
            $expect = if ($follows -eq 'many') { 'many' } else { '' }
        } elseif (-not $plain -and $word -ceq '--') {
            $plain = $true; $expect = ''
        } elseif (-not $plain -and $word.StartsWith('-') -and $word.Length -gt 1) {
            $flag = $word.Split('=')[0]
            $expect = ''
            $kind = & $valueOf $node $flag
            if ($kind) {
                $follows, $value = $kind.Split([char[]]' ', 2)
                if (-not $word.Contains('=')) { $expect = 'one' } elseif ($follows -eq 'many') { $expect = 'many' }
            }
            $used += $flag
        } else {
            $expect = ''
            if ($steps.ContainsKey("$node $word")) {
                $node = $steps["$node $word"]
            } elseif ($node -ceq 'integ' -and $word -ceq 'help') {
                $help = $true
            } else {
                $index++
            }
        }
    }

    $offer = {
        param($text, $summary, $type, $shown)
        if (-not $summary) { $summary = $text }
        if (-not $shown) { $shown = $text }
        # What PowerShell itself would read differently goes between quotes.
        $safe = if ($text -match '[^\\w./:=@+\\\\-]' -or $text.StartsWith('@')) { "'" + $text.Replace("'", "''") + "'" } else { $text }
        [System.Management.Automation.CompletionResult]::new($safe, $shown, $type, $summary)
    }
    $fits = { param($text, $typed) $text.StartsWith($typed, [System.StringComparison]::Ordinal) }

    $offerValue = {
        param($kind, $prefix, $typed)
        $typed = $typed.Trim([char[]]"'""")
        if ($kind.StartsWith('=')) {
            $kind.Substring(1).Split(' ') | Where-Object { & $fits $_ $typed } | ForEach-Object { & $offer "$prefix$_" $_ 'ParameterValue' $_ }
        } elseif ($kind.StartsWith('@')) {
            if (-not (Get-Command -Name $program -ErrorAction SilentlyContinue)) { $program = 'integ' }
            $what = $kind.Substring(1)
            & $program __complete $what 2>$null | ForEach-Object {
                $name, $summary = $_.Split([char[]]"\`t", 2)
                if (& $fits $name $typed) { & $offer "$prefix$name" $summary 'ParameterValue' $name }
            }
        } elseif ($kind -eq 'files') {
            [System.Management.Automation.CompletionCompleters]::CompleteFilename($typed) | ForEach-Object {
                [System.Management.Automation.CompletionResult]::new("$prefix$($_.CompletionText)", $_.ListItemText, $_.ResultType, $_.ToolTip)
            }
        }
    }

    # Commands by their names; by an alias only where no name fits.
    $offerChildren = {
        $lines = @($children[$node] | Where-Object { $_ -and (& $fits $_ $wordToComplete) -and -not ($help -and $_.StartsWith('help ')) })
        if ($lines.Count -eq 0) { $lines = @($aliases[$node] | Where-Object { $_ -and (& $fits $_ $wordToComplete) }) }
        foreach ($line in $lines) {
            $name, $summary = $line.Split([char[]]' ', 2)
            & $offer $name $summary 'ParameterValue' $name
        }
    }

    # Flags that were not given yet, or may be given again.
    $offerFlags = {
        param($lines)
        foreach ($line in @($lines | Where-Object { $_ })) {
            $written, $summary = $line.Split([char[]]' ', 2)
            $names = $written.TrimEnd('+').Split('|')
            if (-not $written.EndsWith('+') -and @($names | Where-Object { $used -ccontains $_ }).Count -gt 0) { continue }
            foreach ($name in @($names | Where-Object { & $fits $_ $wordToComplete })) { & $offer $name $summary 'ParameterName' $name }
        }
    }

    $found = @(
        if ($expect -eq 'one' -or ($expect -eq 'many' -and -not $wordToComplete.StartsWith('-'))) {
            & $offerValue $value '' $wordToComplete
        } elseif (-not $plain -and $wordToComplete -match '^(--[^=]+)=(.*)$') {
            $flag = $Matches[1]; $typed = $Matches[2]
            $kind = & $valueOf $node $flag
            if ($kind) {
                $follows, $value = $kind.Split([char[]]' ', 2)
                & $offerValue $value "$flag=" $typed
            }
        } elseif ($help) {
            & $offerChildren
        } elseif (-not $plain -and $wordToComplete.StartsWith('-')) {
            & $offerFlags $flags[$node]
            & $offerFlags $flags['globals']
        } elseif ($children.ContainsKey($node)) {
            & $offerChildren
        } else {
            $kind = if ($arguments.ContainsKey("$node $index")) { $arguments["$node $index"] } else { $arguments["$node *"] }
            if ($kind) {
                & $offerValue $kind '' $wordToComplete
            } elseif (-not $plain -and $wordToComplete -eq '') {
                & $offerFlags $flags[$node]
            }
        }
    )
    # An empty text keeps PowerShell from offering files where none are meant.
    if ($found.Count -gt 0) { $found } else { '' }
}
`;
