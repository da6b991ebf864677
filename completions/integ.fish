# fish completion for integ, printed by "integ completion fish": change the program, not this file.

function __integ_step
    switch "$argv"
        case 'integ profiles' 'integ profile'
            echo 'integ profiles'
        case 'integ keys' 'integ key'
            echo 'integ keys'
        case 'integ oauth-clients' 'integ oauth-client'
            echo 'integ oauth-clients'
        case 'integ entities' 'integ entity'
            echo 'integ entities'
        case 'integ cohorts' 'integ cohort'
            echo 'integ cohorts'
        case 'integ people' 'integ person'
            echo 'integ people'
        case 'integ journal'
            echo 'integ journal'
        case 'integ api'
            echo 'integ api'
        case 'integ spec'
            echo 'integ spec'
        case 'integ doctor'
            echo 'integ doctor'
        case 'integ sandbox'
            echo 'integ sandbox'
        case 'integ completion'
            echo 'integ completion'
        case 'integ commands'
            echo 'integ commands'
        case 'integ profiles add'
            echo 'integ profiles add'
        case 'integ profiles list'
            echo 'integ profiles list'
        case 'integ profiles show'
            echo 'integ profiles show'
        case 'integ profiles use'
            echo 'integ profiles use'
        case 'integ profiles edit'
            echo 'integ profiles edit'
        case 'integ profiles remove'
            echo 'integ profiles remove'
        case 'integ keys list'
            echo 'integ keys list'
        case 'integ keys create'
            echo 'integ keys create'
        case 'integ keys rotate'
            echo 'integ keys rotate'
        case 'integ keys revoke'
            echo 'integ keys revoke'
        case 'integ keys audit'
            echo 'integ keys audit'
        case 'integ oauth-clients create'
            echo 'integ oauth-clients create'
        case 'integ oauth-clients get'
            echo 'integ oauth-clients get'
        case 'integ oauth-clients list'
            echo 'integ oauth-clients list'
        case 'integ oauth-clients revoke'
            echo 'integ oauth-clients revoke'
        case 'integ oauth-clients rotate'
            echo 'integ oauth-clients rotate'
        case 'integ oauth-clients token'
            echo 'integ oauth-clients token'
        case 'integ entities list'
            echo 'integ entities list'
        case 'integ cohorts members'
            echo 'integ cohorts members'
        case 'integ people search'
            echo 'integ people search'
        case 'integ people membership'
            echo 'integ people membership'
        case 'integ journal list'
            echo 'integ journal list'
        case 'integ journal show'
            echo 'integ journal show'
        case 'integ journal recover'
            echo 'integ journal recover'
        case 'integ journal claim'
            echo 'integ journal claim'
        case 'integ journal forget'
            echo 'integ journal forget'
        case 'integ journal prune'
            echo 'integ journal prune'
        case 'integ journal verify'
            echo 'integ journal verify'
        case 'integ journal path'
            echo 'integ journal path'
        case 'integ spec show'
            echo 'integ spec show'
        case 'integ spec check'
            echo 'integ spec check'
        case 'integ sandbox start'
            echo 'integ sandbox start'
        case 'integ sandbox status'
            echo 'integ sandbox status'
        case 'integ sandbox reset'
            echo 'integ sandbox reset'
        case 'integ sandbox tour'
            echo 'integ sandbox tour'
    end
end

