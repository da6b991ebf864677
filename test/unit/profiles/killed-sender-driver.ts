// A process that is killed just before it writes a command's input.
import { Socket } from "node:net";
import { runShell } from "../../../src/profiles/shell-command.ts";

const [, , command = ""] = process.argv;

Socket.prototype.end = function end() {
  process.kill(process.pid, "SIGKILL");
  return this;
};
void runShell(command, { env: process.env, input: "canary", timeLimitMs: 10_000 });
