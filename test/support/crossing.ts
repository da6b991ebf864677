// A relay between the program and both PostgreSQL and the service. It counts changes of direction or messages, so that a
// test can cut the connection before any of them, or act first.
import { connect, createServer, type Server, type Socket } from "node:net";
import type { AddressInfo } from "node:net";

type Side = "request" | "response";

export interface Passage {
  readonly link: "journal" | "service";
  readonly side: Side;
}

export type Verdict = "cut" | "pass";

interface Plan {
  readonly at: number;
  readonly act: () => Verdict | Promise<Verdict>;
}

export class Crossing {
  readonly #servers = new Map<string, Server>();
  readonly #open = new Set<Socket>();
  #byMessage = false;
  #passages: Passage[] = [];
  #plan: Plan | undefined;

  async portTo(link: Passage["link"], port: number): Promise<number> {
    const name = `${link}:${port}`;
    const there = this.#servers.get(name);
    if (there) return (there.address() as AddressInfo).port;
    const server = createServer((near) => this.#carry(link, near, connect(port, "127.0.0.1")));
    this.#servers.set(name, server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return (server.address() as AddressInfo).port;
  }

  readonly through = async (origin: string): Promise<string> =>
    `http://127.0.0.1:${await this.portTo("service", Number(new URL(origin).port))}`;

  /** Restarts the count. @param options.byMessage true to count each message of PostgreSQL, not its changes of direction */
  watch({
    plan,
    byMessage = false,
  }: {
    readonly plan?: Plan | undefined;
    readonly byMessage?: boolean | undefined;
  }): void {
    this.#passages = [];
    this.#plan = plan;
    this.#byMessage = byMessage;
  }

  /** Cancels the plan. @returns what was counted since `watch` */
  passed(): Passage[] {
    this.#plan = undefined;
    return this.#passages;
  }

  /** True if the plan has been carried out, or nothing is planned. */
  get isDone(): boolean {
    return this.#plan === undefined;
  }

  async close(): Promise<void> {
    for (const socket of this.#open) socket.destroy();
    await Promise.all([...this.#servers.values()].map((server) => new Promise((resolve) => server.close(resolve))));
  }

  #carry(link: Passage["link"], near: Socket, far: Socket): void {
    const both = [near, far];
    const end = (): void => {
      for (const socket of both) socket.destroy();
    };
    for (const socket of both) {
      // Nagle's algorithm would delay messages that are forwarded one by one.
      socket.setNoDelay(true);
      this.#open.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        this.#open.delete(socket);
        end();
      });
    }
    let last: Side | undefined;
    const isSplit = this.#byMessage && link === "journal";
    const pass = (from: Socket, to: Socket, side: Side): void => {
      const parts = isSplit ? messages(side) : (bytes: Buffer) => [bytes];
      let before = Promise.resolve();
      const forward = async (part: Buffer): Promise<void> => {
        const isCounted = isSplit || last !== side;
        last = side;
        const verdict = isCounted ? await this.#count({ link, side }) : "pass";
        if (verdict === "cut") end();
        else if (!to.destroyed) to.write(part);
      };
      from.on("data", (bytes: Buffer) => {
        for (const part of parts(bytes)) before = before.then(() => forward(part));
      });
      from.on("end", () => void before.then(() => to.end()));
    };
    pass(near, far, "request");
    pass(far, near, "response");
  }

  #count(passage: Passage): Verdict | Promise<Verdict> {
    const number = this.#passages.push(passage) - 1;
    const plan = this.#plan;
    if (plan?.at !== number) return "pass";
    this.#plan = undefined;
    return plan.act();
  }
}

/** Splits the bytes of a PostgreSQL connection into messages; a client's first message has no letter before its length. */
function messages(side: Side): (bytes: Buffer) => Buffer[] {
  let rest = Buffer.alloc(0);
  let isFirst = side === "request";
  return (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    const whole: Buffer[] = [];
    for (;;) {
      const letter = isFirst ? 0 : 1;
      if (rest.length < letter + 4) return whole;
      const length = letter + rest.readUInt32BE(letter);
      if (rest.length < length) return whole;
      whole.push(rest.subarray(0, length));
      rest = rest.subarray(length);
      isFirst = false;
    }
  };
}
