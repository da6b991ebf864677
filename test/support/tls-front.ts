// A TLS front for a server without TLS, with its own certificate authority.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type AddressInfo, connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, type TlsOptions } from "node:tls";
import { makeAuthority } from "./certificates.ts";

export interface TlsFront {
  /** The front's origin with its IP address. The certificate is also valid for `localhost`. */
  readonly origin: string;
  /** The authority's certificate (PEM). */
  readonly authority: string;
  /** Redirects new connections to `origin`; without an origin, back to the target. */
  through(origin: string | undefined): void;
  close(): Promise<void>;
}

/** @param options more TLS options, which can replace the front's own certificate */
export async function startTlsFront(target: string, options: TlsOptions = {}): Promise<TlsFront> {
  const folder = mkdtempSync(join(tmpdir(), "integ-tls-"));
  const made = makeAuthority(folder);
  const authority = readFileSync(made.path, "utf8");
  const open = new Set<Socket>();
  let leadsTo = target;
  const server = createServer({ ...made.sign(["IP:127.0.0.1", "DNS:localhost"]), ...options }, (near) => {
    const far = connect(Number(new URL(leadsTo).port), "127.0.0.1");
    for (const socket of [near, far]) {
      open.add(socket);
      socket.on("error", () => {}).on("close", () => open.delete(socket));
    }
    near.pipe(far).pipe(near);
    far.on("close", () => near.destroy());
    near.on("close", () => far.destroy());
  });
  rmSync(folder, { recursive: true });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    origin: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    authority,
    through: (origin) => void (leadsTo = origin ?? target),
    close: () => {
      for (const socket of open) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