function __integ_children
    switch "$argv"
        case 'integ'
            printf '%s\n' \
                'profiles	who I am: region, address, credentials' \
                'keys	API access keys (legacy contract)' \
                'oauth-clients	OAuth clients of service accounts' \
                'entities	entities of the organization' \
                'cohorts	cohorts and their members' \
                'people	people of the organization (legacy contract)' \
                'journal	every change this machine asked for' \
                'api	any endpoint, authenticated' \
                'spec	the published contract, and drift from it' \
                'doctor	is everything in order?' \
                'sandbox	the whole API on this machine' \
                'completion	completion script of a shell' \
                'commands	every command, flag, variable and exit code' \
                'help	help of a command'
        case 'integ profiles'
            printf '%s\n' \
                'add	add a profile and its credential' \
                'list	all profiles' \
                'show	one profile, its credential masked' \
                'use	make a profile the default' \
                'edit	change a profile' \
                'remove	remove a profile and its stored credential'
        case 'integ keys'
            printf '%s\n' \
                'list	all keys that the API shows' \
                'create	create a key; its secret is shown once' \
                'rotate	a new secret, in place or by replacement' \
                'revoke	revoke a key' \
                'audit	which keys are a risk'
        case 'integ oauth-clients'
            printf '%s\n' \
                'create	create a client; its secret is shown once' \
                'get	one client' \
                'list	the clients this machine\'s journal knows' \
                'revoke	revoke a client; safe to repeat' \
                'rotate	another client in its place, without downtime' \
                'token	exchange client credentials for a token'
        case 'integ entities'
            printf '%s\n' \
                'list	a page of entities, or all of them'
        case 'integ cohorts'
            printf '%s\n' \
                'members	the members of one cohort'
        case 'integ people'
            printf '%s\n' \
                'search	find people' \
                'membership	one person\'s membership'
        case 'integ journal'
            printf '%s\n' \
                'list	what is unsettled, or everything' \
                'show	one entry' \
                'recover	finish what was begun' \
                'claim	hand over a secret that is kept here' \
                'forget	give an entry up' \
                'prune	remove old settled entries' \
                'verify	check every record' \
                'path	where the journal is'
        case 'integ spec'
            printf '%s\n' \
                'show	the published specification' \
                'check	does the service speak what integ speaks?'
        case 'integ sandbox'
            printf '%s\n' \
                'start	a standing server, until Ctrl-C' \
                'status	its accounts and credentials' \
                'reset	throw its state away' \
                'tour	the main job, told in a few screens'
    end
end

function __integ_aliases
    switch "$argv"
        case 'integ'
            printf '%s\n' \
                'profile	who I am: region, address, credentials' \
                'key	API access keys (legacy contract)' \
                'oauth-client	OAuth clients of service accounts' \
                'entity	entities of the organization' \
                'cohort	cohorts and their members' \
                'person	people of the organization (legacy contract)'
    end
end

