// This module is preloaded into a sandbox (`node --require`). SIGUSR2 advances the sandbox's clock, and the Date header of
// its responses, by INTEG_TEST_SETTLE milliseconds. A line on standard error confirms it.
const { subscribe } = require("node:diagnostics_channel");

const step = Number(process.env.INTEG_TEST_SETTLE);
const now = Date.now.bind(Date);
let ahead = 0;

Date.now = () => now() + ahead;
globalThis.Date = class extends Date {
  constructor(...given) {
    super(...(given.length === 0 ? [now() + ahead] : given));
  }
};

subscribe("integ:sandbox:answer", ({ response }) => response.setHeader("Date", new Date().toUTCString()));

process.on("SIGUSR2", () => {
  ahead += step;
  process.stderr.write("the clock was moved\n");
});
