// This module is preloaded into the program, and shifts its clock by INTEG_TEST_SHIFT milliseconds, but not its monotonic time.
const shift = Number(process.env.INTEG_TEST_SHIFT);
const now = Date.now.bind(Date);
Date.now = () => now() + shift;
globalThis.Date = class extends Date {
  constructor(...given) {
    super(...(given.length === 0 ? [now() + shift] : given));
  }
};
globalThis.Date.now = () => now() + shift;