function __integ_flags
    switch "$argv"
        case 'integ'
            printf '%s\n' \
                '--version|-V	print the version'
        case 'integ profiles add'
            printf '%s\n' \
                '--use	make it the default' \
                '--region	region of the organization' \
                '--base-url	the organization\'s regional API host, https://…' \
                '--organization-id	needed by the legacy contract (keys, people)' \
                '--api-key-stdin	read the API key from standard input' \
                '--api-key-command	a command that prints the API key, run at each use' \
                '--api-key-id	resource id of the access key: keys rotate then knows the profile\'s own' \
                '--basic-style	where HTTP Basic carries the key (apikey-user)' \
                '--client-id	OAuth client credentials instead of an API key' \
                '--client-secret-stdin	read the client secret from standard input' \
                '--client-secret-command	a command that prints the client secret, run at each use' \
                '--token-endpoint	where the client gets its tokens' \
                '--audience	audience of the tokens' \
                '--issuer	issuer of the tokens: integ doctor asks it whether the token endpoint is its own' \
                '--client-auth	how the client proves itself (client_secret_basic)' \
                '--access-token-command	how the key becomes a legacy bearer token: it gets the key on standard input' \
                '--access-token-endpoint	or an endpoint that exchanges it'
        case 'integ profiles edit'
            printf '%s\n' \
                '--region	region of the organization' \
                '--base-url	the organization\'s regional API host, https://…' \
                '--organization-id	needed by the legacy contract (keys, people)' \
                '--api-key-stdin	read the API key from standard input' \
                '--api-key-command	a command that prints the API key, run at each use' \
                '--api-key-id	resource id of the access key: keys rotate then knows the profile\'s own' \
                '--basic-style	where HTTP Basic carries the key (apikey-user)' \
                '--client-id	OAuth client credentials instead of an API key' \
                '--client-secret-stdin	read the client secret from standard input' \
                '--client-secret-command	a command that prints the client secret, run at each use' \
                '--token-endpoint	where the client gets its tokens' \
                '--audience	audience of the tokens' \
                '--issuer	issuer of the tokens: integ doctor asks it whether the token endpoint is its own' \
                '--client-auth	how the client proves itself (client_secret_basic)' \
                '--access-token-command	how the key becomes a legacy bearer token: it gets the key on standard input' \
                '--access-token-endpoint	or an endpoint that exchanges it'
        case 'integ keys create'
            printf '%s\n' \
                '--name	1 to 255 characters; usually names the integration that owns the key' \
                '--expires-at	when it expires: ISO 8601 with a zone, or never' \
                '--expires-in	or how long it lives: 90d' \
                '--type	user_bound stands and falls with your account' \
                '--scope+	* (full access, the API\'s default) or push-ingest:*; repeatable' \
                '--name-marker	add a short random mark to the name: a lost answer can then be settled for certain' \
                '--new	make another one, even if the same creation is unfinished' \
                '--dry-run	show the request, send nothing' \
                '--secret-file	write the secret to a new file, readable by you alone' \
                '--secret-command	give the secret to a command on its standard input' \
                '--secret-profile	make the secret that existing profile\'s credential' \
                '--secret-format	for --secret-file and --secret-command (raw)' \
                '--force	let --secret-file replace an existing file'
        case 'integ keys rotate'
            printf '%s\n' \
                '--update-profile	the new secret becomes the credential of the profile that rotates' \
                '--by-replacement	make another key like it, prove it, then revoke this one: never locked out' \
                '--overlap	with --by-replacement: how long both work' \
                '--new	begin another rotation, even if one of this key is unfinished' \
                '--name	1 to 255 characters; usually names the integration that owns the key' \
                '--expires-at	when it expires: ISO 8601 with a zone, or never' \
                '--expires-in	or how long it lives: 90d' \
                '--type	user_bound stands and falls with your account' \
                '--scope+	* (full access, the API\'s default) or push-ingest:*; repeatable' \
                '--name-marker	add a short random mark to the name: a lost answer can then be settled for certain' \
                '--secret-file	write the secret to a new file, readable by you alone' \
                '--secret-command	give the secret to a command on its standard input' \
                '--secret-profile	make the secret that existing profile\'s credential' \
                '--secret-format	for --secret-file and --secret-command (raw)' \
                '--force	let --secret-file replace an existing file'
        case 'integ keys audit'
            printf '%s\n' \
                '--max-age	a key older than this is too old' \
                '--max-idle	a key not used for longer than this is idle' \
                '--expires-within	a key that expires sooner than this is expiring' \
                '--fail-on	end with exit 10 for findings as bad as this' \
                '--strict	end with exit 10 also for what the data does not let it judge' \
                '--waivers	findings that somebody has accepted, each until a day'
        case 'integ oauth-clients create'
            printf '%s\n' \
                '--service-account	the service account that will own the client' \
                '--scope+	a permission of the client; repeatable, 1 to 100, no wildcards' \
                '--idempotency-key	use this key: the same key and values give the same client\'s receipt' \
                '--new	start another one, even if the same creation is unfinished' \
                '--wait	how long to wait for a pending client; 0s: not at all' \
                '--replace-lost-secret	if the secret is lost: revoke the client and create another' \
                '--dry-run	show the request, send nothing' \
                '--secret-file	write the secret to a new file, readable by you alone' \
                '--secret-command	give the secret to a command on its standard input' \
                '--secret-profile	make the secret that existing profile\'s credential' \
                '--secret-format	for --secret-file and --secret-command (raw)' \
                '--force	let --secret-file replace an existing file'
        case 'integ oauth-clients list'
            printf '%s\n' \
                '--offline	as last seen; nothing is asked of the service' \
                '--service-account	only clients of this service account'
        case 'integ oauth-clients rotate'
            printf '%s\n' \
                '--overlap	how long both work after the new one is proven' \
                '--keep-old	do not revoke the old client' \
                '--replace-lost-secret	if the new secret is lost: revoke that new client and create another' \
                '--wait	how long to wait for a pending client; 0s: not at all' \
                '--secret-file	write the secret to a new file, readable by you alone' \
                '--secret-command	give the secret to a command on its standard input' \
                '--secret-profile	make the secret that existing profile\'s credential' \
                '--secret-format	for --secret-file and --secret-command (raw)' \
                '--force	let --secret-file replace an existing file'
        case 'integ oauth-clients token'
            printf '%s\n' \
                '--client-id	the client\'s client_id (not its resource id)' \
                '--client-secret-stdin	read its secret from standard input' \
                '--from-profile	the profile\'s own client credentials'
        case 'integ entities list'
            printf '%s\n' \
                '--type	only entities of this type, e.g. person' \
                '--limit	rows a page, 1 to 500 (25; with --all and --max 500)' \
                '--page-token	go on from here: the next_page_token of an earlier page' \
                '--all	walk to the end' \
                '--max	walk, and stop after exactly so many rows' \
                '--filter+	a further filter of the endpoint; repeatable' \
                '--unique	drop rows whose id was printed before' \
                '--out	write to a new file' \
                '--resume	go on with the --out file of a walk that broke' \
                '--force	let --out replace a file'
        case 'integ cohorts members'
            printf '%s\n' \
                '--limit	rows a page, 1 to 500 (25; with --all and --max 500)' \
                '--page-token	go on from here: the next_page_token of an earlier page' \
                '--all	walk to the end' \
                '--max	walk, and stop after exactly so many rows' \
                '--filter+	a further filter of the endpoint; repeatable' \
                '--unique	drop rows whose id was printed before' \
                '--out	write to a new file' \
                '--resume	go on with the --out file of a walk that broke' \
                '--force	let --out replace a file'
        case 'integ people search'
            printf '%s\n' \
                '--param+	send this instead of query; repeatable'
        case 'integ journal list'
            printf '%s\n' \
                '--all	settled entries too'
        case 'integ journal recover'
            printf '%s\n' \
                '--replace-lost-secret	where a secret is lost: revoke the client or key and create another, or rotate again' \
                '--wait	how long to wait for a pending client; 0s: not at all' \
                '--secret-file	write the secret to a new file, readable by you alone' \
                '--secret-command	give the secret to a command on its standard input' \
                '--secret-profile	make the secret that existing profile\'s credential' \
                '--secret-format	for --secret-file and --secret-command (raw)' \
                '--force	let --secret-file replace an existing file'
        case 'integ journal claim'
            printf '%s\n' \
                '--secret-file	write the secret to a new file, readable by you alone' \
                '--secret-command	give the secret to a command on its standard input' \
                '--secret-profile	make the secret that existing profile\'s credential' \
                '--secret-format	for --secret-file and --secret-command (raw)' \
                '--force	let --secret-file replace an existing file'
        case 'integ journal prune'
            printf '%s\n' \
                '--older-than	settled entries not touched for this long'
        case 'integ api'
            printf '%s\n' \
                '--method|-X	GET; POST where there is a body' \
                '--field|-f+	query of a GET or DELETE, else a field of the JSON body' \
                '--input	the body from a file, - for standard input' \
                '--header|-H+	a further header: \'Name: value\'' \
                '--paginate	walk a list to its end' \
                '--include	status and headers before the body'
        case 'integ spec show'
            printf '%s\n' \
                '--contract-version	the snapshot of one contract version'
        case 'integ spec check'
            printf '%s\n' \
                '--contract-version	the snapshot to compare with; the current one where none is named'
        case 'integ sandbox start'
            printf '%s\n' \
                '--port-us	port of the us host (a free one)' \
                '--port-eu	port of the eu host (a free one)' \
                '--entities	how many entities the organization has, 0 to 100000000' \
                '--seed	seed of the population' \
                '--fault+	a fault, e.g. \'POST /v1/oauth_clients drop=after times=1\'; repeatable' \
                '--log	a line a request on stderr'
        case globals
            printf '%s\n' \
                '--profile|-p	profile to act as (INTEG_PROFILE)' \
                '--output|-o	output format (INTEG_OUTPUT)' \
                '--json	short for -o json' \
                '--ndjson	short for -o ndjson' \
                '--fields	keep these fields, in this order' \
                '--service-version	contract version to pin (INTEG_SERVICE_VERSION)' \
                '--timeout	limit for one attempt, 30s (INTEG_TIMEOUT)' \
                '--retry-for	keep retrying this long, 2m; 0 is one attempt (INTEG_RETRY_FOR)' \
                '--yes|-y	no confirmation' \
                '--no-input	never prompt (INTEG_NO_INPUT)' \
                '--quiet|-q	results and errors only' \
                '--debug	requests and responses on stderr, secrets redacted (INTEG_DEBUG)' \
                '--no-color	no colour (NO_COLOR)' \
                '--help|-h	show help'
    end
