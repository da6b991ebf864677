import { request as httpRequest } from "node:http";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished, vi } from "vitest";
import type { SandboxDescription } from "../../../src/sandbox/description.ts";
import { type RunningSandbox, type SandboxSettings, startSandbox } from "../../../src/sandbox/sandbox.ts";

type RegionDescription = SandboxDescription["us"];

export interface RawResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** False if the connection ended before the response did. */
  readonly whole: boolean;
}

export interface RequestOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "integ-sandbox-"));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

export function setTime(ms: number): void {
  const spy = vi.spyOn(Date, "now").mockReturnValue(ms);
  onTestFinished(() => spy.mockRestore());
}

export async function aSandbox(
  settings: Partial<SandboxSettings> = {},
): Promise<RunningSandbox & { us: RegionDescription }> {
  const sandbox = await startSandbox({ stateDir: settings.stateDir ?? folder(), ...settings });
  onTestFinished(() => sandbox.close());
  return { ...sandbox, us: sandbox.describe().us };
}

export function basic(key: string): Record<string, string> {
  return { authorization: `Basic ${Buffer.from(`apikey:${key}`).toString("base64")}` };
}

/** Uses a new connection. Rejects if the head of a response does not arrive. */
export function send(url: string, options: RequestOptions = {}): Promise<RawResponse> {
  return new Promise((resolve, reject) => {
    const length = options.body === undefined ? {} : { "content-length": String(Buffer.byteLength(options.body)) };
    const headers = { ...options.headers, ...length };
    const request = httpRequest(url, { method: options.method ?? "GET", headers, agent: false });
    request.on("error", reject);
    request.on("response", (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      response.on("error", () => undefined);
      response.on("close", () => {
        resolve({ status: response.statusCode!, headers: response.headers, text, whole: response.complete });
      });
    });
    request.end(options.body);
  });
}

export function list(us: RegionDescription, query = ""): Promise<RawResponse> {
  return send(`${us.base_url}/v1/entities${query}`, { headers: basic(us.api_key) });
}

export function create(us: RegionDescription, key: string): Promise<RawResponse> {
  return send(`${us.base_url}/v1/oauth_clients`, {
    method: "POST",
    headers: { ...basic(us.api_key), "content-type": "application/json", "idempotency-key": key },
    body: JSON.stringify({ service_account_id: us.service_account_id, scopes: ["entity:read"] }),
  });
}

export async function control(us: RegionDescription, path = "", body?: unknown): Promise<unknown> {
  const options = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const response = await send(us.control_url + path, options);
  if (response.status >= 300) throw new Error(response.text);
  return JSON.parse(response.text);
}
