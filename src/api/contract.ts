// Fetches the published, untrusted specification (§4.5), and compares it with integ's operations (§4, §9).
import { contractVersion, segment } from "./call/request.ts";
import type { Attempt } from "./call/attempt.ts";
import { type Answer, type Caller, jsonOf } from "./call/caller.ts";
import { BrokenBody, type JsonObject } from "./json/json-text.ts";
import { compareAnswer, propertiesOf, requiredOf, type Shape, shapes } from "./contract-answers.ts";
import { asArray, asObject, compareSecurity, drift, type Finding, resolve, word } from "./contract-document.ts";
import { isObject } from "../json.ts";

export interface Contract {
  /** @param version default: the current one. @returns the parsed document; `body` has its bytes */
  published(version?: string): Promise<Attempt<JsonObject>>;
}

/** @assumed §4.5 does not say whether the documents need a credential: integ sends one only after a refusal. */
export function createContract(callers: readonly [anonymous: Caller, authorized: Caller]): Contract {
  return {
    async published(version) {
      const resource = version === undefined ? undefined : "specification";
      const path =
        version === undefined
          ? "/v1-reference/openapi-v1.json"
          : `/v1-reference/openapi/${segment(version, "contract version")}.json`;
      let attempt: Attempt<JsonObject> | undefined;
      for (const caller of callers) {
        attempt = await caller.send({ method: "GET", path, success: [200], page: true, resource }, readDocument);
        if (attempt.kind !== "refused" || (attempt.status !== 401 && attempt.status !== 403)) break;
      }
      return attempt!;
    },
  };
}

function readDocument(answer: Answer): JsonObject {
  const { value } = jsonOf(answer);
  if (!isObject(value)) throw new BrokenBody("the response is not a specification");
  return value;
}

interface Expectation {
  /** Each as `<place> <name>`, such as `query limit`. */
  readonly parameters: readonly string[];
  readonly required?: readonly string[];
  readonly body?: readonly string[];
  readonly success: string;
  readonly answer: Shape;
}

const list = ["query limit", "query page_token"];

/** Path parameters are `{}`, because each document chooses their names. */
const supported: Readonly<Record<string, Expectation>> = {
  "POST /v1/oauth_clients": {
    parameters: ["header idempotency-key"],
    required: ["header idempotency-key"],
    body: ["service_account_id", "scopes"],
    success: "201",
    answer: shapes.receipt,
  },
  "GET /v1/oauth_clients/{}": { parameters: [], success: "200", answer: shapes.oauthClient },
  "DELETE /v1/oauth_clients/{}": { parameters: [], success: "200", answer: shapes.oauthClient },
  "GET /v1/entities": { parameters: [...list, "query type"], success: "200", answer: shapes.entities },
  "GET /v1/cohorts/{}/members": { parameters: list, success: "200", answer: shapes.members },
};

/** The document may contain legacy operations (§4.4). Their stage is `compatibility` (§9 rule 4). */
const legacy: readonly string[] = [
  "POST /api/v1/access-keys",
  "GET /api/v1/access-keys",
  "POST /api/v1/access-keys/{}/rotate",
  "DELETE /api/v1/access-keys/{}",
  "GET /api/v1/people/search",
  "GET /api/v1/people/{}/membership",
];

const stages = ["preview", "compatibility", "ga"];
const methods = ["get", "put", "post", "delete", "patch", "head", "options"];

/** A document may list these headers for any operation, so they cause no finding. */
const common = ["header service-version", "header authorization", "header accept", "header content-type"];

export interface ComparisonOptions {
  readonly askedVersion?: string;
}

export function compareContract(document: unknown, options: ComparisonOptions = {}): Finding[] {
  const root = asObject(document);
  const published = operationsOf(root);
  const findings = compareVersion(root, options.askedVersion);
  for (const [name, expected] of Object.entries(supported)) {
    const operation = published.get(name);
    if (operation) findings.push(...compareOperation(root, { name, expected, operation }));
    else findings.push(drift(name, "is missing from the document"));
  }
  for (const [name, operation] of published)
    if (legacy.includes(name)) findings.push(...compareStage({ name, operation }, "compatibility"));
    else if (!Object.hasOwn(supported, name))
      findings.push({ severity: "addition", subject: name, detail: "an operation that integ does not know" });
  return findings.sort((a, b) => (a.severity === b.severity ? 0 : a.severity === "drift" ? -1 : 1));
}

function compareVersion(root: JsonObject, asked: string | undefined): Finding[] {
  const version = asObject(root.info)["x-contract-version"];
  const subject = "contract version";
  if (version === undefined) return [drift(subject, "is not named")];
  return [
    ...(version === contractVersion
      ? []
      : [drift(subject, `is ${word(version)}, and integ supports ${contractVersion}`)]),
    ...(asked === undefined || version === asked
      ? []
      : [drift(subject, `is ${word(version)}, and ${asked} was asked for`)]),
  ];
}

interface Operation {
  readonly operation: JsonObject;
  readonly parameters: ReadonlyMap<string, JsonObject>;
}