end

function __integ_value
    switch "$argv"
        case '* --profile' '* -p'
            echo 'one @profiles'
        case '* --output' '* -o'
            echo 'one =table json ndjson csv yaml'
        case '* --fields'
            echo 'one nothing'
        case '* --service-version'
            echo 'one =2026-07-01'
        case '* --timeout'
            echo 'one nothing'
        case '* --retry-for'
            echo 'one nothing'
        case 'integ profiles add --region'
            echo 'one =us eu'
        case 'integ profiles add --base-url'
            echo 'one nothing'
        case 'integ profiles add --organization-id'
            echo 'one nothing'
        case 'integ profiles add --api-key-command'
            echo 'one nothing'
        case 'integ profiles add --api-key-id'
            echo 'one nothing'
        case 'integ profiles add --basic-style'
            echo 'one =apikey-user key-as-user'
        case 'integ profiles add --client-id'
            echo 'one nothing'
        case 'integ profiles add --client-secret-command'
            echo 'one nothing'
        case 'integ profiles add --token-endpoint'
            echo 'one nothing'
        case 'integ profiles add --audience'
            echo 'one nothing'
        case 'integ profiles add --issuer'
            echo 'one nothing'
        case 'integ profiles add --client-auth'
            echo 'one =client_secret_basic client_secret_post'
        case 'integ profiles add --access-token-command'
            echo 'one nothing'
        case 'integ profiles add --access-token-endpoint'
            echo 'one nothing'
        case 'integ profiles edit --region'
            echo 'one =us eu'
        case 'integ profiles edit --base-url'
            echo 'one nothing'
        case 'integ profiles edit --organization-id'
            echo 'one nothing'
        case 'integ profiles edit --api-key-command'
            echo 'one nothing'
        case 'integ profiles edit --api-key-id'
            echo 'one nothing'
        case 'integ profiles edit --basic-style'
            echo 'one =apikey-user key-as-user'
        case 'integ profiles edit --client-id'
            echo 'one nothing'
        case 'integ profiles edit --client-secret-command'
            echo 'one nothing'
        case 'integ profiles edit --token-endpoint'
            echo 'one nothing'
        case 'integ profiles edit --audience'
            echo 'one nothing'
        case 'integ profiles edit --issuer'
            echo 'one nothing'
        case 'integ profiles edit --client-auth'
            echo 'one =client_secret_basic client_secret_post'
        case 'integ profiles edit --access-token-command'
            echo 'one nothing'
        case 'integ profiles edit --access-token-endpoint'
            echo 'one nothing'
        case 'integ keys create --name'
            echo 'one nothing'
        case 'integ keys create --expires-at'
            echo 'one nothing'
        case 'integ keys create --expires-in'
            echo 'one nothing'
        case 'integ keys create --type'
            echo 'one =user_bound service_account'
        case 'integ keys create --scope'
            echo 'many =* push-ingest:*'
        case 'integ keys create --secret-file'
            echo 'one files'
        case 'integ keys create --secret-command'
            echo 'one nothing'
        case 'integ keys create --secret-profile'
            echo 'one @profiles'
        case 'integ keys create --secret-format'
            echo 'one =raw json env'
        case 'integ keys rotate --overlap'
            echo 'one nothing'
        case 'integ keys rotate --name'
            echo 'one nothing'
        case 'integ keys rotate --expires-at'
            echo 'one nothing'
        case 'integ keys rotate --expires-in'
            echo 'one nothing'
        case 'integ keys rotate --type'
            echo 'one =user_bound service_account'
        case 'integ keys rotate --scope'
            echo 'many =* push-ingest:*'
        case 'integ keys rotate --secret-file'
            echo 'one files'
        case 'integ keys rotate --secret-command'
            echo 'one nothing'
        case 'integ keys rotate --secret-profile'
            echo 'one @profiles'
        case 'integ keys rotate --secret-format'
            echo 'one =raw json env'
        case 'integ keys audit --max-age'
            echo 'one nothing'
        case 'integ keys audit --max-idle'
            echo 'one nothing'
        case 'integ keys audit --expires-within'
            echo 'one nothing'
        case 'integ keys audit --fail-on'
            echo 'one =low medium high'
        case 'integ keys audit --waivers'
            echo 'one files'
        case 'integ oauth-clients create --service-account'
            echo 'one nothing'
        case 'integ oauth-clients create --scope'
            echo 'many =entity:read organization:read service_account:manage'
        case 'integ oauth-clients create --idempotency-key'
            echo 'one nothing'
        case 'integ oauth-clients create --wait'
            echo 'one nothing'
        case 'integ oauth-clients create --secret-file'
            echo 'one files'
        case 'integ oauth-clients create --secret-command'
            echo 'one nothing'
        case 'integ oauth-clients create --secret-profile'
            echo 'one @profiles'
        case 'integ oauth-clients create --secret-format'
            echo 'one =raw json env'
        case 'integ oauth-clients list --service-account'
            echo 'one nothing'
        case 'integ oauth-clients rotate --overlap'
            echo 'one nothing'
        case 'integ oauth-clients rotate --wait'
            echo 'one nothing'
        case 'integ oauth-clients rotate --secret-file'
            echo 'one files'
        case 'integ oauth-clients rotate --secret-command'
            echo 'one nothing'
        case 'integ oauth-clients rotate --secret-profile'
            echo 'one @profiles'
        case 'integ oauth-clients rotate --secret-format'
            echo 'one =raw json env'
        case 'integ oauth-clients token --client-id'
            echo 'one nothing'
        case 'integ entities list --type'
            echo 'one =person'
        case 'integ entities list --limit'
            echo 'one nothing'
        case 'integ entities list --page-token'
            echo 'one nothing'
        case 'integ entities list --max'
            echo 'one nothing'
        case 'integ entities list --filter'
            echo 'many nothing'
        case 'integ entities list --out'
            echo 'one files'
        case 'integ cohorts members --limit'
            echo 'one nothing'
        case 'integ cohorts members --page-token'
            echo 'one nothing'
        case 'integ cohorts members --max'
            echo 'one nothing'
        case 'integ cohorts members --filter'
            echo 'many nothing'
        case 'integ cohorts members --out'
            echo 'one files'
        case 'integ people search --param'
            echo 'many nothing'
        case 'integ journal recover --wait'
            echo 'one nothing'
        case 'integ journal recover --secret-file'
            echo 'one files'
        case 'integ journal recover --secret-command'
            echo 'one nothing'
        case 'integ journal recover --secret-profile'
            echo 'one @profiles'
        case 'integ journal recover --secret-format'
            echo 'one =raw json env'
        case 'integ journal claim --secret-file'
            echo 'one files'
        case 'integ journal claim --secret-command'
            echo 'one nothing'
        case 'integ journal claim --secret-profile'
            echo 'one @profiles'
        case 'integ journal claim --secret-format'
            echo 'one =raw json env'
        case 'integ journal prune --older-than'
            echo 'one nothing'
        case 'integ api --method' 'integ api -X'
            echo 'one =GET POST PUT PATCH DELETE'
        case 'integ api --field' 'integ api -f'
            echo 'many nothing'
        case 'integ api --input'
            echo 'one files'
        case 'integ api --header' 'integ api -H'
            echo 'many nothing'
        case 'integ spec show --contract-version'
            echo 'one =2026-07-01'
        case 'integ spec check --contract-version'
            echo 'one =2026-07-01'
        case 'integ sandbox start --port-us'
            echo 'one nothing'
        case 'integ sandbox start --port-eu'
            echo 'one nothing'
        case 'integ sandbox start --entities'
            echo 'one nothing'
        case 'integ sandbox start --seed'
            echo 'one nothing'
        case 'integ sandbox start --fault'
            echo 'many nothing'
    end
