// Cuts the TCP connection between the program and a service after an exact number of bytes.
import { connect, createServer, type Socket } from "node:net";
import type { AddressInfo } from "node:net";
import { spread } from "./strace.ts";

export interface Cut {
  readonly of: "request" | "response";
  readonly after: number;
  /** `close` ends the connection normally, `reset` with a TCP reset. */
  readonly how: "close" | "reset";
}

export interface PlannedCut extends Cut {
  /** True if at least the last byte is missing. */
  readonly isShort: boolean;
}

/**
 * Plans a close and a reset before the first byte and after each byte. With `sample`, plans only one of the two at each of
 * about `sample` evenly distributed places and the last two places: a response that lacks its last byte may still be readable.
 * @param whole the number of bytes of the request or response
 */
export function cutsOf(of: Cut["of"], { whole, sample }: { whole: number; sample: number | undefined }): PlannedCut[] {
  const places = Array.from({ length: whole + 1 }, (_, after) => after);
  const chosen =
    sample === undefined ? places : [...new Set([...spread(places, sample + 1).slice(0, -1), ...places.slice(-2)])];
  return chosen.flatMap((after) => {
    const cut = (how: Cut["how"]): PlannedCut => ({ of, after, how, isShort: after < whole });
    if (sample === undefined) return [cut("close"), cut("reset")];
    return [cut(after % 2 ? "close" : "reset")];
  });
}

export interface CuttingProxy {
  readonly origin: string;
  /** Lets the next `skip` matching connections pass, and cuts the `times` after them. */
  cut(cut: Cut | undefined, times?: number, skip?: number): void;
  /** The bytes so far of the last matching connection without a cut. */
  readonly passed: { request: number; response: number };
  /** The number of matching connections since `cut` was called. */
  readonly matched: number;
  close(): Promise<void>;
}

/**
 * @param target origin of the service, `http://127.0.0.1:<port>`
 * @param start the first bytes of the connections to cut, such as `POST /v1/oauth_clients `
 */
export async function startCuttingProxy(target: string, start: string): Promise<CuttingProxy> {
  const { hostname, port } = new URL(target);
  const open = new Set<Socket>();
  const passed = { request: 0, response: 0 };
  let plan: { cut: Cut; left: number; skip: number } | undefined;
  let matched = 0;
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    for (const socket of [near, far]) {
      open.add(socket);
      socket.on("error", () => {}).on("close", () => open.delete(socket));
    }
    carry(near, far);
  });

  function carry(near: Socket, far: Socket): void {
    let ownCut: Cut | undefined;
    let isMatching: boolean | undefined;
    const counts = { request: 0, response: 0 };
    const end = ({ how }: Cut): void => {
      if (how === "reset") near.resetAndDestroy();
      else near.end();
      far.destroy();
    };
    const pass = (of: "request" | "response", to: Socket, chunk: Buffer): void => {
      const room = ownCut?.of === of ? ownCut.after - counts[of] : Infinity;
      const part = chunk.subarray(0, Math.max(0, Math.min(chunk.length, room)));
      counts[of] += part.length;
      const isOver = ownCut?.of === of && counts[of] >= ownCut.after;
      // Ends the connection only when the kernel has the last bytes.
      if (part.length > 0) to.write(part, () => isOver && ownCut && end(ownCut));
      else if (isOver && ownCut) end(ownCut);
      if (isMatching && !ownCut) Object.assign(passed, counts);
    };
    near.on("data", (chunk: Buffer) => {
      if (isMatching === undefined) {
        isMatching = chunk.toString("latin1", 0, start.length) === start;
        if (isMatching) matched += 1;
        if (isMatching && plan && plan.left > 0 && matched > plan.skip) {
          plan.left -= 1;
          ownCut = plan.cut;
        }
      }
      pass("request", far, chunk);
    });
    far.on("data", (chunk: Buffer) => pass("response", near, chunk));
    near.on("end", () => far.end());
    far.on("end", () => ownCut?.of !== "response" && near.end());
    near.on("close", () => far.destroy());
    far.on("close", () => ownCut?.of === "response" || near.destroySoon());
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    passed,
    get matched() {
      return matched;
    },
    cut: (cut, times = 1, skip = 0) => {
      plan = cut && { cut, left: times, skip };
      matched = 0;
    },
    close: () => {
      for (const socket of open) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
