// Plays a contract case as raw HTTP against a running service, which it knows only by its description.
import { Agent, request as httpRequest } from "node:http";
import type { Answer, CaseRequest, ContractCase, Json, RequestStep, Step } from "./case.ts";
import { differences, expand, filled, textAt } from "./matching.ts";

type Names = Record<string, string>;

/** The description that `sandbox start -o json` prints, for each region. */
export type Description = Readonly<Record<"us" | "eu", Readonly<Record<string, unknown>>>>;

export interface Played {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

export interface PlayOptions {
  readonly description: Description;
  readonly wait: (seconds: number) => void;
  readonly seen?: (played: Played) => void;
}

export async function play(one: ContractCase, options: PlayOptions): Promise<void> {
  const names = namesOf(options.description);
  for (const [index, step] of one.steps.entries()) {
    const complaints = await playStep(step, { names, options });
    if (complaints.length > 0)
      throw new Error(`§${one.section} ${one.name}, step ${index + 1}:\n${complaints.join("\n")}`);
  }
}

function namesOf(description: Description): Names {
  const names: Names = {};
  for (const region of ["us", "eu"] as const)
    for (const [name, value] of Object.entries(description[region]))
      if (typeof value === "string") {
        names[`${region}.${name}`] = value;
        if (region === "us") names[name] = value;
      }
  return names;
}

interface Stage {
  readonly names: Names;
  readonly options: PlayOptions;
  /** With `false`, each request opens a new connection. */
  readonly agent?: Agent | false;
}

async function playStep(step: Step, stage: Stage): Promise<string[]> {
  if ("wait" in step) {
    stage.options.wait(step.wait);
    return [];
  }
  if ("fault" in step) return await toControl(stage, ["POST", "", { fault: filled(step.fault, stage.names) }]);
  if ("control" in step) return await toControl(stage, step.control);
  if ("walk" in step) return await walk(step.walk, stage);
  const complaints: string[] = [];
  const agent = step.times === undefined ? false : new Agent({ keepAlive: true });
  for (let n = 1; n <= (step.times ?? 1); n++) {
    stage.names.n = String(n);
    complaints.push(...(await ask(step, { ...stage, agent })));
  }
  if (agent) agent.destroy();
  return complaints;
}

async function toControl(stage: Stage, [method, path, body]: readonly [string, string, Json?]): Promise<string[]> {
  const url = stage.names.control_url! + filled(path, stage.names);
  const text = method === "GET" ? "" : JSON.stringify(expand(body ?? {}, stage.names));
  const reply = await send(url, { method, headers: { "content-type": "application/json" }, body: text });
  return reply !== "lost" && reply.status < 300 ? [] : [`the control address answered ${JSON.stringify(reply)}`];
}

async function ask(step: RequestStep, stage: Stage): Promise<string[]> {
  const reply = await exchange(step, stage);
  if (reply === "lost" || step.answer === "lost")
    return reply === step.answer ? [] : [`the connection was ${reply === "lost" ? "lost" : "not lost"}`];
  const complaints = complaintsAbout(reply, { wanted: step.answer, names: stage.names });
  if (step.keep && complaints.length === 0) {
    const body: Json = JSON.parse(reply.text);
    for (const [name, path] of Object.entries(step.keep)) stage.names[name] = textAt(body, path);
  }
  return complaints;
}

function complaintsAbout(reply: Played, given: { wanted: Answer; names: Names }): string[] {
  const { wanted, names } = given;
  const complaints =
    reply.status === wanted.status ? [] : [`status ${reply.status}, wanted ${wanted.status}: ${reply.text}`];
  for (const [name, value] of Object.entries(wanted.headers ?? {}))
    complaints.push(...differences(reply.headers[name] ?? null, expand(value, names), `header ${name}`));
  if (!reply.headers["request-id"]) complaints.push("header Request-Id is missing");
  if (wanted.body !== undefined) complaints.push(...differences(parsed(reply.text), expand(wanted.body, names)));
  if (wanted.problem) complaints.push(...problemComplaints(reply, expand(wanted.problem, names)));
  return complaints;
}

function problemComplaints(reply: Played, wanted: Json): string[] {
  const body = parsed(reply.text);
  const code = textAt(body, "code");
  const complaints = differences(body, expand({ $like: "problem", ...(wanted as object), status: reply.status }, {}));
  if (textAt(body, "request_id") !== reply.headers["request-id"]) complaints.push("request_id is not the header's");
  const type = textAt(body, "type");
  if (!type.endsWith(`/developers/v1/errors/${code}`)) complaints.push(`type is ${type}`);
  if (textAt(body, "doc_url") !== type) complaints.push("doc_url is not type");
  return complaints;
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text);
  } catch {
    return `not JSON: ${text.slice(0, 200)}`;
  }
}