end

function __integ_argument
    switch "$argv"
        case 'integ profiles add 0'
            echo 'nothing'
        case 'integ profiles show 0'
            echo '@profiles'
        case 'integ profiles use 0'
            echo '@profiles'
        case 'integ profiles edit 0'
            echo '@profiles'
        case 'integ profiles remove 0'
            echo '@profiles'
        case 'integ keys rotate 0'
            echo '@keys'
        case 'integ keys revoke 0'
            echo '@keys'
        case 'integ oauth-clients get 0'
            echo '@clients'
        case 'integ oauth-clients revoke 0'
            echo '@clients'
        case 'integ oauth-clients rotate 0'
            echo '@clients'
        case 'integ cohorts members 0'
            echo 'nothing'
        case 'integ people search 0'
            echo 'nothing'
        case 'integ people membership 0'
            echo 'nothing'
        case 'integ journal show 0'
            echo '@entries'
        case 'integ journal recover *'
            echo '@unsettled'
        case 'integ journal claim 0'
            echo '@unsettled'
        case 'integ journal forget 0'
            echo '@unsettled'
        case 'integ api 0'
            echo '=/v1/entities /v1-reference/openapi-v1.json /api/v1/access-keys /api/v1/people/search'
        case 'integ completion 0'
            echo '=bash zsh fish powershell'
    end
