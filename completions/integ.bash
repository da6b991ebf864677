# bash completion for integ, printed by "integ completion bash": change the program, not this file.

_integ_step() {
  case "$1" in
    'integ profiles' | 'integ profile') next='integ profiles' ;;
    'integ keys' | 'integ key') next='integ keys' ;;
    'integ oauth-clients' | 'integ oauth-client') next='integ oauth-clients' ;;
    'integ entities' | 'integ entity') next='integ entities' ;;
    'integ cohorts' | 'integ cohort') next='integ cohorts' ;;
    'integ people' | 'integ person') next='integ people' ;;
    'integ journal') next='integ journal' ;;
    'integ api') next='integ api' ;;
    'integ spec') next='integ spec' ;;
    'integ doctor') next='integ doctor' ;;
    'integ sandbox') next='integ sandbox' ;;
    'integ completion') next='integ completion' ;;
    'integ commands') next='integ commands' ;;
    'integ profiles add') next='integ profiles add' ;;
    'integ profiles list') next='integ profiles list' ;;
    'integ profiles show') next='integ profiles show' ;;
    'integ profiles use') next='integ profiles use' ;;
    'integ profiles edit') next='integ profiles edit' ;;
    'integ profiles remove') next='integ profiles remove' ;;
    'integ keys list') next='integ keys list' ;;
    'integ keys create') next='integ keys create' ;;
    'integ keys rotate') next='integ keys rotate' ;;
    'integ keys revoke') next='integ keys revoke' ;;
    'integ keys audit') next='integ keys audit' ;;
    'integ oauth-clients create') next='integ oauth-clients create' ;;
    'integ oauth-clients get') next='integ oauth-clients get' ;;
    'integ oauth-clients list') next='integ oauth-clients list' ;;
    'integ oauth-clients revoke') next='integ oauth-clients revoke' ;;
    'integ oauth-clients rotate') next='integ oauth-clients rotate' ;;
    'integ oauth-clients token') next='integ oauth-clients token' ;;
    'integ entities list') next='integ entities list' ;;
    'integ cohorts members') next='integ cohorts members' ;;
    'integ people search') next='integ people search' ;;
    'integ people membership') next='integ people membership' ;;
    'integ journal list') next='integ journal list' ;;
    'integ journal show') next='integ journal show' ;;
    'integ journal recover') next='integ journal recover' ;;
    'integ journal claim') next='integ journal claim' ;;
    'integ journal forget') next='integ journal forget' ;;
    'integ journal prune') next='integ journal prune' ;;
    'integ journal verify') next='integ journal verify' ;;
    'integ journal path') next='integ journal path' ;;
    'integ spec show') next='integ spec show' ;;
    'integ spec check') next='integ spec check' ;;
    'integ sandbox start') next='integ sandbox start' ;;
    'integ sandbox status') next='integ sandbox status' ;;
    'integ sandbox reset') next='integ sandbox reset' ;;
    'integ sandbox tour') next='integ sandbox tour' ;;
    *) next= ;;
  esac
}

_integ_children() {
  case "$1" in
    'integ') children='profiles|profile keys|key oauth-clients|oauth-client entities|entity cohorts|cohort people|person journal api spec doctor sandbox completion commands help' ;;
    'integ profiles') children='add list show use edit remove' ;;
    'integ keys') children='list create rotate revoke audit' ;;
    'integ oauth-clients') children='create get list revoke rotate token' ;;
    'integ entities') children='list' ;;
    'integ cohorts') children='members' ;;
    'integ people') children='search membership' ;;
    'integ journal') children='list show recover claim forget prune verify path' ;;
    'integ spec') children='show check' ;;
    'integ sandbox') children='start status reset tour' ;;
    *) children= ;;
  esac
}

