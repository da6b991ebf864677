# powershell completion for integ, printed by "integ completion powershell": change the program, not this file.

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
            $name, $summary = $line.Split([char[]]"`t", 2)
            if (-not $name.StartsWith($typed, [System.StringComparison]::Ordinal)) { continue }
            if (-not $summary) { $summary = $name }
            # Quote text that has a meaning in PowerShell.
            $text = "$prefix$name"
            if ($text -match '[^\w./:=@+\\-]' -or $text.StartsWith('@')) { $text = "'" + $text.Replace("'", "''") + "'" }
            [System.Management.Automation.CompletionResult]::new($text, $name, $type, $summary)
        }
    )
    # An empty text keeps PowerShell from offering files instead.
    if ($found.Count -gt 0) { $found } else { '' }
}
