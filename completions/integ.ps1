# powershell completion for integ, printed by "integ completion powershell": change the program, not this file.

Register-ArgumentCompleter -Native -CommandName integ -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    # Where a session stops at errors, a program that says something on stderr would be one (5.1).
    $ErrorActionPreference = 'Continue'

    # Keys of a plain hash table know no case, and -h is not -H.
    $steps = [System.Collections.Hashtable]::new([System.StringComparer]::Ordinal)
    $steps['integ profiles'] = 'integ profiles'
    $steps['integ profile'] = 'integ profiles'
    $steps['integ keys'] = 'integ keys'
    $steps['integ key'] = 'integ keys'
    $steps['integ oauth-clients'] = 'integ oauth-clients'
    $steps['integ oauth-client'] = 'integ oauth-clients'
    $steps['integ entities'] = 'integ entities'
    $steps['integ entity'] = 'integ entities'
    $steps['integ cohorts'] = 'integ cohorts'
    $steps['integ cohort'] = 'integ cohorts'
    $steps['integ people'] = 'integ people'
    $steps['integ person'] = 'integ people'
    $steps['integ journal'] = 'integ journal'
    $steps['integ api'] = 'integ api'
    $steps['integ spec'] = 'integ spec'
    $steps['integ doctor'] = 'integ doctor'
    $steps['integ sandbox'] = 'integ sandbox'
    $steps['integ completion'] = 'integ completion'
    $steps['integ commands'] = 'integ commands'
    $steps['integ profiles add'] = 'integ profiles add'
    $steps['integ profiles list'] = 'integ profiles list'
    $steps['integ profiles show'] = 'integ profiles show'
    $steps['integ profiles use'] = 'integ profiles use'
    $steps['integ profiles edit'] = 'integ profiles edit'
    $steps['integ profiles remove'] = 'integ profiles remove'
    $steps['integ keys list'] = 'integ keys list'
    $steps['integ keys create'] = 'integ keys create'
    $steps['integ keys rotate'] = 'integ keys rotate'
    $steps['integ keys revoke'] = 'integ keys revoke'
    $steps['integ keys audit'] = 'integ keys audit'
    $steps['integ oauth-clients create'] = 'integ oauth-clients create'
    $steps['integ oauth-clients get'] = 'integ oauth-clients get'
    $steps['integ oauth-clients list'] = 'integ oauth-clients list'
    $steps['integ oauth-clients revoke'] = 'integ oauth-clients revoke'
    $steps['integ oauth-clients rotate'] = 'integ oauth-clients rotate'
    $steps['integ oauth-clients token'] = 'integ oauth-clients token'
    $steps['integ entities list'] = 'integ entities list'
    $steps['integ cohorts members'] = 'integ cohorts members'
    $steps['integ people search'] = 'integ people search'
    $steps['integ people membership'] = 'integ people membership'
    $steps['integ journal list'] = 'integ journal list'
    $steps['integ journal show'] = 'integ journal show'
    $steps['integ journal recover'] = 'integ journal recover'
    $steps['integ journal claim'] = 'integ journal claim'
    $steps['integ journal forget'] = 'integ journal forget'
    $steps['integ journal prune'] = 'integ journal prune'
    $steps['integ journal verify'] = 'integ journal verify'
    $steps['integ journal path'] = 'integ journal path'
    $steps['integ spec show'] = 'integ spec show'
    $steps['integ spec check'] = 'integ spec check'
    $steps['integ sandbox start'] = 'integ sandbox start'
    $steps['integ sandbox status'] = 'integ sandbox status'
    $steps['integ sandbox reset'] = 'integ sandbox reset'
    $steps['integ sandbox tour'] = 'integ sandbox tour'

    $children = [System.Collections.Hashtable]::new([System.StringComparer]::Ordinal)
    $children['integ'] = @(
        'profiles who I am: region, address, credentials'
        'keys API access keys (legacy contract)'
        'oauth-clients OAuth clients of service accounts'
        'entities entities of the organization'
        'cohorts cohorts and their members'
        'people people of the organization (legacy contract)'
        'journal every change this machine asked for'
        'api any endpoint, authenticated'
        'spec the published contract, and drift from it'
        'doctor is everything in order?'
        'sandbox the whole API on this machine'
        'completion completion script of a shell'
        'commands every command, flag, variable and exit code'
        'help help of a command'
    )
    $children['integ profiles'] = @(
        'add add a profile and its credential'
        'list all profiles'
        'show one profile, its credential masked'
        'use make a profile the default'
        'edit change a profile'
        'remove remove a profile and its stored credential'
    )
    $children['integ keys'] = @(
        'list all keys that the API shows'
        'create create a key; its secret is shown once'
        'rotate a new secret, in place or by replacement'
        'revoke revoke a key'
        'audit which keys are a risk'
    )
    $children['integ oauth-clients'] = @(
        'create create a client; its secret is shown once'
        'get one client'
        'list the clients this machine''s journal knows'
        'revoke revoke a client; safe to repeat'
        'rotate another client in its place, without downtime'
        'token exchange client credentials for a token'
    )
    $children['integ entities'] = @(
        'list a page of entities, or all of them'
    )
    $children['integ cohorts'] = @(
        'members the members of one cohort'
    )
    $children['integ people'] = @(
        'search find people'
        'membership one person''s membership'
    )
    $children['integ journal'] = @(
        'list what is unsettled, or everything'
        'show one entry'
        'recover finish what was begun'
        'claim hand over a secret that is kept here'
        'forget give an entry up'
        'prune remove old settled entries'
        'verify check every record'
        'path where the journal is'
    )
    $children['integ spec'] = @(
        'show the published specification'
        'check does the service speak what integ speaks?'
    )
    $children['integ sandbox'] = @(
        'start a standing server, until Ctrl-C'
        'status its accounts and credentials'
        'reset throw its state away'
        'tour the main job, told in a few screens'
    )

    $aliases = [System.Collections.Hashtable]::new([System.StringComparer]::Ordinal)
    $aliases['integ'] = @(
        'profile who I am: region, address, credentials'
        'key API access keys (legacy contract)'
        'oauth-client OAuth clients of service accounts'
        'entity entities of the organization'
        'cohort cohorts and their members'
        'person people of the organization (legacy contract)'
    )

    $flags = [System.Collections.Hashtable]::new([System.StringComparer]::Ordinal)
    $flags['integ'] = @(
        '--version|-V print the version'
    )
    $flags['integ profiles add'] = @(
        '--use make it the default'
        '--region region of the organization'
        '--base-url the organization''s regional API host, https://…'
        '--organization-id needed by the legacy contract (keys, people)'
        '--api-key-stdin read the API key from standard input'
        '--api-key-command a command that prints the API key, run at each use'
        '--api-key-id resource id of the access key: keys rotate then knows the profile''s own'
        '--basic-style where HTTP Basic carries the key (apikey-user)'
        '--client-id OAuth client credentials instead of an API key'
        '--client-secret-stdin read the client secret from standard input'
        '--client-secret-command a command that prints the client secret, run at each use'
        '--token-endpoint where the client gets its tokens'
        '--audience audience of the tokens'
        '--issuer issuer of the tokens: integ doctor asks it whether the token endpoint is its own'
        '--client-auth how the client proves itself (client_secret_basic)'
        '--access-token-command how the key becomes a legacy bearer token: it gets the key on standard input'
        '--access-token-endpoint or an endpoint that exchanges it'
    )
    $flags['integ profiles edit'] = @(
        '--region region of the organization'
        '--base-url the organization''s regional API host, https://…'
        '--organization-id needed by the legacy contract (keys, people)'
        '--api-key-stdin read the API key from standard input'
        '--api-key-command a command that prints the API key, run at each use'
        '--api-key-id resource id of the access key: keys rotate then knows the profile''s own'
        '--basic-style where HTTP Basic carries the key (apikey-user)'
        '--client-id OAuth client credentials instead of an API key'
        '--client-secret-stdin read the client secret from standard input'
        '--client-secret-command a command that prints the client secret, run at each use'
        '--token-endpoint where the client gets its tokens'
        '--audience audience of the tokens'
        '--issuer issuer of the tokens: integ doctor asks it whether the token endpoint is its own'
        '--client-auth how the client proves itself (client_secret_basic)'
        '--access-token-command how the key becomes a legacy bearer token: it gets the key on standard input'
        '--access-token-endpoint or an endpoint that exchanges it'
    )
    $flags['integ keys create'] = @(
        '--name 1 to 255 characters; usually names the integration that owns the key'
        '--expires-at when it expires: ISO 8601 with a zone, or never'
        '--expires-in or how long it lives: 90d'
        '--type user_bound stands and falls with your account'
        '--scope+ * (full access, the API''s default) or push-ingest:*; repeatable'
        '--name-marker add a short random mark to the name: a lost answer can then be settled for certain'
        '--new make another one, even if the same creation is unfinished'
        '--dry-run show the request, send nothing'
        '--secret-file write the secret to a new file, readable by you alone'
        '--secret-command give the secret to a command on its standard input'
        '--secret-profile make the secret that existing profile''s credential'
        '--secret-format for --secret-file and --secret-command (raw)'
        '--force let --secret-file replace an existing file'
    )
    $flags['integ keys rotate'] = @(
        '--update-profile the new secret becomes the credential of the profile that rotates'
        '--by-replacement make another key like it, prove it, then revoke this one: never locked out'
        '--overlap with --by-replacement: how long both work'
        '--new begin another rotation, even if one of this key is unfinished'
        '--name 1 to 255 characters; usually names the integration that owns the key'
        '--expires-at when it expires: ISO 8601 with a zone, or never'
        '--expires-in or how long it lives: 90d'
        '--type user_bound stands and falls with your account'
        '--scope+ * (full access, the API''s default) or push-ingest:*; repeatable'
        '--name-marker add a short random mark to the name: a lost answer can then be settled for certain'
        '--secret-file write the secret to a new file, readable by you alone'
        '--secret-command give the secret to a command on its standard input'
        '--secret-profile make the secret that existing profile''s credential'
        '--secret-format for --secret-file and --secret-command (raw)'
        '--force let --secret-file replace an existing file'
    )
    $flags['integ keys audit'] = @(
        '--max-age a key older than this is too old'
        '--max-idle a key not used for longer than this is idle'
        '--expires-within a key that expires sooner than this is expiring'
        '--fail-on end with exit 10 for findings as bad as this'
        '--strict end with exit 10 also for what the data does not let it judge'
        '--waivers findings that somebody has accepted, each until a day'
    )
    $flags['integ oauth-clients create'] = @(
        '--service-account the service account that will own the client'
        '--scope+ a permission of the client; repeatable, 1 to 100, no wildcards'
        '--idempotency-key use this key: the same key and values give the same client''s receipt'
        '--new start another one, even if the same creation is unfinished'
        '--wait how long to wait for a pending client; 0s: not at all'
        '--replace-lost-secret if the secret is lost: revoke the client and create another'
        '--dry-run show the request, send nothing'
        '--secret-file write the secret to a new file, readable by you alone'
        '--secret-command give the secret to a command on its standard input'
        '--secret-profile make the secret that existing profile''s credential'
        '--secret-format for --secret-file and --secret-command (raw)'
        '--force let --secret-file replace an existing file'
    )
    $flags['integ oauth-clients list'] = @(
        '--offline as last seen; nothing is asked of the service'
        '--service-account only clients of this service account'
    )
    $flags['integ oauth-clients rotate'] = @(
        '--overlap how long both work after the new one is proven'
        '--keep-old do not revoke the old client'
        '--replace-lost-secret if the new secret is lost: revoke that new client and create another'
        '--wait how long to wait for a pending client; 0s: not at all'
        '--secret-file write the secret to a new file, readable by you alone'
        '--secret-command give the secret to a command on its standard input'
        '--secret-profile make the secret that existing profile''s credential'
        '--secret-format for --secret-file and --secret-command (raw)'
        '--force let --secret-file replace an existing file'
    )
    $flags['integ oauth-clients token'] = @(
        '--client-id the client''s client_id (not its resource id)'
        '--client-secret-stdin read its secret from standard input'
        '--from-profile the profile''s own client credentials'
    )
    $flags['integ entities list'] = @(
        '--type only entities of this type, e.g. person'
        '--limit rows a page, 1 to 500 (25; with --all and --max 500)'
        '--page-token go on from here: the next_page_token of an earlier page'
        '--all walk to the end'
        '--max walk, and stop after exactly so many rows'
        '--filter+ a further filter of the endpoint; repeatable'
        '--unique drop rows whose id was printed before'
        '--out write to a new file'
        '--resume go on with the --out file of a walk that broke'
        '--force let --out replace a file'
    )
    $flags['integ cohorts members'] = @(
        '--limit rows a page, 1 to 500 (25; with --all and --max 500)'
        '--page-token go on from here: the next_page_token of an earlier page'
        '--all walk to the end'
        '--max walk, and stop after exactly so many rows'
        '--filter+ a further filter of the endpoint; repeatable'
        '--unique drop rows whose id was printed before'
        '--out write to a new file'
        '--resume go on with the --out file of a walk that broke'
        '--force let --out replace a file'
    )
    $flags['integ people search'] = @(
        '--param+ send this instead of query; repeatable'
    )
    $flags['integ journal list'] = @(
        '--all settled entries too'
    )
    $flags['integ journal recover'] = @(
        '--replace-lost-secret where a secret is lost: revoke the client or key and create another, or rotate again'
        '--wait how long to wait for a pending client; 0s: not at all'
        '--secret-file write the secret to a new file, readable by you alone'
        '--secret-command give the secret to a command on its standard input'
        '--secret-profile make the secret that existing profile''s credential'
        '--secret-format for --secret-file and --secret-command (raw)'
        '--force let --secret-file replace an existing file'
    )
    $flags['integ journal claim'] = @(
        '--secret-file write the secret to a new file, readable by you alone'
        '--secret-command give the secret to a command on its standard input'
        '--secret-profile make the secret that existing profile''s credential'
        '--secret-format for --secret-file and --secret-command (raw)'
        '--force let --secret-file replace an existing file'
    )
    $flags['integ journal prune'] = @(
        '--older-than settled entries not touched for this long'
    )
    $flags['integ api'] = @(
        '--method|-X GET; POST where there is a body'
        '--field|-f+ query of a GET or DELETE, else a field of the JSON body'
        '--input the body from a file, - for standard input'
        '--header|-H+ a further header: ''Name: value'''
        '--paginate walk a list to its end'
        '--include status and headers before the body'
    )
    $flags['integ spec show'] = @(
        '--contract-version the snapshot of one contract version'
    )
    $flags['integ spec check'] = @(
        '--contract-version the snapshot to compare with; the current one where none is named'
    )
    $flags['integ sandbox start'] = @(
        '--port-us port of the us host (a free one)'
        '--port-eu port of the eu host (a free one)'
        '--entities how many entities the organization has, 0 to 100000000'
        '--seed seed of the population'
        '--fault+ a fault, e.g. ''POST /v1/oauth_clients drop=after times=1''; repeatable'
        '--log a line a request on stderr'
    )
    $flags['globals'] = @(
        '--profile|-p profile to act as (INTEG_PROFILE)'
        '--output|-o output format (INTEG_OUTPUT)'
        '--json short for -o json'
        '--ndjson short for -o ndjson'
        '--fields keep these fields, in this order'
        '--service-version contract version to pin (INTEG_SERVICE_VERSION)'
        '--timeout limit for one attempt, 30s (INTEG_TIMEOUT)'
        '--retry-for keep retrying this long, 2m; 0 is one attempt (INTEG_RETRY_FOR)'
        '--yes|-y no confirmation'
        '--no-input never prompt (INTEG_NO_INPUT)'
        '--quiet|-q results and errors only'
        '--debug requests and responses on stderr, secrets redacted (INTEG_DEBUG)'
        '--no-color no colour (NO_COLOR)'
        '--help|-h show help'
    )

    $values = [System.Collections.Hashtable]::new([System.StringComparer]::Ordinal)
    $values['* --profile'] = 'one @profiles'
    $values['* -p'] = 'one @profiles'
    $values['* --output'] = 'one =table json ndjson csv yaml'
    $values['* -o'] = 'one =table json ndjson csv yaml'
    $values['* --fields'] = 'one nothing'
    $values['* --service-version'] = 'one =2026-07-01'
    $values['* --timeout'] = 'one nothing'
    $values['* --retry-for'] = 'one nothing'
    $values['integ profiles add --region'] = 'one =us eu'
    $values['integ profiles add --base-url'] = 'one nothing'
    $values['integ profiles add --organization-id'] = 'one nothing'
    $values['integ profiles add --api-key-command'] = 'one nothing'
    $values['integ profiles add --api-key-id'] = 'one nothing'
    $values['integ profiles add --basic-style'] = 'one =apikey-user key-as-user'
    $values['integ profiles add --client-id'] = 'one nothing'
    $values['integ profiles add --client-secret-command'] = 'one nothing'
    $values['integ profiles add --token-endpoint'] = 'one nothing'
    $values['integ profiles add --audience'] = 'one nothing'
    $values['integ profiles add --issuer'] = 'one nothing'
    $values['integ profiles add --client-auth'] = 'one =client_secret_basic client_secret_post'
    $values['integ profiles add --access-token-command'] = 'one nothing'
    $values['integ profiles add --access-token-endpoint'] = 'one nothing'
    $values['integ profiles edit --region'] = 'one =us eu'
    $values['integ profiles edit --base-url'] = 'one nothing'
    $values['integ profiles edit --organization-id'] = 'one nothing'
    $values['integ profiles edit --api-key-command'] = 'one nothing'
    $values['integ profiles edit --api-key-id'] = 'one nothing'
    $values['integ profiles edit --basic-style'] = 'one =apikey-user key-as-user'
    $values['integ profiles edit --client-id'] = 'one nothing'
    $values['integ profiles edit --client-secret-command'] = 'one nothing'
    $values['integ profiles edit --token-endpoint'] = 'one nothing'
    $values['integ profiles edit --audience'] = 'one nothing'
    $values['integ profiles edit --issuer'] = 'one nothing'
    $values['integ profiles edit --client-auth'] = 'one =client_secret_basic client_secret_post'
    $values['integ profiles edit --access-token-command'] = 'one nothing'
    $values['integ profiles edit --access-token-endpoint'] = 'one nothing'
    $values['integ keys create --name'] = 'one nothing'
    $values['integ keys create --expires-at'] = 'one nothing'
    $values['integ keys create --expires-in'] = 'one nothing'
    $values['integ keys create --type'] = 'one =user_bound service_account'
    $values['integ keys create --scope'] = 'many =* push-ingest:*'
    $values['integ keys create --secret-file'] = 'one files'
    $values['integ keys create --secret-command'] = 'one nothing'
    $values['integ keys create --secret-profile'] = 'one @profiles'
    $values['integ keys create --secret-format'] = 'one =raw json env'
    $values['integ keys rotate --overlap'] = 'one nothing'
    $values['integ keys rotate --name'] = 'one nothing'
    $values['integ keys rotate --expires-at'] = 'one nothing'
    $values['integ keys rotate --expires-in'] = 'one nothing'
    $values['integ keys rotate --type'] = 'one =user_bound service_account'
    $values['integ keys rotate --scope'] = 'many =* push-ingest:*'
    $values['integ keys rotate --secret-file'] = 'one files'
    $values['integ keys rotate --secret-command'] = 'one nothing'
    $values['integ keys rotate --secret-profile'] = 'one @profiles'
    $values['integ keys rotate --secret-format'] = 'one =raw json env'
    $values['integ keys audit --max-age'] = 'one nothing'
    $values['integ keys audit --max-idle'] = 'one nothing'
    $values['integ keys audit --expires-within'] = 'one nothing'
    $values['integ keys audit --fail-on'] = 'one =low medium high'
    $values['integ keys audit --waivers'] = 'one files'
    $values['integ oauth-clients create --service-account'] = 'one nothing'
    $values['integ oauth-clients create --scope'] = 'many =entity:read organization:read service_account:manage'
    $values['integ oauth-clients create --idempotency-key'] = 'one nothing'
    $values['integ oauth-clients create --wait'] = 'one nothing'
    $values['integ oauth-clients create --secret-file'] = 'one files'
    $values['integ oauth-clients create --secret-command'] = 'one nothing'
    $values['integ oauth-clients create --secret-profile'] = 'one @profiles'
    $values['integ oauth-clients create --secret-format'] = 'one =raw json env'
    $values['integ oauth-clients list --service-account'] = 'one nothing'
    $values['integ oauth-clients rotate --overlap'] = 'one nothing'
    $values['integ oauth-clients rotate --wait'] = 'one nothing'
    $values['integ oauth-clients rotate --secret-file'] = 'one files'
    $values['integ oauth-clients rotate --secret-command'] = 'one nothing'
    $values['integ oauth-clients rotate --secret-profile'] = 'one @profiles'
    $values['integ oauth-clients rotate --secret-format'] = 'one =raw json env'
    $values['integ oauth-clients token --client-id'] = 'one nothing'
    $values['integ entities list --type'] = 'one =person'
    $values['integ entities list --limit'] = 'one nothing'
    $values['integ entities list --page-token'] = 'one nothing'
    $values['integ entities list --max'] = 'one nothing'
    $values['integ entities list --filter'] = 'many nothing'
    $values['integ entities list --out'] = 'one files'
    $values['integ cohorts members --limit'] = 'one nothing'
    $values['integ cohorts members --page-token'] = 'one nothing'
    $values['integ cohorts members --max'] = 'one nothing'
    $values['integ cohorts members --filter'] = 'many nothing'
    $values['integ cohorts members --out'] = 'one files'
    $values['integ people search --param'] = 'many nothing'
    $values['integ journal recover --wait'] = 'one nothing'
    $values['integ journal recover --secret-file'] = 'one files'
    $values['integ journal recover --secret-command'] = 'one nothing'
    $values['integ journal recover --secret-profile'] = 'one @profiles'
    $values['integ journal recover --secret-format'] = 'one =raw json env'
    $values['integ journal claim --secret-file'] = 'one files'
    $values['integ journal claim --secret-command'] = 'one nothing'
    $values['integ journal claim --secret-profile'] = 'one @profiles'
    $values['integ journal claim --secret-format'] = 'one =raw json env'
    $values['integ journal prune --older-than'] = 'one nothing'
    $values['integ api --method'] = 'one =GET POST PUT PATCH DELETE'
    $values['integ api -X'] = 'one =GET POST PUT PATCH DELETE'
    $values['integ api --field'] = 'many nothing'
    $values['integ api -f'] = 'many nothing'
    $values['integ api --input'] = 'one files'
    $values['integ api --header'] = 'many nothing'
    $values['integ api -H'] = 'many nothing'
    $values['integ spec show --contract-version'] = 'one =2026-07-01'
    $values['integ spec check --contract-version'] = 'one =2026-07-01'
    $values['integ sandbox start --port-us'] = 'one nothing'
    $values['integ sandbox start --port-eu'] = 'one nothing'
    $values['integ sandbox start --entities'] = 'one nothing'
    $values['integ sandbox start --seed'] = 'one nothing'
    $values['integ sandbox start --fault'] = 'many nothing'

    $arguments = [System.Collections.Hashtable]::new([System.StringComparer]::Ordinal)
    $arguments['integ profiles add 0'] = 'nothing'
    $arguments['integ profiles show 0'] = '@profiles'
    $arguments['integ profiles use 0'] = '@profiles'
    $arguments['integ profiles edit 0'] = '@profiles'
    $arguments['integ profiles remove 0'] = '@profiles'
    $arguments['integ keys rotate 0'] = '@keys'
    $arguments['integ keys revoke 0'] = '@keys'
    $arguments['integ oauth-clients get 0'] = '@clients'
    $arguments['integ oauth-clients revoke 0'] = '@clients'
    $arguments['integ oauth-clients rotate 0'] = '@clients'
    $arguments['integ cohorts members 0'] = 'nothing'
    $arguments['integ people search 0'] = 'nothing'
    $arguments['integ people membership 0'] = 'nothing'
    $arguments['integ journal show 0'] = '@entries'
    $arguments['integ journal recover *'] = '@unsettled'
    $arguments['integ journal claim 0'] = '@unsettled'
    $arguments['integ journal forget 0'] = '@unsettled'
    $arguments['integ api 0'] = '=/v1/entities /v1-reference/openapi-v1.json /api/v1/access-keys /api/v1/people/search'
    $arguments['integ completion 0'] = '=bash zsh fish powershell'

    $valueOf = {
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
        $safe = if ($text -match '[^\w./:=@+\\-]' -or $text.StartsWith('@')) { "'" + $text.Replace("'", "''") + "'" } else { $text }
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
                $name, $summary = $_.Split([char[]]"`t", 2)
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
