// Plays a case by typing it: every request that a person can type goes through the built program (in this
// process), the others go raw.
import { Home, type Ended } from "../support/program.ts";
import { integHere } from "../support/program-here.ts";
import type { Answer, Asking, ContractCase, JsonObject, RequestStep, Step } from "./case.ts";
import { askedBy, type Asked } from "./client-call.ts";
import { complaintsAbout, exitOf, isCaught, kept } from "./command-line-expected.ts";
import { apiWords, environmentOf, type Typed, wordsOf } from "./command-line-words.ts";
import { expand, filled, textAt } from "./matching.ts";
import { play } from "./player.ts";
import type { World } from "./world.ts";

/** A request that is asked for more often is not typed so often. */
const patience = 3;

/** Asks as a script does: no question, one attempt, the result alone. */
const flags = ["-o", "json", "--no-input", "--quiet", "--retry-for", "0"];

export class TypingPlayer {
  readonly complaints: string[] = [];
  /** `step 2: why it is not typed` */
  readonly raw: string[] = [];
  commands = 0;
  readonly #one: ContractCase;
  readonly #world: World;
  readonly #home = new Home();
  readonly #names: Record<string, string> = {};
  /** Creations that were answered with 201 before: region and key. */
  readonly #created = new Set<string>();
  /** What the case did that only a raw request can show. */
  #waited = false;
  #assigned = false;
  /** The case counts inspections, and the program inspects a pending client by itself: `integ api` creates instead. */
  #counts = false;

  constructor(one: ContractCase, world: World) {
    this.#one = one;
    this.#world = world;
    for (const region of ["us", "eu"] as const)
      for (const [name, value] of Object.entries(world.description[region]))
        if (typeof value === "string") {
          this.#names[`${region}.${name}`] = value;
          if (region === "us") this.#names[name] = value;
        }
  }

  /** Plays the whole case. */
  async play(): Promise<void> {
    try {
      for (const [index, step] of this.#one.steps.entries()) {
        const complaints = await this.#step(step, `step ${index + 1}`);
        this.complaints.push(...complaints.map((complaint) => `step ${index + 1}: ${complaint}`));
      }
    } finally {
      this.#home.remove();
    }
  }

