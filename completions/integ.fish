# fish completion for integ, printed by "integ completion fish": change the program, not this file.

# True unless the word is a file: fish completes files itself, with quotes, variables and ~.
function __integ_completes
    set -l words (commandline -opc)
    set -l cur (commandline -ct)
    # Skip the variables that are set for this command: NAME=value integ ...
    while string match -qr '^[A-Za-z_]\w*=' -- "$words[1]"
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