function operationsOf(root: JsonObject): Map<string, Operation> {
  const found = new Map<string, Operation>();
  const prefix = serverPrefix(root);
  for (const [path, item] of Object.entries(asObject(root.paths)))
    for (const [method, operation] of Object.entries(asObject(item))) {
      if (!methods.includes(method.toLowerCase())) continue;
      const parameters = new Map(
        [...asArray(asObject(item).parameters), ...asArray(asObject(operation).parameters)].map((reference) => {
          const parameter = resolve(root, reference);
          return [`${word(parameter.in)} ${nameOf(parameter)}`, parameter] as const;
        }),
      );
      const name = `${method.toUpperCase()} ${prefix}${path.replace(/\{[^}]*\}/g, "{}").replace(/\/$/, "")}`;
      found.set(name, { operation: asObject(operation), parameters });
    }
  return found;
}

function nameOf(parameter: JsonObject): string {
  const name = word(parameter.name);
  return parameter.in === "header" ? name.toLowerCase() : name;
}

/** Paths may be relative to the first server's path. */
function serverPrefix(root: JsonObject): string {
  const { url } = asObject(asArray(root.servers)[0]);
  if (typeof url !== "string" || Object.keys(asObject(root.paths)).some((path) => path.startsWith("/v1/"))) return "";
  return url.replace(/^[a-z]+:\/\/[^/]*/i, "").replace(/\/+$/, "");
}

interface Comparison {
  readonly name: string;
  readonly expected: Expectation;
  readonly operation: Operation;
}

function compareOperation(root: JsonObject, comparison: Comparison): Finding[] {
  return [
    ...compareStage(comparison),
    ...compareParameters(root, comparison),
    ...compareBody(root, comparison),
    ...compareSuccess(root, comparison),
    ...compareSecurity(root, {
      name: comparison.name,
      security: comparison.operation.operation.security,
    }),
  ];
}

function compareStage(
  { name, operation: { operation } }: Pick<Comparison, "name" | "operation">,
  only?: string,
): Finding[] {
  const stage = operation["x-lifecycle-stage"];
  const findings: Finding[] = [];
  if (typeof stage !== "string" || !stages.includes(stage))
    findings.push(
      drift(
        name,
        stage === undefined ? "declares no lifecycle stage" : `is at the unknown lifecycle stage "${word(stage)}"`,
      ),
    );
  else if (only !== undefined && stage !== only) findings.push(drift(name, `is at the lifecycle stage "${stage}"`));
  // §9 rule 7 does not show what a stage or a deprecation means for clients, so integ reports notices.
  else if (only === undefined && stage === "compatibility")
    findings.push({ severity: "notice", subject: name, detail: `is at the lifecycle stage "${stage}"` });
  if (operation.deprecated === true) findings.push({ severity: "notice", subject: name, detail: "is deprecated" });
  return findings;
}

function compareParameters(root: JsonObject, comparison: Comparison): Finding[] {
  const { name, expected } = comparison;
  const { parameters } = comparison.operation;
  const findings: Finding[] = [];
  for (const parameter of expected.parameters) {
    const published = parameters.get(parameter);
    const isRequired = expected.required?.includes(parameter) ?? false;
    if (!published) findings.push(drift(name, `has no ${describeParameter(parameter)} any more`));
    else if ((published.required === true) !== isRequired)
      findings.push(drift(name, `${isRequired ? "does not require" : "requires"} ${describeParameter(parameter)}`));
  }
  for (const [parameter, published] of parameters) {
    if (expected.parameters.includes(parameter) || common.includes(parameter) || published.in === "path") continue;
    if (published.required === true)
      findings.push(drift(name, `requires ${describeParameter(parameter)}, which integ does not send`));
    else findings.push({ severity: "addition", subject: name, detail: `takes ${describeParameter(parameter)}` });
  }
  return [...findings, ...compareLimit(root, comparison)];
}

function compareLimit(root: JsonObject, { name, operation }: Comparison): Finding[] {
  const parameter = operation.parameters.get("query limit");
  if (!parameter) return [];
  const { minimum = 1, maximum = 500 } = resolve(root, parameter.schema);
  if (minimum === 1 && maximum === 500) return [];
  return [drift(name, `takes a limit of ${word(minimum)} to ${word(maximum)}, not of 1 to 500`)];
}

function compareBody(root: JsonObject, { name, expected, operation: { operation } }: Comparison): Finding[] {
  const body = resolve(root, operation.requestBody);
  const { schema } = asObject(asObject(body.content)["application/json"]);
  const required = requiredOf(root, schema);
  const fields = [...propertiesOf(root, schema).keys()];
  const sent = expected.body ?? [];
  const findings: Finding[] = [];
  for (const field of sent)
    if (fields.length > 0 && !fields.includes(field)) findings.push(drift(name, `has no field ${field} any more`));
  for (const field of required)
    if (!sent.includes(field)) findings.push(drift(name, `requires the field ${field}, which integ does not send`));
  for (const field of fields)
    if (!sent.includes(field) && !required.includes(field))
      findings.push({ severity: "addition", subject: name, detail: `takes the field ${field}` });
  if (sent.length > 0 && fields.length === 0) findings.push(drift(name, "does not say what its body is"));
  return findings;
}

function compareSuccess(root: JsonObject, { name, expected, operation: { operation } }: Comparison): Finding[] {
  const responses = asObject(operation.responses);
  if (!Object.hasOwn(responses, expected.success)) return [drift(name, `does not respond with ${expected.success}`)];
  return compareAnswer(root, { name, response: responses[expected.success], shape: expected.answer });
}

function describeParameter(parameter: string): string {
  const [place, ...name] = parameter.split(" ");
  return place === "header" ? `the header ${name.join(" ")}` : `the parameter ${name.join(" ")}`;
}