_integ_flags() {
  case "$1" in
    'integ') flags='--version|-V' ;;
    'integ profiles add') flags='--use --region --base-url --organization-id --api-key-stdin --api-key-command --api-key-id --basic-style --client-id --client-secret-stdin --client-secret-command --token-endpoint --audience --issuer --client-auth --access-token-command --access-token-endpoint' ;;
    'integ profiles edit') flags='--region --base-url --organization-id --api-key-stdin --api-key-command --api-key-id --basic-style --client-id --client-secret-stdin --client-secret-command --token-endpoint --audience --issuer --client-auth --access-token-command --access-token-endpoint' ;;
    'integ keys create') flags='--name --expires-at --expires-in --type --scope+ --name-marker --new --dry-run --secret-file --secret-command --secret-profile --secret-format --force' ;;
    'integ keys rotate') flags='--update-profile --by-replacement --overlap --new --name --expires-at --expires-in --type --scope+ --name-marker --secret-file --secret-command --secret-profile --secret-format --force' ;;
    'integ keys audit') flags='--max-age --max-idle --expires-within --fail-on --strict --waivers' ;;
    'integ oauth-clients create') flags='--service-account --scope+ --idempotency-key --new --wait --replace-lost-secret --dry-run --secret-file --secret-command --secret-profile --secret-format --force' ;;
    'integ oauth-clients list') flags='--offline --service-account' ;;
    'integ oauth-clients rotate') flags='--overlap --keep-old --replace-lost-secret --wait --secret-file --secret-command --secret-profile --secret-format --force' ;;
    'integ oauth-clients token') flags='--client-id --client-secret-stdin --from-profile' ;;
    'integ entities list') flags='--type --limit --page-token --all --max --filter+ --unique --out --resume --force' ;;
    'integ cohorts members') flags='--limit --page-token --all --max --filter+ --unique --out --resume --force' ;;
    'integ people search') flags='--param+' ;;
    'integ journal list') flags='--all' ;;
    'integ journal recover') flags='--replace-lost-secret --wait --secret-file --secret-command --secret-profile --secret-format --force' ;;
    'integ journal claim') flags='--secret-file --secret-command --secret-profile --secret-format --force' ;;
    'integ journal prune') flags='--older-than' ;;
    'integ api') flags='--method|-X --field|-f+ --input --header|-H+ --paginate --include' ;;
    'integ spec show') flags='--contract-version' ;;
    'integ spec check') flags='--contract-version' ;;
    'integ sandbox start') flags='--port-us --port-eu --entities --seed --fault+ --log' ;;
    *) flags= ;;
  esac
}

_integ_globals='--profile|-p --output|-o --json --ndjson --fields --service-version --timeout --retry-for --yes|-y --no-input --quiet|-q --debug --no-color --help|-h'

