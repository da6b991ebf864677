import type { Command, Help } from "commander";
import { environment, exitCodeList } from "../commands/commands/list.ts";
import { addSecretOptions } from "../commands/options/secrets.ts";
import type { HelpTopic } from "../completion/help-topics.ts";
import { type EntryState, isSettled } from "../journal/entry.ts";
import type { secretFormats } from "../secrets/secret-format.ts";
import { type StoreKind, storeKinds } from "../secrets/destination.ts";
import { isGlobal, optionDescription, optionsSection, type Section, sectionsText, wrapped } from "./help-screen.ts";

type Text = readonly (string | Section)[];

/** `program` must be the root command, which has the global options. */
export function topicText(topic: HelpTopic, program: Command, columns: number): string {
  const helper = Object.assign(program.createHelp(), { optionDescription });
  helper.prepareContext({ helpWidth: columns });
  const globals = program.options.filter(isGlobal);
  const texts: Readonly<Record<HelpTopic, () => Text>> = {
    options: () => [
      "Every command takes these options, before or after its name. An option wins over its environment variable, and both win over the profile.",
      optionsSection("Global options:", globals, helper),
      "A duration is 500ms, 30s, 5m, 36h, 90d, an ISO 8601 duration such as PT30S, or a number of seconds.",
    ],
    output: () => output,
    "exit-codes": () => [
      "In JSON, error.kind is the word beside the exit code.",
      {
        heading: "Exit codes:",
        items: exitCodeList.map(({ code, kind, when }) => [`${code}`.padEnd(5) + (kind ?? "success"), when] as const),
      },
    ],
    environment: () => [
      "An option wins over its variable. An address and its credential come from the same place: the profile of -p, else INTEG_BASE_URL and its variables, else the profile of INTEG_PROFILE, else the default profile. A --secret-to store also reads its own variables, such as VAULT_ADDR, VAULT_TOKEN and GH_TOKEN.",
      { heading: "Variables:", items: environment.map(({ name, meaning }) => [name, meaning] as const) },
    ],
    states: () => [
      "Each change has an entry in the journal. integ journal list shows the unfinished entries, with the command to run now.",
      { heading: "Unfinished:", items: Object.entries(states).filter(([state]) => !isSettled(state)) },
      { heading: "Finished:", items: Object.entries(states).filter(([state]) => isSettled(state)) },
    ],
    secrets: () => secretsText(program, helper),
  };
  const blocks = texts[topic]().map((block) =>
    typeof block === "string" ? `${wrapped(block, { columns })}\n` : sectionsText([block], helper),
  );
  return blocks.join("\n");
}

const output: Text = [
  "Standard output has only the result. Progress, notes, warnings, prompts and errors go to standard error.",
  {
    heading: "Formats (-o, --output):",
    items: [
      [
        "table",
        "For people. On a terminal it fits the width and shows relative times; on a pipe nothing is shortened.",
      ],
      ["json", "One document: the resource as the service sent it, or a list envelope with the rows in data."],
      ["ndjson", "One row on each line, written as its page arrives."],
      ["csv", "A header and a row on each line. A cell that a spreadsheet would run as a formula starts with '."],
      ["yaml", "The same data as json."],
      ["openmetrics", "Samples of integ status, for a monitoring agent."],
      ["markdown", "A table, for a pull request, an issue or the summary of a job."],
      ["html", "One page of integ report, with a timeline."],
      ["sarif", "Findings of an audit as SARIF 2.1.0, for code scanning."],
    ],
  },
  "--fields id,email prints only these fields, in this order, in every format but sarif and openmetrics. A name with dots (a.b) selects a nested field; the heading of a column is a valid name.",
  "With json or ndjson an error is one JSON object on the last line of standard error.",
  "A list prints one page unless --all or --max asks for more; a message says if more rows exist.",
  "For screen readers and narrow terminals (fewer than 50 columns, --no-color, NO_COLOR or TERM=dumb), progress is plain lines and questions have numbered choices.",
];

const states: Readonly<Record<EntryState, string>> = {
  open: "Saved on disk; no conclusive response yet",
  unknown: "Sent, and may or may not have happened: integ journal recover",
  pending: "Accepted by the API and not complete, or a new credential is not proven: integ journal recover",
  waiting: "Done, except that the old credential is active until due_at: integ journal recover then, or --now",
  secret_lost: "The client or key exists and its secret is lost: integ journal recover <id> --replace-lost-secret",
  undelivered: "The secret could not be delivered and is kept: integ journal claim <id>",
  done: "Finished as asked",
  refused: "Nothing was changed: the API refused every attempt, or nothing was sent",
  unusable: "The resource is revoked, disabled or expired",
  replaced: "Its client, key or secret was replaced by another",
  abandoned: "No longer tracked (integ journal forget)",
};
const formats: Readonly<Record<(typeof secretFormats)[number] | "template:<text>", string>> = {
  raw: "The bytes of the secret, without a newline",
  line: "The secret and a newline",
  json: "A JSON object with the secret and its ids",
  "json-string": "The secret as a JSON string",
  env: "Lines NAME=value, for a shell or a dotenv reader",
  "template:<text>":
    "The text, with {secret} (required), {client_id}, {id}, {service_account}, {profile}, {region} and {entry} replaced",
};

function secretsText(program: Command, helper: Help): Text {
  const declared = program.createCommand();
  addSecretOptions(declared as unknown as Parameters<typeof addSecretOptions>[0]);
  return [
    "The API shows the secret of a new client or key once. These options name its destination, which integ tests before it sends the request. Without them, integ asks at a terminal; elsewhere it prints the secret with the result, except in agent mode (INTEG_AGENT), where it sends nothing.",
    optionsSection("Options:", declared.options, helper),
    { heading: "Formats (--secret-format):", items: Object.entries(formats) },
    {
      heading: "Stores (--secret-to):",
      items: Object.values<StoreKind>(storeKinds).flatMap(({ form, what, more }) =>
        Object.entries({ [form]: what, ...more }),
      ),
    },
    "If a delivery fails (exit 12), the secret is kept on this machine, readable by you alone, or with --escrow encrypted in the team's journal. integ journal claim <id> delivers it.",
    "If a response is lost (exit 7), integ journal recover <id> finishes the creation. If that ends with exit 9, the secret is lost: integ journal recover <id> --replace-lost-secret revokes the client or key and creates another.",
  ];
}