  async #step(step: Step, place: string): Promise<string[]> {
    if ("walk" in step) return await this.#walk(step.walk);
    if (!("request" in step)) {
      this.#waited ||= "wait" in step;
      this.#counts ||= /pending=[02] /.test(JSON.stringify(step));
      this.#assigned ||= JSON.stringify(step).includes("assignedVersion");
      return await this.#playRaw(step);
    }
    const { times = 1 } = step;
    const reason = times > patience ? `asked ${times} times over` : this.#reason(step);
    if (reason !== undefined) {
      this.raw.push(`${place}: ${step.request}: ${reason}`);
      return await this.#playRaw(step);
    }
    const complaints: string[] = [];
    for (let n = 1; n <= times; n++) {
      this.#names.n = String(n);
      complaints.push(...(await this.#type(step)));
    }
    return complaints;
  }

  #reason(step: RequestStep): string | undefined {
    const asked = askedBy(step, { n: "1", ...this.#names });
    const words = wordsOf(asked);
    if (typeof words === "string") return words;
    if (this.#waited && asked.as.startsWith("bearer:") && asked.path.startsWith("/v1/"))
      return "the program fetches a new token in time";
    if (this.#assigned && asked.path.startsWith("/v1/") && asked.headers["Service-Version"] === undefined)
      return "the program pins a version with every request";
    const env = environmentOf(asked, { names: this.#names, region: step.region ?? "us" });
    return typeof env === "string" ? env : undefined;
  }

  /** The step alone, over HTTP; what it keeps is kept. */
  async #playRaw(step: Step): Promise<string[]> {
    const description = { us: { ...this.#world.description.us, ...this.#kept() }, eu: this.#world.description.eu };
    let text = "null";
    try {
      await play(
        { ...this.#one, steps: [step] },
        { description, wait: this.#world.wait, seen: (played) => (text = played.text) },
      );
    } catch (error) {
      return [(error as Error).message];
    }
    if ("keep" in step && step.keep) Object.assign(this.#names, kept(text, step.keep));
    if ("request" in step && step.request === "POST /v1/oauth_clients")
      for (let n = 1; n <= (step.times ?? 1); n++)
        this.#created.add(`${step.region ?? "us"} ${filled(step.key ?? "", { ...this.#names, n: String(n) })}`);
    return [];
  }

  #kept(): Record<string, string> {
    return Object.fromEntries(Object.entries(this.#names).filter(([name]) => !name.includes(".")));
  }

  async #type(step: RequestStep): Promise<string[]> {
    const asked = askedBy(step, this.#names);
    const usual = wordsOf(asked) as Typed;
    const words = this.#counts && usual.words[1] === "create" ? (apiWords(asked) as Typed) : usual;
    const { answer } = step;
    // What belongs to the profile is looked at for every command.
    const param = answer === "lost" ? undefined : answer.problem?.param;
    const version = asked.headers["Service-Version"];
    // The label of the legacy contract looks like a version and is none (§1).
    const isVersion = /^\d{4}-\d\d-\d\d$/.test(version ?? "") && version !== "2026-08-05";
    const own = param === "x-organization-id" || (param === "Service-Version" && !isVersion);
    if (own || (asked.key === undefined && /^POST \/v1\/oauth_clients$/.test(step.request)))
      return await this.#caught(words, asked, step);
    if (!words.noun || !isCaught(answer, asked.whole)) return await this.#sent(words, asked, step);
    const complaints = await this.#caught(words, asked, step);
    const api = apiWords(asked) as Typed;
    return [...complaints, ...(await this.#sent(api, asked, step))];
  }

  async #caught(typed: Typed, asked: Asked, step: RequestStep): Promise<string[]> {
    const before = await this.#requests();
    const ended = await this.#run(typed, asked, step);
    const complaints = ended.code === 2 ? [] : [`exit ${ended.code}, wanted 2: ${ended.stderr}`];
    if ((await this.#requests()) !== before) complaints.push("something was sent");
    return complaints.map((complaint) => `${typed.words.join(" ").slice(0, 200)}: ${complaint}`);
  }

  async #sent(typed: Typed, asked: Asked, step: RequestStep): Promise<string[]> {
    const { answer, keep } = step;
    const ended = await this.#run(typed, asked, step);
    const creates = typed.noun && typed.words[1] === "create" && typed.words[0] === "oauth-clients";
    const key = `${step.region ?? "us"} ${asked.key ?? ""}`;
    const client = creates ? await this.#clientOf(step, asked) : undefined;
    const exit = exitOf(answer, { change: asked.method !== "GET", client });
    if (creates && (answer === "lost" || answer.status === 201)) this.#created.add(key);
    if (keep)
      Object.assign(this.#names, client && exit !== 0 ? kept(JSON.stringify(client), keep) : kept(ended.stdout, keep));
    const complaints = ended.code === exit ? [] : [`exit ${ended.code}, wanted ${exit}: ${ended.stderr}`];
    if (answer !== "lost" && complaints.length === 0) {
      const rows = ["list", "search"].includes(typed.words[1] ?? "") && asked.path.startsWith("/api/v1/");
      complaints.push(...complaintsAbout(ended, { answer: this.#asAsked(step), exit, names: this.#names, rows }));
    }
    return complaints.map((complaint) => `${typed.words.join(" ").slice(0, 200)}: ${complaint}`);
  }

  /** A token that is not accepted: the program asks for another, and it is the token endpoint that says no. */
  #asAsked({ as = "", answer, request }: RequestStep): Answer {
    const whole = answer as Answer;
    const fetched = as.startsWith("bearer:") && whole.status === 401 && / \/v1\//.test(request);
    return fetched ? { status: 401 } : whole;
  }

  /** The client as the case wants it; where the case leaves that open, as the service holds it. */
  async #clientOf({ answer, region = "us" }: RequestStep, { key }: Asked): Promise<JsonObject | undefined> {
    if (answer === "lost" || answer.status !== 201) return undefined;
    const held = (await (await fetch(`${this.#names[`${region}.control_url`]}/oauth_clients`)).json()) as JsonObject[];
    const found = held.find(({ idempotency_key }) => idempotency_key === key);
    const wanted = answer.body === undefined ? undefined : (expand(answer.body, this.#names) as JsonObject);
    const secret = this.#created.has(`${region} ${key}`) || found?.status !== "active" ? null : "<text>";
    return {
      client_secret: secret,
      ...found,
      ...(wanted && { status: wanted.status!, client_secret: wanted.client_secret! }),
    };
  }

  async #requests(): Promise<number> {
    const counts = await Promise.all(
      (["us", "eu"] as const).map(async (region) => {
        const { requests } = (await (await fetch(this.#names[`${region}.control_url`]!)).json()) as {
          requests: unknown[];
        };
        return requests.length;
      }),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  }

  async #run(typed: Typed, asked: Asked, step: RequestStep): Promise<Ended> {
    const env = environmentOf(asked, { names: this.#names, region: step.region ?? "us" }) as Record<string, string>;
    const version = asked.headers["Service-Version"];
    const more = version === undefined ? [] : ["--service-version", version];
    this.commands += 1;
    // No memory of earlier commands: what the answer says is all there is to go by.
    const journal = { INTEG_JOURNAL: this.#home.path(`journal-${this.commands}`) };
    if (asked.as.startsWith("key-as-user:")) {
      const add = ["profiles", "add", "other", "--region", "us", "--base-url", env.INTEG_BASE_URL!, "--api-key-stdin"];
      await integHere(this.#home, [...add, "--basic-style", "key-as-user"], { input: env.INTEG_API_KEY! });
      return await integHere(this.#home, [...typed.words, ...flags, ...more, "-p", "other"], { env: journal });
    }
    return await integHere(this.#home, [...typed.words, ...flags, ...more], {
      env: { ...env, ...journal },
      ...(typed.input === undefined ? {} : { input: typed.input }),
    });
  }

  async #walk(of: Asking & { rows: number }): Promise<string[]> {
    const step: RequestStep = { ...of, answer: { status: 200 } };
    const asked = askedBy(step, this.#names);
    const typed = wordsOf(asked) as Typed;
    const ended = await this.#run({ ...typed, words: [...typed.words, "--all"] }, asked, step);
    if (ended.code !== 0) return [`exit ${ended.code}: ${ended.stderr}`];
    const whole = JSON.parse(ended.stdout) as { data: JsonObject[]; next_page_token: null; has_more: boolean };
    const ids = new Set(whole.data.map((row) => textAt(row, "id")));
    const right =
      ids.size === of.rows && whole.data.length === of.rows && whole.next_page_token === null && !whole.has_more;
    return right ? [] : [`--all gave ${whole.data.length} rows of ${ids.size}, wanted ${of.rows}`];
  }
}
