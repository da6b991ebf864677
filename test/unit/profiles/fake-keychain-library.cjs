// Replaces the keychain's native library: keeps entries in the folder FAKE_KEYCHAIN, behaves as FAKE_MODE says, and records the
// arguments and environment of a child process.
const { existsSync, readFileSync, rmSync, writeFileSync, appendFileSync } = require("node:fs");
const { join } = require("node:path");
const folder = process.env.FAKE_KEYCHAIN;
const mode = process.env.FAKE_MODE;

exports.AsyncEntry = class {
  constructor(service, account, options) {
    this.path = join(folder, `${service}-${account}`);
    appendFileSync(join(folder, "seen"), JSON.stringify([process.argv, process.execArgv, process.env, options]));
    // The real library blocks the whole process, even timers, if the message bus does not respond.
    if (mode === "hang") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    if (mode === "crash") process.kill(process.pid, "SIGSEGV");
  }
  async setPassword(secret) {
    if (mode === "refuse" || (mode === "later" && existsSync(join(folder, "locked")))) throw new Error("AccessDenied.");
    writeFileSync(this.path, mode === "garble" ? `${secret}x` : secret);
  }
  async getPassword() {
    if (mode === "refuse" || existsSync(join(folder, "locked"))) throw new Error("it is locked");
    return existsSync(this.path) ? readFileSync(this.path, "utf8") : null;
  }
  async deletePassword() {
    const there = existsSync(this.path);
    rmSync(this.path, { force: true });
    return there;
  }
};