_integ_value() {
  case "$1" in
    *' --profile' | *' -p') kind='one @profiles' ;;
    *' --output' | *' -o') kind='one =table json ndjson csv yaml' ;;
    *' --fields') kind='one nothing' ;;
    *' --service-version') kind='one =2026-07-01' ;;
    *' --timeout') kind='one nothing' ;;
    *' --retry-for') kind='one nothing' ;;
    'integ profiles add'' --region') kind='one =us eu' ;;
    'integ profiles add'' --base-url') kind='one nothing' ;;
    'integ profiles add'' --organization-id') kind='one nothing' ;;
    'integ profiles add'' --api-key-command') kind='one nothing' ;;
    'integ profiles add'' --api-key-id') kind='one nothing' ;;
    'integ profiles add'' --basic-style') kind='one =apikey-user key-as-user' ;;
    'integ profiles add'' --client-id') kind='one nothing' ;;
    'integ profiles add'' --client-secret-command') kind='one nothing' ;;
    'integ profiles add'' --token-endpoint') kind='one nothing' ;;
    'integ profiles add'' --audience') kind='one nothing' ;;
    'integ profiles add'' --issuer') kind='one nothing' ;;
    'integ profiles add'' --client-auth') kind='one =client_secret_basic client_secret_post' ;;
    'integ profiles add'' --access-token-command') kind='one nothing' ;;
    'integ profiles add'' --access-token-endpoint') kind='one nothing' ;;
    'integ profiles edit'' --region') kind='one =us eu' ;;
    'integ profiles edit'' --base-url') kind='one nothing' ;;
    'integ profiles edit'' --organization-id') kind='one nothing' ;;
    'integ profiles edit'' --api-key-command') kind='one nothing' ;;
    'integ profiles edit'' --api-key-id') kind='one nothing' ;;
    'integ profiles edit'' --basic-style') kind='one =apikey-user key-as-user' ;;
    'integ profiles edit'' --client-id') kind='one nothing' ;;
    'integ profiles edit'' --client-secret-command') kind='one nothing' ;;
    'integ profiles edit'' --token-endpoint') kind='one nothing' ;;
    'integ profiles edit'' --audience') kind='one nothing' ;;
    'integ profiles edit'' --issuer') kind='one nothing' ;;
    'integ profiles edit'' --client-auth') kind='one =client_secret_basic client_secret_post' ;;
    'integ profiles edit'' --access-token-command') kind='one nothing' ;;
    'integ profiles edit'' --access-token-endpoint') kind='one nothing' ;;
    'integ keys create'' --name') kind='one nothing' ;;
    'integ keys create'' --expires-at') kind='one nothing' ;;
    'integ keys create'' --expires-in') kind='one nothing' ;;
    'integ keys create'' --type') kind='one =user_bound service_account' ;;
    'integ keys create'' --scope') kind='many =* push-ingest:*' ;;
    'integ keys create'' --secret-file') kind='one files' ;;
    'integ keys create'' --secret-command') kind='one nothing' ;;
    'integ keys create'' --secret-profile') kind='one @profiles' ;;
    'integ keys create'' --secret-format') kind='one =raw json env' ;;
    'integ keys rotate'' --overlap') kind='one nothing' ;;
    'integ keys rotate'' --name') kind='one nothing' ;;
    'integ keys rotate'' --expires-at') kind='one nothing' ;;
    'integ keys rotate'' --expires-in') kind='one nothing' ;;
    'integ keys rotate'' --type') kind='one =user_bound service_account' ;;
    'integ keys rotate'' --scope') kind='many =* push-ingest:*' ;;
    'integ keys rotate'' --secret-file') kind='one files' ;;
    'integ keys rotate'' --secret-command') kind='one nothing' ;;
    'integ keys rotate'' --secret-profile') kind='one @profiles' ;;
    'integ keys rotate'' --secret-format') kind='one =raw json env' ;;
    'integ keys audit'' --max-age') kind='one nothing' ;;
    'integ keys audit'' --max-idle') kind='one nothing' ;;
    'integ keys audit'' --expires-within') kind='one nothing' ;;
    'integ keys audit'' --fail-on') kind='one =low medium high' ;;
    'integ keys audit'' --waivers') kind='one files' ;;
    'integ oauth-clients create'' --service-account') kind='one nothing' ;;
    'integ oauth-clients create'' --scope') kind='many =entity:read organization:read service_account:manage' ;;
    'integ oauth-clients create'' --idempotency-key') kind='one nothing' ;;
    'integ oauth-clients create'' --wait') kind='one nothing' ;;
    'integ oauth-clients create'' --secret-file') kind='one files' ;;
    'integ oauth-clients create'' --secret-command') kind='one nothing' ;;
    'integ oauth-clients create'' --secret-profile') kind='one @profiles' ;;
    'integ oauth-clients create'' --secret-format') kind='one =raw json env' ;;
    'integ oauth-clients list'' --service-account') kind='one nothing' ;;
    'integ oauth-clients rotate'' --overlap') kind='one nothing' ;;
    'integ oauth-clients rotate'' --wait') kind='one nothing' ;;
    'integ oauth-clients rotate'' --secret-file') kind='one files' ;;
    'integ oauth-clients rotate'' --secret-command') kind='one nothing' ;;
    'integ oauth-clients rotate'' --secret-profile') kind='one @profiles' ;;
    'integ oauth-clients rotate'' --secret-format') kind='one =raw json env' ;;
    'integ oauth-clients token'' --client-id') kind='one nothing' ;;
    'integ entities list'' --type') kind='one =person' ;;
    'integ entities list'' --limit') kind='one nothing' ;;
    'integ entities list'' --page-token') kind='one nothing' ;;
    'integ entities list'' --max') kind='one nothing' ;;
    'integ entities list'' --filter') kind='many nothing' ;;
    'integ entities list'' --out') kind='one files' ;;
    'integ cohorts members'' --limit') kind='one nothing' ;;
    'integ cohorts members'' --page-token') kind='one nothing' ;;
    'integ cohorts members'' --max') kind='one nothing' ;;
    'integ cohorts members'' --filter') kind='many nothing' ;;
    'integ cohorts members'' --out') kind='one files' ;;
    'integ people search'' --param') kind='many nothing' ;;
    'integ journal recover'' --wait') kind='one nothing' ;;
    'integ journal recover'' --secret-file') kind='one files' ;;
    'integ journal recover'' --secret-command') kind='one nothing' ;;
    'integ journal recover'' --secret-profile') kind='one @profiles' ;;
    'integ journal recover'' --secret-format') kind='one =raw json env' ;;
    'integ journal claim'' --secret-file') kind='one files' ;;
    'integ journal claim'' --secret-command') kind='one nothing' ;;
    'integ journal claim'' --secret-profile') kind='one @profiles' ;;
    'integ journal claim'' --secret-format') kind='one =raw json env' ;;
    'integ journal prune'' --older-than') kind='one nothing' ;;
    'integ api'' --method' | 'integ api'' -X') kind='one =GET POST PUT PATCH DELETE' ;;
    'integ api'' --field' | 'integ api'' -f') kind='many nothing' ;;
    'integ api'' --input') kind='one files' ;;
    'integ api'' --header' | 'integ api'' -H') kind='many nothing' ;;
    'integ spec show'' --contract-version') kind='one =2026-07-01' ;;
    'integ spec check'' --contract-version') kind='one =2026-07-01' ;;
    'integ sandbox start'' --port-us') kind='one nothing' ;;
    'integ sandbox start'' --port-eu') kind='one nothing' ;;
    'integ sandbox start'' --entities') kind='one nothing' ;;
    'integ sandbox start'' --seed') kind='one nothing' ;;
    'integ sandbox start'' --fault') kind='many nothing' ;;
    *) kind= ;;
  esac
}

