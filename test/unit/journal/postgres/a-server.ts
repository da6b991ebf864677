// A server on a socket of this process, with the part of the protocol that a session needs.
import { createServer, type AddressInfo, type Server as Listener, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import type { Server } from "../../../../src/journal/postgres/connect.ts";
import type { Row } from "../../../../src/journal/postgres/session.ts";
import type { Statement } from "./a-session.ts";

/** `refuses` is a SQLSTATE, `cut` closes the connection, and `silence` sends nothing. */
export type Answer = readonly Row[] | { readonly refuses: string } | "cut" | "silence";

export interface AServerParts {
  readonly about?: Partial<Server>;
  /** The response to the first query of each connection. The default is the server's own description. */
  readonly greets?: () => Answer;
  readonly answers?: (statement: Statement) => Answer;
  readonly wantsPassword?: boolean;
}

const noTransaction = message("Z", Buffer.from("I"));

function message(type: string, body: Buffer = Buffer.alloc(0)): Buffer {
  return Buffer.concat([Buffer.from(type), int32(body.length + 4), body]);
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
}

const text = (value: string): Buffer => Buffer.from(`${value}\0`);

function typeOf(value: unknown): number {
  if (typeof value === "boolean") return 16;
  return typeof value === "number" ? 701 : 25;
}

function rowsAs(rows: readonly Row[]): Buffer {
  const names = Object.keys(rows[0] ?? {});
  const columns = names.map((name) =>
    Buffer.concat([text(name), int32(0), int16(0), int32(typeOf(rows[0]![name])), int16(-1), int32(-1), int16(0)]),
  );
  const cell = (value: unknown): Buffer => {
    if (value === null || value === undefined) return int32(-1);
    const bytes = Buffer.from(typeof value === "string" ? value : JSON.stringify(value));
    return Buffer.concat([int32(bytes.length), bytes]);
  };
  return Buffer.concat([
    message("T", Buffer.concat([int16(names.length), ...columns])),
    ...rows.map((row) => message("D", Buffer.concat([int16(names.length), ...names.map((name) => cell(row[name]))]))),
    message("C", text(`SELECT ${rows.length}`)),
  ]);
}

function refusal(code: string): Buffer {
  return message(
    "E",
    Buffer.concat([text("SERROR"), text("VERROR"), text(`C${code}`), text("Mrefused"), Buffer.of(0)]),
  );
}

export class AServer {
  readonly startups: Readonly<Record<string, string>>[] = [];
  readonly statements: Statement[] = [];
  readonly passwords: string[] = [];
  readonly #parts: AServerParts;
  readonly #open = new Set<Socket>();
  #listener: Listener | undefined;

  private constructor(parts: AServerParts) {
    this.#parts = parts;
  }

  static async start(parts: AServerParts = {}): Promise<AServer> {
    const made = new AServer(parts);
    const listener = createServer((socket) => made.#serve(socket));
    made.#listener = listener;
    await new Promise<void>((done) => listener.listen(0, "127.0.0.1", done));
    onTestFinished(() => {
      for (const socket of made.#open) socket.destroy();
      listener.close();
    });
    return made;
  }

  get host(): string {
    return `127.0.0.1:${(this.#listener!.address() as AddressInfo).port}`;
  }

  async allClosed(): Promise<void> {
    const end = Date.now() + 1000;
    while (this.#open.size > 0) {
      if (Date.now() > end) throw new Error(`${this.#open.size} connections to ${this.host} are still open`);
      await new Promise((done) => setImmediate(done));
    }
  }

  #serve(socket: Socket): void {
    this.#open.add(socket);
    socket.on("error", () => {}).on("close", () => this.#open.delete(socket));
    let bytes = Buffer.alloc(0);
    let hasStarted = false;
    let statement: { text: string; values: unknown[] } = { text: "", values: [] };
    socket.on("data", (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      for (;;) {
        const start = hasStarted ? 1 : 0;
        if (bytes.length < start + 4) return;
        const end = start + bytes.readInt32BE(start);
        if (bytes.length < end) return;
        const type = hasStarted ? String.fromCharCode(bytes[0]!) : "startup";
        const body = bytes.subarray(start + 4, end);
        bytes = bytes.subarray(end);
        const words = body.toString().split("\0");
        if (type === "startup") {
          hasStarted = true;
          this.startups.push(pairs(body.subarray(4).toString().split("\0")));
          socket.write(this.#parts.wantsPassword === true ? message("R", int32(3)) : welcome());
        } else if (type === "p") {
          this.passwords.push(words[0]!);
          socket.write(welcome());
        } else if (type === "Q") this.#answer(socket, { text: words[0]!, values: [] });
        else if (type === "P") statement = { text: words[1]!, values: [] };
        else if (type === "B") statement.values = valuesOf(body);
        else if (type === "S") this.#answer(socket, statement);
      }
    });
  }

  #answer(socket: Socket, statement: Statement): void {
    const { about, greets, answers } = this.#parts;
    const isGreeting = statement.text.includes("server_encoding");
    if (!isGreeting) this.statements.push(statement);
    const own = { isReadOnly: false, encoding: "UTF8", ...about };
    const answer = isGreeting ? (greets?.() ?? [own]) : (answers?.(statement) ?? []);
    if (answer === "silence") return;
    if (answer === "cut") socket.destroy();
    else if ("refuses" in answer) socket.write(Buffer.concat([refusal(answer.refuses), noTransaction]));
    else {
      const parsed = statement.values.length > 0 ? Buffer.concat([message("1"), message("2")]) : Buffer.alloc(0);
      socket.write(Buffer.concat([parsed, rowsAs(answer), noTransaction]));
    }
  }
}

function welcome(): Buffer {
  return Buffer.concat([message("R", int32(0)), noTransaction]);
}

function pairs(words: readonly string[]): Record<string, string> {
  const found: Record<string, string> = {};
  for (let at = 0; words[at]; at += 2) found[words[at]!] = words[at + 1]!;
  return found;
}

/** The values of a Bind message, whose two names are empty. */
function valuesOf(body: Buffer): unknown[] {
  let at = 2;
  at += 2 + 2 * body.readInt16BE(at);
  const count = body.readInt16BE(at);
  at += 2;
  return Array.from({ length: count }, () => {
    const length = body.readInt32BE(at);
    at += 4;
    if (length < 0) return null;
    at += length;
    return body.subarray(at - length, at).toString();
  });
}
