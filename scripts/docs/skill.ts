// Writes the skill file for coding agents, docs/agents/SKILL.md. Agents read all of it: keep it below 5,000 tokens.
import type { Surface } from "../../src/completion/surface.ts";
import { isRunnable, nodesBelow } from "../../src/completion/tree.ts";

export function skillText({ tree, exitCodes }: Surface): string {
  const commands = [...nodesBelow(tree.root)].filter((node) => node.path.length > 0 && isRunnable(node));
  return `---
name: integ
description: Create, rotate, revoke and audit an organization's OAuth clients and access keys, and read its entities, cohorts and people, with the command-line tool integ, without seeing a secret.
---

<!-- Printed by \`npm run docs\`: change scripts/docs/skill.ts and the command tree, not this file. -->

# Work with integ

integ administers an organization's account through its Public Integration API. The API shows a secret once, so integ delivers each
secret to a destination, and records each change in a journal. In your environment integ runs in agent mode: output is JSON, integ
never prompts, and no secret goes to standard output (exit 2, nothing is sent). \`INTEG_AGENT=1\` turns the mode on. Only
\`sandbox start\` and \`sandbox status\` show credentials: the sandbox's, which open no account.

## Before anything else

\`\`\`sh
integ doctor
integ status
integ journal list
\`\`\`

\`doctor\` says whether the profile works. \`status\` shows what is due and what is unfinished. Finish unfinished work first: each row has
its own \`next_step\`. The profiles \`sandbox\` and \`sandbox-eu\` run the whole API on this machine: try commands there.

## Read

\`\`\`sh
integ entities list --all --fields id,email
integ keys list
integ oauth-clients list
integ keys audit
\`\`\`

A list prints one page; if more rows exist, a warning says so. \`--all\` fetches every page. The API has no list of OAuth clients:
\`oauth-clients list\` shows those that the journal knows. \`integ schema\` lists the outputs that have a JSON Schema;
with a name it prints that schema.

## Change credentials: plan, ask, apply

For credentials that should last, use a policy file. Write it:

\`\`\`sh
integ policy init
integ policy check
\`\`\`

Then save the plan and show it to a person in one run:

\`\`\`sh
integ plan --out plan.json -o markdown
\`\`\`

When the person agrees, apply that file:

\`\`\`sh
integ apply plan.json --yes
\`\`\`

For one change, name a destination for the secret. \`--dry-run\` prints the requests and sends nothing.

\`\`\`sh
integ oauth-clients create --service-account "$SERVICE_ACCOUNT" --scope entity:read --secret-file ./client.secret --dry-run
integ oauth-clients create --service-account "$SERVICE_ACCOUNT" --scope entity:read --secret-file ./client.secret
\`\`\`

Destinations: \`--secret-file\`, \`--secret-to\` (Vault, GitHub Actions, Kubernetes, keychain), \`--secret-command\`, \`--secret-profile\`.

## After an interruption

Never repeat a change by hand after a timeout or a lost response. \`recover\` continues it with the idempotency key in the journal:

\`\`\`sh
integ journal recover
\`\`\`

## Consent

- \`--yes\` is a person's answer. Type it only if a person agreed to this change in this conversation. Agent mode implies no consent.
- \`--force\`, \`--accept-unproven\`, \`--replace-lost-secret\`, \`--revoke\`, \`--new\` and \`--no-verify\` accept a risk. Leave them out unless a
  person asked for that flag. A printed next step can contain one: ask a person before you run it.
- If integ refuses, it has kept everything. Show the message to a person; do not look for a way around the refusal.

## Never

- Never read, print or copy the content of a secret's destination, a profile's credential or integ's state folder.
- Never put a secret into an argument, a policy file or a message.
- Never edit, move or delete the journal.
- Never run the command of a policy file that you have not read.

## Exit codes

| code | when |
|---|---|
${exitCodes.map(({ code, when }) => `| ${code} | ${when} |`).join("\n")}

An error is one JSON object, the last line of standard error. Read \`error.kind\`, \`error.message\`, \`error.next_command\` (run it
as it is, unless it has a flag listed under Consent: then ask first) and \`error.hint\` (for a person); absent fields do not apply. No \`next_command\` has \`--yes\`: if a person has to agree, \`hint\` says so.

## Commands

Type \`integ\` before each. \`integ help keys rotate\` prints the options of one command.

${commands.map(({ path, summary }) => `- ${path.join(" ")}: ${summary}`).join("\n")}
`;
}