_integ_argument() {
  case "$1" in
    'integ profiles add 0') kind='nothing' ;;
    'integ profiles show 0') kind='@profiles' ;;
    'integ profiles use 0') kind='@profiles' ;;
    'integ profiles edit 0') kind='@profiles' ;;
    'integ profiles remove 0') kind='@profiles' ;;
    'integ keys rotate 0') kind='@keys' ;;
    'integ keys revoke 0') kind='@keys' ;;
    'integ oauth-clients get 0') kind='@clients' ;;
    'integ oauth-clients revoke 0') kind='@clients' ;;
    'integ oauth-clients rotate 0') kind='@clients' ;;
    'integ cohorts members 0') kind='nothing' ;;
    'integ people search 0') kind='nothing' ;;
    'integ people membership 0') kind='nothing' ;;
    'integ journal show 0') kind='@entries' ;;
    'integ journal recover '*) kind='@unsettled' ;;
    'integ journal claim 0') kind='@unsettled' ;;
    'integ journal forget 0') kind='@unsettled' ;;
    'integ api 0') kind='=/v1/entities /v1-reference/openapi-v1.json /api/v1/access-keys /api/v1/people/search' ;;
    'integ completion 0') kind='=bash zsh fish powershell' ;;
    *) kind= ;;
  esac
}

# The words before the cursor, as typed: readline cuts them at "=" and ":" too.
_integ_words() {
  local i gap word rest=${COMP_LINE:0:COMP_POINT}
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
}

