"use strict";
// For node:assert inside undici, which is 1 ms of a start. undici calls it as a function and does nothing else with it.
module.exports = function assert(value, message) {
  if (value) return;
  throw message instanceof Error ? message : new Error(message ?? "undici met what it takes for impossible");
};