end

# Prints what may stand at the cursor: a word, a tab, what it is. fish keeps what fits.
# Ends with 3 where a file is meant: fish knows its own quotes, variables and ~ best.
function __integ_complete
    set -l words (commandline -opc)
    set -l cur (commandline -ct)
    # Variables set for one command stand before it.
    while string match -qr '^[A-Za-z_]\w*=' -- "$words[1]"
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
        __integ_offer_children "$node" "$cur" | string match -rv '^help\t'
    else if test -z "$plain"; and string match -q -- '-*' "$cur"
        __integ_offer_flags (__integ_flags "$node") (__integ_flags globals) -- $used
    else
        set -l found (__integ_offer_children "$node" "$cur")
        set -l kind (__integ_argument "$node $index")
        if set -q found[1]
            printf '%s\n' $found
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
    set -q found[1]; and printf '%s\n' $found
end

# Flags that were not given yet, or may be given again.
function __integ_offer_flags
    set -l at (contains -i -- -- $argv)
    set -l used $argv[(math $at + 1)..-1]
    for line in $argv[1..(math $at - 1)]
        set -l parts (string split -m 1 \t -- "$line")
        set -l names (string split '|' -- (string replace -r '\+$' '' -- "$parts[1]"))
        if not string match -q -- '*+' "$parts[1]"
            set -l again ''
            for name in $names
                contains -- $name $used; and set again 1
            end
            test -n "$again"; and continue
        end
        for name in $names
            printf '%s\t%s\n' $name "$parts[2]"
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
