// Starts the account server as a process of its own.
import { spawn } from "node:child_process";
import { join } from "node:path";

export async function startServer() {
  const child = spawn(process.execPath, [join(import.meta.dirname, "account-server.mjs")], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { PATH: process.env.PATH },
  });
  const port = await new Promise((resolve, reject) => {
    child.stdout.once("data", (text) => resolve(Number(text)));
    child.once("exit", (code) => reject(new Error(`the account server ended with ${code}`)));
  });
  return {
    baseUrl: (keys) => `http://127.0.0.1:${port}${keys === undefined ? "" : `/${keys}`}`,
    stop: () => child.stdin.end(),
  };
}
