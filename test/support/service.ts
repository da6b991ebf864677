// A sandbox process, started with the user's command, with its control address for faults and inspection.
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { afterAll, expect, onTestFinished } from "vitest";
import { correctServices } from "./check-output.ts";
import { binary, Home, type Ended } from "./program.ts";
import { isFull } from "./sample.ts";
import { watchService } from "./typed-steps.ts";

/** Milliseconds after a request until a list proves that no key was created, with a second to spare. */
export const settleMs = 16_000;

/** A full run waits in real time, and another binary may ignore Node's variables. */
const hasMovableClock = !isFull && binary === undefined;
const movableClock = `"--require=${join(import.meta.dirname, "movable-clock.cjs")}"`;

export interface RegionDescription {
  readonly base_url: string;
  readonly organization_id: string;
  readonly token_endpoint: string;
  readonly issuer: string;
  readonly audience: string;
  readonly access_token_endpoint: string;
  readonly service_account_id: string;
  readonly caller_service_account_id: string;
  readonly poor_service_account_id: string;
  readonly api_key: string;
  readonly second_api_key: string;
  readonly other_account_api_key: string;
  readonly other_organization_id: string;
  readonly other_organization_service_account_id: string;
  readonly other_organization_api_key: string;
  readonly scoped_api_key: string;
  readonly revoked_api_key: string;
  readonly expired_api_key: string;
  readonly access_token: string;
  readonly access_key_id: string;
  readonly access_key_secret: string;
  readonly cohort_ids: string[];
  readonly control_url: string;
}

export interface Service {
  readonly us: RegionDescription;
  readonly eu: RegionDescription;
  /** Variables with which the program uses this service without a profile. */
  readonly env: Readonly<Record<string, string>>;
  fault(spec: string): Promise<void>;
  calm(): Promise<void>;
  control(method: string, path?: string, body?: unknown): Promise<unknown>;
  /** Advances the sandbox's clock by `settleMs`, or waits that long, so that a list proves that a key is missing. */
  settle(): Promise<void>;
  stop(): Promise<Ended["code"]>;
}

export async function askControl(
  { control_url }: Pick<RegionDescription, "control_url">,
  method: string,
  path = "",
  body?: unknown,
): Promise<unknown> {
  const answer = await fetch(`${control_url}${path}`, {
    method,
    headers: { "content-type": "application/json", connection: "close" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`control ${method} ${path}: ${answer.status} ${text}`);
  return text === "" ? undefined : JSON.parse(text);
}

export async function serviceOfFile(words: readonly string[] = []): Promise<Service> {
  const service = await startService(words);
  afterAll(async () => expect(await service.stop()).toBe(0));
  return service;
}

export function homeOfFile(env: Readonly<Record<string, string>> = {}): Home {
  const home = new Home(env);
  afterAll(() => home.remove());
  return home;
}

export function homeOfTest(env: Readonly<Record<string, string>> = {}): Home {
  const home = new Home(env);
  onTestFinished(() => home.remove());
  return home;
}

export function tokenEnv({ us, env }: Service): Readonly<Record<string, string>> {
  return { ...env, INTEG_ACCESS_TOKEN: us.access_token, INTEG_TOKEN_ENDPOINT: us.token_endpoint };
}

export function creationWords({ us }: Pick<Service, "us">, ...more: readonly string[]): string[] {
  return ["oauth-clients", "create", "--service-account", us.service_account_id, "--scope", "entity:read", ...more];
}

export async function startService(words: readonly string[] = []): Promise<Service> {
  const home = new Home();
  if (hasMovableClock) {
    home.env.NODE_OPTIONS = `${home.env.NODE_OPTIONS ?? ""} ${movableClock}`;
    home.env.INTEG_TEST_SETTLE = String(settleMs);
  }
  const child = home.start(["sandbox", "start", "-o", "json", ...words]);
  const description = await new Promise<{ us: RegionDescription; eu: RegionDescription }>((resolve, reject) => {
    let text = "";
    let errors = "";
    child.stderr!.setEncoding("utf8").on("data", (chunk: string) => (errors += chunk));
    child.stdout!.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      if (text.endsWith("\n")) resolve(JSON.parse(text));
    });
    child.on("close", (code) => reject(new Error(`sandbox start ended with ${code}: ${errors}`)));
  });
  const { us, eu } = description;
  const addresses = [us.base_url, eu.base_url];
  // A journal can keep a broken response after its fault ends, so the addresses never return to `correctServices`.
  const distrustIfBroken = (fault: string): void => {
    if (/\b(?:body|envelope|cut)=/.test(fault)) for (const address of addresses) correctServices.delete(address);
  };
  for (const address of addresses) correctServices.add(address);
  distrustIfBroken(words.join(" "));
  const control: Service["control"] = (...request) => {
    distrustIfBroken(JSON.stringify(request));
    return askControl(us, ...request);
  };
  const unwatch = watchService({ file: home.path("state", "sandbox.json"), control });
  return {
    us,
    eu,
    env: {
      INTEG_REGION: "us",
      INTEG_BASE_URL: us.base_url,
      INTEG_ORGANIZATION_ID: us.organization_id,
      INTEG_API_KEY: us.api_key,
    },
    fault: async (spec) => void (await control("POST", "", { fault: spec })),
    calm: async () => void (await control("DELETE")),
    control,
    settle: async () => {
      if (!hasMovableClock) return wait(settleMs);
      const moved = new Promise((done) => child.stderr!.once("data", done));
      child.kill("SIGUSR2");
      await moved;
    },
    stop: () =>
      new Promise((resolve) => {
        child.on("close", (code) => {
          home.remove();
          resolve(code);
        });
        unwatch();
        child.kill("SIGINT");
      }),
  };
}
