// Node reads NODE_EXTRA_CA_CERTS only at start, so the transport runs in its own process.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import { connect, createServer as createTcpServer, type AddressInfo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, expect, test } from "vitest";
import { cert, key } from "./localhost-certificate.ts";

const folder = mkdtempSync(join(tmpdir(), "integ-tls-"));
const received: { url: string; authorization: string | undefined }[] = [];
const tunnels: string[] = [];
const connections = { tls: 0 };

const server = createServer({ cert, key }, (request, response) => {
  received.push({ url: request.url ?? "", authorization: request.headers.authorization });
  response.end("{}");
});
server.on("secureConnection", () => connections.tls++);
const proxy = createTcpServer((near) => {
  near.on("error", () => {});
  near.once("data", (chunk: Buffer) => {
    tunnels.push(chunk.toString("latin1"));
    const far: Socket = connect((server.address() as AddressInfo).port, "127.0.0.1", () => {
      near.write("HTTP/1.1 200 OK\r\n\r\n");
      far.pipe(near).pipe(far);
    });
    far.on("error", () => near.destroy());
  });
});

const driver = `
import { createTransport } from ${JSON.stringify(join(import.meta.dirname, "../../../../src/api/http/transport.ts"))};
const { origin, proxy } = JSON.parse(process.argv[2]);
const transport = createTransport({ locate: async (it) => it, timeoutMs: 10000, signal: new AbortController().signal,
  now: Date.now, userAgent: "integ-test/0", proxy });
const results = [];
for (const method of ["GET", "GET", "POST"])
  results.push(await transport.exchange({ method, baseUrl: origin, path: "/v1/x", headers: { authorization: "Basic eDo=" } }));
transport.close();
process.stdout.write(JSON.stringify(results.map(({ kind, status, reason, detail, sent }) => ({ kind, status, reason, detail, sent }))));
`;

beforeAll(async () => {
  writeFileSync(join(folder, "cert.pem"), cert);
  writeFileSync(join(folder, "driver.mjs"), driver);
  const bundle = await rolldown({ input: join(folder, "driver.mjs"), platform: "node", external: [/^node:/] });
  await bundle.write({ file: join(folder, "bundle.mjs"), format: "esm", codeSplitting: false });
  await bundle.close();
  // The servers listen on every address of this machine; the certificate does not contain 127.0.0.2.
  for (const one of [server, proxy]) await new Promise<void>((resolve) => one.listen(0, "0.0.0.0", resolve));
});

afterAll(() => {
  server.closeAllConnections();
  server.close();
  proxy.close();
  rmSync(folder, { recursive: true });
});

async function run(options: object, env: NodeJS.ProcessEnv): Promise<unknown> {
  received.length = 0;
  tunnels.length = 0;
  connections.tls = 0;
  const { PATH } = process.env;
  const child = spawn(process.execPath, [join(folder, "bundle.mjs"), JSON.stringify(options)], {
    env: { PATH, ...env },
  });
  let out = "";
  let err = "";
  child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
  const code = await new Promise((resolve) => child.on("close", resolve));
  expect(code, err).toBe(0);
  return JSON.parse(out);
}

const trusting = { NODE_EXTRA_CA_CERTS: join(folder, "cert.pem") };
const here = (): string => `https://localhost:${(server.address() as AddressInfo).port}`;
const fine = { kind: "response", status: 200 };

test("a trusted certificate: reads share a connection, a change has its own", async () => {
  expect(await run({ origin: here() }, trusting)).toEqual([fine, fine, fine]);
  expect(connections.tls).toBe(2);
  expect(received.map(({ authorization }) => authorization)).toEqual(["Basic eDo=", "Basic eDo=", "Basic eDo="]);
});

test("a trusted certificate for another name is refused", async () => {
  const { port } = server.address() as AddressInfo;
  const results = await run({ origin: `https://127.0.0.2:${port}` }, trusting);
  const refused = { kind: "broken", sent: false, reason: "tls" };
  expect(results).toMatchObject([refused, refused, refused]);
  expect(received).toEqual([]);
});

test("an untrusted certificate is refused, even if the environment disables checks", async () => {
  const results = await run({ origin: here() }, { NODE_TLS_REJECT_UNAUTHORIZED: "0" });
  const refused = { kind: "broken", sent: false, reason: "tls" };
  expect(results).toMatchObject([refused, refused, refused]);
  expect(received).toEqual([]);
});

test("through a proxy: it sees only the host name, and the certificate is still verified", async () => {
  const options = {
    origin: here(),
    proxy: { httpsProxy: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` },
  };
  expect(await run(options, trusting)).toEqual([fine, fine, fine]);
  expect(tunnels).toHaveLength(2);
  for (const tunnel of tunnels) {
    expect(tunnel).toMatch(/^CONNECT localhost:\d+ HTTP\/1\.1\r\n/);
    expect(tunnel.toLowerCase()).not.toContain("authorization");
  }
  const refused = { kind: "broken", sent: false, reason: "tls" };
  expect(await run(options, { NODE_TLS_REJECT_UNAUTHORIZED: "0" })).toMatchObject([refused, refused, refused]);
});