async function walk(of: CaseRequest & { rows: number; pages: number }, stage: Stage): Promise<string[]> {
  const ids: string[] = [];
  const complaints: string[] = [];
  let token: string | null = null;
  let pages = 0;
  do {
    const next: string =
      token === null ? "" : `${of.request.includes("?") ? "&" : "?"}page_token=${encodeURIComponent(token)}`;
    const reply = await exchange({ ...of, request: of.request + next }, stage);
    if (reply === "lost" || reply.status !== 200) return [`page ${pages + 1} did not come: ${JSON.stringify(reply)}`];
    const page: { data: { id: string }[]; next_page_token: string | null; has_more: boolean } = JSON.parse(reply.text);
    if (page.has_more !== (page.next_page_token !== null))
      complaints.push(`page ${pages + 1} breaks the envelope rule`);
    ids.push(...page.data.map((row) => row.id));
    token = page.next_page_token;
    pages += 1;
  } while (token !== null && pages < 10_000);
  if (ids.length !== of.rows) complaints.push(`${ids.length} rows, wanted ${of.rows}`);
  if (new Set(ids).size !== ids.length) complaints.push("a row came twice");
  if (pages !== of.pages) complaints.push(`${pages} pages, wanted ${of.pages}`);
  return complaints;
}

async function exchange(of: CaseRequest, { names, options, agent }: Stage): Promise<Played | "lost"> {
  const [method, path] = filled(of.request, names).split(" ") as [string, string];
  const body = bodyOf(of, names);
  const headers: Names = { ...body.headers, ...authorization(of, { path, names }) };
  if (of.key !== undefined) headers["idempotency-key"] = filled(of.key, names);
  for (const [name, value] of Object.entries(of.headers ?? {})) headers[name.toLowerCase()] = filled(value, names);
  if (path.startsWith("/api/v1/") && headers["x-organization-id"] === undefined)
    headers["x-organization-id"] = names[`${of.region ?? "us"}.organization_id`]!;
  if (headers["x-organization-id"] === "none") delete headers["x-organization-id"];
  const reply = await send(names[`${of.region ?? "us"}.base_url`]! + path, { method, headers, body: body.text, agent });
  if (reply === "lost") return reply;
  const played = { ...reply, method, path: path.split("?")[0]! };
  options.seen?.(played);
  return played;
}

function bodyOf(of: CaseRequest, names: Names): { text: string; headers: Names } {
  if (of.raw !== undefined) return { text: filled(of.raw, names), headers: {} };
  if (of.form) {
    const fields = Object.entries(of.form).map(([name, value]): [string, string] => [name, filled(value, names)]);
    const text = new URLSearchParams(fields).toString();
    return { text, headers: { "content-type": "application/x-www-form-urlencoded" } };
  }
  if (of.body === undefined) return { text: "", headers: {} };
  return { text: JSON.stringify(expand(of.body, names)), headers: { "content-type": "application/json" } };
}

function basic(pair: string): Names {
  return { authorization: `Basic ${Buffer.from(pair).toString("base64")}` };
}

function authorization(of: CaseRequest, given: { path: string; names: Names }): Names {
  const { path, names } = given;
  const usual = path.startsWith("/api/v1/") ? "access_token" : path.startsWith("/v1/") ? "api_key" : "none";
  const as = filled(of.as ?? usual, names);
  if (as === "none") return {};
  if (as.startsWith("basic:")) return basic(as.slice("basic:".length));
  if (as.startsWith("bearer:")) return { authorization: `Bearer ${as.slice("bearer:".length)}` };
  if (as.startsWith("key-as-user:")) return basic(`${names[as.slice("key-as-user:".length)]}:`);
  const value = names[as];
  if (value === undefined) throw new Error(`No credential is called ${as}.`);
  return as.endsWith("access_token") ? { authorization: `Bearer ${value}` } : basic(`apikey:${value}`);
}

function send(
  url: string,
  given: { method: string; headers: Names; body: string; agent?: Agent | false },
): Promise<Omit<Played, "method" | "path"> | "lost"> {
  return new Promise((resolve) => {
    const length =
      given.body === "" && given.method === "GET" ? {} : { "content-length": Buffer.byteLength(given.body) };
    const { method, agent = false } = given;
    const request = httpRequest(url, { method, headers: { ...given.headers, ...length }, agent });
    request.on("error", () => resolve("lost"));
    request.on("response", (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      response.on("error", () => resolve("lost"));
      response.on("end", () => {
        const headers = Object.entries(response.headers).map(([name, value]) => [name, String(value)]);
        resolve({ status: response.statusCode!, headers: Object.fromEntries(headers), text });
      });
    });
    request.end(given.body);
  });
}
