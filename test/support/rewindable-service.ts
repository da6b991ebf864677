// A service in this process that can be restored to any moment of a recorded run.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type RunningSandbox, startSandbox } from "../../src/sandbox/sandbox.ts";
import { askControl, type RegionDescription, type Service, settleMs } from "./service.ts";

/** The service's state after it handled a request of a run. The first moment is before all requests. */
export interface Moment {
  readonly state: string;
  readonly received: readonly unknown[];
  /** `Request-Id` of the response to the last request. */
  readonly requestId?: string | undefined;
}

interface Answered {
  readonly response: { writeHead: (status: number, headers: Readonly<Record<string, string>>) => unknown };
}

interface Control {
  readonly requests: readonly unknown[];
}

export class RewindableService implements Service {
  readonly us: RegionDescription;
  readonly eu: RegionDescription;
  readonly env: Readonly<Record<string, string>>;
  readonly #sandbox: RunningSandbox;
  readonly #folder: string;
  /** How far the service's clock is ahead of the machine's. */
  readonly #clock: { aheadMs: number };
  #received: readonly unknown[] = [];

  static async start(): Promise<RewindableService> {
    const folder = mkdtempSync(join(tmpdir(), "integ-rewound-"));
    const clock = { aheadMs: 0 };
    const now = (): number => Date.now() + clock.aheadMs;
    return new RewindableService(await startSandbox({ stateDir: folder, now }), folder, clock);
  }

  private constructor(sandbox: RunningSandbox, folder: string, clock: { aheadMs: number }) {
    this.#sandbox = sandbox;
    this.#folder = folder;
    this.#clock = clock;
    const { us, eu } = sandbox.describe();
    this.us = us as RegionDescription;
    this.eu = eu as RegionDescription;
    this.env = {
      INTEG_REGION: "us",
      INTEG_BASE_URL: this.us.base_url,
      INTEG_ORGANIZATION_ID: this.us.organization_id,
      INTEG_API_KEY: this.us.api_key,
    };
  }

  async record<T>(run: () => Promise<T>): Promise<{ readonly value: T; readonly moments: readonly Moment[] }> {
    const states = [{ state: this.#state(), requestId: undefined as string | undefined }];
    const take = (message: unknown): void => {
      const moment = { state: this.#state(), requestId: undefined as string | undefined };
      states.push(moment);
      const { response } = message as Answered;
      const { writeHead } = response;
      response.writeHead = (status, headers) => {
        moment.requestId = headers["Request-Id"];
        return writeHead.call(response, status, headers);
      };
    };
    const before = this.#received;
    subscribe("integ:sandbox:answer", take);
    try {
      const value = await run();
      const { requests } = (await askControl(this.us, "GET")) as Control;
      return {
        value,
        moments: states.map((one, nth) => ({ ...one, received: [...before, ...requests.slice(0, nth)] })),
      };
    } finally {
      unsubscribe("integ:sandbox:answer", take);
    }
  }

  moment(): Moment {
    return { state: this.#state(), received: this.#received };
  }

  async rewind({ state, received }: Moment): Promise<void> {
    await askControl(this.us, "DELETE");
    this.#received = received;
    writeFileSync(`${this.#file}.next`, state, { mode: 0o600 });
    renameSync(`${this.#file}.next`, this.#file);
  }

  async fault(spec: string): Promise<void> {
    await askControl(this.us, "POST", "", { fault: spec });
  }

  async calm(): Promise<void> {
    await askControl(this.us, "DELETE");
    this.#received = [];
  }

  async control(method: string, path = "", body?: unknown): Promise<unknown> {
    const answer = await askControl(this.us, method, path, body);
    if (method !== "GET" || path !== "") return answer;
    return { ...(answer as Control), requests: [...this.#received, ...(answer as Control).requests] };
  }

  async settle(): Promise<void> {
    if (this.#clock.aheadMs === 0) subscribe("integ:sandbox:answer", this.#setDateHeader);
    this.#clock.aheadMs += settleMs;
  }

  readonly #setDateHeader = (message: unknown): void => {
    const { response } = message as { response: { setHeader: (name: string, value: string) => void } };
    response.setHeader("Date", new Date(Date.now() + this.#clock.aheadMs).toUTCString());
  };

  async stop(): Promise<null> {
    unsubscribe("integ:sandbox:answer", this.#setDateHeader);
    await this.#sandbox.close();
    rmSync(this.#folder, { recursive: true, force: true });
    return null;
  }

  get #file(): string {
    return join(this.#folder, "sandbox.json");
  }

  #state(): string {
    return readFileSync(this.#file, "utf8");
  }
}