# Follows the words to the command they name and to what is expected next.
_integ_walk() {
  local i word next kind
  for ((i = 1; i < ${#words[@]}; i++)); do
    word=${words[i]}
    if [[ $expect == one || ($expect == many && $word != -*) ]]; then
      [[ $follows == many ]] && expect=many || expect=
    elif [[ -z $plain && $word == -- ]]; then
      plain=1 expect=
    elif [[ -z $plain && $word == -?* ]]; then
      expect=
      _integ_value "$node ${word%%=*}"
      if [[ -n $kind ]]; then
        follows=${kind%% *} value=${kind#* }
        if [[ $word != *=* ]]; then expect=one; elif [[ $follows == many ]]; then expect=many; fi
      fi
      used+="${word%%=*} "
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
  [[ -n $help ]] && children=${children% help}
  IFS=' ' read -r -a names <<<"$children"
  _integ_offer_words "${names[@]%%|*}"
  ((${#COMPREPLY[@]})) && return
  for word in "${names[@]}"; do
    [[ $word == *"|"* ]] && _integ_offer_words "${word#*|}"
  done
}

# Flags that were not given yet, or may be given again.
_integ_offer_flags() {
  local flag name
  local -a names
  for flag in $*; do
    IFS='|' read -r -a names <<<"${flag%+}"
    if [[ $flag != *+ ]]; then
      for name in "${names[@]}"; do
        [[ $used == *" $name "* ]] && continue 2
      done
    fi
    _integ_offer_words "${names[@]}"
  done
}

_integ_offer_value() {
  local word program
  local -a names
  case "$1" in
    '='*)
      IFS=' ' read -r -a names <<<"${1#=}"
      _integ_offer_words "${names[@]}"
      ;;
    '@'*)
      program=${words[0]/#\~/$HOME}
      type -P "$program" >/dev/null || program=integ
      while IFS=$'\t' read -r word _; do
        _integ_offer_words "$word"
      done < <("$program" __complete "${1#@}" 2>/dev/null)
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
  local i breaks=${COMP_WORDBREAKS//[^=:]/} head=
  [[ -n $breaks ]] && head=${cur%"${cur##*[$breaks]}"}
  for ((i = 0; i < ${#COMPREPLY[@]}; i++)); do
    COMPREPLY[i]=${COMPREPLY[i]#"$head"}
    [[ -z $as_is && ${COMPREPLY[i]} == *[!A-Za-z0-9_./:=@%+,-]* ]] && COMPREPLY[i]=$(printf %q "${COMPREPLY[i]}")
  done
}

_integ() {
  local cur= node=integ index=0 expect= follows= value= plain= help= used=' ' typed= prefix= kind= flags= as_is=
  local IFS=$' \t\n'
  local -a words
  words=()
  COMPREPLY=()
  _integ_words
  _integ_walk
  # Inside quotes the shell sees the text as it is.
  [[ $cur == [\'\"]* ]] && cur=${cur:1} as_is=1
  typed=$cur
  if [[ $expect == one || ($expect == many && $cur != -*) ]]; then
    _integ_offer_value "$value"
  elif [[ -z $plain && $cur == --*=* ]]; then
    prefix=${cur%%=*}= typed=${cur#*=} typed=${typed#[\'\"]}
    _integ_value "$node ${cur%%=*}"
    _integ_offer_value "${kind#* }"
  elif [[ -n $help ]]; then
    _integ_offer_children
  elif [[ -z $plain && $cur == -* ]]; then
    _integ_flags "$node"
    _integ_offer_flags "$flags $_integ_globals"
  else
    _integ_offer_children
    _integ_argument "$node $index"
    _integ_offer_value "$kind"
    if [[ -z $plain && -z $cur && -z $kind && ${#COMPREPLY[@]} -eq 0 ]]; then
      _integ_flags "$node"
      _integ_offer_flags "$flags"
    fi
  fi
  _integ_finish
}

complete -F _integ integ
